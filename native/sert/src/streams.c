/* Streams, directories, mappings and lists of addresses. */
#include <dirent.h>
#include <netdb.h>
#include <stdarg.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wchar.h>

#include "gate.h"
#include "real.h"
#include "resources.h"
#include "stop.h"
#include "thread.h"

static void *opened_by(enum kind kind, void *at, void *caller) {
    struct thread *thread = resources_opener(caller);
    if (at && thread) {
        resources_add(thread, (struct resource){.kind = kind, .at = at});
        stop_here(thread, caller);
    }
    return at;
}
#define OPENED(kind, at) opened_by(kind, at, __builtin_return_address(0))

/* --- Streams --- */

STANDS_BEFORE FILE *fopen(const char *path, const char *mode) {
    return OPENED(KIND_FILE, REAL(fopen)(path, mode));
}
ALSO(_IO_fopen, fopen);
STANDS_BEFORE FILE *fopen64(const char *path, const char *mode) {
    return OPENED(KIND_FILE, REAL(fopen64)(path, mode));
}
STANDS_BEFORE FILE *fmemopen(void *at, size_t size, const char *mode) {
    return OPENED(KIND_FILE, REAL(fmemopen)(at, size, mode));
}
STANDS_BEFORE FILE *tmpfile(void) {
    return OPENED(KIND_FILE, REAL(tmpfile)());
}
STANDS_BEFORE FILE *tmpfile64(void) {
    return OPENED(KIND_FILE, REAL(tmpfile64)());
}

STANDS_BEFORE FILE *setmntent(const char *path, const char *mode) {
    return OPENED(KIND_FILE, REAL(setmntent)(path, mode));
}
ALSO(__setmntent, setmntent);

/* The descriptor becomes part of the stream. Writes to a descriptor that is older than the request
 * would be unnoticed. */
STANDS_BEFORE FILE *fdopen(int fd, const char *mode) {
    void *caller = __builtin_return_address(0);
    FILE *stream = REAL(fdopen)(fd, mode);
    struct thread *thread = stream ? resources_opener(caller) : NULL;
    if (thread && !resources_remove_fd(thread, fd)) {
        stop_spoilt("makes a stream of a descriptor that is not its own", caller);
    } else {
        opened_by(KIND_FILE, stream, caller);
    }
    return stream;
}
ALSO(_IO_fdopen, fdopen);

/* Records the result of reopening a stream: the stream stays, or it is gone. */
static FILE *reopened(FILE *stream, FILE *result, void *caller) {
    struct thread *thread = resources_opener(caller);
    bool was_own = thread && resources_remove(thread, KIND_FILE, stream);
    if (was_own && result) {
        resources_add(thread, (struct resource){.kind = KIND_FILE, .at = result});
    } else if (thread && !was_own) {
        stop_spoilt("opens a stream anew that is not its own", caller);
    }
    return result;
}
STANDS_BEFORE FILE *freopen(const char *path, const char *mode, FILE *stream) {
    return reopened(stream, REAL(freopen)(path, mode, stream), __builtin_return_address(0));
}
STANDS_BEFORE FILE *freopen64(const char *path, const char *mode, FILE *stream) {
    return reopened(stream, REAL(freopen64)(path, mode, stream), __builtin_return_address(0));
}

/* The memory of these streams is libc's while they are open, and the program's afterwards; popen
 * starts a process. */
STANDS_BEFORE FILE *open_memstream(char **at, size_t *size) {
    stop_spoilt("opens a stream to memory", __builtin_return_address(0));
    return REAL(open_memstream)(at, size);
}
STANDS_BEFORE FILE *open_wmemstream(wchar_t **at, size_t *size) {
    stop_spoilt("opens a stream to memory", __builtin_return_address(0));
    return REAL(open_wmemstream)(at, size);
}
STANDS_BEFORE FILE *popen(const char *command, const char *mode) {
    stop_spoilt("starts a process", __builtin_return_address(0));
    return REAL(popen)(command, mode);
}
ALSO(_IO_popen, popen);

