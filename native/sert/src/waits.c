/* System calls that may block.
 *
 * The program's own calls are made by calls_enter, where a request can be stopped before the call
 * has had an effect. A signal of ours that stopped nothing must not be visible: poll and similar
 * calls return EINTR for any signal, so they are continued. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "gate.h"
#include "real.h"
#include "resources.h"
#include "stop.h"
#include "thread.h"
#include "waits.h"

/* Returns the request if it can be stopped in a call that the program makes itself; otherwise
 * NULL. */
static struct thread *can_leave(void *caller) {
    struct thread *thread = thread_request();
    return thread && gate_is_program((uintptr_t)caller) && stop_may_leave(thread) ? thread : NULL;
}

long waits_result(long result) {
    if (result < 0) {
        errno = (int)-result;
    }
    return result < 0 ? -1 : result;
}

long waits_enter(struct thread *thread, void *caller, long number, long a, long b, long c, long d, long e, long f) {
    stop_here(thread, caller);
    return waits_result(calls_enter(&thread->pending, number, a, b, c, d, e, f));
}

bool waits_is_over(int fd, int option, uint64_t began) {
    struct timeval limit = {0};
    socklen_t size = sizeof limit;
    if (getsockopt(fd, SOL_SOCKET, option, &limit, &size) != 0 || (limit.tv_sec == 0 && limit.tv_usec == 0)) {
        errno = EINTR;
        return false;
    }
    uint64_t end = began + (uint64_t)limit.tv_sec * 1000000000u + (uint64_t)limit.tv_usec * 1000u;
    bool is_over = thread_now() >= end;
    errno = is_over ? EAGAIN : EINTR;
    return is_over;
}

/* Makes a system call by waits_enter: ENTER(thread, number, up to six arguments). */
#define ENTER(thread, number, ...) \
    UNDISTURBED(ENTER_(thread, __builtin_return_address(0), number, __VA_ARGS__, 0, 0, 0, 0, 0, 0))
/* Receives from a socket. */
#define RECEIVE(thread, number, fd, ...) \
    UNDISTURBED_SOCKET(fd, SO_RCVTIMEO, ENTER_(thread, __builtin_return_address(0), number, fd, __VA_ARGS__, 0, 0, 0, 0, 0, 0))
#define ENTER_(thread, caller, number, a, b, c, d, e, f, ...) \
    waits_enter(thread, caller, number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* --- Restarted by the kernel --- */

STANDS_BEFORE ssize_t read(int fd, void *into, size_t size) {
    struct thread *thread = can_leave(__builtin_return_address(0));
    return thread ? RECEIVE(thread, SYS_read, fd, into, size) : UNDISTURBED_SOCKET(fd, SO_RCVTIMEO, REAL(read)(fd, into, size));
}
ALSO(__read, read);

STANDS_BEFORE ssize_t readv(int fd, const struct iovec *into, int count) {
    struct thread *thread = can_leave(__builtin_return_address(0));
    return thread ? RECEIVE(thread, SYS_readv, fd, into, count) : UNDISTURBED_SOCKET(fd, SO_RCVTIMEO, REAL(readv)(fd, into, count));
}

STANDS_BEFORE ssize_t pread(int fd, void *into, size_t size, off_t at) {
    struct thread *thread = can_leave(__builtin_return_address(0));
    return thread ? ENTER(thread, SYS_pread64, fd, into, size, at) : UNDISTURBED(REAL(pread)(fd, into, size, at));
}

STANDS_BEFORE ssize_t pread64(int fd, void *into, size_t size, off_t at) {
    struct thread *thread = can_leave(__builtin_return_address(0));
    return thread ? ENTER(thread, SYS_pread64, fd, into, size, at) : UNDISTURBED(REAL(pread64)(fd, into, size, at));
}
ALSO(__pread64, pread64);

STANDS_BEFORE ssize_t recv(int fd, void *into, size_t size, int flags) {
    struct thread *thread = can_leave(__builtin_return_address(0));
    return thread ? RECEIVE(thread, SYS_recvfrom, fd, into, size, flags) : UNDISTURBED_SOCKET(fd, SO_RCVTIMEO, REAL(recv)(fd, into, size, flags));
}

STANDS_BEFORE ssize_t recvfrom(int fd, void *into, size_t size, int flags, struct sockaddr *from, socklen_t *length) {
    struct thread *thread = can_leave(__builtin_return_address(0));
    return thread ? RECEIVE(thread, SYS_recvfrom, fd, into, size, flags, from, length)
                  : UNDISTURBED_SOCKET(fd, SO_RCVTIMEO, REAL(recvfrom)(fd, into, size, flags, from, length));
}

/* Adds descriptors that came with a message to the request. */
static void take_descriptors(struct thread *thread, struct msghdr *message) {
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const int *fds = (const int *)(const void *)CMSG_DATA(part);
        for (size_t i = 0; i < (part->cmsg_len - CMSG_LEN(0)) / sizeof *fds; i++) {
            resources_add(thread, (struct resource){.kind = KIND_FD, .fd = fds[i]});
        }
    }
}

