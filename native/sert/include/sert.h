/* libsert: requests that run for too long are stopped inside the process, and give everything back.
 *
 * For services in C and C++ with a thread per request, whose requests are read-only and independent of each
 * other. A worker says where it can go on (a rollback point), where a request begins and where it ends; what
 * the request takes meanwhile, the library knows. A request that is overdue is abandoned: its memory, files,
 * sockets and mappings are given back and the thread goes on at the rollback point.
 *
 * Source: seed 2, "Selective Early Request Termination for Busy Internet Services": the first five functions
 * are its own. What they protect, and what not: libsert(7).
 *
 * Every function may be called by any thread and speaks of the calling one, unless it says otherwise. None may
 * be called by a signal handler. Functions that return int return 0, or -1 with errno set; what was wrong is
 * said once on stderr. A request that was not begun well runs, unprotected.
 */
#ifndef SERT_H
#define SERT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* With SERT_WEAK a program runs without the library too, and is protected where it is preloaded. Then ask
 * SERT_PRESENT first; a missing function must not be called. */
#ifdef SERT_WEAK
#define SERT_API __attribute__((weak, visibility("default")))
#define SERT_PRESENT (SERT_start != NULL)
#else
#define SERT_API __attribute__((visibility("default")))
#define SERT_PRESENT 1
#endif

/* Classes are numbered from 0. */
#define SERT_CLASSES 64

/* What a class of requests is granted. Zero in a field from `alpha` on: its default. */
struct sert_arg {
    uint32_t size;        /* sizeof(struct sert_arg) */
    uint32_t class_id;    /* below SERT_CLASSES */
    double lb_ms;         /* no request is stopped sooner; above 0 */
    double ub_ms;         /* none runs longer; not below lb_ms, at most a day */
    double alpha;         /* how soon the threshold falls as the loss rises: 4; below 0: 0 */
    double hw;            /* from this loss on lb_ms is the threshold: 0.15 */
    double lw;            /* up to this loss ub_ms is: 0.05; below 0: 0 */
    uint32_t interval_ms; /* over which the loss is counted: 10,000; at least 100 */
    uint32_t flags;       /* SERT_COOPERATIVE, SERT_NO_WARM_UP, SERT_FREES_OTHERS */
    uint32_t warm_up;     /* requests of the class that a thread completes before it stops one: 3 */
};

/* Never abandoned: SERT_checkpoint says when to give up, and the program unwinds by itself. */
#define SERT_COOPERATIVE 1u
/* The first request of a thread may be stopped too. */
#define SERT_NO_WARM_UP 2u
/* A request that frees or resizes memory older than itself is not stopped any more, as what points there lives
 * longer. With this it is: where such memory is part of the request's own description. */
#define SERT_FREES_OTHERS 4u

/* Why a request was stopped: what sigsetjmp returns at the rollback point, and SERT_checkpoint. */
enum sert_reason {
    SERT_RAN_TOO_LONG = 1, /* counts as lost: the class's threshold may fall */
    SERT_CLIENT_GONE = 2,  /* nobody waits for the answer; not counted */
    SERT_ORDERED = 3       /* an operator or another part of the program; not counted */
};

/* --- The seed's five --- */

/* Starts the controller, a thread (with SCHED_FIFO where that is permitted: it sleeps nearly always); `signum` (SIGRTMIN and above are best) is the library's from now on. Once in a
 * process, before the first request; in a forked child again. ENOTSUP: this process cannot be protected
 * (stderr says why); everything runs without terminations. EBUSY: the signal has a handler. EALREADY. */
SERT_API int SERT_init_timer(int signum);
/* What `arg->class_id` is granted; and the requests that this thread begins are of that class. EINVAL. */
SERT_API int SERT_set_args(const struct sert_arg *arg);
/* EBUSY: a request runs, deeper in the stack than it began. ENOTSUP: SERT_init_timer was not called, or failed.
 * EAGAIN: no more threads can be watched, or have a timer.
 * Where this thread goes on when a request is stopped: a sigjmp_buf that sigsetjmp has filled, in a frame
 * that outlives the request. Its saved signal mask may be 0: the library restores the mask. */
