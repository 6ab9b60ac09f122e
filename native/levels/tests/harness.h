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

/* Checks that a call fails with this error, and that its text contains these words. */
#define REFUSED(error, words, call)                            \
    do {                                                       \
        errno = 0;                                             \
        CHECK((intptr_t)(call) == -1);                         \
        CHECK(errno == (error));                               \
        CHECK(strstr(bywash_levels_error(), (words)) != NULL); \
    } while (0)

/* The same for a call that returns a pointer. */
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
/* Each file has a list that ends with an empty entry. */
extern const struct test arguments_tests[], turns_tests[], tasks_tests[], many_tests[], processes_tests[],
    gateway_tests[];

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Makes a pool with the levels `high`, with all threads, and `low`, with one. */
struct bywash_levels_pool *pool_of(uint32_t threads);
/* Returns a level's statistics, of a pool with those two. */
struct bywash_levels_level_stats stats_of(struct bywash_levels_pool *pool, const char *level);
/* Returns the number of threads of this process. */
unsigned threads_here(void);
void thread(pthread_t *thread, void *(*run)(void *), void *arg);
void joined(pthread_t thread);
/* Checks that a child exits with 0. */
void child_passes(pid_t child);

/* Waits until the condition holds. The alarm of main.c ends a test that hangs. */
#define UNTIL(what)   \
    while (!(what)) { \
        sched_yield(); \
    }

#endif
