#include "memory.h"

#include <errno.h>
#include <malloc.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control.h"
#include "gate.h"
#include "lint.h"
#include "real.h"
#include "stop.h"
#include "tell.h"
#include "thread.h"

#define HEADER 16u
/* The minimum size of a block in bytes. A block that waits to be taken back contains a pointer to
 * the next one. */
#define LEAST 8u
#define FIRST_ROOM 1024u
#define MOST_ROOM (1u << 26)
#define TAKE_BACK_EVERY 256u
/* The number of entries beyond which a log is freed at the end of its request. */
#define KEPT_ROOM (1u << 16)

struct block {
    _Atomic uint64_t owner; /* 0: no owner; with generation 0: handed back to the slot */
    uint32_t index;
    uint8_t shift;          /* the block begins 2^shift before the address that the program sees */
    uint8_t first;          /* from the arena below */
    uint16_t unused;
};
_Static_assert(sizeof(struct block) == HEADER, "what malloc returns is aligned to 16");

/* Memory for allocations while the next allocator is not yet known, because the loader looks it
 * up. */
static alignas(16) char arena[16384];
static size_t arena_used;

struct allocator {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    void (*free)(void *);
    size_t (*malloc_usable_size)(void *);
};
/* The next allocator, with the functions that are used, and libc's own. They are the same if no
 * other library has an allocator. */
static struct allocator next, libcs;

static struct block *header(void *seen) {
    return (struct block *)((char *)seen - HEADER);
}

static void *base(void *seen) {
    return (char *)seen - ((size_t)1 << header(seen)->shift);
}

static bool is_first(const void *seen) {
    return (uintptr_t)seen - (uintptr_t)arena < sizeof arena;
}

/* Looks up the next allocator at the first call, before there are threads. Returns whether it is
 * known then, since the lookup itself may allocate. */
static __attribute__((noinline, cold)) bool find_next(void) {
    static bool looking;
    if (looking) {
        return false;
    }
    looking = true;
    next.malloc = real_find("malloc", NULL);
    next.calloc = real_find("calloc", NULL);
    next.realloc = real_find("realloc", NULL);
    next.memalign = real_find("memalign", NULL);
    next.malloc_usable_size = real_find("malloc_usable_size", NULL);
    libcs.malloc = real_find("__libc_malloc", NULL);
    libcs.calloc = real_find("__libc_calloc", NULL);
    libcs.realloc = real_find("__libc_realloc", NULL);
    libcs.memalign = real_find("__libc_memalign", NULL);
    libcs.valloc = real_find("__libc_valloc", NULL);
    libcs.pvalloc = real_find("__libc_pvalloc", NULL);
    libcs.free = real_find("__libc_free", NULL);
    next.free = real_find("free", NULL);
    return true;
}

/* Returns whether the next allocator is known. */
static inline bool is_ready(void) {
    return __builtin_expect(next.free != NULL, 1) || find_next();
}

static __attribute__((noinline, cold)) void *from_arena(size_t size) {
    size_t whole = (HEADER + size + 15) & ~(size_t)15;
    if (whole > sizeof arena - arena_used) {
        abort();
    }
    char *seen = arena + arena_used + HEADER;
    arena_used += whole;
    *header(seen) = (struct block){.shift = 4, .first = 1};
    return seen;
}

/* --- A request's log --- */

/* Removes the holes that freed blocks have left. */
static void close_up(struct thread *thread) {
    size_t kept = 0;
    for (size_t i = 0; i < thread->blocks; i++) {
        void *seen = thread->log[i];
        if (seen) {
            header(seen)->index = (uint32_t)kept;
            thread->log[kept] = seen;
            lint_moved(i, kept++);
        }
    }
    thread->blocks = kept;
}

