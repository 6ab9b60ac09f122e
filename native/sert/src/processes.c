/* Child processes, and libraries that are loaded later: a request that starts one is not stopped
 * any more.
 *
 * Some of these functions return twice, or look at their caller. So calls.S asks for the function
 * to go to, and jumps there with the stack unchanged. */
#include <dlfcn.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "real.h"
#include "stop.h"
#include "thread.h"

STANDS_BEFORE int posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                              char *const arguments[], char *const environment[]) {
    stop_spoilt("starts a process", __builtin_return_address(0));
    return REAL_VERSION(posix_spawn, "GLIBC_2.15")(child, path, actions, attributes, arguments, environment);
}
STANDS_BEFORE int posix_spawnp(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                               char *const arguments[], char *const environment[]) {
    stop_spoilt("starts a process", __builtin_return_address(0));
    return REAL_VERSION(posix_spawnp, "GLIBC_2.15")(child, path, actions, attributes, arguments, environment);
}
STANDS_BEFORE int system(const char *command) {
    stop_spoilt("starts a process", __builtin_return_address(0));
    return REAL(system)(command);
}
/* _Fork does not call the handlers that fork calls (request.c). */
STANDS_BEFORE pid_t _Fork(void) {
    stop_spoilt("starts a process", __builtin_return_address(0));
    return REAL(_Fork)();
}
STANDS_BEFORE int clone(int (*run)(void *), void *stack, int flags, void *arg, ...) {
    va_list more;
    va_start(more, arg);
    pid_t *parent = va_arg(more, pid_t *);
    void *local = va_arg(more, void *);
    pid_t *child = va_arg(more, pid_t *);
    va_end(more);
    stop_spoilt("starts a process or thread", __builtin_return_address(0));
    return REAL(clone)(run, stack, flags, arg, parent, local, child);
}
ALSO(__clone, clone);

__attribute__((visibility("hidden"))) void *processes_vfork(void);
__attribute__((visibility("hidden"))) void *processes_dlopen(void);
__attribute__((visibility("hidden"))) void *processes_dlmopen(void);

/* Returns the function for vfork. In a request it is fork: a child that shares the memory would
 * close the request's files in our lists too. */
void *processes_vfork(void) {
    stop_spoilt("starts a process", NULL);
    return thread_request() ? (void *)REAL(fork) : (void *)REAL(vfork);
}

/* Returns the function for dlopen. The allocations of a library while it is loaded are the
 * library's own. */
void *processes_dlopen(void) {
    stop_spoilt("loads a library", NULL);
    return (void *)REAL(dlopen);
}
void *processes_dlmopen(void) {
    stop_spoilt("loads a library", NULL);
    return (void *)REAL(dlmopen);
}
