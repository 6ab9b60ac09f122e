/* Locks: a request that holds one is not stopped; one that waits for one may be.
 *
 * The thread counts the locks that it holds, and compares the count with that at the begin of the
 * request. A request that waits and holds no other lock waits in slices: between two slices it has
 * not asked for the lock yet. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <threads.h>

#include "control.h"
#include "gate.h"
#include "real.h"
#include "stop.h"
#include "thread.h"
#include "waits.h"

#define SLICE 20000000u

/* Returns the end of a slice: the time at which the request is due, or an earlier time, because
 * the threshold may fall or a stop may be ordered. */
static struct timespec a_slice(const struct thread *thread) {
    uint64_t now = thread_now(), end = now + SLICE, due = thread->began + control_threshold(thread->class_id);
    end = due > now && due < end ? due : end;
    return (struct timespec){(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
}

/* Returns the request if it can be stopped while it waits on behalf of `caller`; otherwise NULL. */
static struct thread *can_leave(void *caller) {
    struct thread *thread = thread_request();
    return thread && gate_is_program((uintptr_t)caller) && stop_may_leave(thread) ? thread : NULL;
}

static int taken(int error) {
    struct thread *thread = thread_self;
    if (thread && (error == 0 || error == EOWNERDEAD)) {
        thread->locks++;
    }
    return error;
}

static int given(int error, void *caller) {
    struct thread *thread = thread_self;
    if (thread && error == 0) {
        thread->locks--;
        if (thread->running && thread->locks < thread->locks_before) {
            stop_spoilt("gives up a lock that is older than the request", caller);
        }
        if (thread->running) {
            stop_here(thread, caller);
        }
    }
    return error;
}

/* Returns the nanoseconds of `clock` until `end`; 0 if it is past, or if there is no such clock. */
static uint64_t left_until(clockid_t clock, const struct timespec *end) {
    struct timespec now;
    if (clock_gettime(clock, &now) != 0) {
        return 0;
    }
    int64_t left = (end->tv_sec - now.tv_sec) * 1000000000 + (end->tv_nsec - now.tv_nsec);
    return left > 0 ? (uint64_t)left : 0;
}

static bool is_time(const struct timespec *time) {
    return time->tv_nsec >= 0 && time->tv_nsec < 1000000000 && time->tv_sec >= 0 && time->tv_sec < INT64_MAX / 2000000000;
}

/* Returns whether a wait lasts longer than a slice. `end` is NULL if the wait is unlimited. libc
 * refuses other clocks than these two. */
static bool is_long(clockid_t clock, const struct timespec *end) {
    bool has_clock = clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
    return end == NULL || (has_clock && is_time(end) && left_until(clock, end) > SLICE);
}

/* Takes the lock by `at_once` if it is free. Otherwise waits in slices by `attempt`, which gives up
 * at `until` with ETIMEDOUT, as long as `end` of `clock` is further away than a slice. If `attempt`
 * does not support our clock, and at the end, waits by `lock`. */
#define WAIT_UNTIL(object, clock, end, caller, at_once, attempt, lock)                                 \
    if (thread_self == NULL) {                                                                         \
        return lock;                                                                                   \
    }                                                                                                  \
    int first = at_once;                                                                               \
    if (first != EBUSY) {                                                                              \
        return taken(first);                                                                           \
    }                                                                                                  \
    struct thread *waiting = can_leave(caller);                                                        \
    while (waiting && is_long(clock, end)) {                                                           \
        stop_at_wait(waiting, object);                                                                 \
        struct timespec until = a_slice(waiting);                                                      \
        int error = attempt;                                                                           \
        if (error == EINVAL) {                                                                         \
            break;                                                                                     \
        }                                                                                              \
        if (error != ETIMEDOUT) {                                                                      \
            return taken(error);                                                                       \
        }                                                                                              \
    }                                                                                                  \
    return taken(lock)
#define WAIT(object, caller, at_once, attempt, lock) WAIT_UNTIL(object, 0, NULL, caller, at_once, attempt, lock)

/* --- Mutexes --- */

static int lock_mutex(pthread_mutex_t *mutex, void *caller) {
    WAIT(mutex, caller, REAL(pthread_mutex_trylock)(mutex), REAL(pthread_mutex_clocklock)(mutex, CLOCK_MONOTONIC, &until),
         REAL(pthread_mutex_lock)(mutex));
}

STANDS_BEFORE int pthread_mutex_lock(pthread_mutex_t *mutex) {
    return lock_mutex(mutex, __builtin_return_address(0));
}

STANDS_BEFORE int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    return taken(REAL(pthread_mutex_trylock)(mutex));
}

static int lock_mutex_until(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *end, void *caller) {
    WAIT_UNTIL(mutex, clock, end, caller, REAL(pthread_mutex_trylock)(mutex),
               REAL(pthread_mutex_clocklock)(mutex, CLOCK_MONOTONIC, &until), REAL(pthread_mutex_clocklock)(mutex, clock, end));
}

STANDS_BEFORE int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *end) {
    return lock_mutex_until(mutex, CLOCK_REALTIME, end, __builtin_return_address(0));
}

