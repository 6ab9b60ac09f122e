/* What the tests share: pairs of connected sockets, and what was told of them.
 *
 * Signals are blocked and taken by sigwaitinfo, so nothing races with the test. That something was not told is
 * known by a marker: a connection that leaves afterwards. One thread tells all in the order in which it happens, so
 * what has not come before the marker does not come. */
#ifndef HARNESS_H
#define HARNESS_H

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bywash/sentry.h"

#define CHECK(what)                                                                                  \
    do {                                                                                             \
        if (!(what)) {                                                                               \
            fprintf(stderr, "%s:%d: not so: %s (errno %s)\n", __FILE__, __LINE__, #what, strerror(errno)); \
            _exit(1);                                                                                \
        }                                                                                            \
    } while (0)

/* The call fails like this. */
#define REFUSED(error, call)  \
    do {                      \
        errno = 0;            \
        CHECK((call) == -1);  \
        CHECK(errno == (error)); \
    } while (0)

struct test {
    const char *word, *name;
    void (*run)(void);
};
/* Each file has a list that ends with an empty one. */
extern const struct test leaving_tests[], arguments_tests[], ways_tests[], processes_tests[], many_tests[], race_tests[];

/* A client and its server. */
struct pair {
    int client, server;
};

struct pair tcp_pair(void);
struct pair unix_pair(void);
/* TCP, reset by its client. */
void reset(int client);
void put(int fd, const char *text);

/* The signal of all tests: blocked, in this thread and those it starts. */
#define TOLD SIGRTMIN
void block_signals(void);
/* The next departure is this one. */
void expect(int fd, int why);
/* Nothing was told. */
void expect_nothing(void);
/* An exit status of 0 is expected of a child. */
void joined(pid_t child);
/* Room for so many open files; false: not here. */
bool room_for(unsigned files);

#endif
