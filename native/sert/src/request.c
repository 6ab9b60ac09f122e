/* The life of a request, and the functions of sert.h. */
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <string.h>

#include "control.h"
#include "gate.h"
#include "lint.h"
#include "memory.h"
#include "once.h"
#include "real.h"
#include "resources.h"
#include "stop.h"
#include "tell.h"
#include "thread.h"

static _Atomic bool is_started;

static int fail(int error) {
    if (error) {
        errno = error;
        return -1;
    }
    return 0;
}

static int refuse(int error, enum tell what, const char *detail) {
    tell_once(what, detail);
    return fail(error);
}

/* --- The process --- */

/* Prepares a fork: resources that a request shares with the child are no longer the request's own.
 */
static void before_fork(void) {
    stop_spoilt("forks", __builtin_return_address(0));
}

static void in_child(void) {
    if (atomic_exchange(&is_started, false)) {
        thread_forked();
        control_forked();
        once_forked();
    }
}

static int start_library(int signum) {
    static bool has_fork_handlers;
    const char *missing = real_missing();
    if (missing) {
        return refuse(ENOTSUP, TELL_UNPROTECTED, missing);
    }
    if (!gate_open()) {
        return refuse(ENOTSUP, TELL_UNPROTECTED, "cannot find libc.so.6 or the program's code");
    }
    const char *fault = exceptions_find(NULL);
    if (fault) {
        return refuse(ENOTSUP, TELL_UNPROTECTED, fault);
    }
    int error = stop_take_signal(signum);
    if (error) {
        return refuse(error, TELL_SIGNAL, error == EBUSY ? "the signal already has a handler" : "the signal cannot be used");
    }
    lint_begin();
    if (!has_fork_handlers) {
        has_fork_handlers = pthread_atfork(before_fork, NULL, in_child) == 0;
    }
    error = control_start();
    atomic_store(&is_started, error == 0);
    return fail(error);
}

int SERT_init_timer(int signum) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    REAL(pthread_mutex_lock)(&one_at_a_time);
    int result = atomic_load(&is_started) ? fail(EALREADY) : start_library(signum);
    REAL(pthread_mutex_unlock)(&one_at_a_time);
    return result;
}

int SERT_safe_module(const char *soname) {
    const char *fault = exceptions_find(soname);
    return fault ? refuse(ENOTSUP, TELL_MODULE, fault) : fail(gate_admit(soname));
}

/* --- The end of a request --- */

static void end(struct thread *thread) {
    struct counts *counts = &thread->counts[thread->class_id];
    lint_ended(thread);
    thread->running = 0;
    atomic_signal_fence(memory_order_seq_cst);
    thread->pending = 0;
    size_t left = memory_forget(thread);
    if (left) {
        thread_count(&counts->survivors, left);
    }
    atomic_store_explicit(&thread->generation, atomic_load_explicit(&thread->generation, memory_order_relaxed) + 1, memory_order_release);
    atomic_store_explicit(&thread->busy_since, 0, memory_order_relaxed);
    /* Disarm after the generation has changed: the controller may be arming the timer at this
     * moment (arm_if_due). */
    stop_disarm(thread);
    if (__builtin_expect(atomic_load_explicit(&thread->returned, memory_order_relaxed) != NULL, 0)) {
        memory_take_back(thread);
    }
    if (!thread->is_counted) {
        thread_count(&counts->completed, 1);
        thread->warm[thread->class_id] += thread->warm[thread->class_id] < UINT32_MAX;
    }
}

/* --- The thread --- */

/* Returns whether an exception, or a jump of the program, has left the request without its end: a
 * caller that is not deeper in the stack than the begin of the request is outside of it. */
static bool is_left_behind(const struct thread *thread, uintptr_t here) {
    return here >= thread->stack_at_start;
}

int SERT_register_rollbackpoint(void *sigjmp_buf_pointer) {
    if (!atomic_load(&is_started)) {
        return refuse(ENOTSUP, TELL_NO_TIMER, NULL);
    }
    struct thread *thread = thread_watch();
    if (thread == NULL) {
        return refuse(EAGAIN, TELL_THREADS, NULL);
    }
    if (thread->running && !is_left_behind(thread, arch_here())) {
        return refuse(EBUSY, TELL_NESTED, NULL);
    }
    if (thread->running) {
        end(thread);
    }
    thread->point = sigjmp_buf_pointer;
    return 0;
}

int SERT_set_class(uint32_t class_id) {
    if (!control_is_set(class_id)) {
        return refuse(EINVAL, TELL_NO_CLASS, NULL);
    }
    thread_next_class = class_id;
    return 0;
}

int SERT_set_args(const struct sert_arg *arg) {
    int error = control_set(arg);
    return error ? fail(error) : SERT_set_class(arg->class_id);
}

int SERT_refused(uint32_t class_id) {
    if (!control_is_set(class_id)) {
        return refuse(EINVAL, TELL_NO_CLASS, NULL);
    }
    control_refused(class_id);
    return 0;
}

/* --- The request --- */

static void keep(struct thread *thread) {
    arch_keep_rounding(&thread->rounding);
    thread->locale = uselocale((locale_t)0);
    exceptions_keep(thread->exceptions);
    thread->signals_changed = false;
}

static bool is_warm(const struct thread *thread, uint32_t class_id) {
    return thread->warm[class_id] >= control_warm_up(class_id);
}

