/* A program with an allocator of its own inside: libsert sees too few calls to protect it. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>

#include "sert.h"

static _Alignas(16) char arena[1 << 20];
static size_t used;

void *malloc(size_t size) {
    size_t from = used;
    used += (size + 15) & ~(size_t)15;
    return arena + from;
}
void free(void *block) {
    (void)block;
}

int main(void) {
    sigjmp_buf point;
    struct sert_arg arg = {.size = sizeof arg, .lb_ms = 1, .ub_ms = 1};
    int refused = SERT_init_timer(SIGRTMIN) == -1 && errno == ENOTSUP;
    SERT_set_args(&arg);
    SERT_register_rollbackpoint(&point);
    SERT_start();
    SERT_end();
    puts(refused ? "refused" : "accepted");
    return !refused;
}
