/* Tests of the kinds of notification, and of what callbacks and handlers may do. */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static struct {
    sem_t called;
    _Atomic uint64_t cookie;
    atomic_int why, calls;
} seen;

static void see(uint64_t cookie, int why) {
    seen.cookie = cookie;
    seen.why = why;
    seen.calls++;
    sem_post(&seen.called);
}

static void wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0) {
        CHECK(errno == EINTR);
    }
}

static void all_at_once(void) {
    struct pair pair = tcp_pair();
    int counter = eventfd(0, EFD_CLOEXEC);
    struct socket_watch_opts opts = {.size = sizeof opts, .flags = SW_EVENTFD, .signum = TOLD, .cookie = 1ull << 40 | 7, .eventfd = counter, .cb = see};
    CHECK(socket_watch_ex(pair.server, &opts) == 0);
    close(pair.client);
    wait_for(&seen.called);
    CHECK(seen.cookie == opts.cookie && seen.why == ESHUTDOWN);
    uint64_t count;
    CHECK(read(counter, &count, sizeof count) == sizeof count && count == 1);
    sigset_t set;
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, TOLD);
    CHECK(sigwaitinfo(&set, &info) == TOLD);
    CHECK((uintptr_t)info.si_value.sival_ptr == opts.cookie && info.si_errno == ESHUTDOWN);
}

static pid_t tid_of_other;
static sem_t other_is_there;

static void *takes_signals(void *pair) {
    tid_of_other = (pid_t)syscall(SYS_gettid);
    sem_post(&other_is_there);
    expect(((struct pair *)pair)->server, ESHUTDOWN);
    return NULL;
}

static void another_thread(void) {
    struct pair pair = tcp_pair();
    pthread_t other;
    CHECK(pthread_create(&other, NULL, takes_signals, &pair) == 0);
    wait_for(&other_is_there);
    struct socket_watch_opts opts = {.size = sizeof opts, .signum = TOLD, .tid = tid_of_other};
    CHECK(socket_watch_ex(pair.server, &opts) == 0);
    close(pair.client);
    CHECK(pthread_join(other, NULL) == 0);
    expect_nothing();
}

static struct pair own, others;
static sem_t begun, go_on;

static void unwatches(uint64_t cookie, int why) {
    (void)why;
    wait_for(&go_on);
    /* This watch has been told; the other has not, although its client has left, too. */
    REFUSED(ENOENT, socket_unwatch((int)cookie));
    CHECK(socket_unwatch(others.server) == 0);
    REFUSED(ESHUTDOWN, socket_watch(others.server, TOLD));
    struct pair pair = tcp_pair();
    struct socket_watch_opts opts = {.size = sizeof opts, .cookie = 9, .cb = see};
    CHECK(socket_watch_ex(pair.server, &opts) == 0);
    close(pair.client);
}

static void in_a_callback(void) {
    own = tcp_pair(), others = tcp_pair();
    struct socket_watch_opts opts = {.size = sizeof opts, .cookie = (uint64_t)own.server, .cb = unwatches};
    CHECK(socket_watch_ex(own.server, &opts) == 0);
    CHECK(socket_watch(others.server, TOLD) == 0);
    close(own.client);
    close(others.client);
    sem_post(&go_on);
    wait_for(&seen.called);
    CHECK(seen.cookie == 9 && seen.calls == 1);
}

static atomic_int over;

static void takes_long(uint64_t cookie, int why) {
    (void)cookie, (void)why;
    sem_post(&begun);
    wait_for(&go_on);
    over = 1;
}

static void *unwatches_meanwhile(void *server) {
    tid_of_other = (pid_t)syscall(SYS_gettid);
    sem_post(&other_is_there);
    REFUSED(ENOENT, socket_unwatch(*(int *)server));
    CHECK(over == 1);
    return NULL;
}

static bool sleeps(pid_t tid) {
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    int file = open(path, O_RDONLY);
    CHECK(file >= 0 && read(file, text, sizeof text - 1) > 0);
    close(file);
    return strstr(text, ") S ") != NULL;
}

static void waits(void) {
    struct pair pair = tcp_pair();
    struct socket_watch_opts opts = {.size = sizeof opts, .cb = takes_long};
    pthread_t other;
    CHECK(socket_watch_ex(pair.server, &opts) == 0);
    close(pair.client);
    wait_for(&begun);
    CHECK(pthread_create(&other, NULL, unwatches_meanwhile, &pair.server) == 0);
    wait_for(&other_is_there);
    while (!sleeps(tid_of_other)) {
        sched_yield();
    }
    sem_post(&go_on);
    CHECK(pthread_join(other, NULL) == 0);
}

