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
/* The code of libc++. It waits for conditions inside of its own locks (std::shared_mutex). */
static struct ranges libcxx;
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
    struct ranges *all[] = {&program, &program_data, &runtime, &runtime_data, &libcxx, &allocator};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        atomic_store(&all[i]->count, 0);
    }
    struct ranges libc = {0}, loader = {0};
    int missing = look_for(NULL, &program, &program_data) | look_for("libc.so.6", &libc, NULL)
        | look_for("ld-linux", &loader, NULL) | look_for_allocator();
    look_for("libstdc++.so", &runtime, &runtime_data);
    look_for("libc++.so", &libcxx, &runtime_data);
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

/* The program's return addresses. */
struct walk {
    uintptr_t *callers;
    unsigned count, most;
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

/* A wait of a request, whose stack begins at `begin`: the code that called us, and the findings. */
struct wait {
    uintptr_t caller, begin;
    bool is_ours_over, is_of_program, is_of_library;
};

/* Looks at the frames from the caller to the begin of the request. The frames before are ours. */
static _Unwind_Reason_Code look_at(struct _Unwind_Context *frame, void *context) {
    struct wait *wait = context;
    uintptr_t pc = _Unwind_GetIP(frame);
    bool is_outside = _Unwind_GetCFA(frame) > wait->begin;
    wait->is_ours_over = wait->is_ours_over || pc == wait->caller;
    if (wait->is_ours_over) {
        bool is_program = is_outside || is_in(&program, pc);
        wait->is_of_program = wait->is_of_program || is_program;
        wait->is_of_library = !is_program && !is_in(&runtime, pc) && !is_in(&libcxx, pc) && !gate_is_libc(pc);
    }
    return is_outside || wait->is_of_library ? _URC_END_OF_STACK : _URC_NO_REASON;
}

bool gate_may_wait(uintptr_t pc, uintptr_t begin) {
    bool is_program = is_in(&program, pc);
    struct wait wait = {.caller = pc, .begin = begin, .is_of_program = is_program};
    if (!is_program && !is_in(&runtime, pc) && !is_in(&libcxx, pc)) {
        return false;
    }
    _Unwind_Backtrace(look_at, &wait);
    return wait.is_of_program && !wait.is_of_library;
}

bool gate_may_wait_for_condition(uintptr_t pc, uintptr_t begin) {
    return !is_in(&libcxx, pc) && gate_may_wait(pc, begin);
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