static void begin(struct thread *thread) {
    uint32_t class_id = thread_next_class;
    uint64_t generation = atomic_load_explicit(&thread->generation, memory_order_relaxed);
    thread->owner = thread_token(thread->slot, generation);
    atomic_store_explicit(&thread->class_id, class_id, memory_order_relaxed);
    thread->locks_before = thread->locks;
    thread->is_counted = false;
    thread->nested = 0;
    atomic_store_explicit(&thread->cancelled, false, memory_order_relaxed);
    bool stoppable = is_warm(thread, class_id) && !control_has_flag(class_id, SERT_COOPERATIVE) && !lint_is_on;
    atomic_store_explicit(&thread->stoppable, stoppable, memory_order_relaxed);
    thread->backoff = STOP_FIRST_BACKOFF;
    thread->pending = 0;
    thread->resource_count = 0;
    thread->waits_at = thread->woken_by.word = NULL;
    keep(thread);
    thread_count(&thread->counts[class_id].arrived, 1);
    thread->began = thread_now();
    /* The controller reads the class and the timer after this. */
    atomic_store_explicit(&thread->busy_since, thread->began, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    thread->running = 1;
    atomic_signal_fence(memory_order_seq_cst);
    stop_arm(thread);
}

int SERT_start(void) {
    struct thread *thread = thread_self;
    if (!atomic_load_explicit(&is_started, memory_order_relaxed)) {
        return refuse(ENOTSUP, TELL_NO_TIMER, NULL);
    }
    if (thread == NULL || thread->point == NULL) {
        return refuse(EINVAL, TELL_NO_POINT, NULL);
    }
    if (thread->running && is_left_behind(thread, arch_here())) {
        end(thread);
    }
    if (thread->running) {
        thread->nested++;
        return refuse(EBUSY, TELL_NESTED, NULL);
    }
    if (!control_is_set(thread_next_class)) {
        return refuse(EINVAL, TELL_NO_CLASS, NULL);
    }
    thread->stack_at_start = arch_here();
    begin(thread);
    return 0;
}

int SERT_end(void) {
    struct thread *thread = thread_request();
    if (thread == NULL) {
        return atomic_load(&is_started) ? refuse(EINVAL, TELL_NOT_BEGUN, NULL) : fail(EINVAL);
    }
    if (thread->nested > 0) {
        thread->nested--;
        return 0;
    }
    end(thread);
    return 0;
}

void SERT_mask(void) {
    struct thread *thread = thread_self;
    if (thread) {
        thread->masked++;
    }
}

static void unmask(struct thread *thread, void *caller) {
    if (thread->masked > 0 && --thread->masked == 0 && thread->running) {
        stop_here(thread, caller);
    }
}

void SERT_unmask(void) {
    struct thread *thread = thread_self;
    if (thread) {
        unmask(thread, __builtin_return_address(0));
    }
}

void SERT_unaccounted_begin(void) {
    struct thread *thread = thread_self;
    if (thread) {
        thread->masked++;
        thread->unaccounted++;
    }
}

void SERT_unaccounted_end(void) {
    struct thread *thread = thread_self;
    if (thread && thread->unaccounted > 0) {
        thread->unaccounted--;
        unmask(thread, __builtin_return_address(0));
    }
}

int SERT_defer(void (*undo)(void *), void *arg) {
    struct thread *thread = thread_request();
    if (thread == NULL || undo == NULL) {
        return fail(EINVAL);
    }
    size_t before = thread->resource_count;
    resources_add(thread, (struct resource){.kind = KIND_UNDO, .at = arg, .undo = undo});
    return thread->resource_count > before ? 0 : fail(ENOMEM);
}

int SERT_undefer(void (*undo)(void *), void *arg) {
    struct thread *thread = thread_request();
    return thread && resources_remove_undo(thread, undo, arg) ? 0 : fail(ENOENT);
}

void SERT_cancel(void) {
    struct thread *thread = thread_request();
    if (thread) {
        lint_cancelled(thread, "calls SERT_cancel", __builtin_return_address(0));
        stop_never(thread);
    }
}

/* --- From other threads, and cooperatively --- */

uint64_t SERT_token(void) {
    struct thread *thread = thread_request();
    return thread ? thread->owner : 0;
}

int SERT_terminate(uint64_t token, int reason) {
    struct thread *thread = thread_at(thread_slot_of(token));
    if (reason < SERT_RAN_TOO_LONG || reason > SERT_ORDERED) {
        return fail(EINVAL);
    }
    if (token == 0 || thread == NULL || atomic_load(&thread->generation) != thread_generation_of(token) || atomic_load(&thread->busy_since) == 0) {
        return fail(ESRCH);
    }
    if (thread->cancelled || !(thread->stoppable || control_has_flag(thread->class_id, SERT_COOPERATIVE))) {
        return fail(EPERM);
    }
    atomic_store(&thread->ordered, token << 2 | (unsigned)reason);
    stop_nudge(thread);
    return 0;
}

int SERT_checkpoint(void) {
    struct thread *thread = thread_request();
    if (thread == NULL || thread->cancelled) {
        return 0;
    }
    uint64_t now = thread_now();
    int reason = stop_reason(thread, now);
    if (reason) {
        stop_count(thread, reason, now);
        /* If the request goes on, its next call stops it. No signal has to come first. */
        thread->pending = thread->stoppable;
    }
    return reason;
}

int64_t SERT_left(void) {
    struct thread *thread = thread_request();
    if (thread == NULL || thread->cancelled) {
        return INT64_MAX;
    }
    int64_t left = (int64_t)(thread->began + control_threshold(thread->class_id) - thread_now());
    return left > 0 ? left : 0;
}

int SERT_get_stats(struct sert_stats *stats) {
    if (stats->size != sizeof *stats || stats->class_id >= SERT_CLASSES) {
        return fail(EINVAL);
    }
    control_stats(stats);
    return 0;
}
