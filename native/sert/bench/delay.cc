// The delay from due to stopped: how late the rollback point is reached, on one processor with 1, 4
// and 16 workers that never wait. A thread can only be stopped when it runs. With many workers most
// of the delay is the wait for the processor, and no processor time is lost meanwhile.
#include <sched.h>
#include <setjmp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <thread>
#include <vector>

#include "sert.h"

namespace {

constexpr double DUE_MS = 10;
constexpr size_t SAMPLES = 600;

std::atomic<bool> over{false};
std::mutex guard;
std::vector<double> delays_us;

double now_us() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

volatile uint64_t sink;

void serve() {
    sigjmp_buf point;
    volatile double began = 0;
    while (!over) {
        if (sigsetjmp(point, 0) != 0) {
            double late = now_us() - began - DUE_MS * 1e3;
            std::lock_guard<std::mutex> lock(guard);
            delays_us.push_back(late);
            over = over || delays_us.size() >= SAMPLES;
            continue;
        }
        SERT_register_rollbackpoint(&point);
        began = now_us();
        SERT_start();
        while (!over) sink = sink + 1;
        SERT_end();
    }
}

void measure(int workers) {
    over = false;
    delays_us.clear();
    std::vector<std::thread> threads;
    for (int i = 0; i < workers; i++) threads.emplace_back(serve);
    for (auto &thread : threads) thread.join();
    std::sort(delays_us.begin(), delays_us.end());
    printf("| %d | %.0f | %.0f | %.0f |\n", workers, delays_us[delays_us.size() / 2], delays_us[delays_us.size() * 99 / 100], delays_us.back());
    fflush(stdout);
}

}  // namespace

int main() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    sert_arg arg = {};
    arg.size = sizeof arg;
    arg.lb_ms = arg.ub_ms = DUE_MS;
    arg.flags = SERT_NO_WARM_UP;
    if (SERT_init_timer(SIGRTMIN + 4) || SERT_set_args(&arg)) return 1;
    printf("| workers on a processor | median, us | 99 %%, us | most, us |\n|---|---|---|---|\n");
    for (int workers : {1, 4, 16}) measure(workers);
}
