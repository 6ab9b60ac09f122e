/* The resources that a request has opened (descriptors, streams, directories, mappings), and its
 * undo functions.
 *
 * The thread keeps them in the order of their creation, and releases them in the opposite order. */
#ifndef SERT_RESOURCES_H
#define SERT_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thread;

enum kind { KIND_FD, KIND_FILE, KIND_DIR, KIND_MAP, KIND_ADDRESSES, KIND_UNDO };

struct resource {
    enum kind kind;
    uint16_t place; /* for the lint */
    union {
        int fd;
        void *at; /* FILE, DIR, addrinfo, the begin of a mapping, the argument of an undo */
    };
    union {
        size_t length;
        void (*undo)(void *);
    };
};

/* Returns the thread whose request owns a resource that is opened on behalf of `caller`; NULL if
 * none does. Resources that libc opens for itself (for example for the resolver) have no owner. */
struct thread *resources_opener(void *caller);
/* Adds a resource to the request. If the table is full, the request becomes unstoppable. */
void resources_add(struct thread *thread, struct resource resource);
/* Remove a resource from the request. Return whether the request had the resource. */
bool resources_remove_fd(struct thread *thread, int fd);
bool resources_remove(struct thread *thread, enum kind kind, const void *at);
bool resources_has_fd(const struct thread *thread, int fd);
bool resources_remove_undo(struct thread *thread, void (*undo)(void *), const void *arg);
void resources_add_map(struct thread *thread, uintptr_t at, size_t length);
/* Returns whether the whole range is in one mapping of the request. */
bool resources_have_map(const struct thread *thread, uintptr_t at, size_t length);
/* Removes the range [at, at + length) from the request's mappings. The remaining parts of the
 * mappings still belong to the request. */
void resources_unmap(struct thread *thread, uintptr_t at, size_t length);
/* Releases all resources of a stopped request. Must not be called while the request is running. */
void resources_give_back(struct thread *thread);

#endif
