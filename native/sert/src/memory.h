/* Memory: every block has an owner, and every request knows its blocks.
 *
 * A block has 16 bytes in front: the token of the request that it belongs to, and its place in that
 * request's log. The end of a request costs nothing, however much it leaves behind: its log is
 * dropped and its token is never used again. So the remaining blocks simply have no owner. */
#ifndef SERT_MEMORY_H
#define SERT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct thread;

/* Frees all blocks of a stopped request. Must not be called while the request is running. */
void memory_free_all(struct thread *thread);
/* Drops the log of a request that has ended normally. Returns how many blocks it leaves behind. */
size_t memory_forget(struct thread *thread);
/* Charges a block that libc has allocated for its caller to the request. */
void memory_adopt(struct thread *thread, void *seen);
/* Returns whether a block that malloc has returned belongs to the running request. */
bool memory_is_own(const struct thread *thread, const void *seen);
/* Frees the blocks of the thread's requests that other threads have freed. */
void memory_take_back(struct thread *thread);

#endif
