/* A pre-fork HTTP server in C whose children abandon a request when its client leaves.
 *
 *   prefork PORT [CHILDREN]     0: any port, which it prints
 *   GET /work/MS                computes for MS milliseconds, then answers
 *
 * Each child serves one connection at a time, like Apache's prefork, so it reads nothing while it
 * computes. The sentry's signal interrupts it, and the handler jumps back. All resources that the
 * work has taken must be known where it lands (here: none). For work that takes memory and locks
 * there is SW_SERT; for work that can be asked to stop, use a flag that the handler sets. */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bywash/sentry.h"

static sigjmp_buf abandoned;
/* The descriptor of the client that the work is for. A signal that comes late is for another
 * client. */
static volatile sig_atomic_t working_for = -1;

static void client_left(int signum, siginfo_t *info, void *context) {
    (void)signum, (void)context;
    if (info->si_value.sival_int == working_for) {
        siglongjmp(abandoned, 1);
    }
}

static long milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static double work(long how_long) {
    double sum = 0;
    for (long end = milliseconds() + how_long; milliseconds() < end;) {
        for (int i = 1; i < 10000; i++) {
            sum += 1.0 / i;
        }
    }
    return sum;
}

static void answer(int client, const char *status, const char *body) {
    char text[512];
    int length = snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", status, strlen(body), body);
    if (send(client, text, (size_t)length, MSG_NOSIGNAL) < 0) {
        perror("prefork: send");
    }
}

/* Computes the page. Returns false if the client has left, before or meanwhile. */
static int compute(int client, long how_long, char *page, size_t size) {
    if (sigsetjmp(abandoned, 1) != 0) {
        working_for = -1;
        return 0;
    }
    working_for = client;
    /* Serve the client after any other error, although its departure will not be told. */
    if (socket_watch(client, SIGRTMIN) != 0 && (errno == ESHUTDOWN || errno == ECONNRESET)) {
        working_for = -1;
        return 0;
    }
    double sum = work(how_long);
    working_for = -1;
    socket_unwatch(client);
    snprintf(page, size, "%g\n", sum);
    return 1;
}

static void serve(int client) {
    char head[4096];
    ssize_t length = recv(client, head, sizeof head - 1, 0);
    long how_long;
    if (length <= 0) {
        return;
    }
    head[length] = '\0';
    if (sscanf(head, "GET /work/%ld ", &how_long) != 1) {
        answer(client, "404 Not Found", "");
        return;
    }
    char page[64] = "";
    if (compute(client, how_long, page, sizeof page)) {
        answer(client, "200 OK", page);
    } else {
        printf("abandoned /work/%ld\n", how_long);
    }
}

static void child(int listener) {
    struct sigaction action = {.sa_sigaction = client_left, .sa_flags = SA_SIGINFO};
    sigaction(SIGRTMIN, &action, NULL);
    for (;;) {
        int client = accept(listener, NULL, NULL);
        if (client >= 0) {
            serve(client);
            close(client);
        }
    }
}

int main(int count, char **words) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), children = count > 2 ? atoi(words[2]) : 4;
    if (count < 2) {
        fprintf(stderr, "usage: prefork PORT [CHILDREN]\n");
        return 2;
    }
    at.sin_port = htons((unsigned short)atoi(words[1]));
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 128) != 0 || getsockname(listener, (struct sockaddr *)&at, &size) != 0) {
        perror("prefork: listen");
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("listening on 127.0.0.1:%d\n", ntohs(at.sin_port));
    for (int i = 0; i < children; i++) {
        if (fork() == 0) {
            child(listener);
        }
    }
    while (wait(NULL) > 0) {
    }
    return 0;
}
