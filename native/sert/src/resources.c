#include "resources.h"

#include <dirent.h>
#include <netdb.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate.h"
#include "lint.h"
#include "real.h"
#include "stop.h"
#include "tell.h"
#include "thread.h"

#define FIRST_ROOM 64u
#define MOST_ROOM (1u << 20)

static bool has_room(struct thread *thread) {
    if (thread->resource_count < thread->resource_room) {
        return true;
    }
    size_t before = thread->resource_room * sizeof *thread->resources;
    size_t more = thread->resource_room ? thread->resource_room * 2 : FIRST_ROOM, bytes = more * sizeof *thread->resources;
    void *grown = more > MOST_ROOM ? MAP_FAILED
        : before ? REAL(mremap)(thread->resources, before, bytes, MREMAP_MAYMOVE)
        : REAL(mmap)(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (grown == MAP_FAILED) {
        return false;
    }
    thread->resources = grown;
    thread->resource_room = more;
    return true;
}

struct thread *resources_opener(void *caller) {
    struct thread *thread = thread_request();
    return thread && !thread->unaccounted && !gate_is_libc((uintptr_t)caller) ? thread : NULL;
}

void resources_add(struct thread *thread, struct resource resource) {
    if (!has_room(thread)) {
        tell_once(TELL_MEMORY, NULL);
        stop_never(thread);
        return;
    }
    resource.place = lint_opened(resource.kind);
    thread->resources[thread->resource_count++] = resource;
}

/* Removes a resource, and keeps the order of the others, because resources are released in the
 * opposite order. */
static void remove_at(struct thread *thread, size_t index) {
    thread->resource_count--;
    for (size_t i = index; i < thread->resource_count; i++) {
        thread->resources[i] = thread->resources[i + 1];
    }
}

static bool is_fd(const struct resource *resource, int fd) {
    return resource->kind == KIND_FD && resource->fd == fd;
}

bool resources_remove_fd(struct thread *thread, int fd) {
    for (size_t i = thread->resource_count; i-- > 0;) {
        if (is_fd(&thread->resources[i], fd)) {
            remove_at(thread, i);
            return true;
        }
    }
    return false;
}

/* Returns whether a descriptor belongs to the request. A stream's descriptor belongs to it too. */
bool resources_has_fd(const struct thread *thread, int fd) {
    for (size_t i = thread->resource_count; i-- > 0;) {
        const struct resource *resource = &thread->resources[i];
        if (is_fd(resource, fd)
            || (resource->kind == KIND_FILE && fileno_unlocked(resource->at) == fd)) {
            return true;
        }
    }
    return false;
}

bool resources_remove(struct thread *thread, enum kind kind, const void *at) {
    for (size_t i = thread->resource_count; i-- > 0;) {
        if (thread->resources[i].kind == kind && thread->resources[i].at == at) {
            remove_at(thread, i);
            return true;
        }
    }
    return false;
}

bool resources_remove_undo(struct thread *thread, void (*undo)(void *), const void *arg) {
    for (size_t i = thread->resource_count; i-- > 0;) {
        const struct resource *resource = &thread->resources[i];
        if (resource->kind == KIND_UNDO && resource->undo == undo && resource->at == arg) {
            remove_at(thread, i);
            return true;
        }
    }
    return false;
}

static struct resource mapping(uintptr_t from, uintptr_t to) {
    return (struct resource){.kind = KIND_MAP, .at = (void *)from, .length = to - from};
}

/* The kernel maps whole pages. */
static uintptr_t page_up(uintptr_t at) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return (at + page - 1) & ~(page - 1);
}

void resources_add_map(struct thread *thread, uintptr_t at, size_t length) {
    resources_add(thread, mapping(at, page_up(at + length)));
}

bool resources_have_map(const struct thread *thread, uintptr_t at, size_t length) {
    for (size_t i = 0; i < thread->resource_count; i++) {
        const struct resource *resource = &thread->resources[i];
        uintptr_t from = (uintptr_t)resource->at;
        if (resource->kind == KIND_MAP && from <= at && page_up(at + length) <= from + resource->length) {
            return true;
        }
    }
    return false;
}

void resources_unmap(struct thread *thread, uintptr_t at, size_t length) {
    uintptr_t end = page_up(at + length);
    for (size_t i = thread->resource_count; i-- > 0;) {
        const struct resource *resource = &thread->resources[i];
        uintptr_t from = (uintptr_t)resource->at, to = from + resource->length;
        if (resource->kind != KIND_MAP || to <= at || from >= end) {
            continue;
        }
        remove_at(thread, i);
        if (from < at) {
            resources_add(thread, mapping(from, at));
        }
        if (to > end) {
            resources_add(thread, mapping(end, to));
        }
    }
}

/* Discards output that is still to be sent. Part of a message would be useless, and sending it
 * might block. */
static void discard(FILE *stream) {
    struct stat is;
    int fd = fileno_unlocked(stream);
    if (fd >= 0 && fstat(fd, &is) == 0 && (S_ISSOCK(is.st_mode) || S_ISFIFO(is.st_mode))) {
        __fpurge(stream);
    }
}

static void give_back(const struct resource *resource) {
    switch (resource->kind) {
    case KIND_FD:
        REAL(close)(resource->fd);
        break;
    case KIND_FILE:
        discard(resource->at);
        REAL(fclose)(resource->at);
        break;
    case KIND_DIR:
        REAL(closedir)(resource->at);
        break;
    case KIND_MAP:
        REAL(munmap)(resource->at, resource->length);
        break;
    case KIND_ADDRESSES:
        REAL(freeaddrinfo)(resource->at);
        break;
    case KIND_UNDO:
        break;
    }
}

/* Takes the last undo out of the list; the undo itself may change the list. */
static bool take_undo(struct thread *thread, struct resource *undo) {
    for (size_t i = thread->resource_count; i-- > 0;) {
        if (thread->resources[i].kind == KIND_UNDO) {
            *undo = thread->resources[i];
            remove_at(thread, i);
            return true;
        }
    }
    return false;
}

/* Call the undo functions first, while all resources still exist. */
void resources_give_back(struct thread *thread) {
    struct resource last;
    while (take_undo(thread, &last)) {
        last.undo(last.at);
    }
    while (thread->resource_count > 0) {
        last = thread->resources[--thread->resource_count];
        give_back(&last);
    }
}
