/* Stops requests: decides when a request is due and where it can be stopped, and returns to the
 * rollback point. */
#ifndef SERT_STOP_H
#define SERT_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "thread.h"

/* The time in nanoseconds after which an overdue request that could not be stopped is checked
 * again. It is doubled each time. */
#define STOP_FIRST_BACKOFF 250000u

/* Makes `signum` the signal of this library. Returns 0, or an errno. */
int stop_take_signal(int signum);
/* Returns the signal of this library, or 0 if it has none. */
int stop_signal(void);

/* Creates a timer for the thread. Returns whether that succeeded. */
bool stop_with_timer(struct thread *thread);
void stop_without_timer(struct thread *thread);
/* Arms the thread's timer if the class has a short threshold. Called when a request has begun. The
 * controller checks requests with longer thresholds. */
void stop_arm(struct thread *thread);
/* Arms the timers of requests that are due before `horizon`. Called by the controller. */
void stop_arm_all(uint64_t horizon);
/* Disarms the thread's timer. Called when the request is over, because the timer would only
 * disturb later work. */
void stop_disarm(struct thread *thread);
/* Makes another thread's request check whether it is due. */
void stop_nudge(struct thread *thread);

/* Returns why the request must be stopped at the time `now`; 0 if it must not. */
int stop_reason(const struct thread *thread, uint64_t now);
/* Makes the request unstoppable. */
void stop_never(struct thread *thread);
/* Makes the request unstoppable because of something that it does, except in cooperative classes.
 * `caller` is the code that did it, for the lint. */
void stop_spoilt(const char *why, void *caller);
/* Counts a request, once, that was stopped or told to stop. */
void stop_count(struct thread *thread, int reason, uint64_t now);
/* Returns whether the request can be stopped at a place where no operation is under way: it has
 * masked no stops, holds no lock, and is not cancelled. */
bool stop_is_possible(const struct thread *thread);
/* Returns whether a request may be stopped in a wait that begins here. In addition to
 * stop_is_possible, the stack is the request's, and no other handler runs. Makes a system call if
 * a stop is pending. */
bool stop_may_leave(const struct thread *thread);
/* Returns whether the thread is in another signal handler of the program, which blocks our signal
 * (signals.c). Then the interrupted code has an operation under way, and the handler's actions are
 * not the request's. Makes a system call. */
bool stop_is_blocked(void);
/* Stops the request if it is due and a stop is possible; in that case it does not return. Call it
 * where no operation is under way. */
void stop_if_due(struct thread *thread);

/* Stops the request like stop_if_due, unless the request made the object that it waits for.
 * Another thread must know such an object in order to end the wait, and uses it after a stop. */
void stop_at_wait(struct thread *thread, const void *object);
/* Returns whether the request has made the object, or may have: the object is on the thread's stack,
 * or in the request's memory. Takes time in proportion to the number of the request's blocks. */
bool stop_is_own(const struct thread *thread, const void *object);

/* Stops the request if it is due. Called at the end of a function of ours that the program itself
 * has called. If `caller` is in a library, an operation of that library is under way, and the
 * request is not stopped. */
void stop_resume(struct thread *thread, void *caller);
static inline void stop_here(struct thread *thread, void *caller) {
    if (__builtin_expect(thread->pending, 0)) {
        stop_resume(thread, caller);
    }
}

#endif
