/* The lines of the program's source for return addresses, for the report of the lint. */
#ifndef SERT_LINES_H
#define SERT_LINES_H

#include <stddef.h>
#include <stdint.h>

/* The number of return addresses that are known of a stack. */
#define LINES_DEPTH 12u

/* The return addresses of a stack in the program's code, the nearest first; then zeros. */
struct stack {
    uintptr_t at[LINES_DEPTH];
};

/* Returns an array with a text for each of `count` stacks: the function and the line of the nearest
 * code that is the program's own and not that of a C++ library. The texts come from addr2line or
 * llvm-addr2line. Without a program of these, or without debug information, a text has the nearest
 * symbol, or the offset in the file. The caller owns the array and the texts. A text is NULL if
 * nothing is known. */
char **lines_of(const struct stack stacks[], size_t count);

#endif
