/* A report of what a stop would lose, to find out whether a service can be protected.
 *
 * With SERT_LINT=1 in the environment, no request is stopped. At its end, the process reports two
 * things: which requests left memory, descriptors or locks behind, and what made requests
 * unstoppable. For each it names the line of the program's own code that led to it. */
#ifndef SERT_LINT_H
#define SERT_LINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resources.h"

struct thread;

extern bool lint_is_on __attribute__((visibility("hidden")));

void lint_begin(void);
void lint_note_block(uint32_t index, void *caller);
void lint_move_block(size_t from, size_t to);
void lint_note_cancel(const struct thread *thread, const char *why, void *caller);
/* Returns the number of the place at which the request gets a resource. */
uint16_t lint_place_of(enum kind kind);
/* Records that the request has ended normally. */
void lint_ended(struct thread *thread);

static inline void lint_allocated(uint32_t index, void *caller) {
    if (__builtin_expect(lint_is_on, 0)) {
        lint_note_block(index, caller);
    }
}
static inline void lint_moved(size_t from, size_t to) {
    if (__builtin_expect(lint_is_on, 0)) {
        lint_move_block(from, to);
    }
}
static inline uint16_t lint_opened(enum kind kind) {
    return __builtin_expect(lint_is_on, 0) ? lint_place_of(kind) : 0;
}
static inline void lint_cancelled(const struct thread *thread, const char *why, void *caller) {
    if (__builtin_expect(lint_is_on, 0)) {
        lint_note_cancel(thread, why, caller);
    }
}

#endif
