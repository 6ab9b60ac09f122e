// The common part of the tests of recipes. Each test runs in a process of its own, which has two
// minutes: a request whose work has no end must be stopped.
#pragma once

#include "../behaviour/harness.h"

namespace recipes {

using namespace behaviour;

constexpr int SETTLED = 50, STOPS = 300;

inline long descriptors() {
    long count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}

// Stops requests with this work, which has no end. Heap and descriptors must stay as they were after
// the first stops.
inline void stops_leave_nothing(const std::function<void()> &work) {
    long heap_before = 0, descriptors_before = 0;
    for (int i = 0; i < SETTLED + STOPS; i++) {
        if (i == SETTLED) heap_before = heap(), descriptors_before = descriptors();
        CHECK(request(work) == SERT_RAN_TOO_LONG);
    }
    fprintf(stderr, "    heap %ld -> %ld, descriptors %ld -> %ld\n", heap_before, heap(), descriptors_before, descriptors());
    CHECK(heap() - heap_before < 32 * STOPS);
    CHECK(descriptors() == descriptors_before);
}

// Runs the next request of this thread, which has an hour.
inline void next_request(const std::function<void()> &work) {
    sert_arg arg = granted(3600 * 1000, 3600 * 1000, SERT_NO_WARM_UP, 1);
    CHECK(SERT_set_args(&arg) == 0);
    CHECK(request(work) == 0);
}

// Orders a stop of a request from another thread, some milliseconds after the request has called
// `await`.
class Order {
public:
    Order() : thread_([this] {
        while (token_ == 0) usleep(1000);
        usleep(20000);
        CHECK(SERT_terminate(token_, SERT_CLIENT_GONE) == 0);
    }) {}
    ~Order() { thread_.join(); }
    void await() { token_ = SERT_token(); }

private:
    std::atomic<uint64_t> token_{0};
    std::thread thread_;
};

inline bool passes(const Test &test) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        // Blocks in a thread's cache count as in use: without the cache, the heap can be compared.
        setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
        alarm(120);
        execl("/proc/self/exe", "recipe", test.word, nullptr);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    printf("%s %s\n", status == 0 ? "ok    " : "FAILED", test.name);
    return status == 0;
}

// Runs all tests, or the one that is named.
inline int main_of(int argc, char **argv, const std::vector<Test> &tests) {
    size_t failed = 0;
    for (const Test &test : tests) {
        if (argc < 2) {
            failed += !passes(test);
        } else if (std::string(argv[1]) == test.word) {
            test.run();
            return 0;
        }
    }
    return argc > 1 ? 2 : failed != 0;
}

}  // namespace recipes
