/* The cost of a watch, and the delay of a notification, with 10,000 connections watched.
 *
 * The clients are a process of their own: it notes the time, closes one connection, and goes on
 * when the handler has run. The server computes all the time, so the signal interrupts it, as in
 * paper 4. For comparison, in the same run: the signal that the kernel itself sends (F_SETSIG
 * with O_ASYNC; also for data, and to one process only), which is the least that this machine
 * needs. At the end, 8,900 clients leave at once. The program prints a table and asserts nothing
 * about time. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bywash/sentry.h"

enum { ALL = 10000, SINGLY = 1100, AT_ONCE = ALL - SINGLY, BY_KERNEL = SINGLY };

/* Shared by both processes. */
static struct shared {
    atomic_llong closed_at;
    atomic_int told; /* the number of notifications */
    atomic_int turn; /* the number of clients that may close */
} *shared;

/* The connections that the kernel watches come first, then those of the sentry. */
static int of_kernel[BY_KERNEL], servers[ALL];
static double delays[BY_KERNEL + SINGLY], watch_us[ALL], unwatch_us[ALL];
static volatile long long last_at;

static void must(int good, const char *what) {
    if (!good) {
        perror(what);
        exit(1);
    }
}

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static void handler(int signum, siginfo_t *info, void *context) {
    (void)signum, (void)context;
    int told = shared->told;
    /* The kernel may send several signals for one departure. */
    if (info->si_code > 0 && (told >= BY_KERNEL || info->si_fd != of_kernel[told])) {
        return;
    }
    last_at = now();
    if (told < BY_KERNEL + SINGLY) {
        delays[told] = (double)(last_at - shared->closed_at) / 1000;
    }
    shared->told = told + 1;
}

static void clients(struct sockaddr_in at) {
    enum { ONE_BY_ONE = BY_KERNEL + SINGLY };
    static int connected[BY_KERNEL + ALL];
    for (int i = 0; i < BY_KERNEL + ALL; i++) {
        connected[i] = socket(AF_INET, SOCK_STREAM, 0);
        must(connect(connected[i], (struct sockaddr *)&at, sizeof at) == 0, "connect");
    }
    for (int i = 0; i < ONE_BY_ONE; i++) {
        while (shared->turn <= i) {
            usleep(200);
        }
        shared->closed_at = now();
        close(connected[i]);
    }
    while (shared->turn < BY_KERNEL + ALL) {
        usleep(200);
    }
    shared->closed_at = now();
    for (int i = ONE_BY_ONE; i < BY_KERNEL + ALL; i++) {
        close(connected[i]);
    }
    _exit(0);
}

static int by_size(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void print(const char *what, double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_size);
    printf("| %s | %.1f | %.1f | %.1f |\n", what, values[count / 2], values[count * 99 / 100], values[count - 1]);
}

static void watch_all(void) {
    for (int i = 0; i < ALL; i++) {
        long long before = now();
        must(socket_watch(servers[i], SIGRTMIN) == 0, "socket_watch");
        watch_us[i] = (double)(now() - before) / 1000;
    }
}

static void unwatch_all(void) {
    for (int i = 0; i < ALL; i++) {
        long long before = now();
        must(socket_unwatch(servers[i]) == 0, "socket_unwatch");
        unwatch_us[i] = (double)(now() - before) / 1000;
    }
}

static pid_t connect_all(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    must(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 4096) == 0, "listen");
    must(getsockname(listener, (struct sockaddr *)&at, &size) == 0, "getsockname");
    pid_t child = fork();
    if (child == 0) {
        clients(at);
    }
    for (int i = 0; i < BY_KERNEL + ALL; i++) {
        int *server = i < BY_KERNEL ? &of_kernel[i] : &servers[i - BY_KERNEL];
        *server = accept(listener, NULL, NULL);
        must(*server >= 0, "accept");
    }
    return child;
}

static void watch_by_kernel(void) {
    for (int i = 0; i < BY_KERNEL; i++) {
        must(fcntl(of_kernel[i], F_SETSIG, SIGRTMIN) == 0 && fcntl(of_kernel[i], F_SETOWN, getpid()) == 0, "F_SETSIG");
        must(fcntl(of_kernel[i], F_SETFL, O_ASYNC) == 0, "O_ASYNC");
    }
}

static void one_by_one(int count) {
    for (int i = 0; i < count; i++) {
        shared->turn = i + 1;
        while (shared->told <= i) {
        }
    }
}

int main(void) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(shared != MAP_FAILED, "mmap");
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_RESTART | SA_SIGINFO};
    must(sigaction(SIGRTMIN, &action, NULL) == 0, "sigaction");
    pid_t child = connect_all();

    watch_all();
    unwatch_all();
    watch_all();
    watch_by_kernel();
    one_by_one(BY_KERNEL + SINGLY);
    shared->turn = BY_KERNEL + ALL;
    while (shared->told < BY_KERNEL + ALL) {
    }
    printf("| µs, %d connections watched | median | p99 | most |\n|---|---|---|---|\n", ALL);
    print("`socket_watch`", watch_us, ALL);
    print("`socket_unwatch`", unwatch_us, ALL);
    print("a client closes → the handler runs", delays + BY_KERNEL, SINGLY);
    print("the same by the kernel's own signal", delays, BY_KERNEL);
    printf("\n%d clients close at once: all are told, the last %.0f ms after the first began to close\n", AT_ONCE,
           (double)(last_at - shared->closed_at) / 1e6);
    waitpid(child, NULL, 0);
    return 0;
}
