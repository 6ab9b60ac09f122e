// The common part of the tests of behaviour: one request, and checks of it.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <dirent.h>
#include <link.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <semaphore.h>
#include <threads.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cfenv>
#include <clocale>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "sert.h"

namespace behaviour {


static const int SIGNAL = SIGRTMIN + 4;

#define CHECK(what)                                                            \
    do {                                                                       \
        if (!(what)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            _exit(1);                                                          \
        }                                                                      \
    } while (0)

inline sert_arg granted(double lb, double ub, uint32_t flags = SERT_NO_WARM_UP, uint32_t class_id = 0) {
    sert_arg arg = {};
    arg.size = sizeof arg;
    arg.class_id = class_id;
    arg.lb_ms = lb;
    arg.ub_ms = ub;
    arg.flags = flags;
    return arg;
}

inline void start_library(const sert_arg &arg = granted(40, 40)) {
    CHECK(SERT_init_timer(SIGNAL) == 0);
    CHECK(SERT_set_args(&arg) == 0);
}

inline sert_stats stats(uint32_t class_id = 0) {
    sert_stats all = {};
    all.size = sizeof all;
    all.class_id = class_id;
    CHECK(SERT_get_stats(&all) == 0);
    return all;
}

inline double now_ms() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

inline volatile double sink;
// Runs code of the program and no other: a request can be stopped here.
inline void burn() {
    for (volatile uint64_t i = 0; i < 200000;) {
        i = i + 1;
        sink = sink + 1;
    }
}
inline void burn_for(double ms) {
    for (double end = now_ms() + ms; now_ms() < end;) burn();
}

// Runs one request that does `work`. Returns 0 if it ended by itself, or why it was stopped. The
// work may be endless.
inline int request(const std::function<void()> &work) {
    sigjmp_buf point;
    if (int reason = sigsetjmp(point, 0)) return reason;
    CHECK(SERT_register_rollbackpoint(&point) == 0);
    CHECK(SERT_start() == 0);
    work();
    CHECK(SERT_end() == 0);
    return 0;
}
inline void for_ever() {
    for (;;) burn();
}

inline long heap() {
    struct mallinfo2 info = mallinfo2();
    return static_cast<long>(info.uordblks + info.hblkhd);
}

// Returns what `work` writes to stderr.
inline std::string said(const std::function<void()> &work) {
    int fds[2], kept = dup(2);
    CHECK(pipe(fds) == 0);
    dup2(fds[1], 2);
    work();
    dup2(kept, 2);
    close(fds[1]);
    std::string all(4096, 0);
    all.resize(static_cast<size_t>(read(fds[0], &all[0], all.size())));
    close(fds[0]);
    return all;
}
inline size_t count(const std::string &text, const char *what) {
    size_t times = 0;
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at++) times++;
    return times;
}

// Sends the library's signal to the thread that made it, for no reason, until it is destroyed.
class Nuisance {
public:
    explicit Nuisance(useconds_t pause) {
        // Our signals are only sent to threads that have had a request.
        CHECK(request([] {}) == 0);
        thread_ = std::thread([this, pause, whom = pthread_self()] {
            while (!over_) pthread_kill(whom, SIGNAL), usleep(pause);
        });
    }
    ~Nuisance() { over_ = true, thread_.join(); }

private:
    std::atomic<bool> over_{false};
    std::thread thread_;
};

// A promise, and the word that selects its test.
struct Test {
    const char *word;
    void (*run)();
    const char *name;
};
#define TEST(word, name) {word, name, #name}

extern const std::vector<Test> interface_tests, when_tests, waits_tests, never_tests, stays_tests, keeps_tests, limits_tests;

}  // namespace behaviour
