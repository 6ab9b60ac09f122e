/* Descriptors: a descriptor that a request opens belongs to it until the request closes it. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pty.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "gate.h"
#include "real.h"
#include "resources.h"
#include "stop.h"
#include "thread.h"
#include "waits.h"

static int opened_by(int fd, void *caller) {
    struct thread *thread = resources_opener(caller);
    if (fd >= 0 && thread) {
        resources_add(thread, (struct resource){.kind = KIND_FD, .fd = fd});
        stop_here(thread, caller);
    }
    return fd;
}
#define OPENED(fd) opened_by(fd, __builtin_return_address(0))

static void opened_both(int result, const int fds[2], void *caller) {
    struct thread *thread = resources_opener(caller);
    if (result == 0 && thread) {
        resources_add(thread, (struct resource){.kind = KIND_FD, .fd = fds[0]});
        resources_add(thread, (struct resource){.kind = KIND_FD, .fd = fds[1]});
        stop_here(thread, caller);
    }
}

/* --- Files --- */

#define MODE_OF(flags, last)                                                                           \
    __extension__({                                                                                    \
        mode_t mode_ = 0;                                                                              \
        if ((flags) & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) {                                        \
            va_list more;                                                                              \
            va_start(more, last);                                                                      \
            mode_ = va_arg(more, mode_t);                                                              \
            va_end(more);                                                                              \
        }                                                                                              \
        mode_;                                                                                         \
    })

STANDS_BEFORE int open(const char *path, int flags, ...) {
    return OPENED(REAL(open)(path, flags, MODE_OF(flags, flags)));
}
STANDS_BEFORE int open64(const char *path, int flags, ...) {
    return OPENED(REAL(open64)(path, flags, MODE_OF(flags, flags)));
}
ALSO(__open, open);
ALSO(__open64, open64);
STANDS_BEFORE int openat(int directory, const char *path, int flags, ...) {
    return OPENED(REAL(openat)(directory, path, flags, MODE_OF(flags, flags)));
}
STANDS_BEFORE int openat64(int directory, const char *path, int flags, ...) {
    return OPENED(REAL(openat64)(directory, path, flags, MODE_OF(flags, flags)));
}
STANDS_BEFORE int creat(const char *path, mode_t mode) {
    return OPENED(REAL(creat)(path, mode));
}
STANDS_BEFORE int creat64(const char *path, mode_t mode) {
    return OPENED(REAL(creat64)(path, mode));
}
STANDS_BEFORE int open_by_handle_at(int mount, struct file_handle *handle, int flags) {
    return OPENED(REAL(open_by_handle_at)(mount, handle, flags));
}
int fsopen(const char *type, unsigned flags);
int fsmount(int context, unsigned flags, unsigned attributes);
int fspick(int directory, const char *path, unsigned flags);
int open_tree(int directory, const char *path, unsigned flags);
STANDS_BEFORE int fsopen(const char *type, unsigned flags) {
    return OPENED(REAL(fsopen)(type, flags));
}
STANDS_BEFORE int fsmount(int context, unsigned flags, unsigned attributes) {
    return OPENED(REAL(fsmount)(context, flags, attributes));
}
STANDS_BEFORE int fspick(int directory, const char *path, unsigned flags) {
    return OPENED(REAL(fspick)(directory, path, flags));
}
STANDS_BEFORE int open_tree(int directory, const char *path, unsigned flags) {
    return OPENED(REAL(open_tree)(directory, path, flags));
}

