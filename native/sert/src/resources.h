/* What a request has opened: descriptors, streams, directories, mappings; and what it wants undone.
 *
 * Kept by the thread in the order in which it came, and given back in the opposite one. */
#ifndef SERT_RESOURCES_H
#define SERT_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thread;

enum kind { KIND_FD, KIND_FILE, KIND_DIR, KIND_MAP, KIND_ADDRESSES, KIND_UNDO };

struct resource {
    enum kind kind;
    union {
        int fd;
        void *at; /* FILE, DIR, addrinfo, the beginning of a mapping, the argument of an undo */
    };
    union {
        size_t length;
        void (*undo)(void *);
    };
};

/* The request to which belongs what is opened for `caller`; NULL: to none. libc keeps its own (the resolver's, say). */
struct thread *resources_opener(void *caller);
/* It is the request's from now on. If there is no room the request is not stopped any more. */
void resources_add(struct thread *thread, struct resource resource);
/* It is not any more. Whether it was. */
bool resources_remove_fd(struct thread *thread, int fd);
bool resources_remove(struct thread *thread, enum kind kind, const void *at);
bool resources_has_fd(const struct thread *thread, int fd);
bool resources_remove_undo(struct thread *thread, void (*undo)(void *), const void *arg);
void resources_add_map(struct thread *thread, uintptr_t at, size_t length);
/* All of it is in one mapping of the request's. */
bool resources_have_map(const struct thread *thread, uintptr_t at, size_t length);
/* [at, at + length) is unmapped: what is left of mappings stays the request's. */
void resources_unmap(struct thread *thread, uintptr_t at, size_t length);
/* The request is stopped: gives everything back. Not while it is running. */
void resources_give_back(struct thread *thread);

#endif