static bool grow(struct thread *thread) {
    size_t more = thread->room ? thread->room * 2 : FIRST_ROOM, bytes = more * sizeof *thread->log;
    void *log = more > MOST_ROOM ? MAP_FAILED
        : thread->room ? REAL(mremap)(thread->log, thread->room * sizeof *thread->log, bytes, MREMAP_MAYMOVE)
        : REAL(mmap)(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (log == MAP_FAILED) {
        tell_once(TELL_MEMORY, NULL);
        stop_never(thread);
        return false;
    }
    thread->log = log;
    thread->room = more;
    return true;
}

/* Makes room in the log. First it removes blocks that other threads have freed meanwhile. A log
 * that is mostly holes is compacted instead of grown. */
static __attribute__((noinline)) bool make_room(struct thread *thread) {
    memory_take_back(thread);
    if (thread->live < thread->room / 4 * 3) {
        close_up(thread);
        return true;
    }
    return grow(thread);
}

static inline bool has_room(struct thread *thread) {
    return __builtin_expect(thread->blocks < thread->room, 1) || make_room(thread);
}

static inline bool is_charged(const struct thread *thread, void *caller) {
    return thread && thread->running && !thread->unaccounted
        && (thread->charging_anyway || !gate_is_libc((uintptr_t)caller));
}

static inline __attribute__((always_inline)) void charge(struct thread *thread, void *seen, void *caller) {
    if (!has_room(thread)) {
        return;
    }
    struct block *block = header(seen);
    atomic_store_explicit(&block->owner, thread->owner, memory_order_relaxed);
    block->index = (uint32_t)thread->blocks;
    thread->log[thread->blocks++] = seen;
    thread->live++;
    if (__builtin_expect(thread->blocks % TAKE_BACK_EVERY == 0, 0)) {
        memory_take_back(thread);
    }
    lint_allocated(block->index, caller);
}

/* Removes a block from the log. Leaves a hole, unless the block was the last. */
static void forget(struct thread *thread, uint32_t index) {
    thread->live--;
    thread->log[index] = NULL;
    if (index + 1 == thread->blocks) {
        thread->blocks = index;
    }
}

static bool is_logged(const struct thread *thread, void *seen) {
    uint32_t index = header(seen)->index;
    return index < thread->blocks && thread->log[index] == seen;
}

/* --- Blocks of other threads' requests --- */

/* Hands back a block that is in the log of another thread's running request, and so cannot be
 * freed here. Returns whether it was such a block. */
static bool hand_back(struct block *block, void *seen, uint64_t owner) {
    struct thread *thread = thread_at(thread_slot_of(owner));
    uint64_t generation = thread_generation_of(owner);
    if (thread == NULL || atomic_load(&thread->generation) != generation) {
        return false;
    }
    if (!atomic_compare_exchange_strong(&block->owner, &owner, owner - generation)) {
        return false;
    }
    void *head = atomic_load(&thread->returned);
    do {
        *(void **)seen = head;
    } while (!atomic_compare_exchange_weak(&thread->returned, &head, seen));
    return true;
}

void memory_take_back(struct thread *thread) {
    void *seen = atomic_exchange(&thread->returned, NULL);
    while (seen) {
        void *after = *(void **)seen;
        if (is_logged(thread, seen)) {
            forget(thread, header(seen)->index);
        }
        next.free(base(seen));
        seen = after;
    }
}

void memory_free_all(struct thread *thread) {
    for (size_t i = 0; i < thread->blocks; i++) {
        uint64_t owner = thread->owner;
        if (thread->log[i] == NULL) {
            continue;
        }
        /* If the exchange fails, another thread has just freed the block: it is in `returned`. */
        if (atomic_compare_exchange_strong(&header(thread->log[i])->owner, &owner, 0)) {
            next.free(base(thread->log[i]));
        }
    }
    memory_forget(thread);
}

static void shrink(struct thread *thread) {
    if (__builtin_expect(thread->room > KEPT_ROOM, 0)) {
        REAL(munmap)(thread->log, thread->room * sizeof *thread->log);
        thread->log = NULL;
        thread->room = 0;
    }
}

size_t memory_forget(struct thread *thread) {
    size_t left = thread->live;
    thread->blocks = thread->live = 0;
    shrink(thread);
    return left;
}

void memory_adopt(struct thread *thread, void *seen) {
    if (seen && !is_first(seen) && atomic_load_explicit(&header(seen)->owner, memory_order_relaxed) == 0) {
        charge(thread, seen, NULL);
    }
}

bool memory_is_own(const struct thread *thread, const void *seen) {
    return seen && !is_first(seen) && atomic_load_explicit(&header((void *)(uintptr_t)seen)->owner, memory_order_relaxed) == thread->owner;
}

/* --- What the program calls --- */

/* Returns a block in `whole` without an owner. */
static inline __attribute__((always_inline)) void *plain(void *whole, uint8_t shift) {
    if (__builtin_expect(whole == NULL, 0)) {
        return NULL;
    }
    char *seen = (char *)whole + ((size_t)1 << shift);
    *header(seen) = (struct block){.shift = shift};
    return seen;
}

/* Returns a block in `whole`. Charges it to the thread's request, if it should be charged. */
static inline __attribute__((always_inline)) void *begin(void *whole, uint8_t shift, void *caller) {
    char *seen = plain(whole, shift);
    struct thread *thread = thread_self;
    if (seen && is_charged(thread, caller)) {
        charge(thread, seen, caller);
        stop_here(thread, caller);
    }
    return seen;
}

static size_t with_header(size_t size) {
    size_t whole = HEADER + (size < LEAST ? LEAST : size);
    return whole < size ? SIZE_MAX : whole; /* the next allocator refuses that */
}

STANDS_BEFORE void *malloc(size_t size) {
    if (!is_ready()) {
        return from_arena(size);
    }
    return begin(next.malloc(with_header(size)), 4, __builtin_return_address(0));
}

static void *zeroed(size_t count, size_t size, void *caller) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    if (!is_ready()) {
        return from_arena(bytes);
    }
    return begin(next.calloc(1, with_header(bytes)), 4, caller);
}

