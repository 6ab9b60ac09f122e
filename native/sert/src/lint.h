/* A report of what would not survive a stop: for those who want to know whether a service can be protected.
 *
 * With SERT_LINT=1 in the environment nothing is stopped; the process says at its end which requests left memory,
 * descriptors or locks behind, from where, and what made requests unstoppable. */
#ifndef SERT_LINT_H
#define SERT_LINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thread;

extern bool lint_is_on __attribute__((visibility("hidden")));

void lint_begin(void);
void lint_note_block(uint32_t index, void *caller);
void lint_move_block(size_t from, size_t to);
void lint_note_cancel(const struct thread *thread, const char *why, void *caller);
/* The request is over in the ordinary way. */
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
static inline void lint_cancelled(const struct thread *thread, const char *why, void *caller) {
    if (__builtin_expect(lint_is_on, 0)) {
        lint_note_cancel(thread, why, caller);
    }
}

#endif
