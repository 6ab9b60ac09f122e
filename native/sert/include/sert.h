/* libsert: stops requests that run for too long inside the process, and releases everything that
 * they hold.
 *
 * It is for services in C and C++ with a thread per request, whose requests are read-only and
 * independent of each other. A worker tells the library where it can go on (a rollback point), and
 * where a request begins and ends. The library knows what the request acquires meanwhile. An
 * overdue request is abandoned: its memory, files, sockets and mappings are released, and the
 * thread goes on at the rollback point.
 *
 * Source: paper 2, "Selective Early Request Termination for Busy Internet Services", which has the
 * first five functions. Their protections and limits: libsert(7).
 *
 * Any thread may call every function, and a function concerns the calling thread unless stated
 * otherwise. A signal handler must not call any. Functions that return int return 0, or -1 with
 * errno set; each kind of error is reported once on stderr. A request whose begin failed runs
 * unprotected. */
#ifndef SERT_H
#define SERT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* SERT_WEAK: a program also runs without the library, and is protected where the library is
 * preloaded. Check SERT_PRESENT first; a missing function must not be called. */
#ifdef SERT_WEAK
#define SERT_API __attribute__((weak, visibility("default")))
#define SERT_PRESENT (SERT_start != NULL)
#else
#define SERT_API __attribute__((visibility("default")))
#define SERT_PRESENT 1
#endif

/* The number of classes. Classes are numbered from 0. */
#define SERT_CLASSES 64

/* The settings of a class of requests. Zero in a field from `alpha` on stands for the default. */
struct sert_arg {
    uint32_t size;        /* sizeof(struct sert_arg) */
    uint32_t class_id;    /* below SERT_CLASSES */
    double lb_ms;         /* no request is stopped before this time; above 0 */
    double ub_ms;         /* no request runs longer; not below lb_ms, at most a day */
    double alpha;         /* how fast the threshold falls with the loss; default 4; below 0: 0 */
    double hw;            /* from this loss on, lb_ms is the threshold; default 0.15 */
    double lw;            /* up to this loss, ub_ms is the threshold; default 0.05; below 0: 0 */
    uint32_t interval_ms; /* period over which the loss is counted; default 10,000; at least 100 */
    uint32_t flags;       /* SERT_COOPERATIVE, SERT_NO_WARM_UP, SERT_FREES_OTHERS */
    /* requests of the class that a thread completes before one of its own is stopped; default 3 */
    uint32_t warm_up;
};

/* Never abandon: SERT_checkpoint reports when to give up, and the program unwinds by itself. */
#define SERT_COOPERATIVE 1u
/* Also stop the first request of a thread. */
#define SERT_NO_WARM_UP 2u
/* Continue to stop a request that frees or resizes memory older than itself. By default such a
 * request becomes unstoppable, since the objects that point to this memory live longer. Use this
 * flag where such memory is part of the request's own description. */
#define SERT_FREES_OTHERS 4u

/* Why a request was stopped: the return value of sigsetjmp at the rollback point, and of
 * SERT_checkpoint. */
enum sert_reason {
    SERT_RAN_TOO_LONG = 1, /* counts as lost: the class's threshold may fall */
    SERT_CLIENT_GONE = 2,  /* the client no longer waits for the answer; not counted */
    SERT_ORDERED = 3       /* an operator or another part of the program stopped it; not counted */
};

/* --- The five functions of paper 2 --- */

/* Starts the controller, a thread that sleeps nearly all the time (with SCHED_FIFO where that is
 * permitted). From now on `signum` belongs to the library (SIGRTMIN and above are best). Call it
 * once in a process, before the first request, and again in a forked child. ENOTSUP: this process
 * cannot be protected (stderr says why), and everything runs without terminations. EBUSY: the
 * signal has a handler. EALREADY: it was called already. */
SERT_API int SERT_init_timer(int signum);
/* Sets the settings of the class `arg->class_id`. The requests that this thread begins are of this
 * class from now on. EINVAL: a setting is invalid. */
SERT_API int SERT_set_args(const struct sert_arg *arg);
/* Sets where this thread goes on when a request is stopped: a sigjmp_buf that sigsetjmp has filled,
 * in a frame that outlives the request. Its saved signal mask may be 0: the library restores the
 * mask. EBUSY: a request runs, and this call is deeper in the stack than its begin. ENOTSUP:
 * SERT_init_timer was not called, or failed. EAGAIN: no more threads can be watched, or have a
 * timer. */
