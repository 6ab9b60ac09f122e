/* Tests of forks and signals. */
#include "harness.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>

/* Returns whether all other threads sleep and hold no lock. Otherwise, locks of libraries
 * (malloc's, with sanitizers) could be held in the child forever. */
static bool all_sleep(void) {
    bool all = true;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        char path[300], line[300] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
        bool other = entry->d_name[0] != '.' && atoi(entry->d_name) != (int)getpid();
        FILE *stat = other ? fopen(path, "r") : NULL;
        if (stat != NULL) {
            const char *state = fgets(line, sizeof line, stat) == NULL ? NULL : strrchr(line, ')');
            all = all && state != NULL && state[2] == 'S';
            fclose(stat);
        }
    }
    closedir(tasks);
    return all;
}

static void run(struct bywash_levels_request *request, void *arg) {
    (void)request, (void)arg;
    CHECK(!"the parent's pool takes no more");
}

static void each(size_t i, void *arg) {
    (void)i;
    ++*(atomic_int *)arg;
}

static void in_the_child(struct bywash_levels_pool *pool, struct bywash_levels_request *request) {
    atomic_int calls = 0;
    struct bywash_levels_level_stats both[2] = {{.size = sizeof *both}};
    NOT_MADE(ESRCH, "parent", bywash_levels_begin(pool, "low", -1));
    REFUSED(ESRCH, "parent", bywash_levels_submit(pool, "low", run, NULL));
    REFUSED(ESRCH, "parent", bywash_levels_parallel_for(request, 1, each, &calls));
    REFUSED(ESRCH, "parent", bywash_levels_end(request));
    REFUSED(ESRCH, "parent", bywash_levels_stats(pool, both, 2));
    REFUSED(ESRCH, "parent", bywash_levels_close(pool));
    REFUSED(ESRCH, "parent", bywash_levels_free(pool));
    /* The child's own pool works. */
    struct bywash_levels_pool *own = pool_of(2);
    struct bywash_levels_request *turn = bywash_levels_begin(own, "high", -1);
    CHECK(bywash_levels_parallel_for(turn, 100, each, &calls) == 0 && calls == 100);
    CHECK(bywash_levels_end(turn) == 0);
    CHECK(bywash_levels_free(own) == 0);
    _exit(0);
}

static void forked(void) {
    struct bywash_levels_pool *pool = pool_of(2);
    struct bywash_levels_request *request = bywash_levels_begin(pool, "high", -1);
    /* Check twice: a thread that slept at the first check may have waited for one that was checked
     * later. */
    UNTIL(all_sleep() && all_sleep());
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        in_the_child(pool, request);
    }
    child_passes(child);
    atomic_int calls = 0;
    CHECK(bywash_levels_parallel_for(request, 10, each, &calls) == 0 && calls == 10);
    CHECK(bywash_levels_end(request) == 0);
    CHECK(bywash_levels_free(pool) == 0);
}

static atomic_int taken;
static pthread_t own;

static void handler(int signum) {
    (void)signum;
    CHECK(pthread_equal(pthread_self(), own));
    taken++;
}

static void blocked(struct bywash_levels_request *request, void *arg) {
    sigset_t mask;
    CHECK(request != NULL && pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
    CHECK(sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 1 && sigismember(&mask, SIGCHLD) == 1);
    CHECK(sigismember(&mask, SIGSEGV) == 0 && sigismember(&mask, SIGPROF) == 0);
    *(atomic_bool *)arg = true;
}

static void signals(void) {
    struct bywash_levels_pool *pool = pool_of(2);
    struct sigaction action = {.sa_handler = handler};
    atomic_bool looked = false;
    own = pthread_self();
    CHECK(bywash_levels_submit(pool, "low", blocked, &looked) == 0);
    UNTIL(looked);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 1; i <= 100; i++) {
        CHECK(kill(getpid(), SIGUSR1) == 0);
        UNTIL(taken == i);
    }
    CHECK(bywash_levels_free(pool) == 0);
}

static void *interrupts(void *pool) {
    UNTIL(stats_of(pool, "low").waiting == 1);
    for (int i = 1; i <= 20; i++) {
        CHECK(pthread_kill(own, SIGUSR1) == 0);
        UNTIL(taken == i);
    }
    CHECK(stats_of(pool, "low").waiting == 1);
    CHECK(bywash_levels_close(pool) == 0);
    return NULL;
}

static void interrupted(void) {
    struct bywash_levels_pool *pool = pool_of(1);
    struct bywash_levels_request *turn = bywash_levels_begin(pool, "high", -1);
    struct sigaction action = {.sa_handler = handler};
    pthread_t other;
    own = pthread_self();
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    thread(&other, interrupts, pool);
    NOT_MADE(ESHUTDOWN, "shut down", bywash_levels_begin(pool, "low", -1));
    joined(other);
    CHECK(taken == 20);
    CHECK(bywash_levels_end(turn) == 0);
    CHECK(bywash_levels_free(pool) == 0);
}

const struct test processes_tests[] = {
    {"fork", "a child cannot use its parent's pool, and may have its own if that was idle", forked},
    {"signals", "signals are the program's own threads'", signals},
    {"interrupted", "a handler of a signal runs while its thread waits, which goes on waiting", interrupted},
    {0},
};
