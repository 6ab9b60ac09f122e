#include "lint.h"

#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "gate.h"
#include "image.h"
#include "lines.h"
#include "real.h"
#include "resources.h"
#include "sert.h"
#include "thread.h"

/* The largest number of places; their numbers have 16 bits. */
#define PLACES (1u << 14)
#define MOST_BLOCKS (1u << 20)
/* The most entries that are compared, and the most times that a thread waits for another one, which
 * does not exist in a forked child. */
#define MOST_TRIES 64u

bool lint_is_on;

enum state { FREE, TAKEN, READY };

/* A thing that a stop would lose, and the place in the program that leads to it, with the number of
 * times that it was found. Entry 0 stands for the places that have found no room. */
struct place {
    _Atomic enum state state;
    const char *what;
    struct stack stack;
    _Atomic uint64_t times;
};

static struct place places[PLACES];
static _Atomic uint64_t requests;

/* The stack of each block of the running request; parallel to the log. */
static _Thread_local struct stack *blocks __attribute__((tls_model("initial-exec")));

/* Waits until another thread has filled the entry. */
static bool is_at(struct place *place, const char *what, const struct stack *stack) {
    for (unsigned tries = 0; atomic_load(&place->state) == TAKEN && tries < MOST_TRIES; tries++) {
        sched_yield();
    }
    return atomic_load(&place->state) == READY && place->what == what && memcmp(&place->stack, stack, sizeof *stack) == 0;
}

/* Returns this thread's stack. `caller` stands for a stack without the program's code, or one that
 * cannot be read. */
static struct stack stack_of(void *caller) {
    struct stack stack = {{0}};
    if (gate_callers(stack.at, LINES_DEPTH) == 0) {
        stack.at[0] = (uintptr_t)caller;
    }
    return stack;
}

/* Returns the number of the entry for `what` on the stack; a new one if there is none; 0 if there is
 * no room near the entry's place. */
static uint16_t place_of(const char *what, struct stack stack) {
    uint64_t hash = (uintptr_t)what;
    for (unsigned i = 0; i < LINES_DEPTH; i++) {
        hash = (hash ^ stack.at[i]) * 0x9e3779b97f4a7c15u;
    }
    for (unsigned tries = 0; tries < MOST_TRIES; tries++) {
        uint16_t at = (uint16_t)(((hash >> 32) + tries) % (PLACES - 1) + 1);
        enum state free_one = FREE;
        if (atomic_compare_exchange_strong(&places[at].state, &free_one, TAKEN)) {
            places[at].what = what;
            places[at].stack = stack;
            atomic_store(&places[at].state, READY);
            return at;
        }
        if (is_at(&places[at], what, &stack)) {
            return at;
        }
    }
    return 0;
}

static void found(uint16_t place) {
    atomic_fetch_add(&places[place].times, 1);
}

/* Looks for the compilers' flag for objects at namespace scope with an initialiser that runs, which
 * nothing else shows. */
static bool has_late_thread_locals(void) {
    struct image image;
    if (!image_open(&image, IMAGE_OF_PROGRAM)) {
        return false;
    }
    bool has = image_defines(&image, "__tls_guard", NULL);
    image_close(&image);
    return has;
}

/* A line of the report. */
struct finding {
    const char *what;
    char *where;
    uint64_t times;
};

/* Adds up the findings of one kind on one line. Returns how many are left. */
static size_t merge(struct finding findings[], size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        while (same < kept && (findings[same].what != findings[i].what || strcmp(findings[same].where, findings[i].where) != 0)) {
            same++;
        }
        if (same < kept) {
            findings[same].times += findings[i].times;
        } else {
            findings[kept++] = findings[i];
        }
    }
    return kept;
}

static int by_times(const void *a, const void *b) {
    uint64_t first = ((const struct finding *)a)->times, second = ((const struct finding *)b)->times;
    return (first < second) - (first > second);
}

static void report_places(void) {
    struct stack *stacks = calloc(PLACES, sizeof *stacks);
    struct finding *findings = calloc(PLACES, sizeof *findings);
    size_t count = 0;
    for (unsigned i = 1; i < PLACES && stacks && findings; i++) {
        if (atomic_load(&places[i].times) > 0) {
            stacks[count] = places[i].stack;
            findings[count++] = (struct finding){places[i].what, NULL, places[i].times};
        }
    }
    char **lines = lines_of(stacks, count);
    for (size_t i = 0; i < count; i++) {
        findings[i].where = lines && lines[i] ? lines[i] : "an unknown place";
    }
    count = merge(findings, count);
    qsort(findings, count, sizeof *findings, by_times);
    for (size_t i = 0; i < count; i++) {
        fprintf(stderr, "libsert: %" PRIu64 " x %s, at %s\n", findings[i].times, findings[i].what, findings[i].where);
    }
}

static void report(void) {
    fprintf(stderr, "libsert: %" PRIu64 " requests checked\n", atomic_load(&requests));
    report_places();
    if (has_late_thread_locals()) {
        fputs("libsert: the program makes thread_local objects when a thread first uses them; use each before requests begin\n", stderr);
    }
    if (atomic_load(&places[0].times)) {
        fprintf(stderr, "libsert: and %" PRIu64 " more\n", atomic_load(&places[0].times));
    }
}

void lint_begin(void) {
    const char *wanted = secure_getenv("SERT_LINT");
    if (wanted && *wanted == '1' && !lint_is_on) {
        lint_is_on = true;
        atexit(report);
    }
}

void lint_note_block(uint32_t index, void *caller) {
    if (blocks == NULL) {
        void *table = REAL(mmap)(NULL, MOST_BLOCKS * sizeof *blocks, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        blocks = table == MAP_FAILED ? NULL : table;
    }
    if (blocks && index < MOST_BLOCKS) {
        blocks[index] = stack_of(caller);
    }
}

void lint_move_block(size_t from, size_t to) {
    if (blocks && from < MOST_BLOCKS) {
        blocks[to] = blocks[from];
    }
}

void lint_note_cancel(const struct thread *thread, const char *why, void *caller) {
    if (!thread->cancelled) {
        found(place_of(why, stack_of(caller)));
    }
}

static const char *const kinds[] = {
    [KIND_FD] = "leaves a descriptor open",
    [KIND_FILE] = "leaves a stream open",
    [KIND_DIR] = "leaves a directory open",
    [KIND_MAP] = "leaves a mapping",
    [KIND_ADDRESSES] = "leaves addresses (getaddrinfo)",
    [KIND_UNDO] = NULL,
};

uint16_t lint_place_of(enum kind kind) {
    return kinds[kind] ? place_of(kinds[kind], stack_of(NULL)) : 0;
}

void lint_ended(struct thread *thread) {
    if (!lint_is_on) {
        return;
    }
    atomic_fetch_add(&requests, 1);
    for (size_t i = 0; i < thread->blocks && i < MOST_BLOCKS && blocks; i++) {
        if (thread->log[i]) {
            found(place_of("leaves memory behind", blocks[i]));
        }
    }
    for (size_t i = 0; i < thread->resource_count; i++) {
        if (kinds[thread->resources[i].kind]) {
            found(thread->resources[i].place);
        }
    }
    if (thread->locks != thread->locks_before) {
        found(place_of("ends with more or fewer locks than it began with", stack_of(NULL)));
    }
}
