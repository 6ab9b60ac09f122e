/* libbywash-levels: a thread pool that gives a request as many threads as its service level deserves.
 *
 * A server that computes its answers can treat customers differently by the number of threads that work for them
 * [seed 3.1]. Threads are slots of a pool here, for which requests that wait and requests that run compete. A request
 * waits for its turn, runs tasks side by side on as many threads as its level and the others leave to it, and ends.
 *
 * Source: seed 3. How it decides: the README of crates/levels. Linux, 64 bits; C11 and C++.
 *
 * Functions return 0, or -1 with errno set; those that return a pointer NULL with errno set. What was wrong is then
 * said in words by bywash_levels_error(). Each may fail with
 *   EINVAL           what is passed is NULL, contradicts itself, or has the wrong `size`
 *   ESRCH            the pool belongs to the parent: see fork() below
 *   ENOTRECOVERABLE  an error in this library
 * and leaves things as they were. Texts are UTF-8; times are in nanoseconds.
 *
 * Threads. A pool may be used by any threads at once, a request by one at a time, whichever that is. No function may
 * be called, or left by siglongjmp, by a handler of a signal; none ends early because of a signal, and none is a
 * cancellation point. The pool's threads take no signals, but for those that are faults of their own, and SIGPROF.
 *
 * Callbacks run on the pool's threads and on those that wait for them. They must return: not by longjmp, not by
 * pthread_exit, not cancelled. An exception of C++ that leaves one ends the process. They should be short (some
 * milliseconds), since a slot changes hands between two of them, and not sleep: a slot is a processor.
 *
 * fork(). The child has none of the pool's threads: what was made before is the parent's, and refused. It may make a
 * pool of its own if none was at work at that moment, since a lock may have been held for good. So: fork first.
 *
 * When there is no memory left for a few bytes, the process is aborted, as a program in Rust is. */
#ifndef BYWASH_LEVELS_H
#define BYWASH_LEVELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bywash_levels_pool;
struct bywash_levels_request; /* one that has its turn */
struct bywash_levels_tasks;   /* where tasks are spawned */

/* Where 0 stands for something, it is said. */
struct bywash_levels_level {
    const char *name;     /* not empty, and no other's */
    uint32_t max_threads; /* of a request, at most; 0: 1 */
    uint32_t min_threads; /* which a request may have although others of its level wait to begin; 0: 1 */
    uint32_t queue;       /* requests that may wait to begin; 0: 1000 */
    double weight;        /* slot time in proportion to those of others, where no goal says otherwise; 0: 1 */
    double floor;         /* the share of slot time below which it is not pressed; 0: 0.02. -1: none */
};

enum bywash_levels_goal_kind {
    BYWASH_LEVELS_NO_GOAL = 0,
    /* The mean response time of `level` is `target` (above 0, at most 1) of that of `slow`. */
    BYWASH_LEVELS_RATIO = 1,
    /* A share `target` (0.5 to 0.999) of the requests of `level` are answered within `within_ns`. */
    BYWASH_LEVELS_PERCENTILE = 2
};

/* Response times are from a request's arrival to its end. What a kind does not use is 0. */
struct bywash_levels_goal {
    uint32_t kind; /* enum bywash_levels_goal_kind */
    double target;
    const char *level;
    const char *slow;
    uint64_t within_ns;
};

struct bywash_levels_options {
    uint32_t size;    /* sizeof(struct bywash_levels_options) */
    uint32_t threads; /* one more than there are processors for it; 0: of those that the process may use */
    uint32_t parity;  /* unless 0, so many requests run at a time, first come first served, each with all threads of its
                       * level, and there is no goal: the way of the seed, to compare with */
    uint32_t level_count;
    const struct bywash_levels_level *levels;
    struct bywash_levels_goal goal;
};

/* Makes a pool and starts its threads. `options`, and what it points to, is the caller's again.
 * EAGAIN: a thread cannot be started. EINVAL: also for more than 4096 of anything. */
struct bywash_levels_pool *bywash_levels_new(const struct bywash_levels_options *options);

/* No more requests come in: who waits is told ESHUTDOWN, what was submitted and has not begun is called with NULL, now
 * and by this thread. Requests that run go on. More than once is as good as once. */
int bywash_levels_close(struct bywash_levels_pool *pool);

/* Closes the pool, waits until every request in it has ended, and frees it: nobody may use it at the same time or
 * later. When it returns no callback runs any more. End your own request before: this would wait for it. NULL: does nothing.
 * EDEADLK: it is called by a callback of this pool; the pool is closed, and not freed. */
int bywash_levels_free(struct bywash_levels_pool *pool);

/* Waits until it is this thread's turn, for `timeout_ns` at most; 0: not at all, -1: for as long as it takes. The
 * request is to be ended by bywash_levels_end(). One thread should have one turn: another is waited for while the slot
 * of the first lies idle.
 *
 *   ENOENT     there is no such level
 *   EAGAIN     as many of the level wait as may
 *   ETIMEDOUT  its turn did not come
 *   ESHUTDOWN  the pool is closed, or was while it waited */
struct bywash_levels_request *bywash_levels_begin(struct bywash_levels_pool *pool, const char *level,
                                                  int64_t timeout_ns);

/* Ends and frees a request: its slot goes to the next. NULL: does nothing. The request may outlive the struct of its
 * pool (never the pool: bywash_levels_free() waits).
 * EBUSY: its tasks run. EPERM: it was submitted, and ends when its function returns. */
int bywash_levels_end(struct bywash_levels_request *request);