/* Variants of _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int directory, const char *path, int flags);
int __openat64_2(int directory, const char *path, int flags);
STANDS_BEFORE int __open_2(const char *path, int flags) {
    return OPENED(REAL(__open_2)(path, flags));
}
STANDS_BEFORE int __open64_2(const char *path, int flags) {
    return OPENED(REAL(__open64_2)(path, flags));
}
STANDS_BEFORE int __openat_2(int directory, const char *path, int flags) {
    return OPENED(REAL(__openat_2)(directory, path, flags));
}
STANDS_BEFORE int __openat64_2(int directory, const char *path, int flags) {
    return OPENED(REAL(__openat64_2)(directory, path, flags));
}

STANDS_BEFORE int mkstemp(char *name) {
    return OPENED(REAL(mkstemp)(name));
}
STANDS_BEFORE int mkstemp64(char *name) {
    return OPENED(REAL(mkstemp64)(name));
}
STANDS_BEFORE int mkostemp(char *name, int flags) {
    return OPENED(REAL(mkostemp)(name, flags));
}
STANDS_BEFORE int mkostemp64(char *name, int flags) {
    return OPENED(REAL(mkostemp64)(name, flags));
}
STANDS_BEFORE int mkstemps(char *name, int behind) {
    return OPENED(REAL(mkstemps)(name, behind));
}
STANDS_BEFORE int mkstemps64(char *name, int behind) {
    return OPENED(REAL(mkstemps64)(name, behind));
}
STANDS_BEFORE int mkostemps(char *name, int behind, int flags) {
    return OPENED(REAL(mkostemps)(name, behind, flags));
}
STANDS_BEFORE int mkostemps64(char *name, int behind, int flags) {
    return OPENED(REAL(mkostemps64)(name, behind, flags));
}
STANDS_BEFORE int getpt(void) {
    return OPENED(REAL(getpt)());
}
STANDS_BEFORE int posix_openpt(int flags) {
    return OPENED(REAL(posix_openpt)(flags));
}
STANDS_BEFORE int memfd_create(const char *name, unsigned flags) {
    return OPENED(REAL(memfd_create)(name, flags));
}
STANDS_BEFORE int shm_open(const char *name, int flags, mode_t mode) {
    return OPENED(REAL(shm_open)(name, flags, mode));
}
/* Message queues are descriptors; mq_close is close. */
STANDS_BEFORE mqd_t mq_open(const char *name, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    struct mq_attr *attributes = flags & O_CREAT ? va_arg(more, struct mq_attr *) : NULL;
    va_end(more);
    return OPENED(REAL(mq_open)(name, flags, mode, attributes));
}
mqd_t __mq_open_2(const char *name, int flags);
STANDS_BEFORE mqd_t __mq_open_2(const char *name, int flags) {
    return OPENED(REAL(__mq_open_2)(name, flags));
}
STANDS_BEFORE int openpty(int *master, int *slave, char *name, const struct termios *settings, const struct winsize *size) {
    int result = REAL(openpty)(master, slave, name, settings, size);
    opened_both(result, result == 0 ? (int[2]){*master, *slave} : NULL, __builtin_return_address(0));
    return result;
}

/* --- Sockets, pipes, events --- */

STANDS_BEFORE int socket(int domain, int type, int protocol) {
    return OPENED(REAL(socket)(domain, type, protocol));
}
STANDS_BEFORE int socketpair(int domain, int type, int protocol, int fds[2]) {
    int result = REAL(socketpair)(domain, type, protocol, fds);
    opened_both(result, fds, __builtin_return_address(0));
    return result;
}
STANDS_BEFORE int pipe(int fds[2]) {
    int result = REAL(pipe)(fds);
    opened_both(result, fds, __builtin_return_address(0));
    return result;
}
ALSO(__pipe, pipe);
STANDS_BEFORE int pipe2(int fds[2], int flags) {
    int result = REAL(pipe2)(fds, flags);
    opened_both(result, fds, __builtin_return_address(0));
    return result;
}
STANDS_BEFORE int eventfd(unsigned value, int flags) {
    return OPENED(REAL(eventfd)(value, flags));
}
STANDS_BEFORE int epoll_create(int size) {
    return OPENED(REAL(epoll_create)(size));
}
STANDS_BEFORE int epoll_create1(int flags) {
    return OPENED(REAL(epoll_create1)(flags));
}
STANDS_BEFORE int timerfd_create(int clock, int flags) {
    return OPENED(REAL(timerfd_create)(clock, flags));
}
STANDS_BEFORE int signalfd(int fd, const sigset_t *mask, int flags) {
    int result = REAL(signalfd)(fd, mask, flags);
    return fd == -1 ? OPENED(result) : result;
}
STANDS_BEFORE int inotify_init(void) {
    return OPENED(REAL(inotify_init)());
}
STANDS_BEFORE int inotify_init1(int flags) {
    return OPENED(REAL(inotify_init1)(flags));
}
STANDS_BEFORE int fanotify_init(unsigned flags, unsigned of_events) {
    return OPENED(REAL(fanotify_init)(flags, of_events));
}
STANDS_BEFORE int pidfd_open(pid_t process, unsigned flags) {
    return OPENED(REAL(pidfd_open)(process, flags));
}
STANDS_BEFORE int pidfd_getfd(int process, int fd, unsigned flags) {
    return OPENED(REAL(pidfd_getfd)(process, fd, flags));
}

