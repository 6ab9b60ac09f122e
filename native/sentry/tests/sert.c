/* Tests of SW_SERT with the real libsert: the request of a client that leaves is stopped. */
#include "harness.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>

#include "sert.h"

enum { REQUESTS = 50 };
static sigjmp_buf point;
static atomic_int client_to_close = -1;
static volatile size_t result;

static void *closes(void *nothing) {
    (void)nothing;
    for (int closed = 0; closed < REQUESTS;) {
        int client = atomic_exchange(&client_to_close, -1);
        if (client >= 0) {
            close(client);
            closed++;
        }
    }
    return NULL;
}

static atomic_int told;

static void tell(uint64_t cookie, int why) {
    (void)cookie, (void)why;
    told = 1;
}

/* Allocates memory all the time, and never ends by itself. */
static void work(void) {
    for (;;) {
        char *text = strdup("of the request");
        result += strlen(text);
        free(text);
    }
}

int main(void) {
    alarm(60);
    struct sert_arg arg = {.size = sizeof arg, .lb_ms = 60000, .ub_ms = 60000, .flags = SERT_NO_WARM_UP};
    struct socket_watch_opts opts = {.size = sizeof opts, .flags = SW_SERT};
    CHECK(SERT_init_timer(SIGRTMIN + 4) == 0 && SERT_set_args(&arg) == 0);
    int both[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0);
    REFUSED(EINVAL, socket_watch_ex(both[1], &opts));

    pthread_t closer;
    CHECK(pthread_create(&closer, NULL, closes, NULL) == 0);
    volatile int stopped = 0;
    volatile int server = -1;
    for (volatile int i = 0; i < REQUESTS; i++) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0);
        server = both[1];
        int why = sigsetjmp(point, 0);
        if (why == 0) {
            CHECK(SERT_register_rollbackpoint(&point) == 0 && SERT_start() == 0);
            CHECK(socket_watch_ex(server, &opts) == 0);
            atomic_store(&client_to_close, both[0]);
            work();
        }
        CHECK(why == SERT_CLIENT_GONE);
        REFUSED(ENOENT, socket_unwatch(server));
        close(server);
        stopped++;
    }
    CHECK(pthread_join(closer, NULL) == 0);
    CHECK(stopped == REQUESTS);

    /* A request that has ended is not stopped, and neither is the next, since each has its own
     * token. A later notification shows that the departure was told. */
    struct socket_watch_opts last = {.size = sizeof last, .cb = tell};
    int marker[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, marker) == 0);
    int why = sigsetjmp(point, 0);
    CHECK(why == 0 && SERT_register_rollbackpoint(&point) == 0 && SERT_start() == 0);
    CHECK(socket_watch_ex(both[1], &opts) == 0 && socket_watch_ex(marker[1], &last) == 0);
    CHECK(SERT_end() == 0 && SERT_start() == 0);
    close(both[0]);
    close(marker[0]);
    while (!told) {
        result++;
    }
    CHECK(SERT_end() == 0);
    printf("ok     SW_SERT stops the request of a client that leaves, %d times, and no other\n", stopped);
    return 0;
}