STANDS_BEFORE ssize_t recvmsg(int fd, struct msghdr *into, int flags) {
    struct thread *thread = can_leave(__builtin_return_address(0)), *request = thread_request();
    ssize_t got = thread ? RECEIVE(thread, SYS_recvmsg, fd, into, flags) : UNDISTURBED_SOCKET(fd, SO_RCVTIMEO, REAL(recvmsg)(fd, into, flags));
    if (got >= 0 && request && !request->unaccounted) {
        take_descriptors(request, into);
    }
    return got;
}
STANDS_BEFORE int recvmmsg(int fd, struct mmsghdr *into, unsigned count, int flags, struct timespec *timeout) {
    struct thread *request = thread_request();
    int got = REAL(recvmmsg)(fd, into, count, flags, timeout);
    for (int i = 0; i < got && request && !request->unaccounted; i++) {
        take_descriptors(request, &into[i].msg_hdr);
    }
    return got;
}

STANDS_BEFORE int connect(int fd, const struct sockaddr *to, socklen_t length) {
    struct thread *thread = can_leave(__builtin_return_address(0));
    return thread ? (int)UNDISTURBED_SOCKET(fd, SO_SNDTIMEO, ENTER_(thread, __builtin_return_address(0), SYS_connect, fd, to, length, 0, 0, 0, )) : UNDISTURBED_SOCKET(fd, SO_SNDTIMEO, REAL(connect)(fd, to, length));
}
ALSO(__connect, connect);

/* --- Not restarted: continued with the time that is left --- */

/* The end of a wait. `end` is 0 if the wait is unlimited. */
struct left {
    uint64_t end;
    struct timespec is;
    struct timespec *time;
};

static struct left until(uint64_t nanoseconds) {
    return (struct left){.end = thread_now() + nanoseconds};
}

static struct left for_milliseconds(int timeout) {
    return timeout < 0 ? (struct left){0} : until((uint64_t)timeout * 1000000u);
}

static struct left for_time(const struct timespec *timeout) {
    bool is_long = timeout && (uint64_t)timeout->tv_sec > UINT32_MAX;
    return timeout && !is_long ? until((uint64_t)timeout->tv_sec * 1000000000u + (uint64_t)timeout->tv_nsec) : (struct left){0};
}

/* Returns the time that is left for the next attempt; NULL if the wait is unlimited. */
static struct timespec *again(struct left *left) {
    if (left->end == 0) {
        return NULL;
    }
    uint64_t now = thread_now(), rest = left->end > now ? left->end - now : 0;
    left->is = (struct timespec){(time_t)(rest / 1000000000u), (long)(rest % 1000000000u)};
    return &left->is;
}

static int again_in_milliseconds(struct left *left) {
    const struct timespec *rest = again(left);
    return rest ? (int)(rest->tv_sec * 1000 + (rest->tv_nsec + 999999) / 1000000) : -1;
}

static int poll_until(struct pollfd *fds, nfds_t count, struct left left, const sigset_t *mask, void *caller) {
    struct thread *thread = can_leave(caller);
    if (mask) {
        /* A call with a mask waits for a signal, so it must not be continued. */
        return REAL(ppoll)(fds, count, again(&left), mask);
    }
    if (thread) {
        return (int)UNDISTURBED(ENTER_(thread, caller, SYS_ppoll, fds, count, again(&left), 0, 0, 0, ));
    }
    return UNDISTURBED(REAL(ppoll)(fds, count, again(&left), NULL));
}

