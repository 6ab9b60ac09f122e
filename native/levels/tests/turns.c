/* Tests of turns: which requests have one, which wait, and which are refused. */
#include "harness.h"

#include <sched.h>

#define MILLISECOND 1000000

static void *waits(void *arg) {
    struct bywash_levels_pool *pool = arg;
    struct bywash_levels_request *request = bywash_levels_begin(pool, "low", -1);
    if (request == NULL) {
        CHECK(errno == ESHUTDOWN);
        return NULL;
    }
    CHECK(bywash_levels_end(request) == 0);
    return request;
}

static void as_many_as_threads(void) {
    struct bywash_levels_pool *pool = pool_of(2);
    struct bywash_levels_request *first = bywash_levels_begin(pool, "low", 0);
    struct bywash_levels_request *second = bywash_levels_begin(pool, "high", 0);
    CHECK(first != NULL && second != NULL);
    NOT_MADE(ETIMEDOUT, "no turn came", bywash_levels_begin(pool, "high", 0));
    NOT_MADE(ETIMEDOUT, "no turn came", bywash_levels_begin(pool, "low", MILLISECOND));
    pthread_t waiting;
    thread(&waiting, waits, pool);
    UNTIL(stats_of(pool, "low").waiting == 1);
    CHECK(stats_of(pool, "low").running == 1 && stats_of(pool, "high").threads == 1);
    CHECK(bywash_levels_fail(second) == 0);
    CHECK(bywash_levels_end(second) == 0);
    void *had;
    CHECK(pthread_join(waiting, &had) == 0 && had != NULL);
    CHECK(bywash_levels_end(first) == 0);
    struct bywash_levels_level_stats high = stats_of(pool, "high"), low = stats_of(pool, "low");
    CHECK(high.size == sizeof high && low.size == sizeof low);
    CHECK(high.answered == 1 && high.failed == 1 && high.left == 1 && high.running == 0);
    CHECK(low.answered == 2 && low.failed == 0 && low.left == 1 && low.refused == 0 && low.waiting == 0);
    CHECK(low.p99_ns >= low.median_ns && low.mean_ns > 0 && high.share + low.share > 0.99);
    CHECK(bywash_levels_free(pool) == 0);
}

static void full(void) {
    const struct bywash_levels_level level = {.name = "low", .queue = 1};
    const struct bywash_levels_options options = {
        .size = sizeof options, .threads = 1, .levels = &level, .level_count = 1};
    struct bywash_levels_pool *pool = bywash_levels_new(&options);
    struct bywash_levels_request *turn = bywash_levels_begin(pool, "low", -1);
    struct bywash_levels_level_stats low = {.size = sizeof low};
    pthread_t waiting;
    thread(&waiting, waits, pool);
    do {
        CHECK(bywash_levels_stats(pool, &low, 1) == 0);
    } while (low.waiting == 0);
    NOT_MADE(EAGAIN, "full", bywash_levels_begin(pool, "low", -1));
    CHECK(bywash_levels_end(turn) == 0);
    joined(waiting);
    CHECK(bywash_levels_stats(pool, &low, 1) == 0 && low.refused == 1 && low.answered == 2);
    CHECK(bywash_levels_free(pool) == 0);
}

/* The submitted requests and their results. */
struct handed {
    struct bywash_levels_pool *pool;
    struct bywash_levels_request *request;
    atomic_int run, turned_out, sum;
    atomic_bool is_freed_soon;
};

static void add(size_t i, void *arg) {
    atomic_fetch_add((atomic_int *)arg, (int)i);
}

static void run(struct bywash_levels_request *request, void *arg) {
    struct handed *handed = arg;
    if (request == NULL) {
        handed->turned_out++;
        return;
    }
    CHECK(bywash_levels_parallel_for(request, 5, add, &handed->sum) == 0);
    REFUSED(EPERM, "function", bywash_levels_end(request));
    CHECK(bywash_levels_fail(request) == 0);
    handed->run++;
}

static void submitted(void) {
    struct handed handed = {.pool = pool_of(2)};
    for (int i = 0; i < 200; i++) {
        CHECK(bywash_levels_submit(handed.pool, i % 2 ? "high" : "low", run, &handed) == 0);
    }
    UNTIL(handed.run == 200);
    CHECK(handed.sum == 200 * 10 && handed.turned_out == 0);
    UNTIL(stats_of(handed.pool, "low").failed == 100 && stats_of(handed.pool, "high").failed == 100);
    CHECK(bywash_levels_free(handed.pool) == 0);
}

static void closed(void) {
    struct handed handed = {.pool = pool_of(1)};
    struct bywash_levels_request *turn = bywash_levels_begin(handed.pool, "high", -1);
    pthread_t waiting;
    void *had;
    thread(&waiting, waits, handed.pool);
    CHECK(bywash_levels_submit(handed.pool, "high", run, &handed) == 0);
    UNTIL(stats_of(handed.pool, "low").waiting == 1);
    CHECK(bywash_levels_close(handed.pool) == 0);
    CHECK(handed.turned_out == 1 && handed.run == 0);
    CHECK(pthread_join(waiting, &had) == 0 && had == NULL);
    NOT_MADE(ESHUTDOWN, "shut down", bywash_levels_begin(handed.pool, "high", -1));
    REFUSED(ESHUTDOWN, "shut down", bywash_levels_submit(handed.pool, "low", run, &handed));
    CHECK(handed.turned_out == 1);
    CHECK(bywash_levels_close(handed.pool) == 0);
    /* A request that has begun goes on. */
    CHECK(bywash_levels_parallel_for(turn, 5, add, &handed.sum) == 0 && handed.sum == 10);
    CHECK(bywash_levels_end(turn) == 0);
    CHECK(bywash_levels_free(handed.pool) == 0);
    UNTIL(threads_here() == 1);
}

