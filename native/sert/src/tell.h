/* Messages to the operator on stderr. Each is written once in a process, without allocating. */
#ifndef SERT_TELL_H
#define SERT_TELL_H

enum tell {
    TELL_NO_POINT,
    TELL_NESTED,
    TELL_NO_CLASS,
    TELL_BAD_ARGS,
    TELL_NOT_BEGUN,
    TELL_NO_TIMER,
    TELL_UNPROTECTED,
    TELL_MODULE,
    TELL_THREADS,
    TELL_MEMORY,
    TELL_SIGNAL,
    TELL_WHATS
};

/* Reports `what`, followed by `detail` if it is not NULL. Keeps errno. */
void tell_once(enum tell what, const char *detail);

#endif
