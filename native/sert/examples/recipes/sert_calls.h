/* Calls of a library from a request.
 *
 * libsert does not stop a request in the code of a library. It does stop it in a callback, which is
 * the program's code. There the library is unfinished: it may hold half-made structures. So a
 * request masks stops around the call. The callback asks sert_is_over and returns an error, and
 * the library ends its work by its own means. The stop follows where the mask ends. */
#ifndef SERT_CALLS_H
#define SERT_CALLS_H

#include "sert.h"

/* Returns to a callback 0, or the reason why the request should give up. Orders the stop of a due
 * request, so that it stops at the end of the mask even if its timer is late. */
static inline int sert_is_over(void) {
    int reason = SERT_checkpoint();
    if (reason) {
        SERT_terminate(SERT_token(), reason);
    }
    return reason;
}

/* The value of `call`, whose objects belong to the request. */
#define SERT_MASKED(call)                                                                              \
    __extension__({                                                                                    \
        SERT_mask();                                                                                   \
        __typeof__(call) value_ = (call);                                                              \
        SERT_unmask();                                                                                 \
        value_;                                                                                        \
    })
/* The value of `call`, which also changes objects that outlive the request. */
#define SERT_UNACCOUNTED(call)                                                                         \
    __extension__({                                                                                    \
        SERT_unaccounted_begin();                                                                      \
        __typeof__(call) value_ = (call);                                                              \
        SERT_unaccounted_end();                                                                        \
        value_;                                                                                        \
    })

#endif
