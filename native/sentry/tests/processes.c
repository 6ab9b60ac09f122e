/* Tests with several processes: each watches for itself. */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/wait.h>

static void say(int pipe) {
    CHECK(write(pipe, "x", 1) == 1);
}

static void hear(int pipe) {
    char byte;
    CHECK(read(pipe, &byte, 1) == 1);
}

static void all_are_told(void) {
    enum { PROCESSES = 3 };
    struct pair pair = tcp_pair();
    int ready[2];
    pid_t children[PROCESSES];
    CHECK(pipe(ready) == 0);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            close(pair.client);
            CHECK(socket_watch(pair.server, TOLD) == 0);
            say(ready[1]);
            expect(pair.server, ESHUTDOWN);
            expect_nothing();
            _exit(0);
        }
    }
    CHECK(socket_watch(pair.server, TOLD) == 0);
    for (int i = 0; i < PROCESSES; i++) {
        hear(ready[0]);
    }
    close(pair.client);
    expect(pair.server, ESHUTDOWN);
    for (int i = 0; i < PROCESSES; i++) {
        joined(children[i]);
    }
}

static void forked(void) {
    struct pair before = tcp_pair();
    int ready[2], go[2];
    CHECK(pipe(ready) == 0 && pipe(go) == 0 && socket_watch(before.server, TOLD) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(before.client);
        /* The child has inherited no watch, and takes none from its parent. */
        REFUSED(ENOENT, socket_unwatch(before.server));
        CHECK(socket_watch(before.server, TOLD) == 0 && socket_unwatch(before.server) == 0);
        struct pair own = tcp_pair();
        CHECK(socket_watch(own.server, TOLD) == 0);
        say(ready[1]);
        hear(go[0]);
        /* The parent's client has left: the child is not told. */
        expect_nothing();
        close(own.client);
        expect(own.server, ESHUTDOWN);
        _exit(0);
    }
    hear(ready[0]);
    close(before.client);
    expect(before.server, ESHUTDOWN);
    say(go[1]);
    joined(child);
    struct pair after = tcp_pair();
    CHECK(socket_watch(after.server, TOLD) == 0);
    close(after.client);
    expect(after.server, ESHUTDOWN);
    expect_nothing();
}

static void of_forked(void) {
    struct pair pair = tcp_pair();
    CHECK(socket_watch(pair.server, TOLD) == 0);
    pid_t child = fork();
    if (child == 0) {
        /* A child that ends, and its own children, leave the parent's watches alone. */
        pid_t grandchild = fork();
        if (grandchild == 0) {
            struct pair own = unix_pair();
            CHECK(socket_watch(own.server, TOLD) == 0);
            close(own.client);
            expect(own.server, ESHUTDOWN);
            _exit(0);
        }
        joined(grandchild);
        _exit(0);
    }
    joined(child);
    expect_nothing();
    close(pair.client);
    expect(pair.server, ESHUTDOWN);
}

static atomic_int busy;

static void *watches_and_unwatches(void *nothing) {
    (void)nothing;
    struct pair pair = unix_pair();
    while (busy) {
        CHECK(socket_watch(pair.server, TOLD) == 0 && socket_unwatch(pair.server) == 0);
    }
    return NULL;
}

static void fork_amid_threads(void) {
    enum { THREADS = 2, FORKS = 100 };
    pthread_t threads[THREADS];
    busy = 1;
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, watches_and_unwatches, NULL) == 0);
    }
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct pair own = unix_pair();
            CHECK(socket_watch(own.server, TOLD) == 0);
            close(own.client);
            expect(own.server, ESHUTDOWN);
            _exit(0);
        }
        joined(child);
    }
    busy = 0;
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    expect_nothing();
}

/* Checks a fork during the first watch of another thread. Each round is a process that has not
 * watched before. */
static void fork_amid_the_first(void) {
    enum { ROUNDS = 300 };
    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t first;
            busy = 1;
            CHECK(pthread_create(&first, NULL, watches_and_unwatches, NULL) == 0);
            for (volatile int spin = 0; spin < i * 500; spin++) {
            }
            pid_t grandchild = fork();
            if (grandchild == 0) {
                alarm(30);
                struct pair own = unix_pair();
                CHECK(socket_watch(own.server, TOLD) == 0);
                close(own.client);
                expect(own.server, ESHUTDOWN);
                _exit(0);
            }
            joined(grandchild);
            _exit(0);
        }
        joined(child);
    }
}

