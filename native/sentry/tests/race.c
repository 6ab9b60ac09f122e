/* A race of threads that watch and unwatch while clients leave: each departure is told once or not
 * at all, and the library says which. */
#include "harness.h"

#include <pthread.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 2000 };

static atomic_int told[THREADS * ROUNDS];
static signed char expected[THREADS * ROUNDS];

static void count_up(uint64_t cookie, int why) {
    CHECK(why == ESHUTDOWN);
    told[cookie]++;
}

/* The clients of all threads, which one thread closes. A slot hands each of them over. */
static atomic_int to_close[THREADS];

static void *closes(void *nothing) {
    (void)nothing;
    for (int closed = 0; closed < THREADS * ROUNDS;) {
        for (int i = 0; i < THREADS; i++) {
            int client = atomic_exchange(&to_close[i], -1);
            if (client >= 0) {
                close(client);
                closed++;
            }
        }
        sched_yield();
    }
    return NULL;
}

static void wait_until_closed(int thread) {
    while (atomic_load(&to_close[thread]) != -1) {
        sched_yield();
    }
}

/* Runs the rounds of one thread. Descriptors come and go in all threads, so a number soon belongs
 * to another thread's connection. */
static void *rounds(void *number) {
    int thread = (int)(intptr_t)number;
    unsigned seed = (unsigned)thread + 1;
    for (int round = 0; round < ROUNDS; round++) {
        int which = thread * ROUNDS + round, spin = rand_r(&seed) % 2000;
        struct pair pair = unix_pair();
        struct socket_watch_opts opts = {.size = sizeof opts, .cookie = (uint64_t)which, .cb = count_up};
        wait_until_closed(thread);
        bool first = rand_r(&seed) % 2;
        if (first) {
            atomic_store(&to_close[thread], pair.client);
        }
        int watched = socket_watch_ex(pair.server, &opts);
        CHECK(watched == 0 || (first && errno == ESHUTDOWN));
        if (!first) {
            atomic_store(&to_close[thread], pair.client);
        }
        for (volatile int i = 0; i < spin; i++) {
        }
        /* Every eighth client has certainly left by now; its departure may have been told or
         * not. */
        struct pollfd left = {pair.server, POLLRDHUP, 0};
        CHECK(round % 8 != 0 || poll(&left, 1, -1) == 1);
        int unwatched = socket_unwatch(pair.server);
        CHECK(unwatched == 0 || errno == ENOENT);
        CHECK(watched == 0 || unwatched == -1);
        expected[which] = watched == 0 && unwatched == -1;
        CHECK(told[which] == expected[which]);
        close(pair.server);
    }
    return NULL;
}

static void race(void) {
    pthread_t threads[THREADS], closer;
    for (int i = 0; i < THREADS; i++) {
        to_close[i] = -1;
    }
    CHECK(pthread_create(&closer, NULL, closes, NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, rounds, (void *)(intptr_t)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(pthread_join(closer, NULL) == 0);
    expect_nothing();
    for (int i = 0; i < THREADS * ROUNDS; i++) {
        CHECK(told[i] == expected[i]);
    }
}

const struct test race_tests[] = {
    {"race", "who watches while clients leave is told once or not at all, and knows which", race},
    {0},
};
