/* libbywash-levels: a thread pool that gives a request as many threads as its service level
 * deserves.
 *
 * A server that computes its answers can treat customers differently by the number of threads that
 * work for them [paper 3.1]. Here, threads are slots of a pool, for which waiting and running
 * requests compete. A request waits for its turn, runs tasks in parallel on as many threads as its
 * level and the other requests leave to it, and ends.
 *
 * Source: paper 3. The scheduling is described in the README of crates/levels. Linux, 64 bits; C11
 * and C++.
 *
 * Functions return 0, or -1 with errno set; those that return a pointer return NULL with errno set.
 * bywash_levels_error() then describes the error in words. Each function may fail with
 *   EINVAL           an argument is NULL, contradicts itself, or has the wrong `size`
 *   ESRCH            the pool belongs to the parent: see fork() below
 *   ENOTRECOVERABLE  an error in this library
 * and then changes nothing. Texts are UTF-8; times are in nanoseconds.
 *
 * Threads. Any threads may use a pool at the same time. One thread at a time may use a request, and
 * it may be another each time. A signal handler must not call any function, nor leave one by
 * siglongjmp. No function ends early because of a signal, and none is a cancellation point. The
 * pool's threads block all signals, except for SIGPROF and those that report a fault of the thread
 * itself.
 *
 * Callbacks run on the pool's threads and on the threads that wait for them. They must return: they
 * must not longjmp out, call pthread_exit or be cancelled. A C++ exception that leaves one ends the
 * process. They should be short (some milliseconds), since a slot changes hands only between two of
 * them. They should not sleep, since a slot stands for a processor.
 *
 * fork(). The child has none of the pool's threads: objects that were made before belong to the
 * parent, and are refused. The child may make a pool of its own if no pool was at work at that
 * moment; otherwise a lock may be held forever. So fork first.
 *
 * If not even a few bytes of memory are left, the process is aborted, like any Rust program. */
#ifndef BYWASH_LEVELS_H
#define BYWASH_LEVELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bywash_levels_pool;
struct bywash_levels_request; /* a request that has its turn */
struct bywash_levels_tasks;   /* the scope in which tasks are spawned */

/* A field that may be 0 names the default that 0 stands for. */
struct bywash_levels_level {
    const char *name;     /* not empty, and unique */
    uint32_t max_threads; /* most threads of a request; 0: 1 */
    /* threads that a request may have although others of its level wait to begin; 0: 1 */
    uint32_t min_threads;
    uint32_t queue; /* requests that may wait to begin; 0: 1000 */
    /* slot time in proportion to that of other levels, unless a goal decides; 0: 1 */
    double weight;
    /* the fraction of slot time that the level keeps while it wants slots; 0: 0.02. -1: none */
    double floor;
};

enum bywash_levels_goal_kind {
    BYWASH_LEVELS_NO_GOAL = 0,
    /* The mean response time of `level` is `target` (above 0, at most 1) times that of `slow`. */
    BYWASH_LEVELS_RATIO = 1,
    /* A fraction `target` (0.5 to 0.999) of the requests of `level` is answered within
     * `within_ns`. */
    BYWASH_LEVELS_PERCENTILE = 2
};

/* Response times are from a request's arrival to its end. Fields that a kind does not use are 0. */
struct bywash_levels_goal {
    uint32_t kind; /* enum bywash_levels_goal_kind */
    double target;
    const char *level;
    const char *slow;
    uint64_t within_ns;
};

struct bywash_levels_options {
    uint32_t size; /* sizeof(struct bywash_levels_options) */
    /* one more than the number of processors for the pool; 0: of those that the process may use */
    uint32_t threads;
    /* Unless 0, this number of requests runs at a time, first come first served, each with all
     * threads of its level, and there is no goal: the method of paper 3, for comparisons. */
    uint32_t parity;
    uint32_t level_count;
    const struct bywash_levels_level *levels;
    struct bywash_levels_goal goal;
};

