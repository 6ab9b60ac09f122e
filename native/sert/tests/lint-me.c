/* A program for the lint: each request leaves two blocks and one descriptor, and the last one writes
 * to a client. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sert.h"

void *kept[10], *copies[10];

/* libc allocates for it. */
__attribute__((noinline)) static void keep_a_copy(int i) {
    copies[i] = strdup("a text");
}

int main(void) {
    static sigjmp_buf point;
    int client[2];
    struct sert_arg arg = {.size = sizeof arg, .lb_ms = 1, .ub_ms = 1};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, client) || SERT_init_timer(SIGRTMIN) || SERT_set_args(&arg)) {
        return 1;
    }
    SERT_register_rollbackpoint(&point);
    for (int i = 0; i < 10; i++) {
        SERT_start();
        kept[i] = malloc(100);
        keep_a_copy(i);
        free(malloc(200));
        if (open("/dev/null", O_RDONLY) < 0 || (i == 9 && write(client[0], "answer", 6) != 6)) {
            return 1;
        }
        usleep(3000); /* overdue, and yet not stopped */
        SERT_end();
    }
    return 0;
}
