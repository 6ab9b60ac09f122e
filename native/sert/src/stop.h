/* Stopping a request: when it is due, where that can be done, and the way back. */
#ifndef SERT_STOP_H
#define SERT_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "thread.h"

/* Nanoseconds until an overdue request that could not be stopped is looked at again: doubled each time. */
#define STOP_FIRST_BACKOFF 250000u

/* 0, or an errno; `signum` is ours from now on. */
int stop_take_signal(int signum);
/* Ours, or 0. */
int stop_signal(void);

/* A thread gets its timer. Whether it could. */
bool stop_with_timer(struct thread *thread);
void stop_without_timer(struct thread *thread);
/* A request has begun. The controller looks at those that last; a short threshold cannot wait for it. */
void stop_arm(struct thread *thread);
/* Arms the timers of requests that are due before `horizon`. By the controller. */
void stop_arm_all(uint64_t horizon);
/* The request is over: its timer would only disturb what comes. */
void stop_disarm(struct thread *thread);
/* Another thread's request is to see whether it is due. */
void stop_nudge(struct thread *thread);

/* Why the request is to be stopped, or 0. */
int stop_reason(const struct thread *thread, uint64_t now);
/* The request is not stopped any more. */
void stop_never(struct thread *thread);
/* The same, for something that it does: not where a request is only told. `caller` is for the lint. */
void stop_spoilt(const char *why, void *caller);
/* It is stopped, or has been told to stop: counted once. */
void stop_count(struct thread *thread, int reason, uint64_t now);
/* Whether it can be stopped where nothing is under way: no mask, no lock, not cancelled. */
bool stop_is_possible(const struct thread *thread);
/* Whether a wait that begins here could be left: also the stack is the request's, and no other handler runs. A
 * system call, if a stop is pending. */
bool stop_may_leave(const struct thread *thread);
/* In another handler of the program, which blocks our signal (signals.c): what it has interrupted is under way, and
 * what it does is not the request's doing. A system call. */
bool stop_is_blocked(void);
/* Where nothing is under way: stops the request if it is due and that is possible, and then does not return. */
void stop_if_due(struct thread *thread);

/* At the end of a function of ours that the program itself called. Where `caller` is a library, that is under
 * way. */
void stop_resume(struct thread *thread, void *caller);
static inline void stop_here(struct thread *thread, void *caller) {
    if (__builtin_expect(thread->pending, 0)) {
        stop_resume(thread, caller);
    }
}

#endif