SERT_API int SERT_register_rollbackpoint(void *sigjmp_buf_pointer);
/* Begins a request. It first ends a request that an exception has left open. EINVAL: there is no
 * rollback point, or the class was not set. EBUSY: a request has begun already. ENOTSUP:
 * SERT_init_timer was not called, or failed. */
SERT_API int SERT_start(void);
/* Ends a request. Everything that it has not released belongs to the program. EINVAL: no request
 * had begun. */
SERT_API int SERT_end(void);

/* --- Additions --- */

/* Makes the requests that this thread begins belong to the class `class_id`. EINVAL: the class was
 * not set. */
SERT_API int SERT_set_class(uint32_t class_id);
/* Counts a request of the class that was refused before it began as lost. Any thread may call this
 * function. EINVAL: the class was not set. */
SERT_API int SERT_refused(uint32_t class_id);

/* Mask stops: between these two calls the request is not stopped. If it is overdue, it is stopped
 * at the unmask. The calls nest. Use them for shared structures without a pthread lock: a lock of
 * another library, reference counts, lists of your own. */
SERT_API void SERT_mask(void);
SERT_API void SERT_unmask(void);
/* Begin and end a section in which allocated memory and opened files belong to the program and not
 * to the request. Use it for caches and shared objects. These calls mask stops, too. */
SERT_API void SERT_unaccounted_begin(void);
SERT_API void SERT_unaccounted_end(void);
/* Registers `undo(arg)`, which is called if the request is stopped: the last one first, before
 * anything else is released. EINVAL: no request. ENOMEM: there are too many, and this request is
 * not stopped any more. */
SERT_API int SERT_defer(void (*undo)(void *), void *arg);
/* Removes the last registration of `undo` and `arg`, because the program has undone the action by
 * itself. ENOENT: there is none. */
SERT_API int SERT_undefer(void (*undo)(void *), void *arg);
/* Makes this request unstoppable. */
SERT_API void SERT_cancel(void);
/* Allows stops also in the code of this shared object, and not only in the program's. The object
 * is named by the beginning of its file name, such as "libranking.so". Use this function only for
 * objects that hold no lock of their own, and after SERT_init_timer. ENOENT: the object is not
 * loaded. ENOSPC: there are too many objects. */
SERT_API int SERT_safe_module(const char *soname);

/* Returns a token of the running request; 0 if there is none. No other request ever gets this
 * token. */
SERT_API uint64_t SERT_token(void);
/* Stops a request of any thread, however long it has run. The request is stopped soon after this
 * call, not before it returns. ESRCH: the request is over. EINVAL: no such reason. EPERM: the
 * request must not be stopped (SERT_cancel; not warm). */
SERT_API int SERT_terminate(uint64_t token, int reason);
/* Returns 0, or the reason why this request should give up. It also works for classes whose
 * requests are stopped without it. */
SERT_API int SERT_checkpoint(void);
/* Returns the nanoseconds that this request has left; INT64_MAX if it is unlimited. */
SERT_API int64_t SERT_left(void);

/* The counts of a class since the start of the process. */
struct sert_stats {
    uint32_t size;     /* in: sizeof(struct sert_stats) */
    uint32_t class_id; /* in */
    uint64_t arrived, completed, refused;
    uint64_t terminated; /* stopped because they ran too long */
    uint64_t gone;       /* stopped with SERT_CLIENT_GONE or SERT_ORDERED */
    /* became unstoppable: wrote to a client, made a thread, or called SERT_cancel */
    uint64_t cancelled;
    /* The numbers of overdue requests that could not be stopped where they were: with stops
     * masked, with a lock held, or in a library's code. */
    uint64_t masked, locked, gated;
    uint64_t late;       /* signals that found nothing to do */
    uint64_t survivors;  /* blocks that completed requests left behind */
    double loss;         /* p of the last interval */
    uint64_t threshold_ns;
    uint64_t overshoot_ns, overshoot_max_ns; /* from due to stopped: sum, largest */
};

SERT_API int SERT_get_stats(struct sert_stats *stats);

/* Returns the threshold for a loss, in nanoseconds: LB + F(p)(UB - LB). It has no side effects. */
SERT_API uint64_t SERT_threshold(const struct sert_arg *arg, uint64_t arrived, uint64_t lost);

#ifdef __cplusplus
}
#endif
#endif
