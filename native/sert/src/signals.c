/* Signals of the program: our handler must not interrupt its handlers, and changes of the mask by a
 * request are undone. */
#include <signal.h>

#include "real.h"
#include "stop.h"
#include "thread.h"

/* Some of these functions are deprecated. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

STANDS_BEFORE int sigaction(int signum, const struct sigaction *action, struct sigaction *before) {
    if (action == NULL || stop_signal() == 0) {
        return REAL(sigaction)(signum, action, before);
    }
    struct sigaction with_ours = *action;
    sigaddset(&with_ours.sa_mask, stop_signal());
    return REAL(sigaction)(signum, &with_ours, before);
}
ALSO(__sigaction, sigaction);

/* Calls our sigaction for signal() and its variants, because libc's versions make the system call
 * directly. */
static void (*set_handler(int signum, void (*handler)(int), int flags))(int) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, before;
    if (handler == SIG_ERR) {
        return REAL(signal)(signum, handler);
    }
    sigemptyset(&action.sa_mask);
    if (!(flags & SA_NODEFER)) {
        sigaddset(&action.sa_mask, signum);
    }
    return sigaction(signum, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}
STANDS_BEFORE void (*signal(int signum, void (*handler)(int)))(int) {
    return set_handler(signum, handler, SA_RESTART);
}
ALSO(bsd_signal, signal);
STANDS_BEFORE void (*ssignal(int signum, void (*handler)(int)))(int) {
    return set_handler(signum, handler, SA_RESTART);
}
STANDS_BEFORE void (*sysv_signal(int signum, void (*handler)(int)))(int) {
    return set_handler(signum, handler, (int)SA_RESETHAND | SA_NODEFER);
}
void (*__sysv_signal(int signum, void (*handler)(int)))(int);
STANDS_BEFORE void (*__sysv_signal(int signum, void (*handler)(int)))(int) {
    return set_handler(signum, handler, (int)SA_RESETHAND | SA_NODEFER);
}

static void keep_mask(void) {
    struct thread *thread = thread_request();
    if (thread && !thread->signals_changed) {
        thread->signals_changed = REAL(pthread_sigmask)(SIG_SETMASK, NULL, &thread->signals) == 0;
    }
}
STANDS_BEFORE int pthread_sigmask(int how, const sigset_t *set, sigset_t *before) {
    keep_mask();
    return REAL(pthread_sigmask)(how, set, before);
}
STANDS_BEFORE int sigprocmask(int how, const sigset_t *set, sigset_t *before) {
    keep_mask();
    return REAL(sigprocmask)(how, set, before);
}
/* The functions of System V and BSD. */
STANDS_BEFORE int sighold(int signum) {
    keep_mask();
    return REAL(sighold)(signum);
}
STANDS_BEFORE int sigrelse(int signum) {
    keep_mask();
    return REAL(sigrelse)(signum);
}
STANDS_BEFORE int sigblock(int mask) {
    keep_mask();
    return REAL(sigblock)(mask);
}
STANDS_BEFORE int sigsetmask(int mask) {
    keep_mask();
    return REAL(sigsetmask)(mask);
}
STANDS_BEFORE void (*sigset(int signum, void (*handler)(int)))(int) {
    sigset_t only, before;
    keep_mask();
    if (handler == SIG_HOLD) {
        return REAL(sigset)(signum, handler);
    }
    sigemptyset(&only);
    if (sigaddset(&only, signum) != 0) {
        return SIG_ERR;
    }
    void (*handled)(int) = set_handler(signum, handler, 0);
    if (handled == SIG_ERR || REAL(sigprocmask)(SIG_UNBLOCK, &only, &before) != 0) {
        return SIG_ERR;
    }
    return sigismember(&before, signum) ? SIG_HOLD : handled;
}
