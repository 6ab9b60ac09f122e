/* What the tests share: a pool, bounded waits, and how a call fails. */
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

/* The call fails like this, and says so in these words, among others. */
#define REFUSED(error, words, call)                            \
    do {                                                       \
        errno = 0;                                             \
        CHECK((intptr_t)(call) == -1);                         \
        CHECK(errno == (error));                               \
        CHECK(strstr(bywash_levels_error(), (words)) != NULL); \
    } while (0)

/* The same of a call that makes something. */
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
/* Each file has a list that ends with an empty one. */
extern const struct test arguments_tests[], turns_tests[], tasks_tests[], many_tests[], processes_tests[],
    gateway_tests[];

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Levels `high`, with all threads, and `low`, with one. */
struct bywash_levels_pool *pool_of(uint32_t threads);
/* A level's statistics, of a pool with those two. */
struct bywash_levels_level_stats stats_of(struct bywash_levels_pool *pool, const char *level);
/* So many threads of this process. */
unsigned threads_here(void);
void thread(pthread_t *thread, void *(*run)(void *), void *arg);
void joined(pthread_t thread);
/* An exit status of 0 is expected of a child. */
void child_passes(pid_t child);

/* Waits until that is so: whatever hangs is ended by the alarm of main.c. */
#define UNTIL(what)   \
    while (!(what)) { \
        sched_yield(); \
    }

#endif
