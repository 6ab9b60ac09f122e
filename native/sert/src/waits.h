/* Waits in which a request can be stopped, and which hide our signals from the program. */
#ifndef SERT_WAITS_H
#define SERT_WAITS_H

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "thread.h"

/* Returns the number of our signals that this thread has received. A difference between two calls
 * shows that one came meanwhile. */
static inline unsigned waits_fired(void) {
    return thread_self ? thread_self->fired : 0;
}

/* Repeats `call` as long as it fails because of one of our signals. */
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

/* Repeats `call` on a socket as long as it fails because of one of our signals and the socket's
 * time limit is not over. Only a call on a socket with such a limit is interrupted. Without the
 * check of the limit, each attempt would have the whole limit. */
#define UNDISTURBED_SOCKET(fd, option, call) UNDISTURBED_WHILE(!waits_is_over(fd, option, began_), call)
/* Repeats `call` as long as it fails because of one of our signals and `more` is true. `more` may
 * use `began_`, the time of the first attempt. */
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
/* Returns whether the time limit of a socket is over for a call that began at `began`. Sets errno
 * to EAGAIN if it is over, and to EINTR otherwise. */
bool waits_is_over(int fd, int option, uint64_t began);

/* Waits for a lock on a file like fcntl with F_SETLKW or F_OFD_SETLKW. A request can be stopped
 * meanwhile. */
int waits_lock(int fd, int command, const void *lock, void *caller);

/* Send and write like libc's functions, but continue if our signal has cut them short. */
ssize_t waits_send(int fd, const void *from, size_t size, int flags);
ssize_t waits_write(int fd, const void *from, size_t size);
ssize_t waits_writev(int fd, const struct iovec *from, int count);
ssize_t waits_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t waits_sendto(int fd, const void *from, size_t size, int flags, const struct sockaddr *to, socklen_t length);

/* Makes a system call that may block at a place where the handler can abandon the request, unless a
 * stop is pending (calls.S). Returns the kernel's result. */
long calls_enter(const volatile int *pending, long number, long a, long b, long c, long d, long e, long f);
/* Returns the result of libc's function for a result of the kernel, and sets errno. */
long waits_result(long result);
/* Makes a system call that may block where the request can be stopped before the call has had an
 * effect: once, with the result of libc's function. Only for the program's own calls, and where a
 * stop is possible. */
long waits_enter(struct thread *thread, void *caller, long number, long a, long b, long c, long d, long e, long f);

#endif