STANDS_BEFORE int poll(struct pollfd *fds, nfds_t count, int timeout) {
    return poll_until(fds, count, for_milliseconds(timeout), NULL, __builtin_return_address(0));
}
ALSO(__poll, poll);

STANDS_BEFORE int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    if (timeout && (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec >= 1000000000)) {
        return REAL(ppoll)(fds, count, timeout, mask);
    }
    return poll_until(fds, count, for_time(timeout), mask, __builtin_return_address(0));
}

STANDS_BEFORE int epoll_wait(int fd, struct epoll_event *events, int most, int timeout) {
    struct thread *thread = can_leave(__builtin_return_address(0));
    struct left left = for_milliseconds(timeout);
    if (thread) {
        return (int)ENTER(thread, SYS_epoll_pwait, fd, events, most, again_in_milliseconds(&left), 0, 0);
    }
    return UNDISTURBED(REAL(epoll_wait)(fd, events, most, again_in_milliseconds(&left)));
}

/* The sets are results too, but the kernel does not change them if the call fails. */
STANDS_BEFORE int select(int count, fd_set *reads, fd_set *writes, fd_set *others, struct timeval *timeout) {
    struct thread *thread = can_leave(__builtin_return_address(0));
    struct left left = timeout ? until((uint64_t)timeout->tv_sec * 1000000000u + (uint64_t)timeout->tv_usec * 1000u) : (struct left){0};
    if (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0 || timeout->tv_sec > INT32_MAX)) {
        return REAL(select)(count, reads, writes, others, timeout);
    }
    int result = thread ? (int)ENTER(thread, SYS_pselect6, count, reads, writes, others, again(&left), 0)
                        : UNDISTURBED(REAL(pselect)(count, reads, writes, others, again(&left), NULL));
    if (timeout) {
        const struct timespec *rest = again(&left);
        *timeout = (struct timeval){rest->tv_sec, rest->tv_nsec / 1000};
    }
    return result;
}
ALSO(__select, select);

/* --- Sleep --- */

static int sleep_until(clockid_t clock, const struct timespec *end, void *caller) {
    struct thread *thread = can_leave(caller);
    int kept = errno, error;
    unsigned before;
    do {
        before = waits_fired();
        error = thread ? (waits_enter(thread, caller, SYS_clock_nanosleep, clock, TIMER_ABSTIME, (long)end, 0, 0, 0) ? errno : 0)
                       : REAL(clock_nanosleep)(clock, TIMER_ABSTIME, end, NULL);
    } while (error == EINTR && waits_fired() != before);
    errno = kept;
    return error;
}

/* Sleeps for a duration, which does not depend on changes of the clock. */
static int sleep_for(clockid_t clock, const struct timespec *time, struct timespec *rest, void *caller) {
    struct timespec now;
    clock = clock == CLOCK_REALTIME ? CLOCK_MONOTONIC : clock;
    if (thread_self == NULL || time->tv_sec > INT64_MAX / 4) {
        return REAL(clock_nanosleep)(clock, 0, time, rest);
    }
    if (time->tv_sec < 0 || time->tv_nsec < 0 || time->tv_nsec >= 1000000000) {
        return EINVAL;
    }
    if (clock_gettime(clock, &now) != 0) {
        return EINVAL;
    }
    long nanoseconds = now.tv_nsec + time->tv_nsec;
    struct timespec end = {now.tv_sec + time->tv_sec + nanoseconds / 1000000000, nanoseconds % 1000000000};
    int error = sleep_until(clock, &end, caller);
    if (error == EINTR && rest) {
        clock_gettime(clock, &now);
        int64_t left = (end.tv_sec - now.tv_sec) * 1000000000 + (end.tv_nsec - now.tv_nsec);
        left = left > 0 ? left : 0;
        *rest = (struct timespec){left / 1000000000, left % 1000000000};
    }
    return error;
}

STANDS_BEFORE int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest) {
    void *caller = __builtin_return_address(0);
    return flags & TIMER_ABSTIME ? sleep_until(clock, time, caller) : sleep_for(clock, time, rest, caller);
}

static int as_result(int error) {
    if (error) {
        errno = error;
    }
    return error ? -1 : 0;
}

