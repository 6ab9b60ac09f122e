/* The common part of the tests: pairs of connected sockets, and the notifications about them.
 *
 * Signals are blocked and taken by sigwaitinfo, so they do not race with the test. A marker shows
 * that something was not told: it is a connection that leaves afterwards. One thread sends all
 * notifications in the order of the departures, so a notification that has not come before the
 * marker does not come. */
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

/* Checks that a call fails with this error. */
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
/* Each file has a list that ends with an empty entry. */
extern const struct test leaving_tests[], arguments_tests[], ways_tests[], processes_tests[], many_tests[], race_tests[];

/* A client and its server. */
struct pair {
    int client, server;
};

struct pair tcp_pair(void);
struct pair unix_pair(void);
/* Resets a TCP connection by its client. */
void reset(int client);
void put(int fd, const char *text);

/* The signal of all tests. It is blocked in this thread and in those that it starts. */
#define TOLD SIGRTMIN
void block_signals(void);
/* Checks that the next notification is this one. */
void expect(int fd, int why);
/* Checks that there is no notification. */
void expect_nothing(void);
/* Checks that a child exits with 0. */
void joined(pid_t child);
/* Raises the limit to `files` open files. Returns false if that is not possible here. */
bool room_for(unsigned files);

#endif