STANDS_BEFORE int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *end) {
    return lock_mutex_until(mutex, clock, end, __builtin_return_address(0));
}

STANDS_BEFORE int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    return given(REAL(pthread_mutex_unlock)(mutex), __builtin_return_address(0));
}

/* --- Read-write locks --- */

STANDS_BEFORE int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    WAIT(lock, __builtin_return_address(0), REAL(pthread_rwlock_tryrdlock)(lock),
         REAL(pthread_rwlock_clockrdlock)(lock, CLOCK_MONOTONIC, &until), REAL(pthread_rwlock_rdlock)(lock));
}

STANDS_BEFORE int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    WAIT(lock, __builtin_return_address(0), REAL(pthread_rwlock_trywrlock)(lock),
         REAL(pthread_rwlock_clockwrlock)(lock, CLOCK_MONOTONIC, &until), REAL(pthread_rwlock_wrlock)(lock));
}

STANDS_BEFORE int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock) {
    return taken(REAL(pthread_rwlock_tryrdlock)(lock));
}

STANDS_BEFORE int pthread_rwlock_trywrlock(pthread_rwlock_t *lock) {
    return taken(REAL(pthread_rwlock_trywrlock)(lock));
}

static int read_until(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *end, void *caller) {
    WAIT_UNTIL(lock, clock, end, caller, REAL(pthread_rwlock_tryrdlock)(lock),
               REAL(pthread_rwlock_clockrdlock)(lock, CLOCK_MONOTONIC, &until),
               REAL(pthread_rwlock_clockrdlock)(lock, clock, end));
}

static int write_until(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *end, void *caller) {
    WAIT_UNTIL(lock, clock, end, caller, REAL(pthread_rwlock_trywrlock)(lock),
               REAL(pthread_rwlock_clockwrlock)(lock, CLOCK_MONOTONIC, &until),
               REAL(pthread_rwlock_clockwrlock)(lock, clock, end));
}

STANDS_BEFORE int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *end) {
    return read_until(lock, CLOCK_REALTIME, end, __builtin_return_address(0));
}

STANDS_BEFORE int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *end) {
    return write_until(lock, CLOCK_REALTIME, end, __builtin_return_address(0));
}

STANDS_BEFORE int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *end) {
    return read_until(lock, clock, end, __builtin_return_address(0));
}

STANDS_BEFORE int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *end) {
    return write_until(lock, clock, end, __builtin_return_address(0));
}

STANDS_BEFORE int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
    return given(REAL(pthread_rwlock_unlock)(lock), __builtin_return_address(0));
}

/* --- Spin locks, streams --- */

STANDS_BEFORE int pthread_spin_lock(pthread_spinlock_t *lock) {
    struct thread *waiting = can_leave(__builtin_return_address(0));
    while (waiting) {
        for (unsigned spins = 0; spins < 10000; spins++) {
            if (REAL(pthread_spin_trylock)(lock) == 0) {
                return taken(0);
            }
            arch_pause();
        }
        stop_at_wait(waiting, (const void *)lock);
    }
    return taken(REAL(pthread_spin_lock)(lock));
}

STANDS_BEFORE int pthread_spin_trylock(pthread_spinlock_t *lock) {
    return taken(REAL(pthread_spin_trylock)(lock));
}

STANDS_BEFORE int pthread_spin_unlock(pthread_spinlock_t *lock) {
    return given(REAL(pthread_spin_unlock)(lock), __builtin_return_address(0));
}

STANDS_BEFORE void flockfile(FILE *stream) {
    REAL(flockfile)(stream);
    taken(0);
}
ALSO(_IO_flockfile, flockfile);