STANDS_BEFORE int nanosleep(const struct timespec *time, struct timespec *rest) {
    return as_result(sleep_for(CLOCK_MONOTONIC, time, rest, __builtin_return_address(0)));
}
ALSO(__nanosleep, nanosleep);

STANDS_BEFORE int usleep(useconds_t microseconds) {
    struct timespec time = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
    return as_result(sleep_for(CLOCK_MONOTONIC, &time, NULL, __builtin_return_address(0)));
}

STANDS_BEFORE unsigned sleep(unsigned seconds) {
    struct timespec time = {seconds, 0}, rest = {0, 0};
    int error = sleep_for(CLOCK_MONOTONIC, &time, &rest, __builtin_return_address(0));
    return error ? (unsigned)rest.tv_sec : 0;
}

STANDS_BEFORE int thrd_sleep(const struct timespec *time, struct timespec *rest) {
    int error = sleep_for(CLOCK_MONOTONIC, time, rest, __builtin_return_address(0));
    return error == 0 ? 0 : error == EINTR ? -1 : -2;
}

/* --- Locks on files --- */

int waits_lock(int fd, int command, const void *lock, void *caller) {
    struct thread *thread = can_leave(caller);
    return thread ? (int)UNDISTURBED(waits_enter(thread, caller, SYS_fcntl, fd, command, (long)lock, 0, 0, 0))
                  : UNDISTURBED(REAL(fcntl)(fd, command, lock));
}

STANDS_BEFORE int flock(int fd, int operation) {
    struct thread *thread = can_leave(__builtin_return_address(0));
    return thread ? (int)ENTER(thread, SYS_flock, fd, operation) : UNDISTURBED(REAL(flock)(fd, operation));
}

/* libc's own function calls fcntl in the same way. */
STANDS_BEFORE int lockf(int fd, int command, off_t size) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_len = size};
    bool waits = command == F_LOCK;
    return waits ? waits_lock(fd, F_SETLKW, &lock, __builtin_return_address(0)) : REAL(lockf)(fd, command, size);
}
ALSO(lockf64, lockf);

/* --- Sends: a signal can cut a blocking one short --- */

static bool is_blocking(int fd, int flags) {
    int is = flags & MSG_DONTWAIT ? -1 : REAL(fcntl)(fd, F_GETFL);
    return is >= 0 && !(is & O_NONBLOCK);
}

/* The flags with which each call is an event of its own, so that it cannot be continued. */
#define NOT_IN_PARTS (MSG_ZEROCOPY | MSG_OOB | MSG_EOR | MSG_FASTOPEN)

/* Returns whether the rest must be sent, because our signal cut the call short. If the request is
 * about to be stopped, the call returns instead to a place where that is possible. */
static bool is_cut(ssize_t sent, size_t size, unsigned before, int fd, int flags) {
    const struct thread *thread = thread_self;
    return sent > 0 && (size_t)sent < size && waits_fired() != before && !(flags & NOT_IN_PARTS)
        && !(thread->pending && stop_is_possible(thread)) && is_blocking(fd, flags);
}

ssize_t waits_send(int fd, const void *from, size_t size, int flags) {
    unsigned before = waits_fired();
    ssize_t sent = UNDISTURBED_SOCKET(fd, SO_SNDTIMEO, REAL(send)(fd, from, size, flags));
    while (is_cut(sent, size, before, fd, flags)) {
        before = waits_fired();
        ssize_t more = UNDISTURBED_SOCKET(fd, SO_SNDTIMEO, REAL(send)(fd, (const char *)from + sent, size - (size_t)sent, flags));
        if (more <= 0) {
            break;
        }
        sent += more;
    }
    return sent;
}

ssize_t waits_write(int fd, const void *from, size_t size) {
    unsigned before = waits_fired();
    ssize_t sent = UNDISTURBED_SOCKET(fd, SO_SNDTIMEO, REAL(write)(fd, from, size));
    while (is_cut(sent, size, before, fd, 0)) {
        before = waits_fired();
        ssize_t more = UNDISTURBED_SOCKET(fd, SO_SNDTIMEO, REAL(write)(fd, (const char *)from + sent, size - (size_t)sent));
        if (more <= 0) {
            break;
        }
        sent += more;
    }
    return sent;
}

/* Sends what is left of several pieces, one by one. For a stream and a pipe that is equivalent to
 * one call. */
