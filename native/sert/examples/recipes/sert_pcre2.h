/* Ends a match of PCRE2 when its request is stopped. Define PCRE2_CODE_UNIT_WIDTH first.
 *
 *     code = pcre2_compile(pattern, length, PCRE2_AUTO_CALLOUT, ...);     // before requests
 *     sert_pcre2_watch(context);                                          // a pcre2_match_context
 *
 *     match = pcre2_match_data_create_from_pattern(code, NULL);           // in a request
 *     int rc = SERT_MASKED(pcre2_match(code, text, size, 0, 0, match, context));
 *
 * The callout returns an error, because the match has its own stack of choices, which PCRE2
 * releases: a due match returns PCRE2_ERROR_CALLOUT, and a due stop follows. The match data must
 * be the request's own: a match enlarges them. For older match data, use SERT_UNACCOUNTED.
 *
 * PCRE2_AUTO_CALLOUT calls back before each item of the pattern, which makes a match slower. In a
 * pattern of your own, write (?C) into its repeated part instead. Without callouts, only
 * pcre2_set_match_limit and pcre2_set_heap_limit end a match, and they do not know the time. */
#ifndef SERT_PCRE2_H
#define SERT_PCRE2_H

#include <pcre2.h>

#include "sert_calls.h"

/* Callouts between two checks. They take some microseconds. */
#define SERT_PCRE2_CALLOUTS 64

static int sert_pcre2_callout(pcre2_callout_block *block, void *unused) {
    static __thread unsigned called;
    (void)block;
    (void)unused;
    return ++called % SERT_PCRE2_CALLOUTS == 0 && sert_is_over() ? PCRE2_ERROR_CALLOUT : 0;
}

static inline void sert_pcre2_watch(pcre2_match_context *context) {
    pcre2_set_callout(context, sert_pcre2_callout, NULL);
}

#endif
