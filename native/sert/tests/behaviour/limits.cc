// Tests of limits, at which nothing breaks.
#include "harness.h"

namespace behaviour {

namespace {

void more_threads_than_can_be_watched_run_unprotected() {
    start_library(granted(1000, 1000));
    constexpr int MANY = 4200;
    static std::atomic<int> refused{0}, served{0};
    static pthread_barrier_t all;
    pthread_barrier_init(&all, nullptr, MANY + 1);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    std::vector<pthread_t> threads(MANY);
    std::string text = said([&] {
        for (auto &thread : threads) {
            CHECK(pthread_create(&thread, &small, [](void *) -> void * {
                static thread_local sigjmp_buf point;
                if (SERT_register_rollbackpoint(&point) == 0) SERT_start(), SERT_end(), served++;
                else if (errno == EAGAIN && SERT_start() == -1) refused++;
                pthread_barrier_wait(&all);
                return nullptr;
            }, nullptr) == 0);
        }
        pthread_barrier_wait(&all);
        for (auto &thread : threads) pthread_join(thread, nullptr);
    });
    CHECK(served + refused == MANY && refused >= MANY - 4096);
    CHECK(count(text, "too many threads") == 1);
    // The slots can be used again.
    for (int i = 0; i < 5000; i++) {
        std::thread([] {
            sigjmp_buf point;
            CHECK(SERT_register_rollbackpoint(&point) == 0);
        }).join();
    }
}

int undone;
void undo(void *) { undone++; }
void a_request_with_too_much_to_undo_is_not_stopped() {
    start_library();
    CHECK(request([] {
        int refused = 0;
        SERT_mask();
        for (int i = 0; i < (1 << 20) + 10; i++) refused += SERT_defer(undo, nullptr) != 0;
        SERT_unmask();
        CHECK(refused > 0);
        burn_for(200);
    }) == 0);
    CHECK(undone == 0);
}

void threads_without_a_timer_run_unprotected_and_harm_no_other() {
    start_library(granted(10, 10));
    rlimit none = {0, 0}, before;
    getrlimit(RLIMIT_SIGPENDING, &before);
    none.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_SIGPENDING, &none);
    // These threads end only when others have had the slots that they were refused.
    std::atomic<int> refused{0}, served{0};
    std::atomic<bool> alone{false};
    std::vector<std::thread> without, threads;
    for (int i = 0; i < 3; i++) {
        without.emplace_back([&] {
            sigjmp_buf point;
            CHECK(SERT_register_rollbackpoint(&point) == -1 && errno == EAGAIN);
            refused++;
            while (served < 3) usleep(1000);
        });
    }
    while (refused < 3) usleep(1000);
    setrlimit(RLIMIT_SIGPENDING, &before);
    for (int i = 0; i < 3; i++) {
        threads.emplace_back([&] {
            CHECK(request(for_ever) == SERT_RAN_TOO_LONG);
            served++;
            while (!alone) usleep(1000);
            for (int turn = 0; turn < 5; turn++) CHECK(request(for_ever) == SERT_RAN_TOO_LONG);
        });
    }
    for (auto &thread : without) thread.join();
    alone = true;
    for (auto &thread : threads) thread.join();
}

void a_log_does_not_stay_large_for_ever() {
    start_library(granted(3600e3, 3600e3));
    auto resident = [] {
        long pages = 0, unused;
        CHECK(fscanf(std::unique_ptr<FILE, int (*)(FILE *)>(fopen("/proc/self/statm", "r"), fclose).get(), "%ld %ld", &unused, &pages) == 2);
        return pages * 4096;
    };
    CHECK(request([] { free(malloc(10)); }) == 0);
    long before = resident();
    CHECK(request([] {
        std::vector<void *> blocks(3000000);
        for (auto &block : blocks) block = malloc(8);
        for (auto &block : blocks) free(block);
    }) == 0);
    malloc_trim(0);
    CHECK(resident() - before < 8 << 20);
}

}  // namespace

const std::vector<Test> limits_tests = {
    TEST("threads", more_threads_than_can_be_watched_run_unprotected),
    TEST("undos", a_request_with_too_much_to_undo_is_not_stopped),
    TEST("timers", threads_without_a_timer_run_unprotected_and_harm_no_other),
    TEST("log", a_log_does_not_stay_large_for_ever),
};

}  // namespace behaviour
