/* [paper 2.10] The handler runs on the thread whose request is due, between any two of its
 * instructions.
 *
 * It only checks its own thread. So a signal that comes late, or from an unknown sender, does no
 * harm: the running request is due or it is not. If it is due, and the thread is in the program's
 * own code, masks nothing and holds no lock that it did not hold before, then no operation is under
 * way anywhere, and any function may be called from here: the request is abandoned. Otherwise the
 * handler sets `pending` for the next function of ours that the program calls, and the timer tries
 * again. */
#include "stop.h"

#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <setjmp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "control.h"
#include "futex.h"
#include "gate.h"
#include "lint.h"
#include "memory.h"
#include "real.h"
#include "resources.h"

#define MOST_BACKOFF 16000000u

extern const char calls_begin[], calls_end[];

static int signal_number;

int stop_signal(void) {
    return signal_number;
}

/* --- When --- */

int stop_reason(const struct thread *thread, uint64_t now) {
    uint64_t ordered = atomic_load_explicit(&thread->ordered, memory_order_relaxed);
    if (__builtin_expect(ordered >> 2 == thread->owner, 0)) {
        return (int)(ordered & 3);
    }
    return now - thread->began >= control_threshold(thread->class_id) ? SERT_RAN_TOO_LONG : 0;
}

void stop_never(struct thread *thread) {
    if (!thread->cancelled) {
        thread->cancelled = true;
        thread->pending = 0;
        thread_count(&thread->counts[thread->class_id].cancelled, 1);
        stop_disarm(thread);
    }
}

void stop_spoilt(const char *why, void *caller) {
    struct thread *thread = thread_request();
    if (thread && !thread->unaccounted && !thread->cancelled && !control_has_flag(thread->class_id, SERT_COOPERATIVE)) {
        lint_cancelled(thread, why, caller);
        stop_never(thread);
    }
}

static bool may_ever(const struct thread *thread) {
    return thread->stoppable && !thread->cancelled;
}

bool stop_is_possible(const struct thread *thread) {
    return may_ever(thread) && thread->masked == 0 && thread->locks == thread->locks_before;
}

/* --- The timer --- */

static void arm_for(struct thread *thread, uint64_t at) {
    struct itimerspec when = {.it_value = {(time_t)(at / 1000000000u), (long)(at % 1000000000u)}};
    atomic_store_explicit(&thread->armed_for, at, memory_order_relaxed);
    timer_settime(thread->timer, TIMER_ABSTIME, &when, NULL);
}

/* Most requests need no system call: the controller arms a timer only for those that last. */
void stop_arm(struct thread *thread) {
    uint64_t threshold = control_threshold(thread->class_id);
    if (threshold < CONTROL_LEAST_WATCHED && may_ever(thread)) {
        arm_for(thread, thread->began + threshold);
    }
}

void stop_disarm(struct thread *thread) {
    if (atomic_load_explicit(&thread->armed_for, memory_order_relaxed) != 0) {
        struct itimerspec never = {0};
        atomic_store_explicit(&thread->armed_for, 0, memory_order_relaxed);
        timer_settime(thread->timer, 0, &never, NULL);
    }
}

/* Arms the timer of a request that is due before the horizon. Meanwhile the request may end and
 * another begin, or it may become unstoppable: then the timer is disarmed. Returns whether it
 * was. If it was the next request's own, `armed_for` may say that it is armed: so arm it in any case
 * if `is_again`. */
static bool arm_if_due(struct thread *thread, uint64_t horizon, bool is_again) {
    uint64_t generation = atomic_load(&thread->generation), since = atomic_load(&thread->busy_since);
    uint64_t due = since + control_threshold(thread->class_id), armed = atomic_load(&thread->armed_for);
    if (since == 0 || !may_ever(thread) || due >= horizon || (!is_again && armed != 0 && armed <= due)) {
        return false;
    }
    arm_for(thread, due);
    bool is_stale = atomic_load(&thread->generation) != generation || !may_ever(thread);
    if (is_stale) {
        stop_disarm(thread);
    }
    return is_stale;
}

void stop_arm_all(uint64_t horizon) {
    for (unsigned slot = 1; slot < thread_slots(); slot++) {
        struct thread *thread = thread_at(slot);
        /* The disarmed timer may have been the next request's own. So try again at once, but not
         * forever. */
        for (int tries = 0; tries < 3 && thread && atomic_load(&thread->tid) != 0 && arm_if_due(thread, horizon, tries > 0); tries++) {
        }
    }
}

