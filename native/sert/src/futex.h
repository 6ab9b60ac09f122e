/* Waits at futexes. */
#ifndef SERT_FUTEX_H
#define SERT_FUTEX_H

struct thread;

/* Makes the system call futex for the program, which has called syscall(). A request can be stopped
 * while it waits. */
__attribute__((visibility("hidden"))) long futex_call(long number, ...);
/* Wakes another thread in place of a request that is stopped after it was woken: the request may
 * not have looked at its object yet. A thread that is woken for nothing waits again. */
void futex_pass_on(const struct thread *thread);

#endif
