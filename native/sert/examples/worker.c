/* A worker of a service, in C: requests come from a queue, and some take far too long.
 *
 *   worker          with the library (linked): the long ones are stopped
 *
 * If it is built with -DSERT_WEAK and without -lsert, it runs unprotected, or protected by
 * `sert-run`. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sert.h"

#define REQUESTS 60
#define WORKERS 2

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static int taken, answered, stopped;
static volatile size_t result;

/* Returns the number of a request; -1 if there are no more. */
static int get_request(void) {
    pthread_mutex_lock(&queue);
    int number = taken < REQUESTS ? taken++ : -1;
    pthread_mutex_unlock(&queue);
    return number;
}

static void count(int *which) {
    pthread_mutex_lock(&queue);
    ++*which;
    pthread_mutex_unlock(&queue);
}

/* Processes a request. Every tenth one looks at far too much. */
static size_t process_request(int number) {
    size_t words = number % 10 == 9 ? (size_t)1 << 40 : 2000, found = 0;
    char *text = strdup("some text that the request has copied");
    for (size_t i = 0; i < words; i++) {
        found += strlen(text) % (i % 7 + 2) == 0;
    }
    free(text);
    return found;
}

static void *worker(void *nothing) {
    (void)nothing;
    sigjmp_buf point;
    /* It is volatile because sigsetjmp returns here a second time. */
    for (volatile int number; (number = get_request()) >= 0;) {
        if (SERT_PRESENT) {
            if (sigsetjmp(point, 0) != 0) {
                /* The request was stopped and its resources were released; its client gets an
                 * error. */
                count(&stopped);
                continue;
            }
            SERT_register_rollbackpoint(&point);
            SERT_start();
        }
        size_t found = process_request(number);
        if (SERT_PRESENT) {
            SERT_end();
        }
        result = found; /* send_result(request, found) */
        count(&answered);
    }
    return NULL;
}

int main(void) {
    pthread_t workers[WORKERS];
    if (SERT_PRESENT) {
        struct sert_arg search = {.size = sizeof search, .class_id = 0, .lb_ms = 50, .ub_ms = 200,
                                  .flags = SERT_NO_WARM_UP /* nothing here is made at its first use */};
        SERT_init_timer(SIGRTMIN);
        SERT_set_args(&search);
    } else {
        puts("not protected; this would not end");
        return 0;
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_create(&workers[i], NULL, worker, NULL);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i], NULL);
    }
    printf("%d answered, %d stopped\n", answered, stopped);
    return answered + stopped == REQUESTS && stopped == REQUESTS / 10 ? 0 : 1;
}
