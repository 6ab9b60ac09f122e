/* Tests of which arguments are refused, and with which error. */
#include "harness.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

static void not_connections(void) {
    int both[2], closed = dup(0);
    CHECK(pipe(both) == 0);
    close(closed);
    REFUSED(EBADF, socket_watch(-1, TOLD));
    REFUSED(EBADF, socket_watch(closed, TOLD));
    REFUSED(ENOTSOCK, socket_watch(both[0], TOLD));
    REFUSED(ENOENT, socket_unwatch(closed));
    REFUSED(ENOTCONN, socket_watch(socket(AF_INET, SOCK_STREAM, 0), TOLD));
    REFUSED(ENOTCONN, socket_watch(socket(AF_UNIX, SOCK_STREAM, 0), TOLD));
    REFUSED(EINVAL, socket_watch(socket(AF_INET, SOCK_DGRAM, 0), TOLD));
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(listen(listener, 1) == 0);
    REFUSED(ENOTCONN, socket_watch(listener, TOLD));
    REFUSED(EBADF, socket_unwatch(-1));
    REFUSED(ENOENT, socket_unwatch(both[0]));
}

static void not_signals(void) {
    struct pair pair = unix_pair();
    int none[] = {0, -1, SIGKILL, SIGSTOP, 32, 33, SIGRTMAX + 1, 1 << 20};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        REFUSED(EINVAL, socket_watch(pair.server, none[i]));
    }
    CHECK(socket_watch(pair.server, SIGUSR1) == 0);
    CHECK(socket_unwatch(pair.server) == 0);
}

static void not_options(void) {
    struct pair pair = unix_pair();
    struct socket_watch_opts good = {.size = sizeof good, .signum = TOLD}, bad = good;
    int files[2], closed = dup(0);
    CHECK(pipe(files) == 0);
    close(closed);
    REFUSED(EINVAL, socket_watch_ex(pair.server, NULL));
    bad.size = sizeof bad - 1;
    REFUSED(EINVAL, socket_watch_ex(pair.server, &bad));
    bad.size = 0;
    REFUSED(EINVAL, socket_watch_ex(pair.server, &bad));
    bad = good, bad.flags = 1u << 31;
    REFUSED(EINVAL, socket_watch_ex(pair.server, &bad));
    bad = good, bad.signum = 0;
    REFUSED(EINVAL, socket_watch_ex(pair.server, &bad));
    bad = good, bad.tid = -1;
    REFUSED(EINVAL, socket_watch_ex(pair.server, &bad));
    bad = good, bad.tid = 1;
    REFUSED(ESRCH, socket_watch_ex(pair.server, &bad));
    bad = good, bad.flags = SW_EVENTFD, bad.eventfd = closed;
    REFUSED(EBADF, socket_watch_ex(pair.server, &bad));
    bad = good, bad.flags = SW_EVENTFD, bad.eventfd = files[1];
    REFUSED(EINVAL, socket_watch_ex(pair.server, &bad));
    bad = good, bad.flags = SW_SERT;
    REFUSED(ENOTSUP, socket_watch_ex(pair.server, &bad));
    CHECK(socket_watch_ex(pair.server, &good) == 0);
}

static void no_descriptors(void) {
    struct pair pair = unix_pair();
    struct rlimit few = {(rlim_t)pair.server + 1, (rlim_t)pair.server + 1};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    REFUSED(EMFILE, socket_watch(pair.server, TOLD));
    /* The library needs two descriptors: it does not keep one alone. */
    close(0);
    REFUSED(EMFILE, socket_watch(pair.server, TOLD));
    close(1);
    CHECK(socket_watch(pair.server, TOLD) == 0);
    close(pair.client);
    expect(pair.server, ESHUTDOWN);
}

const struct test arguments_tests[] = {
    {"connections", "what is no connection is refused", not_connections},
    {"signals", "what is no signal is refused", not_signals},
    {"options", "options that make no sense are refused", not_options},
    {"descriptors", "without a descriptor left the watch is refused, and can be had later", no_descriptors},
    {0},
};