/* Counts the request as `failed` when it ends. EBUSY: as above. */
int bywash_levels_fail(struct bywash_levels_request *request);

/* Has a thread of the pool call `run` when the request's turn has come. The request is the callback's until it returns.
 *
 * If this returns 0, `run` is called exactly once: with the request, or with NULL if the pool is closed before. So what
 * `arg` points to can be freed by it. If it fails, `run` is not called.
 * ENOENT, EAGAIN, ESHUTDOWN: as of bywash_levels_begin(). */
int bywash_levels_submit(struct bywash_levels_pool *pool, const char *level,
                         void (*run)(struct bywash_levels_request *request, void *arg), void *arg);

/* Calls `each` with every number from 0 to n - 1, once, side by side and in no order; returns when all calls have. What
 * they have done is seen by the caller then. This thread is one of those that call.
 * EBUSY: tasks of this request run already: a task spawns others by bywash_levels_spawn(), and has no loop of its
 * own. */
int bywash_levels_parallel_for(struct bywash_levels_request *request, size_t n, void (*each)(size_t i, void *arg),
                               void *arg);

/* Calls `fill` at once, which spawns tasks, and returns when all of them have ended. The scope is gone then.
 * EBUSY: as above. */
int bywash_levels_scope(struct bywash_levels_request *request,
                        void (*fill)(struct bywash_levels_tasks *tasks, void *arg), void *arg);

/* Has a task run, once, by this thread when `fill` has returned or by another before. To be called by `fill` and by
 * tasks of the scope, on whatever thread. */
int bywash_levels_spawn(struct bywash_levels_tasks *tasks,
                        void (*task)(struct bywash_levels_tasks *tasks, void *arg), void *arg);

/* A level: counts since the pool was made, and what it does now. */
struct bywash_levels_level_stats {
    uint32_t size;      /* sizeof(struct bywash_levels_level_stats): to be set in the first of an array */
    uint32_t threads;   /* slots that its requests have */
    const char *name;   /* the pool's: until it is freed */
    uint64_t answered;  /* requests that came to their end */
    uint64_t failed;    /* of these: bywash_levels_fail() */
    uint64_t refused;   /* that found the queue full */
    uint64_t left;      /* before their turn came: ETIMEDOUT, ESHUTDOWN */
    uint64_t waiting;   /* for their turn */
    uint64_t running;   /* that have it */
    uint64_t mean_ns;   /* from arrival to end, of those that were answered; to a microsecond, as the next three */
    uint64_t median_ns; /* these three to a hundredth */
    uint64_t p95_ns;
    uint64_t p99_ns;
    uint64_t waited_ns; /* from arrival to the first slot: mean */
    double deviation;   /* of the time from arrival to end: standard deviation over mean */
    double share;       /* of the slot time used in the last seconds, 0 to 1 */
};

/* Fills in all levels, in the order of the options. EINVAL: `count` is not the number of levels. */
int bywash_levels_stats(struct bywash_levels_pool *pool, struct bywash_levels_level_stats *levels, size_t count);

enum bywash_levels_verdict {
    BYWASH_LEVELS_SETTLING = 0, /* nobody has been measured yet, or it is on its way */
    BYWASH_LEVELS_HELD = 1,
    BYWASH_LEVELS_EXCEEDED = 2,  /* there is room: better than asked */
    BYWASH_LEVELS_INFEASIBLE = 3 /* the pool does all that it may; letting fewer in would help */
};

struct bywash_levels_goal_state {
    uint32_t size;    /* sizeof(struct bywash_levels_goal_state) */
    uint32_t verdict; /* enum bywash_levels_verdict */
    double measured;  /* the ratio, or the share that was answered in time, of the last seconds; NAN: not yet */
    double effort;    /* what is done: the weight of the fast level's age, or seconds that a request is let wait */
};

/* How far the goal is reached. ENOENT: there is none. */
int bywash_levels_goal_stats(struct bywash_levels_pool *pool, struct bywash_levels_goal_state *goal);

/* The keys of the gateway in front, which says of a request in the field Bywash-Level what level it has, and signs it. */
struct bywash_levels_gateway;

#define BYWASH_LEVELS_FIELD "bywash-level"
#define BYWASH_LEVELS_NAME 33 /* room for the name of a level that the gateway says, and the 0 at its end */

/* Reads the gateway's `levels.key_file`. When keys are exchanged (bywash token-keys --rotate) it is read again by itself.
 * ENOENT, EACCES and others: the file cannot be read. EPERM: every user may read it. EINVAL: it holds no keys. */
struct bywash_levels_gateway *bywash_levels_gateway_new(const char *key_file);

/* Forgets the keys: nobody may use them at the same time or later. NULL: does nothing. */
int bywash_levels_gateway_free(struct bywash_levels_gateway *gateway);

/* The level that a field names, which has `length` bytes and need not end with 0. `level` has room for
 * BYWASH_LEVELS_NAME. Whether a pool has such a level, bywash_levels_begin() says. A request whose field is not believed
 * is to be treated as one without. May be called by any threads at once.
 *
 *   EBADMSG       it is no level, a time and a signature
 *   EKEYREJECTED  no key of the file has signed it
 *   EKEYEXPIRED   it was signed more than a minute ago, or from now */
int bywash_levels_gateway_level(struct bywash_levels_gateway *gateway, const char *field, size_t length, char *level);

/* Why this thread's last call that failed did, in words: until the next one fails. Never NULL. */
const char *bywash_levels_error(void);

#ifdef __cplusplus
}
#endif
#endif
