// Runs a part of a handler as a request of libsert, on a thread of any framework.
#pragma once

#include <setjmp.h>

#include "sert.h"

// Runs `work` as a request of the class. Returns 0, or the reason why it was stopped.
//
// The request covers `work` alone. So the framework has no lock, no half-written message and no
// iterator of its own open at a stop. `work` reads what the framework has given, but writes nothing
// into it: that would leave pointers to memory of the request. It makes its result by `new` and
// stores the pointer. If it was stopped, the pointer must not be used. An exception of `work` ends the
// request and passes on.
template <class Work>
int sert_run(uint32_t class_id, const Work &work) {
    sigjmp_buf point;
    if (int reason = sigsetjmp(point, 0)) return reason;
    SERT_register_rollbackpoint(&point);
    SERT_set_class(class_id);
    SERT_start();
    try {
        work();
    } catch (...) {
        SERT_end();
        throw;
    }
    SERT_end();
    return 0;
}

// Starts the library with one class. The threads of a framework come and go, so a thread's first
// requests are stopped too: `work` must not make an object at its first use in a thread.
inline int sert_begin(uint32_t class_id, double lb_ms, double ub_ms) {
    sert_arg arg = {};
    arg.size = sizeof arg;
    arg.class_id = class_id;
    arg.lb_ms = lb_ms;
    arg.ub_ms = ub_ms;
    arg.flags = SERT_NO_WARM_UP;
    return SERT_init_timer(SIGRTMIN) || SERT_set_args(&arg) ? -1 : 0;
}
