/* The common part of the tests: a pool, bounded waits, and checks of failing calls. */
#ifndef HARNESS_H
#define HARNESS_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bywash/levels.h"

#define CHECK(what)                                                                                  \
    do {                                                                                             \
        if (!(what)) {                                                                               \
            fprintf(stderr, "%s:%d: not so: %s (errno %s; %s)\n", __FILE__, __LINE__, #what,         \
                    strerror(errno), bywash_levels_error());                                         \
            _exit(1);                                                                                \
        }                                                                                            \
    } while (0)

/* Checks that a call that returns an int fails with `error`, and that the text of the error
 * contains `words`. */
#define REFUSED(error, words, call)                            \
    do {                                                       \
        errno = 0;                                             \
        CHECK((intptr_t)(call) == -1);                         \
        CHECK(errno == (error));                               \
        CHECK(strstr(bywash_levels_error(), (words)) != NULL); \
    } while (0)

/* Checks that a call that returns a pointer fails with `error`, and that the text of the error
 * contains `words`. */
#define NOT_MADE(error, words, call)                           \
    do {                                                       \
        errno = 0;                                             \
        CHECK((call) == NULL);                                 \
        CHECK(errno == (error));                               \
        CHECK(strstr(bywash_levels_error(), (words)) != NULL); \
    } while (0)

struct test {
    const char *word, *name;
    void (*run)(void);
};
/* The lists of tests, one of each file. A list ends with an empty entry. */
extern const struct test arguments_tests[], turns_tests[], tasks_tests[], many_tests[], processes_tests[],
    gateway_tests[];

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Makes a pool with two levels: `high`, whose requests may have all threads, and `low`, whose
 * requests have one. */
struct bywash_levels_pool *pool_of(uint32_t threads);
/* Returns the statistics of a level of a pool that pool_of() has made. */
struct bywash_levels_level_stats stats_of(struct bywash_levels_pool *pool, const char *level);
/* Returns the number of threads of this process. */
unsigned threads_here(void);
void thread(pthread_t *thread, void *(*run)(void *), void *arg);
void joined(pthread_t thread);
/* Waits for a child process, and checks that it exits with 0. */
void child_passes(pid_t child);

/* Waits until the condition `what` holds. The alarm of main.c ends a test that hangs. */
#define UNTIL(what)   \
    while (!(what)) { \
        sched_yield(); \
    }

#endif
