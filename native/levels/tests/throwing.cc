// Tests that the header is valid C++, and that an exception that leaves a callback ends the
// process.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bywash/levels.h"

static void throws(size_t, void *) {
    throw std::runtime_error("out of a callback");
}

static void throws_in_scope(bywash_levels_tasks *, void *) {
    throw std::runtime_error("out of a callback");
}

static void throws_when_submitted(bywash_levels_request *, void *) {
    throw std::runtime_error("out of a callback");
}

static void catches(size_t i, void *) {
    try {
        throw i;
    } catch (size_t) {
    }
}

static bywash_levels_pool *pool() {
    bywash_levels_level level{};
    level.name = "high";
    level.max_threads = 2;
    bywash_levels_options options{};
    options.size = sizeof options;
    options.threads = 2;
    options.levels = &level;
    options.level_count = 1;
    return bywash_levels_new(&options);
}

static void child(int way) {
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    // The child's last messages would only confuse readers of the test's output.
    if (std::freopen("/dev/null", "w", stderr) == nullptr) {
        _exit(2);
    }
    alarm(60);
    bywash_levels_pool *levels = pool();
    bywash_levels_request *request = bywash_levels_begin(levels, "high", -1);
    if (bywash_levels_parallel_for(request, 10, catches, nullptr) != 0) {
        _exit(3);
    }
    switch (way) {
    case 0: bywash_levels_parallel_for(request, 10, throws, nullptr); break;
    case 1: bywash_levels_scope(request, throws_in_scope, nullptr); break;
    default: bywash_levels_submit(levels, "high", throws_when_submitted, nullptr);
    }
    bywash_levels_end(request);
    bywash_levels_free(levels);
    _exit(0);
}

int main() {
    for (int way = 0; way < 3; way++) {
        const pid_t process = fork();
        if (process == 0) {
            child(way);
        }
        int status = 0;
        if (waitpid(process, &status, 0) != process || !WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) {
            std::fprintf(stderr, "FAILED way %d: status %d\n", way, status);
            return 1;
        }
    }
    std::puts("ok     an exception of C++ that leaves a callback ends the process");
}
