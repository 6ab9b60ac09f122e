#include "tell.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "real.h"

static const char *const texts[TELL_WHATS] = {
    [TELL_NO_POINT] = "SERT_start: this thread has no rollback point (call SERT_register_rollbackpoint); its requests "
                      "are not stopped",
    [TELL_NESTED] = "SERT_start: a request has begun already; the new one is part of it",
    [TELL_NO_CLASS] = "the class is not set (call SERT_set_args)",
    [TELL_BAD_ARGS] = "SERT_set_args: ",
    [TELL_NOT_BEGUN] = "SERT_end: no request has begun",
    [TELL_NO_TIMER] = "SERT_init_timer was not called, or failed; requests are not stopped",
    [TELL_UNPROTECTED] = "this process cannot be protected, and its requests are not stopped: ",
    [TELL_MODULE] = "SERT_safe_module: cannot allow stops in the module: ",
    [TELL_THREADS] = "there are too many threads, or too few timers (ulimit -i); the requests of this thread are not stopped",
    [TELL_MEMORY] = "no memory for the log of a request; the request is not stopped",
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
