/* The operators new and delete of C++. They matter if an allocator comes after us.
 *
 * jemalloc, tcmalloc and mimalloc have operators of their own, which take a block directly: it
 * would belong to no request. jemalloc's delete even calls free, which is ours. The operators of
 * libstdc++ call malloc and free in every case, so ours call these. They have libstdc++'s versions,
 * which are not the default. So the loader finds them, and the linker does not: a program with a
 * static libstdc++ keeps that one's operators.
 *
 * A program that was linked with such an allocator asks for operators without a version, and so
 * does libc++. Both get the allocator's. Then ours call the allocator's, too, because one object may
 * be made by libstdc++ and deleted by the program; and the library refuses to stop requests. */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"
#include "tell.h"

/* The parts of an object's dynamic section that its references need. */
struct references {
    const ElfW(Sym) *symbols;
    const char *names;
    const ElfW(Half) *versions;
    const ElfW(Rela) *list[2]; /* of calls, and of data */
    size_t bytes[2];
};

static struct references references_of(const struct dl_phdr_info *object) {
    struct references are = {0};
    const ElfW(Dyn) *entry = NULL;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            entry = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        }
    }
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        const void *at = (const void *)entry->d_un.d_ptr;
        switch (entry->d_tag) {
        case DT_SYMTAB: are.symbols = at; break;
        case DT_STRTAB: are.names = at; break;
        case DT_VERSYM: are.versions = at; break;
        case DT_JMPREL: are.list[0] = at; break;
        case DT_RELA: are.list[1] = at; break;
        case DT_PLTRELSZ: are.bytes[0] = entry->d_un.d_val; break;
        case DT_RELASZ: are.bytes[1] = entry->d_un.d_val; break;
        default: break;
        }
    }
    return are;
}

static bool is_operator(const char *name) {
    return strncmp(name, "_Znw", 4) == 0 || strncmp(name, "_Zna", 4) == 0
        || strncmp(name, "_Zdl", 4) == 0 || strncmp(name, "_Zda", 4) == 0;
}

static bool is_in_allocator(const char *name) {
    Dl_info allocator, operator;
    void *found = dlsym(RTLD_DEFAULT, name);
    return found && dladdr(found, &operator) != 0 && dladdr(real_find("malloc", NULL), &allocator) != 0
        && allocator.dli_fbase == operator.dli_fbase;
}

/* Looks for a reference without a version to an operator of the allocator. */
static int look(struct dl_phdr_info *object, size_t size, void *nothing) {
    (void)size, (void)nothing;
    struct references are = references_of(object);
    for (unsigned part = 0; part < 2; part++) {
        for (size_t i = 0; are.list[part] && i < are.bytes[part] / sizeof(ElfW(Rela)); i++) {
            size_t index = ELF64_R_SYM(are.list[part][i].r_info);
            const ElfW(Sym) *symbol = &are.symbols[index];
            bool is_plain = symbol->st_shndx == SHN_UNDEF && (are.versions == NULL || are.versions[index] <= VER_NDX_GLOBAL);
            if (is_plain && is_operator(are.names + symbol->st_name) && is_in_allocator(are.names + symbol->st_name)) {
                return 1;
            }
        }
    }
    return 0;
}

bool operators_are_foreign(void) {
    return REAL(dl_iterate_phdr)(look, NULL) != 0;
}

static void *find(const char *name) {
    void *runtime = REAL(dlopen)("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void *found = operators_are_foreign() ? dlsym(RTLD_DEFAULT, name) : runtime ? dlsym(runtime, name) : NULL;
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
