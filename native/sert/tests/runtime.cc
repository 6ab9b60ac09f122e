// Stops requests within nested and rethrown exceptions, with a C++ runtime that is linked in any
// way (tests/programs).
#include <setjmp.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "sert.h"

namespace {

const int ENOUGH = 400;

// A stop can come between any two of these: within one, two or three exceptions, and while one is
// copied.
void nest(int depth) {
    try {
        if (depth == 0) throw std::runtime_error(std::string(200, 'e'));
        nest(depth - 1);
    } catch (const std::exception &) {
        std::exception_ptr kept = std::current_exception();
        for (volatile int i = 0; i < 2000; i = i + 1) {}
        try {
            std::rethrow_exception(kept);
        } catch (const std::exception &again) {
            if (depth % 2) throw;
            std::throw_with_nested(std::logic_error(again.what()));
        }
    }
}

bool is_as_before() {
    return std::current_exception() == nullptr && std::uncaught_exceptions() == 0;
}

// The first request makes the function static: a stop must not leave its guard taken.
int made_once() {
    static const int made = [] {
        for (volatile int i = 0; i < 20000000; i = i + 1) {}
        return 1;
    }();
    return made;
}

[[noreturn]] void work() {
    for (made_once();;) {
        try {
            nest(3);
        } catch (const std::exception &) {
        }
    }
}

}  // namespace

int main() {
    sert_arg arg = {};
    arg.size = sizeof arg;
    arg.lb_ms = arg.ub_ms = 1;
    arg.flags = SERT_NO_WARM_UP;
    if (!SERT_PRESENT) return puts("not protected"), 0;
    if (SERT_init_timer(SIGRTMIN) != 0) return perror("not protected"), 0;
    if (SERT_set_args(&arg) != 0) return 1;
    static volatile int stopped;
    sigjmp_buf point;
    if (sigsetjmp(point, 0)) {
        stopped = stopped + 1;
        if (!is_as_before()) return puts("an exception was left behind"), 1;
    }
    if (stopped < ENOUGH) {
        SERT_register_rollbackpoint(&point);
        SERT_start();
        work();
    }
    printf("%d stopped, as before\n", stopped);
}
