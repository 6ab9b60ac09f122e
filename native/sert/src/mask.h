/* A mask against stops that ends with its block, also when an exception leaves the block. */
#ifndef SERT_MASK_H
#define SERT_MASK_H

#include "sert.h"

static inline void mask_ends(const char *unused) {
    (void)unused;
    SERT_unmask();
}
static inline void mask_unaccounted_ends(const char *unused) {
    (void)unused;
    SERT_unaccounted_end();
}

/* Masks stops until the end of the block. The unmask at the end is called from the library's code,
 * so an overdue request is stopped only at the next opportunity. */
#define MASKED                                                                                         \
    __attribute__((cleanup(mask_ends), unused)) char masked_ = 0;                                      \
    SERT_mask()
#define UNACCOUNTED                                                                                    \
    __attribute__((cleanup(mask_unaccounted_ends), unused)) char masked_ = 0;                          \
    SERT_unaccounted_begin()

#endif