static void closed_all(void) {
    struct pair before = tcp_pair();
    CHECK(socket_watch(before.server, TOLD) == 0);
    /* Close all descriptors like a daemon, but too late. */
    for (int fd = 3; fd < 256; fd++) {
        close(fd);
    }
    for (int round = 0; round < 2; round++) {
        struct pair after = tcp_pair();
        CHECK(socket_watch(after.server, TOLD) == 0);
        close(after.client);
        expect(after.server, ESHUTDOWN);
        expect_nothing();
    }
}

enum { FIRST = 3, BEYOND = 32 };

static int number_of_our_set(void) {
    for (int fd = FIRST; fd < BEYOND; fd++) {
        char path[32], what[64] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, what, sizeof what - 1) > 0 && strcmp(what, "anon_inode:[eventpoll]") == 0) {
            return fd;
        }
    }
    abort();
}

/* Makes an epoll set at this number. At all numbers around it, makes sockets that the set watches.
 */
static void take_all_numbers(int set) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    int own = epoll_create1(EPOLL_CLOEXEC), silent = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(own >= 0 && silent >= 0);
    own = fcntl(own, F_DUPFD_CLOEXEC, BEYOND), silent = fcntl(silent, F_DUPFD_CLOEXEC, BEYOND);
    for (int fd = FIRST; fd < BEYOND; fd++) {
        CHECK(dup2(fd == set ? own : silent, fd) == fd);
    }
    close(own), close(silent);
    for (int fd = FIRST; fd < BEYOND; fd++) {
        CHECK(fd == set || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
    }
}

/* Checks that these descriptors were neither closed nor removed from the set. */
static void check_all_numbers(int set) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    for (int fd = FIRST; fd < BEYOND; fd++) {
        CHECK(fcntl(fd, F_GETFD) >= 0);
        CHECK(fd == set || epoll_ctl(set, EPOLL_CTL_MOD, fd, &event) == 0);
    }
}

static void others_took_the_numbers(void) {
    struct pair before = tcp_pair();
    CHECK(socket_watch(before.server, TOLD) == 0);
    int set = number_of_our_set();
    CHECK(before.server < BEYOND && close_range(FIRST, ~0u, 0) == 0);
    take_all_numbers(set);
    pid_t child = fork();
    if (child == 0) {
        check_all_numbers(set);
        _exit(0);
    }
    joined(child);
    socket_unwatch(before.server);
    struct pair after = tcp_pair();
    CHECK(socket_watch(after.server, TOLD) == 0);
    struct epoll_event event;
    REFUSED(ENOENT, epoll_ctl(set, EPOLL_CTL_DEL, after.server, &event));
    check_all_numbers(set);
    close(after.client);
    expect(after.server, ESHUTDOWN);
    CHECK(epoll_wait(set, &event, 1, 0) == 0);
    expect_nothing();
    /* A child does not use the new set either. */
    child = fork();
    if (child == 0) {
        check_all_numbers(set);
        struct pair own = unix_pair();
        CHECK(socket_watch(own.server, TOLD) == 0);
        close(own.client);
        expect(own.server, ESHUTDOWN);
        _exit(0);
    }
    joined(child);
}

const struct test processes_tests[] = {
    {"several", "of several processes that watch a socket, all are told", all_are_told},
    {"fork", "a child watches nothing, may begin at once, and the parent's watches go on", forked},
    {"children", "children that end leave the parent's watches alone", of_forked},
    {"fork-threads", "a fork amid threads that watch leaves a child that can", fork_amid_threads},
    {"fork-first", "so does a fork amid the very first watch", fork_amid_the_first},
    {"closed", "who closes all descriptors, ours too, may go on to watch", closed_all},
    {"numbers", "an epoll set that has got the number of ours is left alone, also in a child", others_took_the_numbers},
    {0},
};
