#include "gate.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unwind.h>

#include "real.h"

#define RANGES 32
/* The alignment of the words at which C++ runtimes wait for many objects. */
#define LINE 64u

/* Entries are written before `count` is. Any thread may read them at any time. */
struct ranges {
    struct gate_range range[RANGES];
    _Atomic unsigned count;
};

/* The code and the static data of the program, and those of the C++ runtimes that it shares. */
static struct ranges program, program_data, runtime, runtime_data;
struct gate_range gate_libc, gate_loader;
static struct ranges allocator;

/* The object to look for, and the lists for its code and its static data, which may be NULL. The
 * program is the object without a name. */
struct search {
    const char *name;
    struct ranges *into, *data;
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
        struct ranges *into = segment->p_flags & PF_X ? search->into : segment->p_flags & PF_W ? search->data : NULL;
        if (segment->p_type != PT_LOAD || into == NULL) {
            continue;
        }
        unsigned count = atomic_load(&into->count);
        if (count == RANGES) {
            search->full = true;
            return 1;
        }
        uintptr_t from = object->dlpi_addr + segment->p_vaddr;
        into->range[count] = (struct gate_range){from, from + segment->p_memsz};
        atomic_store_explicit(&into->count, count + 1, memory_order_release);
    }
    search->found = search->found || is_it;
    return 0;
}

static int look_for(const char *name, struct ranges *into, struct ranges *data) {
    struct search search = {.name = name, .into = into, .data = data};
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
    return look_for(slash ? slash + 1 : object.dli_fname, &allocator, NULL);
}

bool gate_open(void) {
    static bool is_open;
    if (is_open) {
        return true;
    }
    struct ranges *all[] = {&program, &program_data, &runtime, &runtime_data, &allocator};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        atomic_store(&all[i]->count, 0);
    }
    struct ranges libc = {0}, loader = {0};
    int missing = look_for(NULL, &program, &program_data) | look_for("libc.so.6", &libc, NULL)
        | look_for("ld-linux", &loader, NULL) | look_for_allocator();
    look_for("libstdc++.so", &runtime, &runtime_data);
    look_for("libc++.so", &runtime, &runtime_data);
    gate_libc = libc.range[0];
    gate_loader = loader.range[0];
    /* Their code is one range each. With a second range, allocations from it would be charged to
     * requests. */
    is_open = !missing && libc.count == 1 && loader.count == 1;
    return is_open;
}

int gate_admit(const char *soname) {
    return look_for(soname, &program, &program_data);
}

bool gate_is_program(uintptr_t pc) {
    return is_in(&program, pc);
}

bool gate_is_allocator(uintptr_t pc) {
    return is_in(&allocator, pc);
}

/* --- The stack --- */

/* The program's return addresses, and how far the search has come. */
struct walk {
    uintptr_t *callers;
    unsigned count, most;
    bool is_in_runtime;
};

static _Unwind_Reason_Code collect(struct _Unwind_Context *frame, void *context) {
    struct walk *walk = context;
    uintptr_t pc = _Unwind_GetIP(frame);
    if (is_in(&program, pc)) {
        walk->callers[walk->count++] = pc;
    }
    return walk->count == walk->most ? _URC_END_OF_STACK : _URC_NO_REASON;
}

unsigned gate_callers(uintptr_t callers[], unsigned most) {
    struct walk walk = {.callers = callers, .most = most};
    _Unwind_Backtrace(collect, &walk);
    return walk.count;
}

/* Stops at the caller of the runtime's function. The frames before that function are ours. */
static _Unwind_Reason_Code leave_runtime(struct _Unwind_Context *frame, void *context) {
    struct walk *walk = context;
    uintptr_t pc = _Unwind_GetIP(frame);
    bool was_in_runtime = walk->is_in_runtime;
    walk->is_in_runtime = is_in(&runtime, pc);
    walk->count = was_in_runtime && is_in(&program, pc);
    return was_in_runtime && !walk->is_in_runtime ? _URC_END_OF_STACK : _URC_NO_REASON;
}

bool gate_may_wait(uintptr_t pc) {
    struct walk walk = {0};
    if (is_in(&runtime, pc)) {
        _Unwind_Backtrace(leave_runtime, &walk);
    }
    return walk.count > 0 || is_in(&program, pc);
}

/* The words of libstdc++ 12, whose waits are inline, and of a static libc++ 14 are in the program's
 * data. A counter of waiting threads precedes each: by a line of the cache in libstdc++, by one
 * number in libc++. */
bool gate_is_shared_word(uintptr_t word) {
    uintptr_t counter = word % LINE == 0 ? word - LINE : word - sizeof(int);
    bool has_place = (word % LINE == 0 || word % LINE == sizeof(int)) && is_in(&program_data, word);
    bool has_counter = has_place && is_in(&program_data, counter) && atomic_load((_Atomic int *)counter) > 0;
    return has_counter || is_in(&runtime_data, word);
}

