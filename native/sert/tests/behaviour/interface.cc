// Tests of the interface: errors, classes, tokens.
#include "harness.h"

#ifndef GOLDEN
#error "GOLDEN: the path of termination.csv"
#endif

namespace behaviour {

namespace {

void wrong_calls_return_errors_and_say_so_once() {
    std::string text = said([] {
        sigjmp_buf point;
        CHECK(SERT_start() == -1 && errno == ENOTSUP);
        CHECK(SERT_register_rollbackpoint(&point) == -1 && errno == ENOTSUP);
        CHECK(SERT_init_timer(0) == -1 && errno == EINVAL);
        CHECK(SERT_init_timer(SIGKILL) == -1 && errno == EINVAL);
        CHECK(SERT_init_timer(SIGNAL) == 0);
        CHECK(SERT_init_timer(SIGNAL) == -1 && errno == EALREADY);
        CHECK(SERT_start() == -1 && errno == EINVAL);
        CHECK(SERT_start() == -1 && errno == EINVAL);
        CHECK(SERT_register_rollbackpoint(&point) == 0);
        CHECK(SERT_start() == -1 && errno == EINVAL);
        CHECK(SERT_set_class(3) == -1 && errno == EINVAL);
        CHECK(SERT_set_class(99) == -1 && errno == EINVAL);
        CHECK(SERT_refused(3) == -1 && errno == EINVAL);
        for (sert_arg bad : {granted(5, 4), granted(0, 4), granted(-1, 4), granted(NAN, 4), granted(1, INFINITY), granted(1, 2, 0, 64), granted(1, 2, 128)}) {
            CHECK(SERT_set_args(&bad) == -1 && errno == EINVAL);
        }
        sert_arg bad = granted(1, 2);
        bad.lw = 0.5;
        CHECK(SERT_set_args(&bad) == -1 && errno == EINVAL);
        bad = granted(1, 2), bad.size = 12;
        CHECK(SERT_set_args(&bad) == -1 && errno == EINVAL);
        bad = granted(1, 2), bad.interval_ms = 99;
        CHECK(SERT_set_args(&bad) == -1 && errno == EINVAL);
        CHECK(SERT_end() == -1 && errno == EINVAL);
        CHECK(SERT_defer(nullptr, nullptr) == -1 && errno == EINVAL);
        CHECK(SERT_undefer(nullptr, nullptr) == -1 && errno == ENOENT);
        CHECK(SERT_terminate(12345, SERT_ORDERED) == -1 && errno == ESRCH);
        CHECK(SERT_terminate(0, SERT_ORDERED) == -1 && errno == ESRCH);
        CHECK(SERT_terminate(1, 7) == -1 && errno == EINVAL);
        CHECK(SERT_safe_module("libnothing.so") == -1 && errno == ENOENT);
        sert_stats small = {};
        CHECK(SERT_get_stats(&small) == -1 && errno == EINVAL);
        CHECK(SERT_checkpoint() == 0 && SERT_token() == 0 && SERT_left() == INT64_MAX);
        SERT_mask(), SERT_unmask(), SERT_unmask(), SERT_cancel();
        SERT_unaccounted_begin(), SERT_unaccounted_end(), SERT_unaccounted_end();
    });
    CHECK(count(text, "no rollback point") == 1);
    CHECK(count(text, "SERT_set_args: lb_ms is above ub_ms") == 1 && count(text, "SERT_set_args: ") == 1);
    CHECK(count(text, "SERT_init_timer was not called") == 1);
    CHECK(count(text, "no request has begun") == 1);
}

void a_signal_that_has_a_handler_is_refused() {
    signal(SIGNAL, [](int) {});
    CHECK(SERT_init_timer(SIGNAL) == -1 && errno == EBUSY);
}

void a_class_that_is_chosen_before_anything_has_begun_counts() {
    for (uint32_t class_id : {2, 3}) {
        sert_arg arg = granted(5000, 5000, SERT_NO_WARM_UP, class_id);
        CHECK(SERT_set_args(&arg) == 0);
    }
    CHECK(SERT_init_timer(SIGNAL) == 0);
    CHECK(request([] {}) == 0);
    CHECK(stats(3).completed == 1 && stats(2).completed == 0);
    // Each thread has a class of its own.
    std::thread other([] {
        CHECK(SERT_set_class(2) == 0);
        CHECK(request([] {}) == 0);
    });
    other.join();
    CHECK(request([] {}) == 0);
    CHECK(stats(3).completed == 2 && stats(2).completed == 1);
}

void a_nested_start_is_part_of_the_outer_request() {
    start_library(granted(100, 100));
    CHECK(request([] {
        CHECK(SERT_start() == -1 && errno == EBUSY);
        CHECK(SERT_end() == 0);
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    CHECK(request([] {}) == 0);
    CHECK(stats().arrived == 2 && stats().completed == 1);
}

void the_thresholds_are_the_engines() {
    std::ifstream file(GOLDEN);
    std::string line;
    std::getline(file, line);
    CHECK(line == "lb_ms,ub_ms,alpha,lw,hw,arrived,lost,threshold_ns");
    int rows = 0;
    for (; std::getline(file, line); rows++) {
        double lb, ub, alpha, lw, hw;
        unsigned long long arrived, lost, expected;
        CHECK(sscanf(line.c_str(), "%lf,%lf,%lf,%lf,%lf,%llu,%llu,%llu", &lb, &ub, &alpha, &lw, &hw, &arrived, &lost, &expected) == 8);
        sert_arg arg = granted(lb, ub);
        // Zero stands for the default, and a negative value for zero.
        arg.alpha = alpha == 0 ? -1 : alpha;
        arg.lw = lw == 0 ? -1 : lw;
        arg.hw = hw;
        double is = static_cast<double>(SERT_threshold(&arg, arrived, lost));
        if (std::fabs(is - static_cast<double>(expected)) > 1000) {
            fprintf(stderr, "%s: %.0f\n", line.c_str(), is);
            _exit(1);
        }
    }
    CHECK(rows == 105);
}

void a_request_that_an_exception_has_left_ends_at_the_next_rollback_point() {
    start_library(granted(1000, 1000));
    for (int i = 0; i < 2; i++) {
        try {
            request([] {
                burn_for(700);
                throw std::runtime_error("left");
            });
            CHECK(!"reached");
        } catch (const std::runtime_error &) {
        }
    }
    // Work before the next begin belongs to no request.
    sigjmp_buf point;
    CHECK(sigsetjmp(point, 0) == 0);
    CHECK(SERT_register_rollbackpoint(&point) == 0);
    burn_for(1500);
    // The request has its own time, not the rest of another's.
    CHECK(request([] { burn_for(700); }) == 0);
    CHECK(stats().completed == 3 && stats().terminated == 0);
}

// The frame is as small as possible; the result is volatile so that the call is no jump.
__attribute__((noinline)) int set_point_in_a_small_frame(sigjmp_buf *point) {
    volatile int result = SERT_register_rollbackpoint(point);
    return result;
}
// Where a function stands in the stack does not depend on the frames of the library's functions.
void a_begin_is_left_in_its_own_frame_and_not_in_one_that_it_calls() {
    start_library(granted(3600e3, 3600e3));
    sigjmp_buf point;
    CHECK(sigsetjmp(point, 0) == 0 && SERT_register_rollbackpoint(&point) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(SERT_start() == 0);
        CHECK(set_point_in_a_small_frame(&point) == -1 && errno == EBUSY);
        CHECK(SERT_register_rollbackpoint(&point) == 0);
    }
    CHECK(stats().completed == 2);
}

void a_nested_start_does_not_outlive_a_stop() {
    start_library(granted(100, 100));
    CHECK(request([] {
        CHECK(SERT_start() == -1);
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    CHECK(request([] {}) == 0);
    CHECK(SERT_token() == 0);
}

void a_child_does_not_take_its_parents_request_for_its_own() {
    start_library(granted(200, 200));
    CHECK(request([] {
        uint64_t parents = SERT_token();
        std::vector<void *> older(1000);
        for (auto &block : older) block = malloc(100);
        pid_t child = fork();
        if (child == 0) {
            CHECK(SERT_init_timer(SIGNAL) == 0);
            sert_arg arg = granted(200, 200, SERT_NO_WARM_UP | SERT_FREES_OTHERS);
            CHECK(SERT_set_args(&arg) == 0);
            CHECK(request([&] {
                CHECK(SERT_token() != parents);
                for (auto &block : older) block = realloc(block, 200);
                for_ever();
            }) == SERT_RAN_TOO_LONG);
            long before = heap();
            for (auto &block : older) memset(block, 1, 200), free(block);
            CHECK(before - heap() > 150000);
            _exit(0);
        }
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }) == 0);
}

}  // namespace

const std::vector<Test> interface_tests = {
    TEST("api", wrong_calls_return_errors_and_say_so_once),
    TEST("busy", a_signal_that_has_a_handler_is_refused),
    TEST("early", a_class_that_is_chosen_before_anything_has_begun_counts),
    TEST("nested", a_nested_start_is_part_of_the_outer_request),
    TEST("golden", the_thresholds_are_the_engines),
    TEST("left", a_request_that_an_exception_has_left_ends_at_the_next_rollback_point),
    TEST("frames", a_begin_is_left_in_its_own_frame_and_not_in_one_that_it_calls),
    TEST("nested-stop", a_nested_start_does_not_outlive_a_stop),
    TEST("fork-token", a_child_does_not_take_its_parents_request_for_its_own),
};

}  // namespace behaviour
