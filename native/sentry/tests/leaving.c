/* Tests of the ways in which a client leaves, or does not. */
#include "harness.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

static void fin(void) {
    struct pair pair = tcp_pair();
    CHECK(socket_watch(pair.server, TOLD) == 0);
    close(pair.client);
    expect(pair.server, ESHUTDOWN);
    expect_nothing();
}

static void half_close(void) {
    struct pair pair = tcp_pair();
    CHECK(socket_watch(pair.server, TOLD) == 0);
    shutdown(pair.client, SHUT_WR);
    expect(pair.server, ESHUTDOWN);
}

/* A limit of the library: the client is still there. */
static void own_shutdown(void) {
    struct pair pair = tcp_pair();
    CHECK(socket_watch(pair.server, TOLD) == 0);
    shutdown(pair.server, SHUT_RD);
    expect(pair.server, ESHUTDOWN);
    struct pair before = tcp_pair();
    shutdown(before.server, SHUT_RD);
    REFUSED(ESHUTDOWN, socket_watch(before.server, TOLD));
}

static void rst(void) {
    struct pair pair = tcp_pair();
    CHECK(socket_watch(pair.server, TOLD) == 0);
    reset(pair.client);
    expect(pair.server, ECONNRESET);
    /* The program can still read the error. */
    char byte;
    REFUSED(ECONNRESET, (int)read(pair.server, &byte, 1));
}

static void pipelined(void) {
    struct pair pair = tcp_pair();
    CHECK(socket_watch(pair.server, TOLD) == 0);
    put(pair.client, "GET /next HTTP/1.1\r\n\r\n");
    expect_nothing();
    close(pair.client);
    expect(pair.server, ESHUTDOWN);
}

static void behind_unread(void) {
    struct pair pair = tcp_pair();
    char body[8192];
    memset(body, 'x', sizeof body);
    CHECK(write(pair.client, body, sizeof body) == sizeof body);
    CHECK(socket_watch(pair.server, TOLD) == 0);
    close(pair.client);
    expect(pair.server, ESHUTDOWN);
}

/* Sends more than the server's kernel takes: the rest, and the FIN behind it, stay with the
 * client's kernel. */
static void fill(int client) {
    char body[65536];
    memset(body, 'x', sizeof body);
    CHECK(fcntl(client, F_SETFL, O_NONBLOCK) == 0);
    while (write(client, body, sizeof body) > 0) {
    }
    int unsent = 0;
    CHECK(errno == EAGAIN && ioctl(client, SIOCOUTQ, &unsent) == 0 && unsent > 0);
}

static void behind_a_full_window(void) {
    struct pair pair = tcp_pair();
    char body[65536];
    fill(pair.client);
    CHECK(socket_watch(pair.server, TOLD) == 0);
    close(pair.client);
    expect_nothing();
    /* The FIN arrives when the program makes room. */
    while (read(pair.server, body, sizeof body) > 0) {
    }
    expect(pair.server, ESHUTDOWN);
}

static void half_close_ok(void) {
    struct socket_watch_opts opts = {.size = sizeof opts, .flags = SW_HALF_CLOSE_OK, .signum = TOLD};
    struct pair half = tcp_pair(), whole = tcp_pair();
    CHECK(socket_watch_ex(half.server, &opts) == 0);
    shutdown(half.client, SHUT_WR);
    close(whole.client);
    expect_nothing();
    /* Both have sent a FIN and cannot be distinguished: the second is watched, too. */
    CHECK(socket_watch_ex(whole.server, &opts) == 0);
    expect_nothing();
    /* Only writing shows the difference. */
    char byte;
    put(half.server, "x");
    CHECK(read(half.client, &byte, 1) == 1);
    put(whole.server, "x");
    expect(whole.server, ECONNRESET);
    expect_nothing();
    reset(half.client);
    expect(half.server, ECONNRESET);
}

static void left_before(void) {
    struct pair closed = tcp_pair(), gone = tcp_pair(), local = unix_pair();
    close(closed.client);
    REFUSED(ESHUTDOWN, socket_watch(closed.server, TOLD));
    reset(gone.client);
    REFUSED(ECONNRESET, socket_watch(gone.server, TOLD));
    close(local.client);
    REFUSED(ESHUTDOWN, socket_watch(local.server, TOLD));
    expect_nothing();
    REFUSED(ENOENT, socket_unwatch(closed.server));
}

static void unwatched(void) {
    struct pair pair = tcp_pair();
    CHECK(socket_watch(pair.server, TOLD) == 0);
    CHECK(socket_unwatch(pair.server) == 0);
    REFUSED(ENOENT, socket_unwatch(pair.server));
    close(pair.client);
    expect_nothing();
}

static void twice(void) {
    struct pair pair = tcp_pair();
    CHECK(socket_watch(pair.server, TOLD) == 0);
    REFUSED(EEXIST, socket_watch(pair.server, TOLD));
    close(pair.client);
    expect(pair.server, ESHUTDOWN);
    expect_nothing();
    REFUSED(ENOENT, socket_unwatch(pair.server));
    REFUSED(ESHUTDOWN, socket_watch(pair.server, TOLD));
}

