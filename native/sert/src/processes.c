/* Child processes, and libraries that are loaded later: a request that starts one is not stopped
 * any more.
 *
 * Some of these functions return twice, or look at their caller. So calls.S asks for the function
 * to go to, and jumps there with the stack unchanged. */
#include <dlfcn.h>
#include <spawn.h>
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

__attribute__((visibility("hidden"))) void *processes_vfork(void);
__attribute__((visibility("hidden"))) void *processes_dlopen(void);

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