STANDS_BEFORE void *calloc(size_t count, size_t size) {
    return zeroed(count, size, __builtin_return_address(0));
}

static void *aligned(size_t alignment, size_t size, void *caller) {
    size_t whole;
    if (alignment < HEADER) {
        alignment = HEADER;
    }
    if (__builtin_add_overflow(alignment, size < LEAST ? LEAST : size, &whole)) {
        errno = ENOMEM;
        return NULL;
    }
    is_ready();
    return begin(next.memalign(alignment, whole), (uint8_t)__builtin_ctzl(alignment), caller);
}

static bool is_power_of_two(size_t number) {
    return number != 0 && (number & (number - 1)) == 0;
}

static size_t power_of_two(size_t least) {
    size_t power = HEADER;
    while (power < least && power <= SIZE_MAX / 2) {
        power *= 2;
    }
    return power;
}

STANDS_BEFORE void *memalign(size_t alignment, size_t size) {
    return aligned(power_of_two(alignment), size, __builtin_return_address(0));
}

/* glibc accepts any alignment here too. */
STANDS_BEFORE void *aligned_alloc(size_t alignment, size_t size) {
    return aligned(power_of_two(alignment), size, __builtin_return_address(0));
}

STANDS_BEFORE int posix_memalign(void **result, size_t alignment, size_t size) {
    if (!is_power_of_two(alignment) || alignment % sizeof(void *) != 0) {
        return EINVAL;
    }
    int kept = errno;
    void *seen = aligned(alignment, size, __builtin_return_address(0));
    errno = kept;
    if (seen == NULL) {
        return ENOMEM;
    }
    *result = seen;
    return 0;
}

STANDS_BEFORE void *valloc(size_t size) {
    return aligned((size_t)sysconf(_SC_PAGESIZE), size, __builtin_return_address(0));
}

STANDS_BEFORE void *pvalloc(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) & ~(page - 1);
    return aligned(page, whole < size ? SIZE_MAX - page : whole, __builtin_return_address(0));
}

STANDS_BEFORE size_t malloc_usable_size(void *seen) {
    if (seen == NULL || is_first(seen)) {
        return 0;
    }
    return next.malloc_usable_size(base(seen)) - ((size_t)1 << header(seen)->shift);
}

/* Makes the request unstoppable, because it frees or moves memory older than itself. An object
 * that lives longer is changing, and may already point to new memory of the request, like a vector
 * that has grown. */
