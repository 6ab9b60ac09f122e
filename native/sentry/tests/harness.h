/* The common part of the tests: pairs of connected sockets, and the notifications about them.
 *
 * Signals are blocked and taken by sigwaitinfo, so they do not race with the test. To show that
 * something was not notified, a test uses a marker: a connection that leaves afterwards. One
 * thread sends all notifications in the order of the departures. A notification that has not
 * come before the marker's therefore does not come at all. */
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

/* Checks that a call fails with `error`. */
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
/* The lists of tests, one of each file. A list ends with an empty entry. */
extern const struct test leaving_tests[], arguments_tests[], ways_tests[], processes_tests[], many_tests[], race_tests[];

/* The two connected sockets of a client and its server. */
struct pair {
    int client, server;
};

struct pair tcp_pair(void);
struct pair unix_pair(void);
/* Resets a TCP connection from the side of its client. */
void reset(int client);
void put(int fd, const char *text);

/* The signal of all tests. It is blocked in the main thread and in the threads that the main
 * thread starts. */
#define TOLD SIGRTMIN
void block_signals(void);
/* Checks that the next notification is about the descriptor `fd` and has the reason `why`. */
void expect(int fd, int why);
/* Checks that there is no notification. */
void expect_nothing(void);
/* Waits for a child process, and checks that it exits with 0. */
void joined(pid_t child);
/* Raises the limit of open files to `files`. Returns false if that is not possible here. */
bool room_for(unsigned files);

#endif
