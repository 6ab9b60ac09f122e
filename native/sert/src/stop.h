/* Stopping a request: when it is due, where that can be done, and the way back. */
#ifndef SERT_STOP_H
#define SERT_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "thread.h"

/* Nanoseconds until an overdue request that could not be stopped is checked again; doubled each
 * time. */
#define STOP_FIRST_BACKOFF 250000u

/* Makes `signum` ours. Returns 0, or an errno. */
int stop_take_signal(int signum);
/* Returns our signal, or 0. */
int stop_signal(void);

/* Creates a timer for the thread. Returns whether that succeeded. */
bool stop_with_timer(struct thread *thread);
void stop_without_timer(struct thread *thread);
/* Called when a request has begun. The controller checks requests that last; a short threshold
 * cannot wait for it. */
void stop_arm(struct thread *thread);
/* Arms the timers of requests that are due before `horizon`. Called by the controller. */
void stop_arm_all(uint64_t horizon);
/* Called when the request is over, because its timer would only disturb later work. */
void stop_disarm(struct thread *thread);
/* Makes another thread's request check whether it is due. */
void stop_nudge(struct thread *thread);

/* Returns why the request must be stopped, or 0. */
int stop_reason(const struct thread *thread, uint64_t now);
/* Makes the request unstoppable. */
void stop_never(struct thread *thread);
/* Makes the request unstoppable because of something that it does, except in cooperative classes.
 * `caller` is for the lint. */
void stop_spoilt(const char *why, void *caller);
/* Counts once that the request was stopped, or told to stop. */
void stop_count(struct thread *thread, int reason, uint64_t now);
/* Returns whether it can be stopped where no operation is under way: no mask, no lock, not
 * cancelled. */
bool stop_is_possible(const struct thread *thread);
/* Returns whether a wait that begins here could be left: in addition, the stack is the request's,
 * and no other handler runs. It makes a system call if a stop is pending. */
bool stop_may_leave(const struct thread *thread);
/* Returns whether this is another handler of the program, which blocks our signal (signals.c). The
 * interrupted code is under way, and the handler's actions are not the request's. It makes a system
 * call. */
bool stop_is_blocked(void);
/* Stops the request if it is due and that is possible, and then does not return. Call it where no
 * operation is under way. */
void stop_if_due(struct thread *thread);

/* Called at the end of a function of ours that the program itself called. If `caller` is a library,
 * its operation is under way. */
void stop_resume(struct thread *thread, void *caller);
static inline void stop_here(struct thread *thread, void *caller) {
    if (__builtin_expect(thread->pending, 0)) {
        stop_resume(thread, caller);
    }
}

#endif