/* Checks that two descriptors of one socket can be watched separately. */
static void duplicated(void) {
    struct pair pair = tcp_pair();
    int copy = dup(pair.server);
    CHECK(socket_watch(pair.server, TOLD) == 0 && socket_watch(copy, TOLD) == 0);
    CHECK(socket_unwatch(pair.server) == 0);
    close(pair.client);
    expect(copy, ESHUTDOWN);
    expect_nothing();
}

static void reused(void) {
    struct pair first = tcp_pair();
    int number = first.server;
    CHECK(socket_watch(number, TOLD) == 0);
    close(number);
    struct pair second = tcp_pair();
    CHECK(dup2(second.server, number) == number);
    close(first.client);
    expect_nothing();
    CHECK(socket_watch(number, TOLD) == 0);
    close(second.client);
    expect(number, ESHUTDOWN);
    expect_nothing();
}

/* Checks a number that is used again while another process keeps the first socket, so that the
 * kernel continues to watch it. */
static void reused_but_kept(void) {
    for (int watched = 0; watched < 2; watched++) {
        struct pair first = tcp_pair(), second = tcp_pair();
        int number = first.server, wait[2];
        CHECK(pipe(wait) == 0 && socket_watch(number, TOLD) == 0);
        pid_t child = fork();
        if (child == 0) {
            char byte;
            close(wait[1]);
            close(first.client);
            _exit(read(wait[0], &byte, 1) == 0 ? 0 : 1);
        }
        CHECK(child > 0 && dup2(second.server, number) == number);
        CHECK(!watched || socket_watch(number, TOLD) == 0);
        close(first.client);
        expect_nothing();
        close(wait[1]);
        joined(child);
        CHECK(!watched || socket_unwatch(number) == 0);
    }
}

/* Checks an old socket that comes back under its old number while the kernel still has the old
 * watch. */
static void came_back(void) {
    struct pair pair = tcp_pair();
    int number = pair.server, copy = dup(number);
    CHECK(socket_watch(number, TOLD) == 0);
    struct pair other = tcp_pair();
    CHECK(dup2(other.server, number) == number && socket_watch(number, TOLD) == 0 && socket_unwatch(number) == 0);
    CHECK(dup2(copy, number) == number && socket_watch(number, TOLD) == 0);
    close(pair.client);
    expect(number, ESHUTDOWN);
    expect_nothing();
}

static void data_of_a_fin(void) {
    struct socket_watch_opts opts = {.size = sizeof opts, .flags = SW_DATA | SW_HALF_CLOSE_OK, .signum = TOLD};
    struct pair bare = unix_pair(), last = tcp_pair(), lies = tcp_pair();
    CHECK(socket_watch_ex(bare.server, &opts) == 0 && socket_watch_ex(last.server, &opts) == 0);
    shutdown(bare.client, SHUT_WR);
    expect_nothing();
    /* Both come in one segment. */
    int on = 1;
    CHECK(setsockopt(last.client, IPPROTO_TCP, TCP_CORK, &on, sizeof on) == 0);
    put(last.client, "x");
    shutdown(last.client, SHUT_WR);
    expect(last.server, 0);
    /* Both were there before. */
    put(lies.client, "x");
    shutdown(lies.client, SHUT_WR);
    CHECK(socket_watch_ex(lies.server, &opts) == 0);
    expect(lies.server, 0);
    expect_nothing();
}

static void data(void) {
    struct socket_watch_opts opts = {.size = sizeof opts, .flags = SW_DATA, .signum = TOLD};
    struct pair pair = tcp_pair();
    CHECK(socket_watch_ex(pair.server, &opts) == 0);
    expect_nothing();
    put(pair.client, "x");
    expect(pair.server, 0);
    put(pair.client, "y");
    expect_nothing();
    close(pair.client);
    expect(pair.server, ESHUTDOWN);
    expect_nothing();
    /* Bytes that are unread when the watch begins count. */
    struct pair before = tcp_pair();
    put(before.client, "x");
    CHECK(socket_watch_ex(before.server, &opts) == 0);
    expect(before.server, 0);
    CHECK(socket_unwatch(before.server) == 0);
    close(before.client);
    expect_nothing();
}

const struct test leaving_tests[] = {
    {"fin", "a close is told, once", fin},
    {"half-close", "a half-close is told like a close", half_close},
    {"own-shutdown", "the program's own end of reading is told like a close", own_shutdown},
    {"rst", "a reset is told as one, and its error is left to the program", rst},
    {"pipelined", "a pipelined request is no departure, and hides none", pipelined},
    {"unread", "a FIN behind bytes that nobody reads is told", behind_unread},
    {"window", "a FIN behind a full receive window is told only once somebody reads", behind_a_full_window},
    {"half-close-ok", "with SW_HALF_CLOSE_OK only writing tells who has closed", half_close_ok},
    {"before", "who has left before is refused, and not told", left_before},
    {"unwatched", "nothing is told of a connection that is unwatched", unwatched},
    {"twice", "a second watch of a descriptor is refused", twice},
    {"duplicated", "two descriptors of a socket are watched apart", duplicated},
    {"reused", "a descriptor that was closed and is another socket hears nothing of the first", reused},
    {"kept", "nor while another process keeps the first", reused_but_kept},
    {"came-back", "a socket that comes back under its number is watched anew", came_back},
    {"data-fin", "with SW_HALF_CLOSE_OK bytes that come with a FIN are told, a FIN alone is not", data_of_a_fin},
    {"data", "SW_DATA tells the first unread bytes, and then the departure", data},
    {0},
};
