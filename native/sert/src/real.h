/* The functions that ours stand before: libc's, or those of an allocator that comes after us. */
#ifndef SERT_REAL_H
#define SERT_REAL_H

/* The next function of this name, found once; abort() if there is none, as there is nothing to go on with. */
void *real_find(const char *name, const char *version);
/* The same; NULL if there is none: of C++, which may be none of ours to see. */
void *real_or_null(const char *name);
/* Whether a program's calls of what must be ours reach us. The name of the first that does not; NULL. */
const char *real_missing(void);

/* REAL(close)(fd). The version matters where libc has two of a name. */
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

/* A function of libc's name that the program calls instead. */
#define STANDS_BEFORE __attribute__((visibility("default")))

#endif
