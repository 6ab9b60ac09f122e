/* Tests with ten thousand connections, of which most leave at once. Their clients are a process of
 * their own, because many processes may not open so many files. */
#include "harness.h"

#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <stddef.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { ALL = 10000, LEAVING = 8900 };

static int servers[ALL];
static atomic_int told[ALL];
static atomic_int count;
static sem_t all_told;

static void count_up(uint64_t cookie, int why) {
    CHECK(why == ESHUTDOWN);
    told[cookie]++;
    if (++count == LEAVING) {
        sem_post(&all_told);
    }
}

/* Connects all clients, closes most of them when it is told to, and closes the rest when the test
 * is over. */
static void clients(struct sockaddr *at, socklen_t size, int hears) {
    int connected[ALL];
    char byte;
    for (int i = 0; i < ALL; i++) {
        connected[i] = socket(at->sa_family, SOCK_STREAM, 0);
        CHECK(connect(connected[i], at, size) == 0);
    }
    CHECK(read(hears, &byte, 1) == 1);
    for (int i = 0; i < LEAVING; i++) {
        close(connected[i]);
    }
    CHECK(read(hears, &byte, 1) == 0);
    _exit(0);
}

static bool has_left(int fd) {
    struct pollfd asked = {fd, POLLIN | POLLRDHUP, 0};
    CHECK(poll(&asked, 1, 0) >= 0);
    return (asked.revents & POLLRDHUP) != 0;
}

union address {
    struct sockaddr any;
    struct sockaddr_in tcp;
    struct sockaddr_un local;
};

static void many(union address at, socklen_t size) {
    if (!room_for(ALL + 100)) {
        printf("NOT TESTED: 10,000 connections, the limit of open files (ulimit -Hn) is below 10,100\n");
        return;
    }
    int listener = socket(at.any.sa_family, SOCK_STREAM, 0), says[2];
    CHECK(bind(listener, &at.any, size) == 0 && listen(listener, 4096) == 0 && pipe(says) == 0);
    size = sizeof at;
    CHECK(getsockname(listener, &at.any, &size) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(listener);
        close(says[1]);
        clients(&at.any, size, says[0]);
    }
    for (int i = 0; i < ALL; i++) {
        struct socket_watch_opts opts = {.size = sizeof opts, .cookie = (uint64_t)i, .cb = count_up};
        servers[i] = accept(listener, NULL, NULL);
        CHECK(servers[i] >= 0 && socket_watch_ex(servers[i], &opts) == 0);
    }
    CHECK(write(says[1], "x", 1) == 1);
    while (sem_wait(&all_told) != 0) {
    }
    expect_nothing();
    for (int i = 0; i < ALL; i++) {
        CHECK(told[i] == has_left(servers[i]));
        CHECK((socket_unwatch(servers[i]) == -1) == told[i]);
    }
    CHECK(count == LEAVING);
    close(says[1]);
    joined(child);
}

static void many_tcp(void) {
    union address at = {.tcp = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    many(at, sizeof at.tcp);
}

static void many_unix(void) {
    /* The kernel makes up a name. */
    union address at = {.local = {.sun_family = AF_UNIX}};
    many(at, offsetof(struct sockaddr_un, sun_path));
}

const struct test many_tests[] = {
    {"many-tcp", "of 10,000 TCP connections 8,900 leave at once, and each is told once", many_tcp},
    {"many-unix", "so it is with UNIX sockets", many_unix},
    {0},
};
