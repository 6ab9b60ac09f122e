/* What a watch costs, and how soon a departure is told, with 10,000 connections watched.
 *
 * The clients are a process of their own: it notes the time, closes one, and goes on when the handler has run. The
 * server computes all the while, so the signal interrupts it, as in the seed. Last, 8,900 leave at once. Prints a
 * table; asserts nothing about time. */
#include <errno.h>
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

enum { ALL = 10000, SINGLY = 1100, AT_ONCE = ALL - SINGLY };

/* Shared by both processes. */
static struct shared {
    atomic_llong closed_at;
    atomic_int told; /* of all */
    atomic_int turn; /* how many the clients may close */
} *shared;

static int servers[ALL];
static double delays[SINGLY], watch_us[ALL], unwatch_us[ALL];
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

static void handler(int signum) {
    (void)signum;
    last_at = now();
    int told = shared->told;
    if (told < SINGLY) {
        delays[told] = (double)(last_at - shared->closed_at) / 1000;
    }
    shared->told = told + 1;
}

static void clients(struct sockaddr_in at) {
    static int connected[ALL];
    for (int i = 0; i < ALL; i++) {
        connected[i] = socket(AF_INET, SOCK_STREAM, 0);
        must(connect(connected[i], (struct sockaddr *)&at, sizeof at) == 0, "connect");
    }
    for (int i = 0; i < SINGLY; i++) {
        while (shared->turn <= i) {
            usleep(200);
        }
        shared->closed_at = now();
        close(connected[i]);
    }
    while (shared->turn < ALL) {
        usleep(200);
    }
    shared->closed_at = now();
    for (int i = SINGLY; i < ALL; i++) {
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
    for (int i = 0; i < ALL; i++) {
        servers[i] = accept(listener, NULL, NULL);
        must(servers[i] >= 0, "accept");
    }
    return child;
}

int main(void) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(shared != MAP_FAILED, "mmap");
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    must(sigaction(SIGRTMIN, &action, NULL) == 0, "sigaction");
    pid_t child = connect_all();

    watch_all();
    unwatch_all();
    watch_all();
    for (int i = 0; i < SINGLY; i++) {
        shared->turn = i + 1;
        while (shared->told <= i) {
        }
    }
    shared->turn = ALL;
    while (shared->told < ALL) {
    }
    printf("| µs, %d connections watched | median | p99 | most |\n|---|---|---|---|\n", ALL);
    print("`socket_watch`", watch_us, ALL);
    print("`socket_unwatch`", unwatch_us, ALL);
    print("a client closes → the handler runs", delays, SINGLY);
    printf("\n%d clients close at once: all are told, the last %.0f ms after the first began to close\n", AT_ONCE,
           (double)(last_at - shared->closed_at) / 1e6);
    waitpid(child, NULL, 0);
    return 0;
}