STANDS_BEFORE int ftrylockfile(FILE *stream) {
    return taken(REAL(ftrylockfile)(stream));
}
ALSO(_IO_ftrylockfile, ftrylockfile);

STANDS_BEFORE void funlockfile(FILE *stream) {
    REAL(funlockfile)(stream);
    given(0, __builtin_return_address(0));
}
ALSO(_IO_funlockfile, funlockfile);

/* --- Conditions --- */

#define CONDITION(name) REAL_VERSION(name, "GLIBC_2.3.2")

/* Returns the request if it can be stopped while it holds this one lock and no other; otherwise
 * NULL. The lock is held again when a slice ends. */
static struct thread *can_leave_with(void *caller) {
    struct thread *thread = thread_request();
    if (thread == NULL) {
        return NULL;
    }
    thread->locks--;
    bool possible = stop_may_leave(thread) && gate_may_wait_for_condition((uintptr_t)caller, thread->stack_at_start);
    thread->locks++;
    return possible ? thread : NULL;
}

/* Stops the request if it is due. The mutex is held, and is released only for a stop, because no
 * other code would release it. Returns true if the request was not stopped after all, and the mutex
 * was released for a moment. */
static bool leave_if_due(struct thread *thread, const pthread_cond_t *condition, pthread_mutex_t *mutex) {
    if (stop_reason(thread, thread_now()) == 0) {
        thread->pending = 0;
        return false;
    }
    if (stop_is_own(thread, condition)) {
        return false;
    }
    REAL(pthread_mutex_unlock)(mutex);
    thread->locks--;
    stop_if_due(thread);
    /* The threshold has just risen. */
    REAL(pthread_mutex_lock)(mutex);
    thread->locks++;
    return true;
}

/* Waits for a slice, and returns as if woken when it is over: the wake-up may have come in between,
 * and only the program can check the condition that it waits for. Every wait on a condition
 * variable must expect that. */
static int wait_a_slice(struct thread *thread, pthread_cond_t *condition, pthread_mutex_t *mutex) {
    if (leave_if_due(thread, condition, mutex)) {
        return 0;
    }
    struct timespec until = a_slice(thread);
    int error = CONDITION(pthread_cond_clockwait)(condition, mutex, CLOCK_MONOTONIC, &until);
    if (error == ETIMEDOUT) {
        leave_if_due(thread, condition, mutex);
        return 0;
    }
    return error;
}

static int wait_for(pthread_cond_t *condition, pthread_mutex_t *mutex, void *caller) {
    struct thread *waiting = can_leave_with(caller);
    return waiting ? wait_a_slice(waiting, condition, mutex) : CONDITION(pthread_cond_wait)(condition, mutex);
}

STANDS_BEFORE int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    return wait_for(condition, mutex, __builtin_return_address(0));
}

static int wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *end, void *caller) {
    struct thread *waiting = is_time(end) ? can_leave_with(caller) : NULL;
    if (waiting && is_long(clock, end)) {
        return wait_a_slice(waiting, condition, mutex);
    }
    int error = CONDITION(pthread_cond_clockwait)(condition, mutex, clock, end);
    if (waiting && error == ETIMEDOUT) {
        leave_if_due(waiting, condition, mutex);
    }
    return error;
}

STANDS_BEFORE int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *end) {
    return wait_until(condition, mutex, clock, end, __builtin_return_address(0));
}

/* Returns the condition's clock. There is no function for it; since glibc 2.25 it is in this
 * bit. */
static clockid_t clock_of(const pthread_cond_t *condition) {
    return condition->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

STANDS_BEFORE int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *end) {
    return wait_until(condition, mutex, clock_of(condition), end, __builtin_return_address(0));
}

/* --- Semaphores: a request waits for them, but does not hold them --- */

/* Waits until `end` of `clock`; without a limit if `end` is NULL. */
static int wait_for_post(sem_t *semaphore, clockid_t clock, const struct timespec *end, void *caller) {
    if (thread_self && REAL(sem_trywait)(semaphore) == 0) {
        return 0;
    }
    struct thread *waiting = can_leave(caller);
    while (waiting && is_long(clock, end)) {
        stop_at_wait(waiting, semaphore);
        struct timespec until = a_slice(waiting);
        unsigned before = waiting->fired;
        if (REAL(sem_clockwait)(semaphore, CLOCK_MONOTONIC, &until) == 0) {
            return 0;
        }
        if (errno != ETIMEDOUT && !(errno == EINTR && waiting->fired != before)) {
            return -1;
        }
    }
    return end ? UNDISTURBED(REAL(sem_clockwait)(semaphore, clock, end)) : REAL(sem_wait)(semaphore);
}

