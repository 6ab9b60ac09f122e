#include "lint.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "image.h"
#include "real.h"
#include "resources.h"
#include "sert.h"
#include "thread.h"

#define PLACES 256u
#define MOST_BLOCKS (1u << 20)

bool lint_is_on;

/* A finding and its place in the program, with the number of times that it occurred. Only the
 * first places are kept. */
struct place {
    _Atomic(const char *) what;
    void *caller;
    _Atomic uint64_t times;
};

static struct place places[PLACES];
static _Atomic uint64_t left_out, requests;

/* The place of allocation of each block of the running request; parallel to the log. */
static _Thread_local void **callers __attribute__((tls_model("initial-exec")));

static void found(const char *what, void *caller) {
    for (unsigned i = 0; i < PLACES; i++) {
        const char *nothing = NULL;
        if (atomic_load(&places[i].what) == NULL && atomic_compare_exchange_strong(&places[i].what, &nothing, what)) {
            places[i].caller = caller;
        }
        if (atomic_load(&places[i].what) == what && places[i].caller == caller) {
            atomic_fetch_add(&places[i].times, 1);
            return;
        }
    }
    atomic_fetch_add(&left_out, 1);
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

static void report(void) {
    fprintf(stderr, "libsert: %llu requests checked\n", (unsigned long long)atomic_load(&requests));
    for (unsigned i = 0; i < PLACES && atomic_load(&places[i].what); i++) {
        Dl_info at = {0};
        char *caller = places[i].caller;
        bool is_known = caller && dladdr(caller, &at) != 0 && at.dli_fbase;
        fprintf(stderr, "libsert: %llu x %s", (unsigned long long)atomic_load(&places[i].times), places[i].what);
        if (is_known) {
            fprintf(stderr, ", at %s %s+0x%zx", at.dli_fname, at.dli_sname ? at.dli_sname : "",
                    (size_t)(caller - (char *)(at.dli_sname ? at.dli_saddr : at.dli_fbase)));
        }
        fputc('\n', stderr);
    }
    if (has_late_thread_locals()) {
        fputs("libsert: the program makes thread_local objects when a thread first uses them; use each before requests begin\n", stderr);
    }
    if (atomic_load(&left_out)) {
        fprintf(stderr, "libsert: and %llu more\n", (unsigned long long)atomic_load(&left_out));
    }
}

void lint_begin(void) {
    const char *wanted = getenv("SERT_LINT");
    if (wanted && *wanted == '1' && !lint_is_on) {
        lint_is_on = true;
        atexit(report);
    }
}

void lint_note_block(uint32_t index, void *caller) {
    if (callers == NULL) {
        void *table = REAL(mmap)(NULL, MOST_BLOCKS * sizeof *callers, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        callers = table == MAP_FAILED ? NULL : table;
    }
    if (callers && index < MOST_BLOCKS) {
        callers[index] = caller;
    }
}

void lint_move_block(size_t from, size_t to) {
    if (callers && from < MOST_BLOCKS) {
        callers[to] = callers[from];
    }
}

void lint_note_cancel(const struct thread *thread, const char *why, void *caller) {
    if (!thread->cancelled) {
        found(why, caller);
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

void lint_ended(struct thread *thread) {
    if (!lint_is_on) {
        return;
    }
    atomic_fetch_add(&requests, 1);
    for (size_t i = 0; i < thread->blocks && i < MOST_BLOCKS && callers; i++) {
        if (thread->log[i]) {
            found("leaves memory behind", callers[i]);
        }
    }
    for (size_t i = 0; i < thread->resource_count; i++) {
        const char *what = kinds[thread->resources[i].kind];
        if (what) {
            found(what, NULL);
        }
    }
    if (thread->locks != thread->locks_before) {
        found("ends with more or fewer locks than it began with", NULL);
    }
}
