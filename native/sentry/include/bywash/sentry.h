/* libbywash-sentry: tells a process at once that the other side of a connection has left.
 *
 * A program that computes, or waits for a database, does not read from its client, and so does not
 * learn that the client no longer waits for the answer [paper 4.1]. With this library it lets the
 * connection be watched while it works. When the client leaves, a signal interrupts the program, or
 * an eventfd, a callback or libsert tells it.
 *
 * Source: paper 4, "Minimizing the Impact of Orphan Requests in e-Commerce Services", section 3. It
 * has the call socket_watch [paper 4.2] and the rule that the handler belongs to the application
 * [paper 4.4]. Full description: socket_watch(3). Linux, 64 bits.
 *
 * Each process watches for itself: if several processes have the socket, each one that watches gets
 * the signal [paper 4.3]. After fork() the child watches nothing, and may begin at once; the
 * parent's watches go on.
 *
 * Any thread and any callback of this library may call every function. A signal handler may call
 * socket_unwatch, but not the others. It may jump (siglongjmp) out of any of these functions.
 * Functions return 0, or -1 with errno set.
 *
 * The library cannot detect:
 *   - whether a client has closed, or only shut down its sending side: both are a FIN, and only
 *     writing shows the difference;
 *   - whether a FIN came, or this program has called shutdown(fd, SHUT_RD): the kernel marks both
 *     on the socket in the same way, and the library reports either as ESHUTDOWN;
 *   - a FIN behind more bytes than the receive window holds: it does not arrive until the program
 *     reads. */
#ifndef BYWASH_SENTRY_H
#define BYWASH_SENTRY_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sends `signum` once to the calling thread when the other side of `sockfd` leaves:
 * si_value.sival_int is the descriptor, si_errno is ESHUTDOWN (it sends no more) or ECONNRESET,
 * si_code is SI_QUEUE. Signals from SIGRTMIN on are queued; a lower one is pending only once,
 * however many clients leave. Install a handler first: the default action of most signals ends the
 * process.
 *
 * The following errors return -1, and nothing is watched:
 *
 *     ESHUTDOWN   the other side has sent a FIN already
 *     ECONNRESET  it has reset the connection
 *     ENOTCONN    the socket is not connected
 *     EEXIST      this process watches the descriptor already
 *     EBADF, ENOTSOCK
 *     EINVAL      no such signal, or a socket without connections (UDP)
 *     ESRCH       no thread `tid` in this process
 *     EMFILE, ENFILE, ENOMEM, ENOSPC (fs.epoll.max_user_watches), EAGAIN (no thread): used up
 *     ENOTRECOVERABLE  an error in this library */
int socket_watch(int sockfd, int signum);

/* Ends the watch: when this returns, nothing will be sent or called for it any more. It waits for a
 * notification that is under way, except when a callback calls it for itself. A signal that was
 * sent may still be pending where it is blocked: distinguish such signals by a cookie. Call this
 * before close(): while another process has the socket, the kernel goes on watching, and a
 * notification that is under way may be taken for the connection that gets the number next.
 *
 * Returns 0 if the other side had not left. Else it returns -1 with ENOENT (the departure was
 * reported, or the socket was not watched) or EBADF (`sockfd` is below 0). */
int socket_unwatch(int sockfd);

struct socket_watch_opts {
    uint32_t size;   /* sizeof(struct socket_watch_opts) */
    uint32_t flags;  /* SW_... */
    int signum;      /* the signal to send; 0: none */
    /* The thread of this process that gets the signal; it must live until the watch ends. 0: the
     * calling thread (not in a callback, whose thread takes no signals). */
    pid_t tid;
    /* The argument of `cb`. Unless it is 0, it also replaces the descriptor in the signal's
     * si_value (sival_ptr). */
    uint64_t cookie;
    int eventfd;     /* with SW_EVENTFD: 1 is added to it; keep it open until the watch ends */
    /* A function that is called on the library's thread. `why` is ESHUTDOWN, ECONNRESET, or 0 for
     * data. */
    void (*cb)(uint64_t cookie, int why);
};

/* Also notifies once that unread bytes have come: si_errno and `why` are 0. If a FIN follows the
 * bytes, only the FIN is notified, except with SW_HALF_CLOSE_OK. The watch continues. */
#define SW_DATA 1u
/* A FIN alone does not count as leaving, but the end of both directions does. With this flag, a
 * TCP client that has closed is not noticed until something is written to it. */
#define SW_HALF_CLOSE_OK 2u
/* Stops the libsert request of the calling thread when the other side leaves, with the reason
 * SERT_CLIENT_GONE (sert.h). ENOTSUP: the process has no libsert. EINVAL: no request has begun. */
#define SW_SERT 4u
/* Notifies through the field `eventfd`. */
#define SW_EVENTFD 8u

/* Watches a socket like socket_watch, and sends every notification that `opts` names: signal,
 * eventfd, libsert, callback. EINVAL: `opts` names none, or an invalid one.
 *
 * While a callback runs, all other notifications wait. So it should be short, and must neither
 * throw, nor end its thread, nor fork without exec. It runs without locks held, and its thread
 * takes no signals. If the queue of signals is full (RLIMIT_SIGPENDING), the library tries again
 * until it succeeds or the watch ends. */
int socket_watch_ex(int sockfd, const struct socket_watch_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