bool stop_with_timer(struct thread *thread) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal_number};
    event._sigev_un._tid = atomic_load(&thread->tid);
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, signal_number);
    return REAL_VERSION(timer_create, "GLIBC_2.3.3")(CLOCK_MONOTONIC, &event, &thread->timer) == 0
        && REAL(pthread_sigmask)(SIG_UNBLOCK, &ours, NULL) == 0;
}

void stop_without_timer(struct thread *thread) {
    timer_delete(thread->timer);
}

/* Sends the signal to a thread, unless one is on its way to it. The number of queued signals is
 * limited for the whole user. */
void stop_nudge(struct thread *thread) {
    pid_t tid = atomic_load(&thread->tid);
    if (tid != 0 && !atomic_exchange(&thread->signalled, 1) && tgkill(getpid(), tid, signal_number) != 0) {
        atomic_store(&thread->signalled, 0);
    }
}

/* --- The way back --- */

void stop_count(struct thread *thread, int reason, uint64_t now) {
    struct counts *counts = &thread->counts[thread->class_id];
    if (thread->is_counted) {
        return;
    }
    thread->is_counted = true;
    if (reason != SERT_RAN_TOO_LONG) {
        thread_count(&counts->gone, 1);
        thread_count(&counts->strays, control_is_of_interval(thread->class_id, thread->began));
        return;
    }
    /* The request was due at the threshold, or when the threshold fell. */
    uint64_t due = thread->began + control_threshold(thread->class_id), fell = control_changed(thread->class_id);
    due = due > fell ? due : fell;
    uint64_t over = now > due ? now - due : 0;
    thread_count(&counts->terminated, 1);
    thread_count(&counts->overshoot, over);
    if (over > atomic_load_explicit(&counts->overshoot_max, memory_order_relaxed)) {
        atomic_store_explicit(&counts->overshoot_max, over, memory_order_relaxed);
    }
}

static void restore(struct thread *thread) {
    arch_restore_rounding(&thread->rounding);
    exceptions_restore(thread->exceptions);
    uselocale(thread->locale);
    if (thread->signals_changed) {
        REAL(pthread_sigmask)(SIG_SETMASK, &thread->signals, NULL);
    }
}

/* Releases everything that the request holds, and continues at the rollback point. */
static _Noreturn void abandon(struct thread *thread, int reason, uint64_t now) {
    thread->running = 0;
    thread->ending = true;
    thread->pending = 0;
    stop_count(thread, reason, now);
    futex_pass_on(thread);
    resources_give_back(thread);
    memory_free_all(thread);
    thread->ending = false;
    atomic_fetch_add(&thread->generation, 1);
    atomic_store(&thread->busy_since, 0);
    /* Disarm after the generation has changed: the controller may be arming the timer at this
     * moment (arm_if_due). */
    stop_disarm(thread);
    memory_take_back(thread);
    restore(thread);
    siglongjmp(*thread->point, reason);
}

/* Returns whether `sp` is on the stack on which the request began, not on a coroutine's or a
 * signal stack. */
static bool is_on_stack(const struct thread *thread, uintptr_t sp) {
    return sp >= thread->stack_low && sp < thread->stack_high;
}

bool stop_is_blocked(void) {
    sigset_t now;
    return REAL(pthread_sigmask)(SIG_SETMASK, NULL, &now) == 0 && sigismember(&now, signal_number);
}

bool stop_may_leave(const struct thread *thread) {
    return stop_is_possible(thread) && is_on_stack(thread, arch_here()) && !(thread->pending && stop_is_blocked());
}

void stop_if_due(struct thread *thread) {
    uint64_t now = thread_now();
    int reason = stop_reason(thread, now);
    if (reason && stop_is_possible(thread) && is_on_stack(thread, arch_here()) && !stop_is_blocked()) {
        abandon(thread, reason, now);
    }
    /* The threshold has risen. */
    if (!reason && thread->pending) {
        thread->pending = 0;
        stop_arm(thread);
    }
}

