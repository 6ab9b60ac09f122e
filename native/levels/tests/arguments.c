/* Tests of which arguments are refused, and with which error. */
#include "harness.h"

#include <math.h>
#include <sys/resource.h>

static const struct bywash_levels_level two[] = {{.name = "high", .max_threads = 2}, {.name = "low"}};
static const struct bywash_levels_options good = {
    .size = sizeof good, .threads = 2, .levels = two, .level_count = COUNT(two)};

/* Checks that a pool with this one level is not made. */
static void not_level(const char *words, struct bywash_levels_level level) {
    struct bywash_levels_options bad = good;
    bad.levels = &level;
    bad.level_count = 1;
    NOT_MADE(EINVAL, words, bywash_levels_new(&bad));
}

static void not_goal(const char *words, struct bywash_levels_goal goal) {
    struct bywash_levels_options bad = good;
    bad.goal = goal;
    NOT_MADE(EINVAL, words, bywash_levels_new(&bad));
}

static void not_options(void) {
    struct bywash_levels_options bad = good;
    NOT_MADE(EINVAL, "NULL", bywash_levels_new(NULL));
    bad.size = 0;
    NOT_MADE(EINVAL, "size", bywash_levels_new(&bad));
    bad.size = sizeof bad - 1;
    NOT_MADE(EINVAL, "size", bywash_levels_new(&bad));
    bad = good, bad.levels = NULL;
    NOT_MADE(EINVAL, "one level", bywash_levels_new(&bad));
    bad = good, bad.level_count = 0;
    NOT_MADE(EINVAL, "one level", bywash_levels_new(&bad));
    bad = good, bad.level_count = UINT32_MAX;
    NOT_MADE(EINVAL, "4294967295 levels", bywash_levels_new(&bad));
    bad = good, bad.threads = UINT32_MAX;
    NOT_MADE(EINVAL, "too many", bywash_levels_new(&bad));
    bad = good, bad.parity = UINT32_MAX;
    NOT_MADE(EINVAL, "too many", bywash_levels_new(&bad));
    CHECK(threads_here() == 1);
}

static void not_levels(void) {
    not_level("the name of a level is NULL", (struct bywash_levels_level){0});
    not_level("empty", (struct bywash_levels_level){.name = ""});
    not_level("UTF-8", (struct bywash_levels_level){.name = "\xff"});
    not_level("least", (struct bywash_levels_level){.name = "a", .min_threads = 2});
    not_level("the pool's", (struct bywash_levels_level){.name = "a", .min_threads = 3, .max_threads = 3});
    not_level("too many", (struct bywash_levels_level){.name = "a", .max_threads = UINT32_MAX});
    not_level("weight", (struct bywash_levels_level){.name = "a", .weight = -1});
    not_level("weight", (struct bywash_levels_level){.name = "a", .weight = NAN});
    not_level("weight", (struct bywash_levels_level){.name = "a", .weight = INFINITY});
    not_level("floors", (struct bywash_levels_level){.name = "a", .floor = 0.95});
    not_level("floors", (struct bywash_levels_level){.name = "a", .floor = -2});
    not_level("floors", (struct bywash_levels_level){.name = "a", .floor = NAN});
    const struct bywash_levels_level twins[] = {{.name = "a"}, {.name = "a"}};
    struct bywash_levels_options bad = good;
    bad.levels = twins;
    NOT_MADE(EINVAL, "`a` stands twice", bywash_levels_new(&bad));
    CHECK(threads_here() == 1);
}

static void not_goals(void) {
    const uint32_t ratio = BYWASH_LEVELS_RATIO, percentile = BYWASH_LEVELS_PERCENTILE;
    not_goal("kind of goal 3", (struct bywash_levels_goal){.kind = 3});
    not_goal("not use target", (struct bywash_levels_goal){.target = 0.5});
    not_goal("not use level", (struct bywash_levels_goal){.level = "high"});
    not_goal("not use within_ns", (struct bywash_levels_goal){.within_ns = 1});
    not_goal("NULL", (struct bywash_levels_goal){.kind = ratio, .level = "high", .target = 0.5});
    not_goal("NULL", (struct bywash_levels_goal){.kind = ratio, .slow = "low", .target = 0.5});
    not_goal("above 0", (struct bywash_levels_goal){.kind = ratio, .level = "high", .slow = "low"});
    not_goal("above 0", (struct bywash_levels_goal){.kind = ratio, .level = "high", .slow = "low", .target = NAN});
    not_goal("with itself", (struct bywash_levels_goal){.kind = ratio, .level = "low", .slow = "low", .target = 0.5});
    not_goal("`lwo`; there is high, low",
             (struct bywash_levels_goal){.kind = ratio, .level = "high", .slow = "lwo", .target = 0.5});
    not_goal("UTF-8", (struct bywash_levels_goal){.kind = ratio, .level = "high", .slow = "\xff", .target = 0.5});
    not_goal("not use slow", (struct bywash_levels_goal){
                                    .kind = percentile, .level = "high", .slow = "low", .target = 0.95, .within_ns = 1});
    not_goal("share", (struct bywash_levels_goal){.kind = percentile, .level = "high", .target = 0.2, .within_ns = 1});
    not_goal("time", (struct bywash_levels_goal){.kind = percentile, .level = "high", .target = 0.95});
    struct bywash_levels_options bad = good;
    bad.goal = (struct bywash_levels_goal){.kind = ratio, .level = "high", .slow = "low", .target = 0.5};
    bad.parity = 2;
    NOT_MADE(EINVAL, "parity", bywash_levels_new(&bad));
    CHECK(threads_here() == 1);
}

static void run(struct bywash_levels_request *request, void *arg) {
    (void)request, (void)arg;
    CHECK(!"it was refused, so it is not called");
}

