#include "real.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "tell.h"

void *real_find(const char *name, const char *version) {
    void *found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
    found = found ? found : dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        tell_once(TELL_UNPROTECTED, name);
        abort();
    }
    return found;
}

void *real_or_null(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        void *library = REAL(dlopen)("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
        found = library ? dlsym(library, name) : NULL;
    }
    return found;
}

/* Returns the first function that does not reach us. An allocator that is linked into the program
 * itself precedes us. So do libraries that were preloaded earlier; libraries that were loaded after
 * libc come behind it. */
const char *real_missing(void) {
    static const char *const names[] = {"malloc", "free", "pthread_mutex_lock", "pthread_cond_wait", "open", "close", "fopen", "mmap", "__cxa_guard_acquire"};
    Dl_info ours, found;
    if (dladdr((void *)real_missing, &ours) == 0) {
        return "dladdr";
    }
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        void *first = dlsym(RTLD_DEFAULT, names[i]);
        if (first == NULL || dladdr(first, &found) == 0 || found.dli_fbase != ours.dli_fbase) {
            return names[i];
        }
    }
    return operators_are_foreign() ? "operator new, which is the memory allocator's (preload that allocator, do not link it)" : NULL;
}
