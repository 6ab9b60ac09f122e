/* The operators new and delete of C++, if an allocator comes after us.
 *
 * jemalloc, tcmalloc and mimalloc have operators of their own, which take a block directly: it
 * would belong to no request. jemalloc's delete even calls free, which is ours. The operators of
 * libstdc++ call malloc and free in every case, so ours call these. They have libstdc++'s versions,
 * which are not the default. So the loader finds them, and the linker does not: a program with a
 * static libstdc++ keeps that one's operators. libc++ has no versions (real.c). */
#include <dlfcn.h>
#include <stdlib.h>

#include "real.h"
#include "tell.h"

static void *find(const char *name) {
    void *runtime = REAL(dlopen)("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void *found = runtime ? dlsym(runtime, name) : NULL;
    if (found == NULL) {
        tell_once(TELL_UNPROTECTED, name);
        abort();
    }
    return found;
}

/* An operator has three arguments at most: a block or its size, a size or an alignment, and the
 * last two or std::nothrow. */
#define OPERATOR(name, version)                                                                        \
    __asm__(".symver own" #name ", " #name "@" version ", remove");                                    \
    void *own##name(void *first, void *second, void *third);                                           \
    STANDS_BEFORE void *own##name(void *first, void *second, void *third) {                            \
        static void *found;                                                                            \
        void *next = __atomic_load_n(&found, __ATOMIC_RELAXED);                                        \
        if (__builtin_expect(next == NULL, 0)) {                                                       \
            next = find(#name);                                                                        \
            __atomic_store_n(&found, next, __ATOMIC_RELAXED);                                          \
        }                                                                                              \
        return ((__typeof__(&own##name))next)(first, second, third);                                   \
    }

OPERATOR(_Znwm, "GLIBCXX_3.4")
OPERATOR(_Znam, "GLIBCXX_3.4")
OPERATOR(_ZnwmRKSt9nothrow_t, "GLIBCXX_3.4")
OPERATOR(_ZnamRKSt9nothrow_t, "GLIBCXX_3.4")
OPERATOR(_ZnwmSt11align_val_t, "CXXABI_1.3.11")
OPERATOR(_ZnamSt11align_val_t, "CXXABI_1.3.11")
OPERATOR(_ZnwmSt11align_val_tRKSt9nothrow_t, "CXXABI_1.3.11")
OPERATOR(_ZnamSt11align_val_tRKSt9nothrow_t, "CXXABI_1.3.11")

OPERATOR(_ZdlPv, "GLIBCXX_3.4")
OPERATOR(_ZdaPv, "GLIBCXX_3.4")
OPERATOR(_ZdlPvRKSt9nothrow_t, "GLIBCXX_3.4")
OPERATOR(_ZdaPvRKSt9nothrow_t, "GLIBCXX_3.4")
OPERATOR(_ZdlPvm, "CXXABI_1.3.9")
OPERATOR(_ZdaPvm, "CXXABI_1.3.9")
OPERATOR(_ZdlPvSt11align_val_t, "CXXABI_1.3.11")
OPERATOR(_ZdaPvSt11align_val_t, "CXXABI_1.3.11")
OPERATOR(_ZdlPvSt11align_val_tRKSt9nothrow_t, "CXXABI_1.3.11")
OPERATOR(_ZdaPvSt11align_val_tRKSt9nothrow_t, "CXXABI_1.3.11")
OPERATOR(_ZdlPvmSt11align_val_t, "CXXABI_1.3.11")
OPERATOR(_ZdaPvmSt11align_val_t, "CXXABI_1.3.11")
