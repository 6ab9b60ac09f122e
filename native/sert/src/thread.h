/* A thread that serves requests, and the request that it serves.
 *
 * Ownership: everything is the thread's own, except the fields that are marked; these are atomic.
 * The structures are never freed, only reused for another thread: any thread may find one by its
 * slot and read it at any time. The signal handler runs on the thread, between any two of its
 * instructions. */
#ifndef SERT_THREAD_H
#define SERT_THREAD_H

#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "arch.h"
#include "exceptions.h"
#include "sert.h"

#define THREADS 4096

struct resource;

/* The counts of a thread for a class. Only the thread adds to them; any thread reads them. */
struct counts {
    _Atomic uint64_t arrived, completed, terminated, gone, cancelled;
    _Atomic uint64_t strays; /* those of `gone` that had arrived in the same interval */
    _Atomic uint64_t masked, locked, gated, late, survivors, overshoot, overshoot_max;
};

struct thread {
    /* --- Read by every call of malloc and free --- */
    volatile sig_atomic_t running; /* a request runs, and is not being ended */
    bool ending;                   /* it is being stopped, and still owns what it releases */
    volatile int pending;          /* it must be stopped where that is possible */
    int unaccounted;
    int charging_anyway;           /* in a function of libc whose result is the caller's */
    uint64_t owner;                /* the token of the request */
    size_t blocks, room;           /* of the log, with holes */
    size_t live;                   /* without holes */
    void **log;

    /* --- The request --- */
    int masked, locks, locks_before;
    _Atomic bool cancelled, stoppable;
    bool is_counted;               /* as terminated or gone, so not as completed too */
    unsigned nested;
    uintptr_t stack_at_start;
    uint64_t began;
    _Atomic uint32_t class_id;
    uint64_t backoff;
    const void *waits_at;          /* the futex at which the request waits where it can be stopped */
    bool waits_own;                /* the handler has found that the request made this futex */
    struct wake {                  /* the futex that has woken the request last */
        void *word;                /* NULL: none */
        int flags;
        uint32_t mask;
    } woken_by;
    struct resource *resources;
    size_t resource_count, resource_room;

    /* --- What a stop restores --- */
    sigjmp_buf *point;
    sigset_t signals;
    bool signals_changed;
    struct arch_rounding rounding;
    struct exceptions exceptions[EXCEPTIONS_RUNTIMES];
    locale_t locale;

    /* --- The thread --- */
    uint32_t warm[SERT_CLASSES];
    uintptr_t stack_low, stack_high;
    timer_t timer;
    _Atomic uint64_t armed_for;    /* 0: not armed; the controller arms it, too */
    /* The number of our signals that the thread has received. A call that returned EINTR checks
     * whether one came. */
    unsigned fired;

    /* --- Shared with other threads --- */
    _Atomic uint64_t generation;   /* of the running request; it changes when the request is over */
    _Atomic uint64_t busy_since;   /* 0: idle */
    _Atomic uint64_t ordered;      /* owner << 2 | reason, set by SERT_terminate */
    _Atomic int signalled;         /* a signal is on its way */
    _Atomic(void *) returned;      /* blocks of this thread's requests that other threads freed */
    _Atomic pid_t tid;             /* 0: the slot is free */
    struct counts counts[SERT_CLASSES];
    uint32_t slot;
};

extern _Thread_local struct thread *thread_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The class of the requests that this thread begins, even if the thread is not watched yet. */
extern _Thread_local uint32_t thread_next_class __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Returns the calling thread's structure. The thread is watched from now on. NULL: the table is
 * full. */
struct thread *thread_watch(void);
/* Returns an upper bound of the slots in use: all of them are below it. */
unsigned thread_slots(void);
/* Returns the thread of a slot; NULL if the slot was never used. */
struct thread *thread_at(unsigned slot);
/* Resets the state in a forked child, where only the calling thread exists, without a timer. */
void thread_forked(void);

static inline uint64_t thread_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void thread_count(_Atomic uint64_t *counter, uint64_t more) {
    uint64_t was = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, was + more, memory_order_relaxed);
}

/* Returns the token of a request, made from the thread's slot and the number of the request. */
static inline uint64_t thread_token(uint32_t slot, uint64_t generation) {
    return (uint64_t)slot << 48 | generation;
}
static inline unsigned thread_slot_of(uint64_t token) {
    return (unsigned)(token >> 48);
}
static inline uint64_t thread_generation_of(uint64_t token) {
    return token & (((uint64_t)1 << 48) - 1);
}

/* Returns this thread if it runs a request; otherwise NULL. */
static inline struct thread *thread_request(void) {
    struct thread *thread = thread_self;
    return thread && thread->running ? thread : NULL;
}

/* Returns this thread if it runs a request or its request is being stopped; otherwise NULL.
 * Functions that release resources use it. */
static inline struct thread *thread_owner(void) {
    struct thread *thread = thread_self;
    return thread && (thread->running || thread->ending) ? thread : NULL;
}

#endif
