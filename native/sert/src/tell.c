#include "tell.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "real.h"

static const char *const texts[TELL_WHATS] = {
    [TELL_NO_POINT] = "SERT_start: this thread has no rollback point (SERT_register_rollbackpoint); its requests "
                      "are not stopped",
    [TELL_NESTED] = "SERT_start: a request has begun already; the inner one is part of it",
    [TELL_NO_CLASS] = "a class that was not set (SERT_set_args)",
    [TELL_BAD_ARGS] = "SERT_set_args: ",
    [TELL_NOT_BEGUN] = "SERT_end: no request has begun",
    [TELL_NO_TIMER] = "SERT_start before SERT_init_timer, or that failed; requests are not stopped",
    [TELL_UNPROTECTED] = "this process cannot be protected, its requests are not stopped: ",
    [TELL_MODULE] = "SERT_safe_module: the module is not admitted: ",
    [TELL_THREADS] = "no more threads can be watched, or have a timer (ulimit -i); the requests of this one are not stopped",
    [TELL_MEMORY] = "no memory for the log of a request; it is not stopped",
    [TELL_SIGNAL] = "SERT_init_timer: ",
};

void tell_once(enum tell what, const char *detail) {
    static atomic_bool told[TELL_WHATS];
    if (atomic_exchange(&told[what], 1)) {
        return;
    }
    int kept = errno;
    struct iovec parts[] = {
        {"libsert: ", 9},
        {(char *)texts[what], strlen(texts[what])},
        {(char *)(detail ? detail : ""), detail ? strlen(detail) : 0},
        {"\n", 1},
    };
    /* Call the real writev: our own would take this for an answer to a client. */
    if (REAL(writev)(STDERR_FILENO, parts, 4) < 0) {
        /* There is no other place to report it. */
    }
    errno = kept;
}
