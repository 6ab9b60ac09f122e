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
#include <shared_mutex>
#include <thread>
#include "sert.h"
static std::promise<void> promise;
static std::shared_future<void> future = promise.get_future().share();
static std::mutex mutex;
static std::condition_variable condition;
static bool is_set = false;
static std::atomic<int> number{0};
static std::shared_mutex shared;
static std::barrier<> barrier(2);
// Waits in a request. Another thread calls `end` some time after the request is due.
static bool is_stopped_in(void (*wait)(), void (*end)()) {
    static sigjmp_buf point;
    static std::atomic<bool> is_waiting, is_over;
    is_waiting = is_over = false;
    std::thread other([end] {
        while (!is_waiting) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::seconds(1));
        is_over = true;
        end();
    });
    volatile bool was_stopped = sigsetjmp(point, 0) != 0;
    if (!was_stopped) {
        SERT_register_rollbackpoint(&point), SERT_start();
        is_waiting = true;
        wait();
        SERT_cancel();
        SERT_end();
    }
    bool is_in_wait = was_stopped && !is_over;
    other.join();
    return is_in_wait;
}
int main() {
    sert_arg arg = {};
    arg.size = sizeof arg;
    arg.lb_ms = arg.ub_ms = 200, arg.flags = SERT_NO_WARM_UP;
    if (SERT_init_timer(SIGRTMIN) || SERT_set_args(&arg)) return 1;
    std::printf("future %d, ", is_stopped_in([] { future.wait(); }, [] { promise.set_value(); }));
    auto wait = [] {
        std::unique_lock<std::mutex> lock(mutex);
        condition.wait(lock, [] { return is_set; });
    };
    std::printf("condition %d, ", is_stopped_in(wait, [] {
        std::lock_guard<std::mutex> lock(mutex);
        is_set = true;
        condition.notify_all();
    }));
    std::printf("atomic %d, ", is_stopped_in([] { number.wait(0); }, [] { number = 1, number.notify_all(); }));
    auto arrive = [] { barrier.arrive_and_wait(); };
    std::printf("barrier %d, ", is_stopped_in(arrive, arrive));
    // A writer waits for this thread.
    std::atomic<bool> is_held{false};
    static std::atomic<bool> is_over{false};
    std::thread reader([&] {
        shared.lock_shared();
        is_held = true;
        while (!is_over) std::this_thread::yield();
        shared.unlock_shared();
    });
    while (!is_held) std::this_thread::yield();
    auto lock = [] { shared.lock(), shared.unlock(); };
    std::printf("shared mutex %d, ", is_stopped_in(lock, [] { is_over = true; }));
    reader.join();
    std::printf("free %d\n", shared.try_lock());
}
