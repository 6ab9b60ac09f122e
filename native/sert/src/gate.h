/* Whose code it is.
 *
 * A request is only abandoned while the thread is in the program's own code. In any other it may hold a lock
 * that nobody outside sees (the C library has dozens), or be about to. A list of functions to protect can never
 * be complete; this gate is.
 */
#ifndef SERT_GATE_H
#define SERT_GATE_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the map of the process: where the program's code is, and libc's. Whether both were found. */
bool gate_open(void);
/* A further object whose code counts as the program's. 0, ENOENT or ENOSPC. */
int gate_admit(const char *soname);

/* Whether the file name in `path` begins with `name`. */
bool gate_has_name(const char *path, const char *name);

/* In the program's code, or an admitted object's. Safe in a signal handler. */
bool gate_is_program(uintptr_t pc);
/* In the program's, or in libstdc++, which only passes on what a condition variable waits for. */
bool gate_may_wait(uintptr_t pc);
/* The code of the C library, and of the loader. */
struct gate_range {
    uintptr_t from, to;
};
extern struct gate_range gate_libc, gate_loader __attribute__((visibility("hidden")));

/* In one of them: what they allocate, they keep. Asked for every block. */
static inline bool gate_is_libc(uintptr_t pc) {
    return pc - gate_libc.from < gate_libc.to - gate_libc.from || pc - gate_loader.from < gate_loader.to - gate_loader.from;
}

#endif
