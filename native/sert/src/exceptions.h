/* The record of a thread's exceptions, in each C++ runtime that code of the program uses.
 *
 * A stop leaves a catch block without executing its end. So the record is reset to its state at the
 * start of the request. Otherwise the next exception would be chained to one whose memory the stop
 * has freed. */
#ifndef SERT_EXCEPTIONS_H
#define SERT_EXCEPTIONS_H

/* The maximum number of C++ runtimes: the shared runtime, the program's own, and those of admitted
 * modules. */
#define EXCEPTIONS_RUNTIMES 4

/* __cxa_eh_globals of the C++ ABI; libstdc++ and libc++abi have the same layout. */
struct exceptions {
    void *caught;
    unsigned uncaught;
};

/* Finds the C++ runtime of the objects whose names begin with `soname`, or of the program if
 * `soname` is NULL. Returns why the runtime's record cannot be restored; NULL if it can. Only one
 * thread at a time may call this function, and no request may run with a runtime that is found
 * later. */
const char *exceptions_find(const char *soname);

/* Copy the calling thread's records, one of each runtime, and restore them. */
void exceptions_keep(struct exceptions kept[EXCEPTIONS_RUNTIMES]);
void exceptions_restore(const struct exceptions kept[EXCEPTIONS_RUNTIMES]);

#endif