SERT_API int SERT_register_rollbackpoint(void *sigjmp_buf_pointer);
/* A request begins. EINVAL: no rollback point, or the class was not set. EBUSY: one has begun already.
 * ENOTSUP: SERT_init_timer was not called, or failed. A request that an exception has left is ended first. */
SERT_API int SERT_start(void);
/* It is over; what it has not given back is the program's. EINVAL: none had begun. */
SERT_API int SERT_end(void);

/* --- Additions --- */

/* The requests that this thread begins are of this class. EINVAL: it was not set. */
SERT_API int SERT_set_class(uint32_t class_id);
/* A request of the class was refused before it began: it is in the loss. Any thread. EINVAL. */
SERT_API int SERT_refused(uint32_t class_id);

/* Between these the request is not stopped; overdue, it is at the unmask. They nest. For structures that are
 * shared without a pthread lock: a lock of another library, reference counts, lists of one's own. */
SERT_API void SERT_mask(void);
SERT_API void SERT_unmask(void);
/* What is allocated and opened between these is the program's, not the request's: caches, shared objects. They
 * mask, too. */
SERT_API void SERT_unaccounted_begin(void);
SERT_API void SERT_unaccounted_end(void);
/* If the request is stopped, `undo(arg)` is called, the last first, before anything else is given back.
 * EINVAL: no request. ENOMEM: too many; this request is not stopped then. */
SERT_API int SERT_defer(void (*undo)(void *), void *arg);
/* Takes back the last one like it: the program has done it itself. ENOENT. */
SERT_API int SERT_undefer(void (*undo)(void *), void *arg);
/* This request is not stopped any more. */
SERT_API void SERT_cancel(void);
/* A request may be stopped in the code of this shared object too, not only in the program's: by the beginning
 * of its file name, such as "libranking.so". Only for objects that hold no lock of their own. After
 * SERT_init_timer. ENOENT: not loaded. ENOSPC. */
SERT_API int SERT_safe_module(const char *soname);

/* The request that runs: 0 if none. It names that request for ever. */
SERT_API uint64_t SERT_token(void);
/* Stops a request of any thread, however long it has run. ESRCH: it is over. EINVAL: no such reason. EPERM:
 * it is not to be stopped (SERT_cancel; not warm). Stopped it is soon after, not before this returns. */
SERT_API int SERT_terminate(uint64_t token, int reason);
/* 0, or why this request should give up: also for classes that are stopped anyway. */
SERT_API int SERT_checkpoint(void);
/* Nanoseconds that this request has left; INT64_MAX if nothing bounds it. */
SERT_API int64_t SERT_left(void);

/* What has happened to a class since the start. */
struct sert_stats {
    uint32_t size;     /* in: sizeof(struct sert_stats) */
    uint32_t class_id; /* in */
    uint64_t arrived, completed, refused;
    uint64_t terminated; /* ran too long */
    uint64_t gone;       /* stopped because of SERT_CLIENT_GONE or SERT_ORDERED */
    uint64_t cancelled;  /* became unstoppable: wrote to a client, made a thread, or SERT_cancel */
    /* Overdue, but not at a place where it can be stopped: in a mask, with a lock, in a library's code. */
    uint64_t masked, locked, gated;
    uint64_t late;       /* signals that found nothing to do */
    uint64_t survivors;  /* blocks that completed requests left behind */
    double loss;         /* p of the last interval */
    uint64_t threshold_ns;
    uint64_t overshoot_ns, overshoot_max_ns; /* from due to stopped: sum, largest */
};

SERT_API int SERT_get_stats(struct sert_stats *stats);

/* The threshold for a loss, in nanoseconds: LB + F(p)(UB - LB). Pure. */
SERT_API uint64_t SERT_threshold(const struct sert_arg *arg, uint64_t arrived, uint64_t lost);

#ifdef __cplusplus
}
#endif
#endif
