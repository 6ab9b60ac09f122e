/* Decides whose code a thread is executing: the program's, or that of a library.
 *
 * A request is only abandoned while the thread is in the program's own code. In other code it may
 * hold, or be about to take, a lock that is not visible from outside (the C library has dozens). A
 * list of functions to protect can never be complete; this check is. */
#ifndef SERT_GATE_H
#define SERT_GATE_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the memory map of the process to find the program's code and libc's. Returns whether both
 * were found. */
bool gate_open(void);
/* Adds an object whose code counts as the program's. Returns 0, ENOENT or ENOSPC. */
int gate_admit(const char *soname);

/* Returns whether the file name in `path` begins with `name`. */
bool gate_has_name(const char *path, const char *name);

/* Returns whether the code at `pc` is the program's, or an admitted object's. Safe in a signal
 * handler. */
bool gate_is_program(uintptr_t pc);
/* Returns whether the program itself waits at `pc`: the code there is the program's, or that of a
 * C++ runtime which the program has called. A runtime only passes a wait on. No library may be
 * between them and the stack address `begin`, where the request has begun. */
bool gate_may_wait(uintptr_t pc, uintptr_t begin);
/* Returns the same for a condition. A wait in libc++ may be inside of one of its locks. */
bool gate_may_wait_for_condition(uintptr_t pc, uintptr_t begin);
/* Returns whether a C++ runtime uses the futex at `word` for waits at many objects, such as
 * barriers. Only the waiting thread knows the object. */
bool gate_is_shared_word(uintptr_t word);
/* Stores the nearest return addresses on the stack that are in the program's code, at most `most`.
 * Returns how many they are. */
unsigned gate_callers(uintptr_t callers[], unsigned most);
/* Returns whether the code at `pc` is in the library that has the next allocator. The mappings of
 * this library do not belong to a request. */
bool gate_is_allocator(uintptr_t pc);
/* The ranges of addresses that have the code of the C library and of the loader. */
struct gate_range {
    uintptr_t from, to;
};
extern struct gate_range gate_libc, gate_loader __attribute__((visibility("hidden")));

/* Returns whether the code at `pc` is in one of these ranges. Allocations by such code belong to
 * the C library or the loader. The function is called for every allocated block. */
static inline bool gate_is_libc(uintptr_t pc) {
    return pc - gate_libc.from < gate_libc.to - gate_libc.from || pc - gate_loader.from < gate_loader.to - gate_loader.from;
}

#endif
