#include "gate.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "real.h"

#define RANGES 32

/* Entries are written before `count` is. Any thread may read them at any time. */
struct ranges {
    struct gate_range range[RANGES];
    _Atomic unsigned count;
};

static struct ranges program, waiting;
struct gate_range gate_libc, gate_loader;
static struct ranges allocator;

/* The object to look for, and the list for its ranges. The program is the object without a name. */
struct search {
    const char *name;
    struct ranges *into;
    bool found, full;
};

static bool is_in(const struct ranges *ranges, uintptr_t pc) {
    unsigned count = atomic_load_explicit(&ranges->count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++) {
        if (pc - ranges->range[i].from < ranges->range[i].to - ranges->range[i].from) {
            return true;
        }
    }
    return false;
}

bool gate_has_name(const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, name, strlen(name)) == 0;
}

static int add(struct dl_phdr_info *object, size_t size, void *context) {
    (void)size;
    struct search *search = context;
    bool is_it = search->name ? gate_has_name(object->dlpi_name, search->name) : !search->found;
    for (unsigned i = 0; is_it && i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X)) {
            continue;
        }
        unsigned count = atomic_load(&search->into->count);
        if (count == RANGES) {
            search->full = true;
            return 1;
        }
        uintptr_t from = object->dlpi_addr + segment->p_vaddr;
        search->into->range[count] = (struct gate_range){from, from + segment->p_memsz};
        atomic_store_explicit(&search->into->count, count + 1, memory_order_release);
    }
    search->found = search->found || is_it;
    return 0;
}

static int look_for(const char *name, struct ranges *into) {
    struct search search = {.name = name, .into = into};
    REAL(dl_iterate_phdr)(add, &search);
    return search.full ? ENOSPC : search.found ? 0 : ENOENT;
}

/* Looks for the object that has the next allocator. The object is libc if no other library has one.
 * Returns 0, or an errno. */
static int look_for_allocator(void) {
    Dl_info object;
    if (dladdr(real_find("malloc", NULL), &object) == 0) {
        return ENOENT;
    }
    const char *slash = strrchr(object.dli_fname, '/');
    return look_for(slash ? slash + 1 : object.dli_fname, &allocator);
}

bool gate_open(void) {
    static bool is_open;
    if (is_open) {
        return true;
    }
    atomic_store(&program.count, 0);
    atomic_store(&waiting.count, 0);
    atomic_store(&allocator.count, 0);
    struct ranges libc = {0}, loader = {0};
    int missing = look_for(NULL, &program) | look_for("libc.so.6", &libc) | look_for("ld-linux", &loader) | look_for_allocator();
    look_for("libstdc++.so", &waiting);
    gate_libc = libc.range[0];
    gate_loader = loader.range[0];
    /* Their code is one range each. With a second range, allocations from it would be charged to
     * requests. */
    is_open = !missing && libc.count == 1 && loader.count == 1;
    return is_open;
}

int gate_admit(const char *soname) {
    return look_for(soname, &program);
}

bool gate_is_program(uintptr_t pc) {
    return is_in(&program, pc);
}

bool gate_is_allocator(uintptr_t pc) {
    return is_in(&allocator, pc);
}

bool gate_may_wait(uintptr_t pc) {
    return is_in(&program, pc) || is_in(&waiting, pc);
}

