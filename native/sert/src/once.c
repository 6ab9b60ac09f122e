/* Initialisations that happen once in the process, or once in a thread, while a request happens to
 * be the first to need them.
 *
 * Such an initialisation must be finished, and its results do not belong to the request. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <threads.h>

#include "mask.h"
#include "once.h"
#include "real.h"
#include "sert.h"
#include "stop.h"
#include "thread.h"

STANDS_BEFORE int pthread_once(pthread_once_t *once, void (*routine)(void)) {
    UNACCOUNTED;
    return REAL(pthread_once)(once, routine);
}

STANDS_BEFORE void call_once(once_flag *once, void (*routine)(void)) {
    UNACCOUNTED;
    REAL(call_once)(once, routine);
}

/* --- Function statics in C++: between acquire, if it returns 1, and release or abort --- */

int __cxa_guard_acquire(char *guard);
void __cxa_guard_release(char *guard);
void __cxa_guard_abort(char *guard);
int __cxa_thread_atexit(void (*destroy)(void *), void *object, void *dso);
int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *dso);

/* If libstdc++ cannot be found (it is linked into the program, or only visible to a plugin), the
 * guards are ours: the first byte says that the initialisation is done, the second that a thread is
 * doing it (C++ ABI 3.3.3). */
static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t guard_free = PTHREAD_COND_INITIALIZER;

static int own_acquire(char *guard) {
    REAL(pthread_mutex_lock)(&guard_lock);
    while (guard[1] && !guard[0]) {
        REAL_VERSION(pthread_cond_wait, "GLIBC_2.3.2")(&guard_free, &guard_lock);
    }
    int is_mine = !guard[0];
    guard[1] = (char)is_mine;
    REAL(pthread_mutex_unlock)(&guard_lock);
    return is_mine;
}

static void own_leave(char *guard, char is_done) {
    REAL(pthread_mutex_lock)(&guard_lock);
    __atomic_store_n(guard, is_done, __ATOMIC_RELEASE);
    guard[1] = 0;
    REAL_VERSION(pthread_cond_broadcast, "GLIBC_2.3.2")(&guard_free);
    REAL(pthread_mutex_unlock)(&guard_lock);
}

void once_forked(void) {
    pthread_mutex_init(&guard_lock, NULL);
    pthread_cond_init(&guard_free, NULL);
}

/* Use all three functions or none: two implementations cannot share one guard. */
static struct guards {
    int (*acquire)(char *);
    void (*release)(char *), (*abort)(char *);
} libstdcxx;

static const struct guards *theirs(void) {
    static _Atomic bool is_known;
    if (!atomic_load(&is_known)) {
        libstdcxx = (struct guards){real_or_null("__cxa_guard_acquire"), real_or_null("__cxa_guard_release"), real_or_null("__cxa_guard_abort")};
        atomic_store(&is_known, true);
    }
    return libstdcxx.acquire && libstdcxx.release && libstdcxx.abort ? &libstdcxx : NULL;
}

STANDS_BEFORE int __cxa_guard_acquire(char *guard) {
    const struct guards *guards = theirs();
    SERT_unaccounted_begin();
    int is_mine = guards ? guards->acquire(guard) : own_acquire(guard);
    if (!is_mine) {
        SERT_unaccounted_end();
    }
    return is_mine;
}

static void leave(char *guard, char is_done) {
    const struct guards *guards = theirs();
    if (guards) {
        (is_done ? guards->release : guards->abort)(guard);
    } else {
        own_leave(guard, is_done);
    }
    SERT_unaccounted_end();
}

STANDS_BEFORE void __cxa_guard_release(char *guard) {
    leave(guard, 1);
}

STANDS_BEFORE void __cxa_guard_abort(char *guard) {
    leave(guard, 0);
}

/* --- The request has become part of a larger object --- */

/* Registers the destructor of a thread_local object. The object has been made in the request's
 * memory, and lives as long as the thread. */
STANDS_BEFORE int __cxa_thread_atexit(void (*destroy)(void *), void *object, void *dso) {
    stop_spoilt("makes a thread_local object", __builtin_return_address(0));
    return REAL(__cxa_thread_atexit_impl)(destroy, object, dso);
}

/* Is the same as __cxa_thread_atexit, for a C++ runtime that is linked into the program, and for
 * other languages. */
STANDS_BEFORE int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *dso) {
    stop_spoilt("makes a thread_local object", __builtin_return_address(0));
    return REAL(__cxa_thread_atexit_impl)(destroy, object, dso);
}

STANDS_BEFORE int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg) {
    stop_spoilt("starts a thread", __builtin_return_address(0));
    return REAL(pthread_create)(thread, attributes, run, arg);
}

STANDS_BEFORE int thrd_create(thrd_t *thread, thrd_start_t run, void *arg) {
    stop_spoilt("starts a thread", __builtin_return_address(0));
    return REAL(thrd_create)(thread, run, arg);
}