STANDS_BEFORE int sem_wait(sem_t *semaphore) {
    return wait_for_post(semaphore, 0, NULL, __builtin_return_address(0));
}

STANDS_BEFORE int sem_timedwait(sem_t *semaphore, const struct timespec *end) {
    return wait_for_post(semaphore, CLOCK_REALTIME, end, __builtin_return_address(0));
}

STANDS_BEFORE int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *end) {
    return wait_for_post(semaphore, clock, end, __builtin_return_address(0));
}

/* --- The end of a thread --- */

/* Joins a thread until `end` of `clock`; without a limit if `end` is NULL. The thread is older than
 * the request, and nobody can join it again. So the request becomes unstoppable. */
static int join(pthread_t other, void **result, clockid_t clock, const struct timespec *end, void *caller) {
    struct thread *waiting = thread_request();
    waiting = waiting && stop_may_leave(waiting) && gate_may_wait((uintptr_t)caller, waiting->stack_at_start) ? waiting : NULL;
    int error = ETIMEDOUT;
    while (waiting && error == ETIMEDOUT && is_long(clock, end)) {
        stop_if_due(waiting);
        struct timespec until = a_slice(waiting);
        error = REAL(pthread_clockjoin_np)(other, result, CLOCK_MONOTONIC, &until);
    }
    if (error == ETIMEDOUT) {
        error = end ? REAL(pthread_clockjoin_np)(other, result, clock, end) : REAL(pthread_join)(other, result);
    }
    if (error == 0) {
        stop_spoilt("joins a thread", caller);
    }
    return error;
}

STANDS_BEFORE int pthread_join(pthread_t other, void **result) {
    return join(other, result, 0, NULL, __builtin_return_address(0));
}

STANDS_BEFORE int pthread_clockjoin_np(pthread_t other, void **result, clockid_t clock, const struct timespec *end) {
    return join(other, result, clock, end, __builtin_return_address(0));
}

STANDS_BEFORE int pthread_timedjoin_np(pthread_t other, void **result, const struct timespec *end) {
    return join(other, result, CLOCK_REALTIME, end, __builtin_return_address(0));
}

STANDS_BEFORE int pthread_tryjoin_np(pthread_t other, void **result) {
    int error = REAL(pthread_tryjoin_np)(other, result);
    if (error == 0) {
        stop_spoilt("joins a thread", __builtin_return_address(0));
    }
    return error;
}

/* --- C11: in glibc these are the same objects --- */

static int as_threads(int error) {
    return error == 0 ? thrd_success : error == EBUSY ? thrd_busy : error == ETIMEDOUT ? thrd_timedout
        : error == ENOMEM ? thrd_nomem : thrd_error;
}

STANDS_BEFORE int mtx_lock(mtx_t *mutex) {
    return as_threads(lock_mutex((pthread_mutex_t *)mutex, __builtin_return_address(0)));
}

STANDS_BEFORE int mtx_trylock(mtx_t *mutex) {
    return as_threads(taken(REAL(pthread_mutex_trylock)((pthread_mutex_t *)mutex)));
}

STANDS_BEFORE int mtx_timedlock(mtx_t *mutex, const struct timespec *end) {
    return as_threads(lock_mutex_until((pthread_mutex_t *)mutex, CLOCK_REALTIME, end, __builtin_return_address(0)));
}

STANDS_BEFORE int mtx_unlock(mtx_t *mutex) {
    return as_threads(given(REAL(pthread_mutex_unlock)((pthread_mutex_t *)mutex), __builtin_return_address(0)));
}

STANDS_BEFORE int cnd_wait(cnd_t *condition, mtx_t *mutex) {
    return as_threads(wait_for((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, __builtin_return_address(0)));
}

STANDS_BEFORE int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *end) {
    void *caller = __builtin_return_address(0);
    return as_threads(wait_until((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, CLOCK_REALTIME, end, caller));
}

STANDS_BEFORE int thrd_join(thrd_t other, int *result) {
    void *of_thread;
    int error = join(other, &of_thread, 0, NULL, __builtin_return_address(0));
    if (error == 0 && result) {
        *result = (int)(intptr_t)of_thread;
    }
    return as_threads(error);
}
