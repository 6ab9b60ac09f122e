/* libbywash-sentry: tells a process at once that the other side of a connection has left.
 *
 * A program that computes, or waits for a database, does not read from its client, and so does not learn that
 * nobody waits for the answer any more [seed 4.1]. It has the connection watched while it works; when the client leaves, a
 * signal interrupts it, or an eventfd, a function or libsert says so.
 *
 * Source: seed 4, "Minimizing the Impact of Orphan Requests in e-Commerce Services", section 3: socket_watch is
 * its own [seed 4.2], and so is who has the handler [seed 4.4]. Whole: socket_watch(3). Linux, 64 bits.
 *
 * Every process watches for itself: of several that have the socket, each that watches is told [seed 4.3]. After fork() the
 * child watches nothing, and may begin at once; the parent's watches go on.
 *
 * Every function may be called by any thread, and by a callback of this library. A handler of a signal may call
 * socket_unwatch, not the others; it may jump (siglongjmp) out of any of these functions. Functions return 0, or
 * -1 with errno set.
 *
 * What cannot be seen:
 *   - whether a client has closed, or only shut down its sending side: both are a FIN. Only writing tells;
 *   - a FIN behind more bytes than the receive window holds: it has not arrived until somebody reads.
 */
#ifndef BYWASH_SENTRY_H
#define BYWASH_SENTRY_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sends `signum` once to the calling thread when the other side of `sockfd` leaves: si_value.sival_int is the
 * descriptor, si_errno ESHUTDOWN (it sends no more) or ECONNRESET, si_code SI_QUEUE. Signals from SIGRTMIN on are
 * queued; one below is there once, however many clients leave. Have a handler before: the default of most signals
 * ends the process.
 *
 * -1, and nobody is told:
 *   ESHUTDOWN   the other side has sent a FIN already
 *   ECONNRESET  it has reset the connection
 *   ENOTCONN    the socket is not connected
 *   EEXIST      this process watches the descriptor already
 *   EBADF, ENOTSOCK
 *   EINVAL      no such signal, or a socket without connections (UDP)
 *   ESRCH       no thread `tid` in this process
 *   EMFILE, ENFILE, ENOMEM, ENOSPC (fs.epoll.max_user_watches), EAGAIN (no thread): used up
 *   ENOTRECOVERABLE  an error in this library */
int socket_watch(int sockfd, int signum);

/* Ends the watch: when this returns, nothing will be sent or called for it any more; what is just being done is
 * waited for, but by a callback itself. A signal that was sent may still be pending where it is blocked: tell them
 * apart by a cookie. Call it before close(): while another process has the socket, the kernel goes on watching, and
 * what is just being told may be taken for whatever gets the number next.
 *
 * 0: nobody had left. -1: ENOENT: its departure was told, or it was not watched. EBADF: below 0. */
int socket_unwatch(int sockfd);

struct socket_watch_opts {
    uint32_t size;    /* sizeof(struct socket_watch_opts) */
    uint32_t flags;   /* SW_... */
    int signum;       /* sent when it happens; 0: none */
    pid_t tid;        /* to this thread of the process, which must live until the watch ends; 0: the calling one
                       * (not in a callback: its thread takes none) */
    uint64_t cookie;  /* for `cb`; and, unless 0, the signal's si_value (sival_ptr) in place of the descriptor */
    int eventfd;      /* with SW_EVENTFD: is added 1; stays open until the watch ends */
    void (*cb)(uint64_t cookie, int why); /* called on the library's thread: ESHUTDOWN, ECONNRESET, 0 for data */
};

/* Also tells, once, that bytes have come that nobody has read (with a FIN behind them: only the FIN, but for
 * SW_HALF_CLOSE_OK): si_errno and `why` are 0. The watch goes on. */
#define SW_DATA 1u
/* A FIN is no departure; the end of both directions is. A TCP client that has closed is not noticed then until
 * something is written to it. */
#define SW_HALF_CLOSE_OK 2u
/* When the other side leaves, the libsert request that the calling thread has begun is stopped: SERT_CLIENT_GONE
 * (sert.h). ENOTSUP: the process has no libsert. EINVAL: no request has begun. */
#define SW_SERT 4u
/* `eventfd` is one. */
#define SW_EVENTFD 8u

/* As socket_watch, and does all that `opts` names: signal, eventfd, libsert, callback. EINVAL: it names nothing,
 * or what is not.
 *
 * While a callback runs nobody else is told: it should be short, and must neither throw, nor end its thread, nor
 * fork without exec. No lock is held, and it takes no signals. If the queue of signals is full (RLIMIT_SIGPENDING),
 * the library tries again until it is not, or the watch ends. */
int socket_watch_ex(int sockfd, const struct socket_watch_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