/* Makes a pool and starts its threads. `options` and all that it points to may be freed afterwards.
 * EAGAIN: a thread cannot be started. EINVAL: also for more than 4096 of anything. */
struct bywash_levels_pool *bywash_levels_new(const struct bywash_levels_options *options);

/* Closes the pool to new requests. Waiting threads get ESHUTDOWN. Submitted requests that have not
 * begun are called with NULL, now and by this thread. Running requests go on. Further calls have no
 * effect. */
int bywash_levels_close(struct bywash_levels_pool *pool);

/* Closes the pool, waits until every request in it has ended, and frees it. No other thread may use
 * it at the same time or later. When this returns 0, no callback runs any more. NULL: does nothing.
 *
 *   EDEADLK  this would wait for its own thread: a callback of this pool has called this, or the
 *            thread has a request in the pool. The pool is closed, and not freed: end the request,
 *            and call this again. A thread has a request that it has begun, unless another thread
 *            has run tasks in that request since. */
int bywash_levels_free(struct bywash_levels_pool *pool);

/* Waits until it is this thread's turn, for at most `timeout_ns`; 0: does not wait, -1: waits
 * without limit. End the request by bywash_levels_end(). A thread should have only one turn at a
 * time: while it waits for another, the slot of the first is idle.
 *
 *   ENOENT     there is no such level
 *   EAGAIN     the queue of the level is full
 *   ETIMEDOUT  its turn did not come in time
 *   ESHUTDOWN  the pool is closed, or was closed while it waited */
struct bywash_levels_request *bywash_levels_begin(struct bywash_levels_pool *pool, const char *level,
                                                  int64_t timeout_ns);

/* Ends and frees a request, and gives its slot to the next one. NULL: does nothing. The request may
 * outlive the struct of its pool, but not the pool, since bywash_levels_free() waits for it. EBUSY:
 * its tasks run. EPERM: it was submitted, and ends when its function returns. */
int bywash_levels_end(struct bywash_levels_request *request);

/* Counts the request as `failed` when it ends. EBUSY: its tasks run. */
int bywash_levels_fail(struct bywash_levels_request *request);

/* Lets a thread of the pool call `run` when the request's turn has come. The callback may use the
 * request until it returns.
 *
 * If this returns 0, `run` is called exactly once: with the request, or with NULL if the pool is
 * closed before. So `run` can free what `arg` points to. If this fails, `run` is not called.
 * ENOENT, EAGAIN, ESHUTDOWN: as for bywash_levels_begin(). */
int bywash_levels_submit(struct bywash_levels_pool *pool, const char *level,
                         void (*run)(struct bywash_levels_request *request, void *arg), void *arg);

/* Calls `each` once with every number from 0 to n - 1, in parallel and in no order, and returns
 * when all calls have returned. Their writes are then visible to the caller. This thread makes
 * calls as well. EBUSY: tasks of this request run already. A task spawns others by
 * bywash_levels_spawn(), and cannot run a loop of its own. */
int bywash_levels_parallel_for(struct bywash_levels_request *request, size_t n, void (*each)(size_t i, void *arg),
                               void *arg);

/* Calls `fill` at once, which spawns tasks, and returns when all of them have ended. The scope is
 * invalid from then on. EBUSY: tasks of this request run already. */
int bywash_levels_scope(struct bywash_levels_request *request,
                        void (*fill)(struct bywash_levels_tasks *tasks, void *arg), void *arg);

/* Adds a task, which runs once: on this thread when `fill` has returned, or earlier on another one.
 * Only `fill` and tasks of the scope may call this, on any thread. */
int bywash_levels_spawn(struct bywash_levels_tasks *tasks,
                        void (*task)(struct bywash_levels_tasks *tasks, void *arg), void *arg);

