/* Tests with many threads at once, and with a goal. */
#include "harness.h"

#include <sched.h>
#include <time.h>

struct crowd {
    struct bywash_levels_pool *pool;
    atomic_bool over;
    atomic_ulong tasks, expected, submitted, called, running, most;
};

static void burn(struct crowd *crowd) {
    unsigned long now = ++crowd->running, most = crowd->most;
    while (now > most && !atomic_compare_exchange_weak(&crowd->most, &most, now)) {
    }
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < 2000; i++) {
        sum += i;
    }
    crowd->running--;
    crowd->tasks++;
}

static void each(size_t i, void *arg) {
    (void)i;
    burn(arg);
}

static void task(struct bywash_levels_tasks *tasks, void *arg) {
    (void)tasks;
    burn(arg);
}

static void fill(struct bywash_levels_tasks *tasks, void *arg) {
    for (int i = 0; i < 3; i++) {
        CHECK(bywash_levels_spawn(tasks, task, arg) == 0);
    }
}

static void work(struct bywash_levels_request *request, struct crowd *crowd) {
    CHECK(bywash_levels_parallel_for(request, 7, each, crowd) == 0);
    CHECK(bywash_levels_scope(request, fill, crowd) == 0);
}

static void run(struct bywash_levels_request *request, void *arg) {
    struct crowd *crowd = arg;
    if (request != NULL) {
        crowd->expected += 10;
        work(request, crowd);
    }
    crowd->called++;
}

/* Runs a client that makes each of its requests in another way. */
static void *client(void *arg) {
    struct crowd *crowd = arg;
    for (unsigned i = 0; !crowd->over; i++) {
        const char *level = i % 2 ? "high" : "low";
        if (i % 5 == 4) {
            crowd->submitted++;
            if (bywash_levels_submit(crowd->pool, level, run, crowd) == -1) {
                CHECK(errno == EAGAIN);
                crowd->submitted--;
            }
            continue;
        }
        struct bywash_levels_request *request = bywash_levels_begin(crowd->pool, level, i % 3 ? -1 : 100000);
        if (request == NULL) {
            CHECK(errno == ETIMEDOUT || errno == EAGAIN);
            continue;
        }
        crowd->expected += 10;
        work(request, crowd);
        CHECK(bywash_levels_end(request) == 0);
    }
    return NULL;
}

static void crowded(void) {
    struct crowd crowd = {.pool = pool_of(3)};
    pthread_t clients[24];
    for (size_t i = 0; i < COUNT(clients); i++) {
        thread(&clients[i], client, &crowd);
    }
    time_t end = time(NULL) + 2;
    UNTIL(time(NULL) >= end && crowd.called > 10);
    crowd.over = true;
    for (size_t i = 0; i < COUNT(clients); i++) {
        joined(clients[i]);
    }
    CHECK(bywash_levels_free(crowd.pool) == 0);
    CHECK(crowd.tasks == crowd.expected && crowd.tasks > 0);
    CHECK(crowd.called == crowd.submitted);
    CHECK(crowd.most >= 2 && crowd.most <= 3);
    UNTIL(threads_here() == 1);
}

struct aim {
    struct bywash_levels_pool *pool;
    atomic_bool over;
    const char *level;
};

static void *comes_again(void *arg) {
    struct aim *aim = arg;
    struct crowd crowd = {.pool = aim->pool};
    while (!aim->over) {
        struct bywash_levels_request *request = bywash_levels_begin(aim->pool, aim->level, -1);
        CHECK(request != NULL);
        CHECK(bywash_levels_parallel_for(request, 20, each, &crowd) == 0);
        CHECK(bywash_levels_end(request) == 0);
    }
    return NULL;
}

/* Checks that the measured value becomes known, and that the verdict is one of the four. Which one
 * depends on the machine. */
static void goal_of(struct bywash_levels_goal goal) {
    const struct bywash_levels_level levels[] = {{.name = "high", .max_threads = 2}, {.name = "low"}};
    const struct bywash_levels_options options = {
        .size = sizeof options, .threads = 2, .levels = levels, .level_count = COUNT(levels), .goal = goal};
    struct bywash_levels_goal_state stats = {.size = sizeof stats};
    struct aim high = {.level = "high"}, low = {.level = "low"};
    pthread_t clients[6];
    high.pool = low.pool = bywash_levels_new(&options);
    CHECK(high.pool != NULL);
    CHECK(bywash_levels_goal_stats(high.pool, &stats) == 0);
    CHECK(stats.verdict == BYWASH_LEVELS_SETTLING && stats.measured != stats.measured);
    for (size_t i = 0; i < COUNT(clients); i++) {
        thread(&clients[i], comes_again, i % 2 ? &high : &low);
    }
    do {
        sched_yield();
        CHECK(bywash_levels_goal_stats(high.pool, &stats) == 0);
    } while (stats.measured != stats.measured);
    CHECK(stats.size == sizeof stats && stats.verdict <= BYWASH_LEVELS_INFEASIBLE);
    CHECK(stats.measured >= 0 && stats.effort >= 0);
    high.over = low.over = true;
    for (size_t i = 0; i < COUNT(clients); i++) {
        joined(clients[i]);
    }
    CHECK(bywash_levels_free(high.pool) == 0);
}

static void ratio(void) {
    goal_of((struct bywash_levels_goal){.kind = BYWASH_LEVELS_RATIO, .level = "high", .slow = "low", .target = 0.5});
}

static void percentile(void) {
    goal_of((struct bywash_levels_goal){
        .kind = BYWASH_LEVELS_PERCENTILE, .level = "high", .target = 0.95, .within_ns = 1000000});
}

const struct test many_tests[] = {
    {"crowd", "of many clients every task is run once, and never by more threads than there are", crowded},
    {"ratio", "the ratio of two levels is measured, and judged", ratio},
    {"percentile", "the percentile of a level is measured, and judged", percentile},
    {0},
};