static atomic_int handled;

static void unwatches_in_handler(int signum, siginfo_t *info, void *context) {
    (void)signum, (void)context;
    int before = errno;
    socket_unwatch(info->si_value.sival_int);
    errno = before;
    handled++;
}

static void in_a_handler(void) {
    enum { ROUNDS = 2000 };
    struct sigaction action = {.sa_sigaction = unwatches_in_handler, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGRTMIN + 1, &action, NULL) == 0);
    int told = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct pair pair = unix_pair(), busy = unix_pair();
        CHECK(socket_watch(pair.server, SIGRTMIN + 1) == 0);
        close(pair.client);
        /* The handler runs at about this point, also while this thread is in the library. */
        CHECK(socket_watch(busy.server, SIGRTMIN + 1) == 0 && socket_unwatch(busy.server) == 0);
        told += socket_unwatch(pair.server) == -1;
        /* A signal that was sent has been handled by now, because it was for this thread. */
        CHECK(handled == told);
        close(pair.server), close(busy.server), close(busy.client);
    }
}

static sigjmp_buf back;
static atomic_int may_jump, jumps, shooting;

static void jumps_away(int signum) {
    (void)signum;
    if (may_jump) {
        jumps++;
        siglongjmp(back, 1);
    }
}

static void *shoots(void *target) {
    while (shooting) {
        pthread_kill(*(pthread_t *)target, SIGUSR1);
        sched_yield();
    }
    return NULL;
}

static void jumped_out_of(void) {
    enum { JUMPS = 2000 };
    struct sigaction action = {.sa_handler = jumps_away};
    struct pair pair = unix_pair();
    pthread_t shooter, self = pthread_self();
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    shooting = 1;
    CHECK(pthread_create(&shooter, NULL, shoots, &self) == 0);
    sigsetjmp(back, 1);
    may_jump = 1;
    while (jumps < JUMPS) {
        socket_watch(pair.server, TOLD);
        socket_unwatch(pair.server);
    }
    may_jump = 0;
    shooting = 0;
    CHECK(pthread_join(shooter, NULL) == 0);
    socket_unwatch(pair.server);
    CHECK(socket_watch(pair.server, TOLD) == 0);
    close(pair.client);
    expect(pair.server, ESHUTDOWN);
}

/* Returns how many signals and timers the user has queued, since the limit counts those of all
 * processes of the user. If the user is root, first switches to a user that has none. */
static rlim_t queued_already(void) {
    CHECK(getuid() != 0 || setuid(64213) == 0);
    char line[128];
    unsigned long queued = 0;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL && sscanf(line, "SigQ: %lu", &queued) != 1) {
    }
    fclose(status);
    return queued;
}

static void full_queue(void) {
    enum { CLIENTS = 200, ROOM = 8 };
    rlim_t queued = queued_already();
    struct rlimit few = {queued + ROOM, queued + ROOM};
    struct pair pairs[CLIENTS];
    bool told[4096] = {false};
    CHECK(setrlimit(RLIMIT_SIGPENDING, &few) == 0);
    for (int i = 0; i < CLIENTS; i++) {
        pairs[i] = unix_pair();
        CHECK(pairs[i].server < 4096 && socket_watch(pairs[i].server, TOLD) == 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        close(pairs[i].client);
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, TOLD);
    for (int i = 0; i < CLIENTS; i++) {
        siginfo_t info;
        CHECK(sigwaitinfo(&set, &info) == TOLD);
        int fd = info.si_value.sival_int;
        CHECK(fd >= 0 && fd < 4096 && !told[fd]);
        told[fd] = true;
    }
}

const struct test ways_tests[] = {
    {"ways", "signal, eventfd and callback are told, each with its cookie", all_at_once},
    {"thread", "the signal goes to the thread that was named", another_thread},
    {"callback", "a callback may watch and unwatch, itself and others", in_a_callback},
    {"waits", "unwatch returns when a callback that runs has ended", waits},
    {"handler", "a handler may unwatch, wherever it interrupts", in_a_handler},
    {"jump", "a handler may jump out of the library", jumped_out_of},
    {"queue", "all are told though the queue of signals is full", full_queue},
    {0},
};