static void each(size_t i, void *arg) {
    (void)i;
    ++*(atomic_int *)arg;
}

static void fill(struct bywash_levels_tasks *tasks, void *arg) {
    (void)arg;
    REFUSED(EINVAL, "NULL", bywash_levels_spawn(tasks, NULL, NULL));
}

static void not_calls(void) {
    struct bywash_levels_pool *pool = pool_of(2);
    atomic_int calls = 0;
    NOT_MADE(EINVAL, "the pool is NULL", bywash_levels_begin(NULL, "low", -1));
    NOT_MADE(EINVAL, "the level is NULL", bywash_levels_begin(pool, NULL, -1));
    NOT_MADE(EINVAL, "UTF-8", bywash_levels_begin(pool, "\xc3", -1));
    NOT_MADE(EINVAL, "below 0", bywash_levels_begin(pool, "low", -2));
    NOT_MADE(EINVAL, "below 0", bywash_levels_begin(pool, "low", INT64_MIN));
    NOT_MADE(ENOENT, "no level `lwo`; there is high, low", bywash_levels_begin(pool, "lwo", -1));
    REFUSED(EINVAL, "NULL", bywash_levels_submit(NULL, "low", run, NULL));
    REFUSED(EINVAL, "NULL", bywash_levels_submit(pool, NULL, run, NULL));
    REFUSED(EINVAL, "NULL", bywash_levels_submit(pool, "low", NULL, NULL));
    REFUSED(ENOENT, "`lwo`", bywash_levels_submit(pool, "lwo", run, NULL));
    struct bywash_levels_request *request = bywash_levels_begin(pool, "high", INT64_MAX);
    CHECK(request != NULL);
    REFUSED(EINVAL, "NULL", bywash_levels_parallel_for(NULL, 1, each, &calls));
    REFUSED(EINVAL, "NULL", bywash_levels_parallel_for(request, 0, NULL, &calls));
    CHECK(bywash_levels_parallel_for(request, 0, each, &calls) == 0 && calls == 0);
    REFUSED(EINVAL, "NULL", bywash_levels_scope(NULL, fill, NULL));
    REFUSED(EINVAL, "NULL", bywash_levels_scope(request, NULL, NULL));
    CHECK(bywash_levels_scope(request, fill, NULL) == 0);
    REFUSED(EINVAL, "NULL", bywash_levels_spawn(NULL, fill, NULL));
    REFUSED(EINVAL, "NULL", bywash_levels_fail(NULL));
    CHECK(bywash_levels_end(NULL) == 0);
    CHECK(bywash_levels_end(request) == 0);
    REFUSED(EINVAL, "NULL", bywash_levels_close(NULL));
    CHECK(bywash_levels_free(NULL) == 0);
    CHECK(bywash_levels_free(pool) == 0);
}

static void not_stats(void) {
    struct bywash_levels_pool *pool = pool_of(1);
    struct bywash_levels_level_stats levels[3] = {{.size = sizeof *levels}};
    struct bywash_levels_goal_state goal = {.size = sizeof goal};
    REFUSED(EINVAL, "NULL", bywash_levels_stats(NULL, levels, 2));
    REFUSED(EINVAL, "NULL", bywash_levels_stats(pool, NULL, 2));
    REFUSED(EINVAL, "room for 0", bywash_levels_stats(pool, levels, 0));
    REFUSED(EINVAL, "the pool has 2 levels, and the array has room for 3", bywash_levels_stats(pool, levels, 3));
    REFUSED(EINVAL, "room for", bywash_levels_stats(pool, levels, SIZE_MAX));
    levels->size--;
    REFUSED(EINVAL, "size", bywash_levels_stats(pool, levels, 2));
    REFUSED(EINVAL, "NULL", bywash_levels_goal_stats(pool, NULL));
    REFUSED(ENOENT, "no goal", bywash_levels_goal_stats(pool, &goal));
    goal.size = 0;
    REFUSED(EINVAL, "size", bywash_levels_goal_stats(pool, &goal));
    CHECK(bywash_levels_free(pool) == 0);
}

static void *other_words(void *arg) {
    (void)arg;
    CHECK(*bywash_levels_error() == '\0');
    NOT_MADE(EINVAL, "NULL", bywash_levels_new(NULL));
    return NULL;
}

static void words(void) {
    pthread_t other;
    CHECK(*bywash_levels_error() == '\0');
    REFUSED(EINVAL, "the pool", bywash_levels_close(NULL));
    thread(&other, other_words, NULL);
    joined(other);
    CHECK(strstr(bywash_levels_error(), "the pool") != NULL);
}

static void no_threads(void) {
#ifdef __SANITIZE_ADDRESS__
    puts("NOT TESTED: with the address sanitizer there is no bound of memory");
#else
    struct rlimit little = {512u << 20, 512u << 20};
    struct bywash_levels_options many = good;
    many.threads = 4096;
    CHECK(setrlimit(RLIMIT_AS, &little) == 0);
    NOT_MADE(EAGAIN, "thread", bywash_levels_new(&many));
    /* The threads that were started end. */
    UNTIL(threads_here() == 1);
#endif
}

const struct test arguments_tests[] = {
    {"options", "options that contradict themselves make no pool", not_options},
    {"levels", "levels that contradict themselves make no pool", not_levels},
    {"goals", "goals that contradict themselves or the levels make no pool", not_goals},
    {"calls", "what is NULL, unknown or not a text is refused by every call", not_calls},
    {"not-stats", "statistics without a size, or of other levels, are refused", not_stats},
    {"words", "every thread has words of its own for what was wrong", words},
    {"no-threads", "a pool whose threads cannot be started leaves none behind", no_threads},
    {0},
};
