/* For `stacks`: a server in C that serves one connection at a time, as a child of a pre-fork server
 * does, and works in small steps. There is a plain handler, one that the sentry notifies (`watch`),
 * and one that never asks and that libsert stops (`sert`). STACKS_PORT is the port on which it
 * listens; STACKS_OBSERVER is the port to which it reports the progress of a request. */
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bywash/sentry.h"
#include "sert.h"

static int observer;
static volatile sig_atomic_t has_left;
static sigjmp_buf point;

static void client_left(int signum) {
    (void)signum;
    has_left = 1;
}

static struct sockaddr_in loopback(const char *variable) {
    const char *port = getenv(variable);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    at.sin_port = htons((unsigned short)atoi(port != NULL ? port : "0"));
    return at;
}

static void tell(const char *name, const char *word) {
    char text[128];
    int length = snprintf(text, sizeof text, "%s %s", name, word);
    if (send(observer, text, (size_t)length, 0) < 0) {
        perror("prefork: send");
    }
}

/* A signal ends a step early. */
static void step(void) {
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
}

/* Works in steps. Returns whether the client is still there at the end. */
static int in_steps(const char *name, int client, int is_watched) {
    has_left = 0;
    if (is_watched && socket_watch(client, SIGRTMIN) != 0) {
        return 0;
    }
    for (int i = 0; i < 40 && !has_left; i++) {
        tell(name, "step");
        step();
    }
    if (is_watched) {
        socket_unwatch(client);
    }
    return !has_left;
}

/*
 * Neither asks nor reports during its work, because libsert could not undo a message that the
 * request has sent.
 */
static int with_libsert(int client) {
    struct socket_watch_opts opts = {.size = sizeof opts, .flags = SW_SERT};
    if (sigsetjmp(point, 0) != 0) {
        return 0;
    }
    SERT_register_rollbackpoint(&point);
    SERT_start();
    if (socket_watch_ex(client, &opts) == 0) {
        for (int i = 0; i < 40; i++) {
            step();
        }
    }
    SERT_end();
    socket_unwatch(client);
    return 1;
}

static void serve(int client) {
    static char head[4096], how[16], name[64];
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone";
    ssize_t length = recv(client, head, sizeof head - 1, 0);
    head[length > 0 ? length : 0] = '\0';
    if (sscanf(head, "GET /%15[a-z]/%63[^ /] ", how, name) != 2) {
        return;
    }
    tell(name, "step");
    int is_there = strcmp(how, "sert") == 0 ? with_libsert(client) : in_steps(name, client, strcmp(how, "watch") == 0);
    tell(name, is_there ? "done" : "told");
    if (is_there && send(client, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0) {
        perror("prefork: send");
    }
}

int main(void) {
    struct sigaction action = {.sa_handler = client_left};
    struct sert_arg arg = {.size = sizeof arg, .lb_ms = 60000, .ub_ms = 60000, .flags = SERT_NO_WARM_UP};
    struct sockaddr_in at = loopback("STACKS_PORT"), to = loopback("STACKS_OBSERVER");
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    observer = socket(AF_INET, SOCK_DGRAM, 0);
    sigaction(SIGRTMIN, &action, NULL);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (SERT_init_timer(SIGRTMIN + 4) != 0 || SERT_set_args(&arg) != 0 || connect(observer, (struct sockaddr *)&to, sizeof to) != 0
        || bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 128) != 0) {
        perror("prefork");
        return 1;
    }
    for (;;) {
        int client = accept(listener, NULL, NULL);
        if (client >= 0) {
            serve(client);
            close(client);
        }
    }
}
