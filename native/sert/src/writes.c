/* Writes to clients, which cannot be undone: before the first byte the request becomes unstoppable.
 *
 * This applies to sockets and pipes that the request has not opened itself. It does not apply to
 * the standard streams. */
#include <stdarg.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <fcntl.h>

#include "real.h"
#include "resources.h"
#include "stop.h"
#include "thread.h"
#include "waits.h"

static bool is_of_others(const struct thread *thread, int fd) {
    struct stat is;
    return fd > STDERR_FILENO && !resources_has_fd(thread, fd) && fstat(fd, &is) == 0
        && (S_ISSOCK(is.st_mode) || S_ISFIFO(is.st_mode));
}

static void about_to_write(int fd, void *caller) {
    struct thread *thread = thread_request();
    if (thread && !thread->cancelled && is_of_others(thread, fd) && !stop_is_blocked()) {
        /* If the request is overdue already, stop it now, while nothing has been sent. */
        stop_here(thread, caller);
        stop_spoilt("writes to a socket or pipe that is not its own", caller);
    }
}
#define ABOUT_TO_WRITE(fd) about_to_write(fd, __builtin_return_address(0))

STANDS_BEFORE ssize_t write(int fd, const void *from, size_t size) {
    ABOUT_TO_WRITE(fd);
    return waits_write(fd, from, size);
}
ALSO(__write, write);
STANDS_BEFORE ssize_t writev(int fd, const struct iovec *from, int count) {
    ABOUT_TO_WRITE(fd);
    return waits_writev(fd, from, count);
}
/* With the offset -1 these write to a socket or pipe too. */
STANDS_BEFORE ssize_t pwritev2(int fd, const struct iovec *from, int count, off_t at, int flags) {
    ABOUT_TO_WRITE(fd);
    return REAL(pwritev2)(fd, from, count, at, flags);
}
STANDS_BEFORE ssize_t pwritev64v2(int fd, const struct iovec *from, int count, off64_t at, int flags) {
    ABOUT_TO_WRITE(fd);
    return REAL(pwritev64v2)(fd, from, count, at, flags);
}
STANDS_BEFORE ssize_t send(int fd, const void *from, size_t size, int flags) {
    ABOUT_TO_WRITE(fd);
    return waits_send(fd, from, size, flags);
}
ALSO(__send, send);
STANDS_BEFORE ssize_t sendto(int fd, const void *from, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
    ABOUT_TO_WRITE(fd);
    return waits_sendto(fd, from, size, flags, to, length);
}
STANDS_BEFORE ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    ABOUT_TO_WRITE(fd);
    return waits_sendmsg(fd, message, flags);
}
STANDS_BEFORE int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags) {
    ABOUT_TO_WRITE(fd);
    return UNDISTURBED_SOCKET(fd, SO_SNDTIMEO, REAL(sendmmsg)(fd, messages, count, flags));
}
STANDS_BEFORE ssize_t sendfile(int to, int from, off_t *offset, size_t size) {
    ABOUT_TO_WRITE(to);
    return UNDISTURBED_SOCKET(to, SO_SNDTIMEO, REAL(sendfile)(to, from, offset, size));
}
STANDS_BEFORE ssize_t sendfile64(int to, int from, off64_t *offset, size_t size) {
    ABOUT_TO_WRITE(to);
    return UNDISTURBED_SOCKET(to, SO_SNDTIMEO, REAL(sendfile64)(to, from, offset, size));
}
STANDS_BEFORE ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size, unsigned flags) {
    ABOUT_TO_WRITE(to);
    return UNDISTURBED_WHILE(!waits_is_over(to, SO_SNDTIMEO, began_) && !waits_is_over(from, SO_RCVTIMEO, began_),
                             REAL(splice)(from, from_offset, to, to_offset, size, flags));
}
STANDS_BEFORE ssize_t vmsplice(int to, const struct iovec *from, size_t count, unsigned flags) {
    ABOUT_TO_WRITE(to);
    return UNDISTURBED(REAL(vmsplice)(to, from, count, flags));
}
STANDS_BEFORE ssize_t tee(int from, int to, size_t size, unsigned flags) {
    ABOUT_TO_WRITE(to);
    return REAL(tee)(from, to, size, flags);
}
STANDS_BEFORE int shutdown(int fd, int how) {
    ABOUT_TO_WRITE(fd);
    return REAL(shutdown)(fd, how);
}

/* --- Writes by libc itself --- */

STANDS_BEFORE int vdprintf(int fd, const char *format, va_list more) {
    ABOUT_TO_WRITE(fd);
    return REAL(vdprintf)(fd, format, more);
}
STANDS_BEFORE int dprintf(int fd, const char *format, ...) {
    ABOUT_TO_WRITE(fd);
    va_list more;
    va_start(more, format);
    int length = REAL(vdprintf)(fd, format, more);
    va_end(more);
    return length;
}
int __vdprintf_chk(int fd, int flag, const char *format, va_list more);
int __dprintf_chk(int fd, int flag, const char *format, ...);
STANDS_BEFORE int __vdprintf_chk(int fd, int flag, const char *format, va_list more) {
    ABOUT_TO_WRITE(fd);
    return REAL(__vdprintf_chk)(fd, flag, format, more);
}
STANDS_BEFORE int __dprintf_chk(int fd, int flag, const char *format, ...) {
    ABOUT_TO_WRITE(fd);
    va_list more;
    va_start(more, format);
    int length = REAL(__vdprintf_chk)(fd, flag, format, more);
    va_end(more);
    return length;
}
