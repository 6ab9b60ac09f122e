/* The cost of the calls, each relative to a thread that is started and joined instead, in the same
 * run. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bywash/levels.h"

enum { TIMES = 20000, TASKS = 1000 };

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void *nothing(void *arg) {
    return arg;
}

static void each(size_t i, void *arg) {
    (void)i, (void)arg;
}

static void task(struct bywash_levels_tasks *tasks, void *arg) {
    (void)tasks, (void)arg;
}

static void fill(struct bywash_levels_tasks *tasks, void *arg) {
    for (int i = 0; i < TASKS; i++) {
        bywash_levels_spawn(tasks, task, arg);
    }
}

static void run(struct bywash_levels_request *request, void *arg) {
    (void)request;
    ++*(atomic_int *)arg;
}

static double thread_cost;

static void row(const char *what, double seconds, double count) {
    double each_one = seconds / count;
    printf("| %s | %.2f | %.3f |\n", what, each_one * 1e6, each_one / thread_cost);
}

int main(void) {
    const struct bywash_levels_level level = {.name = "all", .max_threads = 2, .queue = TIMES};
    const struct bywash_levels_options options = {
        .size = sizeof options, .threads = 2, .levels = &level, .level_count = 1};
    struct bywash_levels_pool *pool = bywash_levels_new(&options);
    if (pool == NULL) {
        fprintf(stderr, "cost: %s\n", bywash_levels_error());
        return 1;
    }
    atomic_int called = 0;
    double begun = now();
    for (int i = 0; i < TIMES; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL) != 0) {
            return 1;
        }
        pthread_join(thread, NULL);
    }
    thread_cost = (now() - begun) / TIMES;
    printf("| | µs | of a thread's |\n|---|---|---|\n");
    row("a thread that is started and joined", thread_cost, 1);
    begun = now();
    for (int i = 0; i < TIMES; i++) {
        bywash_levels_end(bywash_levels_begin(pool, "all", -1));
    }
    row("`begin` and `end`", now() - begun, TIMES);
    begun = now();
    for (int i = 0; i < TIMES; i++) {
        bywash_levels_submit(pool, "all", run, &called);
    }
    while (called < TIMES) {
    }
    row("`submit`, to its end", now() - begun, TIMES);
    struct bywash_levels_request *request = bywash_levels_begin(pool, "all", -1);
    begun = now();
    for (int i = 0; i < TIMES / 10; i++) {
        bywash_levels_parallel_for(request, TASKS, each, NULL);
    }
    row("`parallel_for`, each of 1,000 empty calls", now() - begun, (double)TIMES / 10 * TASKS);
    begun = now();
    for (int i = 0; i < TIMES / 100; i++) {
        bywash_levels_scope(request, fill, NULL);
    }
    row("`spawn`, each of 1,000 empty tasks", now() - begun, (double)TIMES / 100 * TASKS);
    bywash_levels_end(request);
    return bywash_levels_free(pool) != 0;
}
