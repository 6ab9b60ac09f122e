/* Waits in which a request can be stopped, and which hide our signals from the program. */
#ifndef SERT_WAITS_H
#define SERT_WAITS_H

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "thread.h"

/* Returns how many of our signals this thread has seen, to find out whether one came meanwhile. */
static inline unsigned waits_fired(void) {
    return thread_self ? thread_self->fired : 0;
}

/* Repeats `call` as long as one of our signals makes it fail. */
#define UNDISTURBED(call)                                                                              \
    __extension__({                                                                                    \
        unsigned before_;                                                                              \
        __typeof__(call) result_;                                                                      \
        do {                                                                                           \
            before_ = waits_fired();                                                                   \
            result_ = call;                                                                            \
        } while (result_ == -1 && errno == EINTR && waits_fired() != before_);                         \
        result_;                                                                                       \
    })

/* The same for a socket, which may have a time limit of its own. Only such a call is interrupted,
 * and each attempt would have the whole limit. */
#define UNDISTURBED_SOCKET(fd, option, call) UNDISTURBED_WHILE(!waits_is_over(fd, option, began_), call)
/* `more` may use `began_`. */
#define UNDISTURBED_WHILE(more, call)                                                                  \
    __extension__({                                                                                    \
        unsigned before_;                                                                              \
        __typeof__(call) result_;                                                                      \
        uint64_t began_ = thread_self ? thread_now() : 0;                                              \
        do {                                                                                           \
            before_ = waits_fired();                                                                   \
            result_ = call;                                                                            \
        } while (result_ == -1 && errno == EINTR && waits_fired() != before_ && (more));               \
        result_;                                                                                       \
    })
/* Returns whether the time limit of a socket is over, and sets errno accordingly. */
bool waits_is_over(int fd, int option, uint64_t began);

/* Like send and write, but continued if our signal has cut them short. */
ssize_t waits_send(int fd, const void *from, size_t size, int flags);
ssize_t waits_write(int fd, const void *from, size_t size);
ssize_t waits_writev(int fd, const struct iovec *from, int count);
ssize_t waits_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t waits_sendto(int fd, const void *from, size_t size, int flags, const struct sockaddr *to, socklen_t length);

/* Makes a system call that may block where the request can be stopped before the call has had an
 * effect: once, with the result of libc's function. Only for the program's own calls, and where a
 * stop is possible. */
long waits_enter(struct thread *thread, void *caller, long number, long a, long b, long c, long d, long e, long f);

#endif