/* Counts of a level since the pool was made, and its present state. */
struct bywash_levels_level_stats {
    uint32_t size;      /* sizeof(struct bywash_levels_level_stats); set it in the first struct */
    uint32_t threads;   /* slots that its requests hold */
    const char *name;   /* the pool's, valid until the pool is freed */
    uint64_t answered;  /* requests that have ended */
    uint64_t failed;    /* those of them for which bywash_levels_fail() was called */
    uint64_t refused;   /* requests that found the queue full */
    uint64_t left;      /* requests that left before their turn: ETIMEDOUT, ESHUTDOWN */
    uint64_t waiting;   /* requests that wait for their turn */
    uint64_t running;   /* requests that have their turn */
    uint64_t mean_ns;   /* mean time from arrival to end; to 1 µs, as the next three */
    uint64_t median_ns; /* this one, p95 and p99 are accurate to a hundredth */
    uint64_t p95_ns;
    uint64_t p99_ns;
    uint64_t waited_ns; /* mean time from arrival to the first slot */
    double deviation;   /* standard deviation over mean of the time from arrival to end */
    double share;       /* fraction of the slot time used in the last seconds, 0 to 1 */
};

/* Fills in the statistics of all levels, in the order of the options. EINVAL: `count` is not the
 * number of levels. */
int bywash_levels_stats(struct bywash_levels_pool *pool, struct bywash_levels_level_stats *levels, size_t count);

enum bywash_levels_verdict {
    BYWASH_LEVELS_SETTLING = 0, /* no request was measured yet, or the pool still adapts */
    BYWASH_LEVELS_HELD = 1,
    BYWASH_LEVELS_EXCEEDED = 2,  /* there is room: better than the target */
    /* the pool does all that it may; admitting fewer requests would help */
    BYWASH_LEVELS_INFEASIBLE = 3
};

struct bywash_levels_goal_state {
    uint32_t size;    /* sizeof(struct bywash_levels_goal_state) */
    uint32_t verdict; /* enum bywash_levels_verdict */
    /* the ratio, or the fraction answered in time, of the last seconds; NAN: not yet known */
    double measured;
    /* the controller's output: the weight of the fast level's age, or the seconds that the level's
     * requests may wait while others want slots */
    double effort;
};

/* Tells how far the goal is reached. ENOENT: the pool has no goal. */
int bywash_levels_goal_stats(struct bywash_levels_pool *pool, struct bywash_levels_goal_state *goal);

/* The keys of the gateway in front, which names and signs a request's level in the field
 * Bywash-Level. */
struct bywash_levels_gateway;

#define BYWASH_LEVELS_FIELD "bywash-level"
/* the size of a buffer for a level's name from the gateway, with the terminating 0 */
#define BYWASH_LEVELS_NAME 33

/* Reads the gateway's `levels.key_file`. It is read again automatically after a key rotation
 * (bywash token-keys --rotate). ENOENT, EACCES and others: the file cannot be read. EPERM: every
 * user may read it. EINVAL: it holds no keys. */
struct bywash_levels_gateway *bywash_levels_gateway_new(const char *key_file);

/* Frees the keys: no other thread may use them at the same time or later. NULL: does nothing. */
int bywash_levels_gateway_free(struct bywash_levels_gateway *gateway);

/* Verifies a field of `length` bytes, which need not end with 0, and copies the level that it names
 * to `level`, which has room for BYWASH_LEVELS_NAME. Whether a pool has such a level,
 * bywash_levels_begin() reports. Treat a request whose field is not valid as one without the field.
 * Any threads may call this at the same time.
 *
 *   EBADMSG       the field is not a level, a time and a signature
 *   EKEYREJECTED  no key of the file has signed it
 *   EKEYEXPIRED   it was signed more than a minute before or after now */
int bywash_levels_gateway_level(struct bywash_levels_gateway *gateway, const char *field, size_t length, char *level);

/* Returns why the last failed call of this thread failed, in words, until the next failure. Never
 * NULL. */
const char *bywash_levels_error(void);

#ifdef __cplusplus
}
#endif
#endif
