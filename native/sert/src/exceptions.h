/* The record of a thread's exceptions, in each C++ runtime that code of the program uses.
 *
 * A stop leaves a catch block without its end, so the record becomes what it was at the start of the request. The next
 * exception would otherwise be chained to one whose memory the stop has freed. */
#ifndef SERT_EXCEPTIONS_H
#define SERT_EXCEPTIONS_H

/* The shared runtime, the program's own, and those of admitted modules. */
#define EXCEPTIONS_RUNTIMES 4

/* __cxa_eh_globals of the C++ ABI; libstdc++ and libc++abi have the same. */
struct exceptions {
    void *caught;
    unsigned uncaught;
};

/* Finds the runtime of the objects whose names begin with `soname`, or of the program if it is NULL. Returns why its
 * record cannot be put back, or NULL. One thread at a time; no request runs with a runtime that was found later. */
const char *exceptions_find(const char *soname);

/* Copies the calling thread's records, one of each runtime, and puts them back. */
void exceptions_keep(struct exceptions kept[EXCEPTIONS_RUNTIMES]);
void exceptions_restore(const struct exceptions kept[EXCEPTIONS_RUNTIMES]);

#endif
