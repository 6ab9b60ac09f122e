// Waits at objects of the C++ runtime that are older than the request: prints in which ones it was
// stopped (1) and not stopped (0). tests/programs links this in many ways.
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <future>
#include <mutex>
#include <thread>
#include "sert.h"
static std::promise<void> promise;
static std::shared_future<void> future = promise.get_future().share();
static std::mutex mutex;
static std::condition_variable condition;
static std::atomic<int> number{0};
static std::barrier<> barrier(2);
static std::atomic<bool> arrived{false};
static bool is_stopped_in(void (*wait)()) {
    static sigjmp_buf point;
    if (sigsetjmp(point, 0)) return true;
    SERT_register_rollbackpoint(&point), SERT_start();
    wait();
    SERT_end();
    return false;
}
int main() {
    sert_arg arg = {};
    arg.size = sizeof arg;
    arg.lb_ms = arg.ub_ms = 20, arg.flags = SERT_NO_WARM_UP;
    if (SERT_init_timer(SIGRTMIN) || SERT_set_args(&arg)) return 1;
    std::printf("future %d, ", is_stopped_in([] { future.wait(); }));
    std::printf("condition %d, ", is_stopped_in([] {
        std::unique_lock<std::mutex> lock(mutex);
        condition.wait(lock, [] { return false; });
    }));
    std::printf("atomic %d, ", is_stopped_in([] { number.wait(0); }));
    std::thread other([] {
        while (!arrived) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        barrier.arrive_and_wait();
    });
    bool was_stopped = is_stopped_in([] {
        arrived = true;
        barrier.arrive_and_wait();
    });
    std::printf("barrier %d\n", was_stopped);
    other.join();
}
