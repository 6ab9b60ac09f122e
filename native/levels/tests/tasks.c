/* Tests of tasks: each is run exactly once, by a permitted thread. */
#include "harness.h"

enum { MANY = 10000 };
static atomic_uchar times[MANY];

static void count(size_t i, void *arg) {
    CHECK(arg == times);
    times[i]++;
}

static bool all(unsigned char times_each) {
    for (size_t i = 0; i < MANY; i++) {
        if (times[i] != times_each) {
            return false;
        }
    }
    return true;
}

static void every_number(void) {
    struct bywash_levels_pool *pool = pool_of(4);
    const char *levels[] = {"high", "low"};
    unsigned char rounds = 0;
    for (size_t i = 0; i < COUNT(levels); i++) {
        struct bywash_levels_request *request = bywash_levels_begin(pool, levels[i], -1);
        CHECK(bywash_levels_parallel_for(request, MANY, count, times) == 0 && all(++rounds));
        CHECK(bywash_levels_parallel_for(request, 1, count, times) == 0 && times[0] == rounds + 1);
        times[0]--;
        CHECK(bywash_levels_parallel_for(request, 0, count, times) == 0 && all(rounds));
        CHECK(bywash_levels_end(request) == 0);
    }
    CHECK(bywash_levels_free(pool) == 0);
}

/* Runs a node of a tree of tasks: its children are 2i + 1 and 2i + 2. */
static void node(struct bywash_levels_tasks *tasks, void *arg) {
    atomic_uchar *here = arg;
    size_t i = (size_t)(here - times);
    ++*here;
    for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < MANY; child++) {
        CHECK(bywash_levels_spawn(tasks, node, &times[child]) == 0);
    }
}

static void tasks_of_tasks(void) {
    struct bywash_levels_pool *pool = pool_of(3);
    struct bywash_levels_request *request = bywash_levels_begin(pool, "high", -1);
    CHECK(bywash_levels_scope(request, node, times) == 0 && all(1));
    CHECK(bywash_levels_end(request) == 0);
    CHECK(bywash_levels_free(pool) == 0);
}

static pthread_barrier_t together;

static void meet(size_t i, void *arg) {
    (void)i, (void)arg;
    int result = pthread_barrier_wait(&together);
    CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
}

static void side_by_side(void) {
    struct bywash_levels_pool *pool = pool_of(4);
    struct bywash_levels_request *request = bywash_levels_begin(pool, "high", -1);
    CHECK(pthread_barrier_init(&together, NULL, 4) == 0);
    /* This returns only if four threads run it at once. */
    CHECK(bywash_levels_parallel_for(request, 4, meet, NULL) == 0);
    CHECK(bywash_levels_end(request) == 0);
    CHECK(bywash_levels_free(pool) == 0);
}

static void own_thread(size_t i, void *arg) {
    (void)i;
    CHECK(pthread_equal(pthread_self(), *(pthread_t *)arg));
}

static void alone(void) {
    struct bywash_levels_pool *pool = pool_of(4);
    struct bywash_levels_request *request = bywash_levels_begin(pool, "low", -1);
    pthread_t self = pthread_self();
    CHECK(bywash_levels_parallel_for(request, 1000, own_thread, &self) == 0);
    CHECK(bywash_levels_end(request) == 0);
    CHECK(bywash_levels_free(pool) == 0);
}

static void uses_it_again(size_t i, void *arg) {
    (void)i;
    REFUSED(EBUSY, "already", bywash_levels_parallel_for(arg, 1, uses_it_again, arg));
    REFUSED(EBUSY, "already", bywash_levels_scope(arg, node, times));
    REFUSED(EBUSY, "already", bywash_levels_end(arg));
    REFUSED(EBUSY, "already", bywash_levels_fail(arg));
}

/* Runs a loop on another pool, which is independent. */
static void nested(size_t i, void *arg) {
    (void)i;
    struct bywash_levels_request *request = bywash_levels_begin(arg, "high", -1);
    CHECK(bywash_levels_parallel_for(request, MANY, count, times) == 0);
    CHECK(bywash_levels_end(request) == 0);
}

static void within_a_task(void) {
    struct bywash_levels_pool *pool = pool_of(2), *other = pool_of(2);
    struct bywash_levels_request *request = bywash_levels_begin(pool, "high", -1);
    CHECK(bywash_levels_parallel_for(request, 10, uses_it_again, request) == 0);
    CHECK(bywash_levels_parallel_for(request, 10, nested, other) == 0 && all(10));
    CHECK(bywash_levels_end(request) == 0);
    CHECK(bywash_levels_free(pool) == 0 && bywash_levels_free(other) == 0);
}

static void *loops(void *request) {
    CHECK(bywash_levels_parallel_for(request, 2, meet, NULL) == 0);
    return NULL;
}

static void used_by_two(void) {
    struct bywash_levels_pool *pool = pool_of(1);
    struct bywash_levels_request *request = bywash_levels_begin(pool, "low", -1);
    pthread_t other;
    CHECK(pthread_barrier_init(&together, NULL, 2) == 0);
    thread(&other, loops, request);
    meet(0, NULL);
    /* The other thread is between its two tasks, or in the second. */
    REFUSED(EBUSY, "already", bywash_levels_end(request));
    meet(1, NULL);
    joined(other);
    CHECK(bywash_levels_end(request) == 0);
    CHECK(bywash_levels_free(pool) == 0);
}

const struct test tasks_tests[] = {
    {"numbers", "every number is called once", every_number},
    {"tree", "tasks spawn others down to any depth, and each is run once", tasks_of_tasks},
    {"side-by-side", "a request has all threads of its level when nobody else wants them", side_by_side},
    {"alone", "a request of one thread runs all on its own", alone},
    {"within", "a task cannot use its request, and may use another pool", within_a_task},
    {"two", "a request that two threads use at a time is refused to the second", used_by_two},
    {0},
};
