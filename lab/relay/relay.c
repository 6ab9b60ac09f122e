// Forwards bytes between each client connection and an upstream connection of its own, on one thread. A proxy cannot do with less
// work of the kernel. `relay epoll PORT UPSTREAM` waits with epoll and calls recv and send. `relay uring PORT UPSTREAM` submits
// the same operations to io_uring, all of one round together.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 16384, ROUND = 512 };

// One direction of a connection.
struct pipe {
    int from, to, filled, sent;
    struct pipe *back;
    char bytes[BUFFER];
};

static struct sockaddr_in address(int port) {
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void check(int result, const char *what) {
    if (result < 0) {
        perror(what);
        exit(1);
    }
}

static int listening(int port) {
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = address(port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    check(bind(fd, (struct sockaddr *)&at, sizeof at), "bind");
    check(listen(fd, 8192), "listen");
    return fd;
}

// Connects an accepted client to the upstream. Returns the direction from the client.
static struct pipe *join(int client, int upstream_port, int flags) {
    int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = address(upstream_port);
    check(connect(server, (struct sockaddr *)&at, sizeof at), "connect");
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct pipe *there = calloc(1, sizeof *there), *back = calloc(1, sizeof *back);
    *there = (struct pipe){.from = client, .to = server, .back = back};
    *back = (struct pipe){.from = server, .to = client, .back = there};
    (void)flags;
    return there;
}

static void with_epoll(int listener, int upstream_port) {
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[ROUND];
    check(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event), "epoll_ctl");
    for (;;) {
        int count = epoll_wait(set, events, ROUND, -1);
        for (int i = 0; i < count; i++) {
            struct pipe *pipe = events[i].data.ptr;
            if (pipe == NULL) {
                struct pipe *there = join(accept(listener, NULL, NULL), upstream_port, 0);
                for (int side = 0; side < 2; side++, there = there->back) {
                    event = (struct epoll_event){.events = EPOLLIN, .data.ptr = there};
                    check(epoll_ctl(set, EPOLL_CTL_ADD, there->from, &event), "epoll_ctl");
                }
                continue;
            }
            ssize_t got = recv(pipe->from, pipe->bytes, BUFFER, MSG_DONTWAIT);
            if (got <= 0) {
                if (got == 0 || errno != EAGAIN) {
                    epoll_ctl(set, EPOLL_CTL_DEL, pipe->from, NULL);
                    shutdown(pipe->to, SHUT_WR);
                }
                continue;
            }
            if (send(pipe->to, pipe->bytes, got, MSG_NOSIGNAL) != got) {
                fprintf(stderr, "the peer does not take everything at once\n");
                exit(1);
            }
        }
    }
}

static struct io_uring_sqe *next(struct io_uring *ring) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    if (sqe == NULL) {
        check(io_uring_submit(ring), "submit");
        sqe = io_uring_get_sqe(ring);
    }
    return sqe;
}

static void receive(struct io_uring *ring, struct pipe *pipe) {
    struct io_uring_sqe *sqe = next(ring);
    io_uring_prep_recv(sqe, pipe->from, pipe->bytes, BUFFER, 0);
    sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
    io_uring_sqe_set_data64(sqe, (__u64)(uintptr_t)pipe);
}

static void with_uring(int listener, int upstream_port) {
    struct io_uring ring;
    struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
    int made = io_uring_queue_init_params(4 * ROUND, &ring, &params);
    if (made < 0) {
        fprintf(stderr, "io_uring: %s\n", strerror(-made));
        exit(1);
    }
    struct io_uring_sqe *sqe = next(&ring);
    io_uring_prep_multishot_accept(sqe, listener, NULL, NULL, 0);
    io_uring_sqe_set_data64(sqe, 0);
    for (;;) {
        struct io_uring_cqe *cqe;
        unsigned head, count = 0;
        io_uring_submit_and_wait(&ring, 1);
        io_uring_for_each_cqe(&ring, head, cqe) {
            count++;
            // The lowest bit marks the end of a send. Sends report only failures.
            struct pipe *pipe = (struct pipe *)(uintptr_t)(cqe->user_data & ~1ull);
            if (pipe == NULL) {
                check(cqe->res, "accept");
                struct pipe *there = join(cqe->res, upstream_port, 0);
                receive(&ring, there);
                receive(&ring, there->back);
            } else if (cqe->user_data & 1) {
                if (cqe->res != pipe->filled && cqe->res != -EPIPE && cqe->res != -ECONNRESET) {
                    fprintf(stderr, "the peer does not take everything at once\n");
                    exit(1);
                }
                receive(&ring, pipe);
            } else if (cqe->res > 0) {
                pipe->filled = cqe->res;
                struct io_uring_sqe *sending = next(&ring);
                io_uring_prep_send(sending, pipe->to, pipe->bytes, cqe->res, MSG_NOSIGNAL);
                io_uring_sqe_set_data64(sending, (__u64)(uintptr_t)pipe | 1);
            } else {
                shutdown(pipe->to, SHUT_WR);
            }
        }
        io_uring_cq_advance(&ring, count);
    }
}

int main(int count, char **words) {
    if (count != 4) {
        fprintf(stderr, "usage: relay epoll|uring PORT UPSTREAM_PORT\n");
        return 2;
    }
    int listener = listening(atoi(words[2])), upstream_port = atoi(words[3]);
    if (strcmp(words[1], "uring") == 0)
        with_uring(listener, upstream_port);
    else
        with_epoll(listener, upstream_port);
}