static int closed(int result, struct thread *thread, void *caller) {
    if (thread && thread->running) {
        stop_here(thread, caller);
    }
    return result;
}
static int close_stream(int close(FILE *), FILE *stream, void *caller) {
    struct thread *thread = thread_owner();
    if (thread) {
        resources_remove(thread, KIND_FILE, stream);
    }
    return closed(close(stream), thread, caller);
}
STANDS_BEFORE int fclose(FILE *stream) {
    return close_stream(REAL(fclose), stream, __builtin_return_address(0));
}
ALSO(_IO_fclose, fclose);
STANDS_BEFORE int endmntent(FILE *stream) {
    return close_stream(REAL(endmntent), stream, __builtin_return_address(0));
}
ALSO(__endmntent, endmntent);

/* --- Directories --- */

STANDS_BEFORE DIR *opendir(const char *path) {
    return OPENED(KIND_DIR, REAL(opendir)(path));
}
STANDS_BEFORE DIR *fdopendir(int fd) {
    DIR *directory = REAL(fdopendir)(fd);
    struct thread *thread = directory ? resources_opener(__builtin_return_address(0)) : NULL;
    if (thread) {
        resources_remove_fd(thread, fd);
    }
    return OPENED(KIND_DIR, directory);
}
STANDS_BEFORE int closedir(DIR *directory) {
    struct thread *thread = thread_owner();
    if (thread) {
        resources_remove(thread, KIND_DIR, directory);
    }
    return closed(REAL(closedir)(directory), thread, __builtin_return_address(0));
}

/* --- Mappings --- */

static void *mapped(void *at, size_t length, int flags, void *caller) {
    struct thread *thread = resources_opener(caller);
    if (at == MAP_FAILED || thread == NULL || gate_is_allocator((uintptr_t)caller)) {
        return at;
    }
    if (flags & MAP_FIXED) {
        /* In the request's own mapping it stays the request's; elsewhere the request has changed
         * memory of others. */
        if (!resources_have_map(thread, (uintptr_t)at, length)) {
            stop_spoilt("maps over what is not its own", caller);
        }
        return at;
    }
    resources_add_map(thread, (uintptr_t)at, length);
    stop_here(thread, caller);
    return at;
}
STANDS_BEFORE void *mmap(void *where, size_t length, int protection, int flags, int fd, off_t offset) {
    return mapped(REAL(mmap)(where, length, protection, flags, fd, offset), length, flags, __builtin_return_address(0));
}
STANDS_BEFORE void *mmap64(void *where, size_t length, int protection, int flags, int fd, off64_t offset) {
    return mapped(REAL(mmap64)(where, length, protection, flags, fd, offset), length, flags, __builtin_return_address(0));
}
/* Remove it before it is unmapped: afterwards the range may belong to another thread. */
STANDS_BEFORE int munmap(void *at, size_t length) {
    struct thread *thread = thread_owner();
    if (thread) {
        resources_unmap(thread, (uintptr_t)at, length);
    }
    return closed(REAL(munmap)(at, length), thread, __builtin_return_address(0));
}
STANDS_BEFORE void *mremap(void *at, size_t before, size_t after, int flags, ...) {
    va_list more;
    va_start(more, flags);
    void *where = va_arg(more, void *);
    va_end(more);
    struct thread *thread = thread_request();
    bool is_own = thread && resources_have_map(thread, (uintptr_t)at, before);
    bool is_allocators = gate_is_allocator((uintptr_t)__builtin_return_address(0));
    if (thread && !is_allocators && (!is_own || flags & ~MREMAP_MAYMOVE)) {
        stop_spoilt("moves a mapping that is not its own", __builtin_return_address(0));
    }
    void *result = REAL(mremap)(at, before, after, flags, where);
    if (is_own && result != MAP_FAILED) {
        resources_unmap(thread, (uintptr_t)at, before);
        resources_add_map(thread, (uintptr_t)result, after);
    }
    return result;
}

/* --- Addresses --- */

STANDS_BEFORE int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    int error = REAL(getaddrinfo)(node, service, hints, found);
    if (error == 0) {
        OPENED(KIND_ADDRESSES, *found);
    }
    return error;
}
STANDS_BEFORE void freeaddrinfo(struct addrinfo *list) {
    struct thread *thread = thread_owner();
    if (thread) {
        resources_remove(thread, KIND_ADDRESSES, list);
    }
    REAL(freeaddrinfo)(list);
}