bool stop_is_own(const struct thread *thread, const void *object) {
    uintptr_t at = (uintptr_t)object;
    bool is_own = is_on_stack(thread, at) || resources_have_map(thread, at, 1);
    for (size_t i = 0; i < thread->blocks && !is_own; i++) {
        void *block = thread->log[i];
        is_own = block && at - (uintptr_t)block < malloc_usable_size(block);
    }
    return is_own;
}

void stop_at_wait(struct thread *thread, const void *object) {
    if (stop_reason(thread, thread_now()) == 0 || !stop_is_own(thread, object)) {
        stop_if_due(thread);
    }
}

void stop_resume(struct thread *thread, void *caller) {
    if (gate_is_program((uintptr_t)caller)) {
        stop_if_due(thread);
    }
}

/* --- The handler --- */

/* Returns whether the thread is in a system call that may block, before the call had any effect. It
 * is the program's own call; other calls are not made there. */
static bool is_waiting(const ucontext_t *at) {
    uintptr_t pc = arch_pc(at), from = (uintptr_t)calls_begin, to = (uintptr_t)calls_end;
    return (pc >= from && pc < to) || (pc == to && arch_result(at) == -EINTR);
}

/* Returns whether the request waits at a futex that it has made itself. Looks for it once in each
 * wait. */
static bool waits_for_own(struct thread *thread) {
    thread->waits_own = thread->waits_at && (thread->waits_own || stop_is_own(thread, thread->waits_at));
    return thread->waits_own;
}

/* Returns the counter of the reason why the request cannot be stopped here, or NULL if it can. */
static _Atomic uint64_t *hindrance(struct thread *thread, const ucontext_t *at) {
    struct counts *counts = &thread->counts[thread->class_id];
    if (thread->masked > 0) {
        return &counts->masked;
    }
    if (thread->locks != thread->locks_before) {
        return &counts->locked;
    }
    bool is_between = gate_is_program(arch_pc(at)) || (is_waiting(at) && !waits_for_own(thread));
    return is_between && is_on_stack(thread, arch_sp(at)) ? NULL : &counts->gated;
}

static void look(struct thread *thread, const ucontext_t *at) {
    uint64_t now = thread_now();
    int reason = stop_reason(thread, now);
    if (reason == 0) {
        thread_count(&thread->counts[thread->class_id].late, 1);
        stop_arm(thread);
        return;
    }
    if (!may_ever(thread)) {
        return;
    }
    _Atomic uint64_t *hindered = hindrance(thread, at);
    if (hindered == NULL) {
        abandon(thread, reason, now);
    }
    thread_count(hindered, 1);
    thread->pending = 1;
    arm_for(thread, now + thread->backoff);
    thread->backoff = thread->backoff < MOST_BACKOFF ? thread->backoff * 2 : MOST_BACKOFF;
}

static void handle(int signum, siginfo_t *info, void *context) {
    (void)signum;
    struct thread *thread = thread_self;
    if (thread == NULL) {
        return;
    }
    int kept = errno;
    if (info->si_code == SI_TIMER) {
        atomic_store_explicit(&thread->armed_for, 0, memory_order_relaxed);
    }
    /* Clear it for either signal: of two pending standard signals only one is delivered. An exchange
     * also acquires: a SERT_terminate that relied on this signal has set `ordered` before. */
    atomic_exchange(&thread->signalled, 0);
    thread->fired++;
    if (thread->running) {
        look(thread, context);
    }
    errno = kept;
}

/* Handlers that exist already must not be interrupted by ours either. */
static void mask_in_others(void) {
    for (int other = 1; other <= SIGRTMAX; other++) {
        struct sigaction is;
        if (other == signal_number || REAL(sigaction)(other, NULL, &is) != 0 || is.sa_handler == SIG_DFL || is.sa_handler == SIG_IGN) {
            continue;
        }
        sigaddset(&is.sa_mask, signal_number);
        REAL(sigaction)(other, &is, NULL);
    }
}

int stop_take_signal(int signum) {
    struct sigaction before, ours = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER};
    if (signum <= 0 || signum > SIGRTMAX || signum == SIGKILL || signum == SIGSTOP || REAL(sigaction)(signum, NULL, &before) != 0) {
        return EINVAL;
    }
    if (before.sa_sigaction == handle) {
        return signal_number == signum ? 0 : EALREADY;
    }
    if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        return EBUSY;
    }
    signal_number = signum;
    mask_in_others();
    return REAL(sigaction)(signum, &ours, NULL) == 0 ? 0 : errno;
}