static void frees(struct bywash_levels_request *request, void *arg) {
    struct handed *handed = arg;
    CHECK(request != NULL);
    REFUSED(EDEADLK, "callback", bywash_levels_free(handed->pool));
    struct bywash_levels_pool *other = pool_of(1);
    CHECK(bywash_levels_free(other) == 0);
    handed->run++;
}

static void freed_within(void) {
    struct handed handed = {.pool = pool_of(1)};
    CHECK(bywash_levels_submit(handed.pool, "low", frees, &handed) == 0);
    UNTIL(handed.run == 1);
    NOT_MADE(ESHUTDOWN, "shut down", bywash_levels_begin(handed.pool, "low", -1));
    CHECK(bywash_levels_free(handed.pool) == 0);
}

static void *runs_tasks(void *arg) {
    struct handed *handed = arg;
    CHECK(bywash_levels_parallel_for(handed->request, 5, add, &handed->sum) == 0);
    handed->run++;
    UNTIL(handed->is_freed_soon);
    CHECK(bywash_levels_end(handed->request) == 0);
    return NULL;
}

static void freed_with_own_request(void) {
    struct handed handed = {.pool = pool_of(2)};
    handed.request = bywash_levels_begin(handed.pool, "low", -1);
    REFUSED(EDEADLK, "has a request", bywash_levels_free(handed.pool));
    NOT_MADE(ESHUTDOWN, "shut down", bywash_levels_begin(handed.pool, "low", -1));
    CHECK(bywash_levels_parallel_for(handed.request, 5, add, &handed.sum) == 0 && handed.sum == 10);
    CHECK(bywash_levels_end(handed.request) == 0);
    CHECK(bywash_levels_free(handed.pool) == 0);
    /* A request in which another thread runs tasks is that thread's, and is waited for. */
    handed = (struct handed){.pool = pool_of(2)};
    handed.request = bywash_levels_begin(handed.pool, "low", -1);
    pthread_t other;
    thread(&other, runs_tasks, &handed);
    UNTIL(handed.run == 1);
    handed.is_freed_soon = true;
    CHECK(bywash_levels_free(handed.pool) == 0);
    joined(other);
    CHECK(handed.sum == 10);
}

static void *submits(void *arg) {
    struct handed *handed = arg;
    for (long accepted = 0;; accepted++) {
        if (bywash_levels_submit(handed->pool, "low", run, handed) == -1) {
            if (errno == ESHUTDOWN) {
                return (void *)accepted;
            }
            CHECK(errno == EAGAIN);
            accepted--;
        }
    }
}

/* Checks that `run` is called exactly once if submitting returned 0, even if the pool is closed at
 * that moment. */
static void closed_while_submitting(void) {
    for (int round = 0; round < 50; round++) {
        struct handed handed = {.pool = pool_of(2)};
        pthread_t threads[3];
        long accepted = 0;
        for (size_t i = 0; i < COUNT(threads); i++) {
            thread(&threads[i], submits, &handed);
        }
        UNTIL(handed.run > round);
        CHECK(bywash_levels_close(handed.pool) == 0);
        for (size_t i = 0; i < COUNT(threads); i++) {
            void *result;
            CHECK(pthread_join(threads[i], &result) == 0);
            accepted += (long)result;
        }
        CHECK(bywash_levels_free(handed.pool) == 0);
        CHECK(handed.run + handed.turned_out == accepted);
    }
}

static void *ends(void *request) {
    CHECK(bywash_levels_end(request) == 0);
    return NULL;
}

static void ended_elsewhere(void) {
    struct bywash_levels_pool *pool = pool_of(1);
    pthread_t other;
    thread(&other, ends, bywash_levels_begin(pool, "low", -1));
    /* This waits for the other thread's request. */
    CHECK(bywash_levels_end(bywash_levels_begin(pool, "low", -1)) == 0);
    joined(other);
    CHECK(bywash_levels_free(pool) == 0);
}

static void parity(void) {
    const struct bywash_levels_level level = {.name = "all", .max_threads = 4, .floor = -1, .weight = 2};
    const struct bywash_levels_options options = {
        .size = sizeof options, .threads = 1, .parity = 2, .levels = &level, .level_count = 1};
    struct bywash_levels_pool *pool = bywash_levels_new(&options);
    CHECK(pool != NULL);
    struct bywash_levels_request *first = bywash_levels_begin(pool, "all", 0);
    struct bywash_levels_request *second = bywash_levels_begin(pool, "all", 0);
    CHECK(first != NULL && second != NULL);
    NOT_MADE(ETIMEDOUT, "no turn", bywash_levels_begin(pool, "all", 0));
    CHECK(bywash_levels_end(first) == 0 && bywash_levels_end(second) == 0);
    CHECK(bywash_levels_free(pool) == 0);
}

const struct test turns_tests[] = {
    {"turns", "as many have their turn as there are threads, the others wait or leave", as_many_as_threads},
    {"full", "who finds no room to wait is refused", full},
    {"submitted", "what is submitted is run by the pool, and may have tasks", submitted},
    {"closed", "a closed pool turns out who waits, and lets go on who has begun", closed},
    {"freed-within", "a callback may free another pool, not its own", freed_within},
    {"freed-own", "a thread cannot wait for its own request", freed_with_own_request},
    {"closing", "what is submitted while the pool is closed is called once, or refused", closed_while_submitting},
    {"elsewhere", "a request may be ended by another thread", ended_elsewhere},
    {"parity", "in parity places are scarce", parity},
    {0},
};
