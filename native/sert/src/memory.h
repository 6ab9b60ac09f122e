/* Memory: every block says whose it is, every request knows its blocks.
 *
 * A block has 16 bytes in front: the token of the request that it belongs to, and its place in that request's
 * log. The end of a request costs nothing however much it leaves behind: its log is forgotten and its token is
 * never used again, so what survives simply belongs to nobody. */
#ifndef SERT_MEMORY_H
#define SERT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct thread;

/* The request is stopped: frees all that it still has. Not while it is running. */
void memory_free_all(struct thread *thread);
/* It is over in the ordinary way: how many blocks it leaves behind. */
size_t memory_forget(struct thread *thread);
/* A block that libc has made for its caller is the request's after all. */
void memory_adopt(struct thread *thread, void *seen);
/* Whether a block that malloc has returned belongs to the request that runs. */
bool memory_is_own(const struct thread *thread, const void *seen);
/* Frees what other threads have freed of its requests. */
void memory_take_back(struct thread *thread);

#endif