static __attribute__((noinline)) void changes_others(const struct thread *thread, void *caller) {
    if (!gate_is_libc((uintptr_t)caller) && !control_has_flag(thread->class_id, SERT_FREES_OTHERS)) {
        stop_spoilt("frees memory that is older than the request", caller);
    }
}

/* Frees a block. The thread may only be stopped afterwards, when the block is freed. */
static inline __attribute__((always_inline)) void release(void *seen, void *caller) {
    if (seen == NULL || is_first(seen)) {
        return;
    }
    struct block *block = header(seen);
    struct thread *thread = thread_self;
    uint64_t owner = atomic_load_explicit(&block->owner, memory_order_relaxed);
    if (thread == NULL || !thread->running) {
        if (owner == 0 || !hand_back(block, seen, owner)) {
            next.free(base(seen));
        }
        return;
    }
    if (owner == thread->owner) {
        forget(thread, block->index);
        next.free(base(seen));
    } else {
        changes_others(thread, caller);
        if (owner == 0 || !hand_back(block, seen, owner)) {
            next.free(base(seen));
        }
    }
    stop_here(thread, caller);
}

STANDS_BEFORE void free(void *seen) {
    release(seen, __builtin_return_address(0));
}

/* Moves a block to another place. The new block has the same owner. */
static void *moved(void *seen, size_t size, bool is_own, void *caller) {
    void *whole = next.malloc(with_header(size));
    void *fresh = is_own ? begin(whole, 4, caller) : plain(whole, 4);
    if (fresh) {
        size_t old = malloc_usable_size(seen);
        memcpy(fresh, seen, old < size ? old : size);
        release(seen, caller);
    }
    return fresh;
}

static void *resized(void *seen, size_t size, void *caller) {
    struct thread *thread = thread_request();
    struct block *block = header(seen);
    uint64_t owner = atomic_load_explicit(&block->owner, memory_order_relaxed);
    bool is_own = thread && owner == thread->owner;
    if (thread && !is_own) {
        changes_others(thread, caller);
    }
    /* These are aligned blocks, and blocks in the log of another thread's running request. */
    if (block->shift != 4 || (owner != 0 && !is_own)) {
        return moved(seen, size, is_own, caller);
    }
    uint32_t index = block->index;
    char *whole = next.realloc(base(seen), with_header(size));
    if (whole == NULL) {
        return NULL;
    }
    if (is_own) {
        thread->log[index] = whole + HEADER;
    }
    return whole + HEADER;
}

STANDS_BEFORE void *realloc(void *seen, size_t size) {
    void *caller = __builtin_return_address(0);
    if (seen == NULL || !is_ready()) {
        return is_ready() ? begin(next.malloc(with_header(size)), 4, caller) : from_arena(size);
    }
    if (is_first(seen)) {
        void *fresh = begin(next.malloc(with_header(size)), 4, caller);
        size_t most = (size_t)(arena + sizeof arena - (char *)seen);
        return fresh ? memcpy(fresh, seen, size < most ? size : most) : NULL;
    }
    if (size == 0) {
        free(seen);
        return NULL;
    }
    void *result = resized(seen, size, caller);
    struct thread *thread = thread_request();
    if (thread) {
        stop_here(thread, caller);
    }
    return result;
}

STANDS_BEFORE void *reallocarray(void *seen, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(seen, bytes);
}

/* --- libc's other names for its allocator --- */

/* If another allocator comes next, these names mean libc's own, and not that one. */
#define LIBCS(result, name, parameters, arguments)                                                     \
    result __libc_##name parameters;                                                                   \
    STANDS_BEFORE result __libc_##name parameters {                                                    \
        return !is_ready() || next.malloc == libcs.malloc ? name arguments : libcs.name arguments;     \
    }
LIBCS(void *, malloc, (size_t size), (size))
LIBCS(void *, calloc, (size_t count, size_t size), (count, size))
LIBCS(void *, realloc, (void *seen, size_t size), (seen, size))
LIBCS(void *, memalign, (size_t alignment, size_t size), (alignment, size))
LIBCS(void *, valloc, (size_t size), (size))
LIBCS(void *, pvalloc, (size_t size), (size))
LIBCS(void, free, (void *seen), (seen))