static ssize_t send_rest(int fd, const struct iovec *from, size_t count, ssize_t sent, int flags, bool by_write) {
    size_t before = 0, all = (size_t)sent;
    for (size_t i = 0; i < count; before += from[i++].iov_len) {
        size_t skip = all > before ? all - before : 0;
        if (skip >= from[i].iov_len) {
            continue;
        }
        const char *piece = (const char *)from[i].iov_base + skip;
        size_t size = from[i].iov_len - skip;
        ssize_t more = by_write ? waits_write(fd, piece, size) : waits_send(fd, piece, size, flags);
        all += more > 0 ? (size_t)more : 0;
        if (more < (ssize_t)size) {
            break;
        }
    }
    return (ssize_t)all;
}

static size_t size_of(const struct iovec *from, size_t count) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += from[i].iov_len;
    }
    return size;
}

ssize_t waits_writev(int fd, const struct iovec *from, int count) {
    unsigned before = waits_fired();
    ssize_t sent = UNDISTURBED_SOCKET(fd, SO_SNDTIMEO, REAL(writev)(fd, from, count));
    return sent > 0 && is_cut(sent, size_of(from, (size_t)count), before, fd, 0)
             ? send_rest(fd, from, (size_t)count, sent, 0, true)
             : sent;
}

ssize_t waits_sendmsg(int fd, const struct msghdr *message, int flags) {
    unsigned before = waits_fired();
    ssize_t sent = UNDISTURBED_SOCKET(fd, SO_SNDTIMEO, REAL(sendmsg)(fd, message, flags));
    /* Ancillary data (descriptors, the kind of a record) goes only with the first part of a
     * message. */
    bool may_go_on = sent > 0 && message->msg_controllen == 0;
    return may_go_on && is_cut(sent, size_of(message->msg_iov, message->msg_iovlen), before, fd, flags)
             ? send_rest(fd, message->msg_iov, message->msg_iovlen, sent, flags, false)
             : sent;
}

ssize_t waits_sendto(int fd, const void *from, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
    unsigned before = waits_fired();
    ssize_t sent = UNDISTURBED_SOCKET(fd, SO_SNDTIMEO, REAL(sendto)(fd, from, size, flags, to, length));
    struct iovec piece = {(void *)(uintptr_t)from, size};
    return is_cut(sent, size, before, fd, flags) ? send_rest(fd, &piece, 1, sent, flags, false) : sent;
}

/* --- Replacements by the compiler with _FORTIFY_SOURCE --- */

ssize_t __read_chk(int fd, void *into, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *into, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *into, size_t size, size_t room, int flags, struct sockaddr *from, socklen_t *length);
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room);
_Noreturn void __chk_fail(void);

STANDS_BEFORE ssize_t __read_chk(int fd, void *into, size_t size, size_t room) {
    struct thread *thread = size <= room ? can_leave(__builtin_return_address(0)) : NULL;
    return thread ? RECEIVE(thread, SYS_read, fd, into, size)
                  : UNDISTURBED_SOCKET(fd, SO_RCVTIMEO, REAL(__read_chk)(fd, into, size, room));
}

STANDS_BEFORE ssize_t __recv_chk(int fd, void *into, size_t size, size_t room, int flags) {
    struct thread *thread = size <= room ? can_leave(__builtin_return_address(0)) : NULL;
    return thread ? RECEIVE(thread, SYS_recvfrom, fd, into, size, flags)
                  : UNDISTURBED_SOCKET(fd, SO_RCVTIMEO, REAL(__recv_chk)(fd, into, size, room, flags));
}

STANDS_BEFORE ssize_t __recvfrom_chk(int fd, void *into, size_t size, size_t room, int flags, struct sockaddr *from, socklen_t *length) {
    struct thread *thread = size <= room ? can_leave(__builtin_return_address(0)) : NULL;
    return thread ? RECEIVE(thread, SYS_recvfrom, fd, into, size, flags, from, length)
                  : UNDISTURBED_SOCKET(fd, SO_RCVTIMEO, REAL(__recvfrom_chk)(fd, into, size, room, flags, from, length));
}

STANDS_BEFORE int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room) {
    return room / sizeof *fds < count ? REAL(__poll_chk)(fds, count, timeout, room)
                                      : poll_until(fds, count, for_milliseconds(timeout), NULL, __builtin_return_address(0));
}
