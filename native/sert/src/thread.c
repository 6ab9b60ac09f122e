#include "thread.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory.h"
#include "real.h"
#include "stop.h"

_Thread_local struct thread *thread_self __attribute__((tls_model("initial-exec")));
_Thread_local uint32_t thread_next_class;

static _Atomic(struct thread *) slots[THREADS];
static _Atomic unsigned used;

static pthread_key_t leaving;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Releases the slot of a thread that ends. The slot, with its counts, waits for the next thread. */
static void leave(void *self) {
    struct thread *thread = self;
    thread->running = 0;
    thread_self = NULL;
    atomic_fetch_add(&thread->generation, 1);
    atomic_store(&thread->busy_since, 0);
    stop_without_timer(thread);
    memory_take_back(thread);
    atomic_store(&thread->tid, 0);
}

static void prepare(void) {
    REAL(pthread_key_create)(&leaving, leave);
}

static struct thread *take_slot(void) {
    pid_t tid = gettid();
    for (unsigned slot = 1; slot < THREADS; slot++) {
        struct thread *thread = atomic_load(&slots[slot]);
        if (thread == NULL) {
            void *fresh = mmap(NULL, sizeof *thread, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (fresh == MAP_FAILED) {
                return NULL;
            }
            thread = fresh;
            thread->slot = slot;
            atomic_init(&thread->tid, tid);
            atomic_init(&thread->generation, 1);
            struct thread *nobody = NULL;
            if (atomic_compare_exchange_strong(&slots[slot], &nobody, thread)) {
                unsigned most = atomic_load(&used);
                while (most <= slot && !atomic_compare_exchange_weak(&used, &most, slot + 1)) {
                }
                return thread;
            }
            munmap(fresh, sizeof *thread);
            thread = nobody;
        }
        pid_t free_slot = 0;
        if (atomic_compare_exchange_strong(&thread->tid, &free_slot, tid)) {
            return thread;
        }
    }
    return NULL;
}

/* Resets a slot that another thread used before. */
static void start_afresh(struct thread *thread) {
    thread->pending = 0;
    thread->unaccounted = thread->charging_anyway = 0;
    thread->masked = thread->locks = 0;
    thread->blocks = thread->live = thread->resource_count = 0;
    thread->point = NULL;
    memset(thread->warm, 0, sizeof thread->warm);
    atomic_store(&thread->armed_for, 0);
    atomic_store(&thread->ordered, 0);
    atomic_store(&thread->signalled, 0);
}

static void find_stack(struct thread *thread) {
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (REAL(pthread_getattr_np)(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &low, &size);
        pthread_attr_destroy(&attributes);
    }
    thread->stack_low = (uintptr_t)low;
    thread->stack_high = (uintptr_t)low + size;
}

struct thread *thread_watch(void) {
    if (thread_self) {
        return thread_self;
    }
    REAL(pthread_once)(&once, prepare);
    struct thread *thread = take_slot();
    if (thread == NULL) {
        return NULL;
    }
    start_afresh(thread);
    find_stack(thread);
    if (!stop_with_timer(thread)) {
        atomic_store(&thread->tid, 0);
        return NULL;
    }
    /* Set the key last: from then on the thread's end releases the slot. */
    if (pthread_setspecific(leaving, thread) != 0) {
        stop_without_timer(thread);
        atomic_store(&thread->tid, 0);
        return NULL;
    }
    thread_self = thread;
    return thread;
}

unsigned thread_slots(void) {
    return atomic_load(&used);
}

struct thread *thread_at(unsigned slot) {
    return slot < THREADS ? atomic_load(&slots[slot]) : NULL;
}

void thread_forked(void) {
    for (unsigned slot = 1; slot < thread_slots(); slot++) {
        struct thread *thread = thread_at(slot);
        if (thread == NULL) {
            continue;
        }
        /* A request that ran is the parent's: here its token names nothing, and its blocks have no
         * owner. */
        thread->running = 0;
        atomic_fetch_add(&thread->generation, 1);
        atomic_store(&thread->busy_since, 0);
        memory_forget(thread);
        memory_take_back(thread);
        thread->resource_count = 0;
        atomic_store(&thread->tid, 0);
    }
    /* Without a slot there is no key either. */
    if (thread_slots() > 0) {
        pthread_setspecific(leaving, NULL);
    }
    thread_self = NULL;
}
