/* The functions that ours replace: libc's, or those of an allocator that comes after us. */
#ifndef SERT_REAL_H
#define SERT_REAL_H

#include <stdbool.h>

/* Returns the next function of this name. Calls abort() if there is none, because nothing works
 * without it. */
void *real_find(const char *name, const char *version);
/* Returns the next function of this name, or NULL if there is none. Use it for C++ functions,
 * which may not be visible to us. */
void *real_or_null(const char *name);
/* Checks whether a program's calls of replaced functions reach us. Returns the name of the first
 * that does not, or NULL. */
const char *real_missing(void);
/* Returns whether the program or a library takes the operators new and delete of C++ from the
 * allocator that comes after us (operators.c). */
bool operators_are_foreign(void);

/* Gives the original function `name`, in its `version` if libc has two functions of that name.
 * Example of a call: REAL(close)(fd). */
#define REAL_VERSION(name, version)                                                                    \
    (__extension__({                                                                                   \
        static void *found_;                                                                           \
        void *next_ = __atomic_load_n(&found_, __ATOMIC_RELAXED);                                      \
        if (__builtin_expect(next_ == NULL, 0)) {                                                      \
            next_ = real_find(#name, version);                                                         \
            __atomic_store_n(&found_, next_, __ATOMIC_RELAXED);                                        \
        }                                                                                              \
        (__typeof__(&name))next_;                                                                      \
    }))
#define REAL(name) REAL_VERSION(name, NULL)

/* Marks a function with a name of libc that the program calls in place of libc's own. */
#define STANDS_BEFORE __attribute__((visibility("default")))

/* Gives another name of libc to a function of ours. ALSO(__open, open) stands after open. */
#define ALSO(other, name) extern __typeof__(name) other __attribute__((alias(#name), copy(name), visibility("default")))

#endif
