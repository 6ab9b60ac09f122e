/* Tests of the promises of libbywash-levels, one for each promise. `behaviour` runs each in a
 * process of its own, `behaviour WORD` runs one in this process. */
#include "harness.h"

#include <dirent.h>
#include <sys/wait.h>

struct bywash_levels_pool *pool_of(uint32_t threads) {
    const struct bywash_levels_level levels[] = {{.name = "high", .max_threads = threads}, {.name = "low"}};
    const struct bywash_levels_options options = {
        .size = sizeof options, .threads = threads, .levels = levels, .level_count = COUNT(levels)};
    struct bywash_levels_pool *pool = bywash_levels_new(&options);
    CHECK(pool != NULL);
    return pool;
}

struct bywash_levels_level_stats stats_of(struct bywash_levels_pool *pool, const char *level) {
    struct bywash_levels_level_stats both[2] = {{.size = sizeof *both}};
    CHECK(bywash_levels_stats(pool, both, COUNT(both)) == 0);
    CHECK(strcmp(both[0].name, "high") == 0 && strcmp(both[1].name, "low") == 0);
    return both[strcmp(level, "low") == 0];
}

unsigned threads_here(void) {
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(tasks);
    return count;
}

void thread(pthread_t *thread, void *(*run)(void *), void *arg) {
    CHECK((errno = pthread_create(thread, NULL, run, arg)) == 0);
}

void joined(pthread_t thread) {
    CHECK((errno = pthread_join(thread, NULL)) == 0);
}

void child_passes(pid_t child) {
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

/* Runs a test in a process of its own, which has two minutes. */
static bool passes(const struct test *test) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        test->run();
        /* Do not use _exit: the sanitizers look for leaks at exit. */
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    printf("%s %s\n", status == 0 ? "ok    " : "FAILED", test->name);
    return status == 0;
}

int main(int count, char **words) {
    const struct test *lists[] = {arguments_tests, turns_tests, tasks_tests, many_tests, processes_tests,
                                  gateway_tests};
    unsigned all = 0, failed = 0;
    for (size_t list = 0; list < COUNT(lists); list++) {
        for (const struct test *test = lists[list]; test->run != NULL; test++) {
            if (count > 1 && strcmp(words[1], test->word) == 0) {
                test->run();
                return 0;
            }
            if (count == 1) {
                all++;
                failed += !passes(test);
            }
        }
    }
    if (count > 1) {
        fprintf(stderr, "no test %s\n", words[1]);
        return 2;
    }
    printf("%u tests, %u failed\n", all, failed);
    return failed != 0;
}
