/* Waits at futexes: std::future, std::latch, std::counting_semaphore and std::atomic::wait call
 * syscall(SYS_futex, ...), from the program's code or from that of a C++ runtime.
 *
 * The kernel removes a waiting thread from the futex when a signal comes first. So a request that
 * is stopped there takes no wake-up from another thread.
 *
 * A std::barrier cannot take an arrival back. So a request is not stopped in its wait. A runtime
 * lets its threads wait at one word for many objects, and so hides which of them is a barrier
 * (gate.h). */
#include "futex.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gate.h"
#include "real.h"
#include "stop.h"
#include "thread.h"
#include "waits.h"

static bool is_wait(int operation) {
    int command = operation & FUTEX_CMD_MASK;
    return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
}

/* Waits where the request can be stopped, if that is possible at this futex. */
static long wait_at(struct thread *thread, void *caller, void *word, int operation, long value, long time, long mask) {
    bool can_leave = stop_may_leave(thread) && !gate_is_shared_word((uintptr_t)word)
        && gate_may_wait((uintptr_t)caller, thread->stack_at_start) && !(thread->pending && stop_is_own(thread, word));
    if (!can_leave) {
        return REAL(syscall)(SYS_futex, word, operation, value, time, NULL, mask);
    }
    stop_at_wait(thread, word);
    thread->waits_own = false;
    thread->waits_at = word;
    long result = calls_enter(&thread->pending, SYS_futex, (long)word, operation, value, time, 0, mask);
    thread->waits_at = NULL;
    return waits_result(result);
}

/* The function is variadic like syscall, because only some of the operations have all arguments. */
long futex_call(long number, ...) {
    va_list more;
    va_start(more, number);
    void *word = va_arg(more, void *);
    int operation = va_arg(more, int);
    long value = va_arg(more, long), time = va_arg(more, long), second = va_arg(more, long), last = va_arg(more, long);
    va_end(more);
    struct thread *thread = thread_request();
    if (thread == NULL || !is_wait(operation)) {
        return REAL(syscall)(number, word, operation, value, time, second, last);
    }
    thread->woken_by.word = NULL;
    bool has_mask = (operation & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
    long result = wait_at(thread, __builtin_return_address(0), word, operation, value, time, last);
    if (result == 0) {
        uint32_t mask = has_mask ? (uint32_t)last : FUTEX_BITSET_MATCH_ANY;
        thread->woken_by = (struct wake){word, operation & FUTEX_PRIVATE_FLAG, mask};
    }
    return result;
}

void futex_pass_on(const struct thread *thread) {
    const struct wake *wake = &thread->woken_by;
    if (wake->word) {
        REAL(syscall)(SYS_futex, wake->word, FUTEX_WAKE_BITSET | wake->flags, 1, NULL, NULL, wake->mask);
    }
}