/* The program's own accept may block for long, so a request can be stopped there. */
static int accepted(int fd, struct sockaddr *from, socklen_t *length, int flags, void *caller) {
    struct thread *thread = resources_opener(caller);
    if (thread == NULL || !gate_is_program((uintptr_t)caller) || !stop_may_leave(thread)) {
        return opened_by(UNDISTURBED_SOCKET(fd, SO_RCVTIMEO, REAL(accept4)(fd, from, length, flags)), caller);
    }
    int result = UNDISTURBED_SOCKET(fd, SO_RCVTIMEO, (int)waits_enter(thread, caller, SYS_accept4, fd, (long)from, (long)length, flags, 0, 0));
    return opened_by(result, caller);
}
STANDS_BEFORE int accept(int fd, struct sockaddr *from, socklen_t *length) {
    return accepted(fd, from, length, 0, __builtin_return_address(0));
}
STANDS_BEFORE int accept4(int fd, struct sockaddr *from, socklen_t *length, int flags) {
    return accepted(fd, from, length, flags, __builtin_return_address(0));
}

/* --- Copies --- */

STANDS_BEFORE int dup(int fd) {
    return OPENED(REAL(dup)(fd));
}

/* Records that `from` was duplicated to `to`, which closed `to`. If `to` did not belong to the
 * request, the program has changed permanently. */
static int replaced(int result, int from, int to, void *caller) {
    const struct thread *thread = thread_request();
    if (result >= 0 && from != to && thread && !resources_has_fd(thread, to)) {
        stop_spoilt("puts another descriptor in the place of one that is not its own", caller);
    }
    return result;
}
STANDS_BEFORE int dup2(int from, int to) {
    return replaced(REAL(dup2)(from, to), from, to, __builtin_return_address(0));
}
ALSO(__dup2, dup2);
STANDS_BEFORE int dup3(int from, int to, int flags) {
    return replaced(REAL(dup3)(from, to, flags), from, to, __builtin_return_address(0));
}

static int control(int real(int fd, int command, ...), int fd, int command, void *arg, void *caller) {
    if (command == F_SETLKW || command == F_OFD_SETLKW) {
        return waits_lock(fd, command, arg, caller);
    }
    int result = real(fd, command, arg);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? opened_by(result, caller) : result;
}
STANDS_BEFORE int fcntl(int fd, int command, ...) {
    va_list more;
    va_start(more, command);
    void *arg = va_arg(more, void *);
    va_end(more);
    return control(REAL(fcntl), fd, command, arg, __builtin_return_address(0));
}
ALSO(__fcntl, fcntl);
STANDS_BEFORE int fcntl64(int fd, int command, ...) {
    va_list more;
    va_start(more, command);
    void *arg = va_arg(more, void *);
    va_end(more);
    return control(REAL(fcntl64), fd, command, arg, __builtin_return_address(0));
}

/* Remove it before it is closed: afterwards the number may belong to another thread. */
static int closed(int close(int), int fd, void *caller) {
    struct thread *thread = thread_owner();
    if (thread) {
        resources_remove_fd(thread, fd);
    }
    int result = close(fd);
    if (thread && thread->running) {
        stop_here(thread, caller);
    }
    return result;
}
STANDS_BEFORE int close(int fd) {
    return closed(REAL(close), fd, __builtin_return_address(0));
}
ALSO(__close, close);
STANDS_BEFORE int mq_close(mqd_t queue) {
    return closed(REAL(mq_close), queue, __builtin_return_address(0));
}
