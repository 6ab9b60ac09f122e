/* A report of what a stop would lose, to find out whether a service can be protected.
 *
 * With SERT_LINT=1 in the environment, no request is stopped. At its end, the process reports two
 * things: which requests left memory, descriptors or locks behind and from where, and what made
 * requests unstoppable. */
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
static inline void lint_cancelled(const struct thread *thread, const char *why, void *caller) {
    if (__builtin_expect(lint_is_on, 0)) {
        lint_note_cancel(thread, why, caller);
    }
}

#endif
