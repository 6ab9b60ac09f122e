/* Functions of libc that leave something behind which a stop cannot release: memory that libc
 * allocates for an object of its caller, a timer, an attached segment, a key. A function after
 * which libc or the kernel goes on using memory of its caller is one of them.
 *
 * Such a call makes the request unstoppable from then on. Only calls on the program's behalf count,
 * because libc releases what it acquires for itself. The manual lists the functions. */
#include <aio.h>
#include <argz.h>
#include <envz.h>
#include <fcntl.h>
#include <fts.h>
#include <iconv.h>
#include <locale.h>
#include <mqueue.h>
#include <netdb.h>
#include <nl_types.h>
#include <obstack.h>
#include <pthread.h>
/* Use its prototypes without variable-length arrays. */
#define _REGEX_NELTS(n)
#define _REGEX_RE_COMP
#include <regex.h>
#include <resolv.h>
#include <search.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/profil.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <wordexp.h>

#include "futex.h"
#include "gate.h"
#include "real.h"
#include "stop.h"
#include "thread.h"

/* libc, the loader and the allocator release what they get for themselves. */
static void kept(const char *why, void *caller) {
    if (!gate_is_libc((uintptr_t)caller) && !gate_is_allocator((uintptr_t)caller)) {
        stop_spoilt(why, caller);
    }
}

/* KEEPS(int, name, (int a, int b), (a, b)) stands before name(a, b). */
#define KEEPS_VERSION(result, name, version, parameters, arguments)                                    \
    STANDS_BEFORE result name parameters {                                                             \
        kept("calls " #name, __builtin_return_address(0));                                             \
        return REAL_VERSION(name, version) arguments;                                                  \
    }
#define KEEPS(result, name, parameters, arguments) KEEPS_VERSION(result, name, NULL, parameters, arguments)

/* --- Memory that belongs to an object of the caller, or to libc's own tables --- */

KEEPS(iconv_t, iconv_open, (const char *to, const char *from), (to, from))
KEEPS(FTS *, fts_open, (char *const *paths, int options, int (*compare)(const FTSENT **, const FTSENT **)), (paths, options, compare))
KEEPS(FTS64 *, fts64_open, (char *const *paths, int options, int (*compare)(const FTSENT64 **, const FTSENT64 **)), (paths, options, compare))
KEEPS(int, hcreate, (size_t most), (most))
KEEPS(int, hcreate_r, (size_t most, struct hsearch_data *table), (most, table))
KEEPS(void *, tsearch, (const void *item, void **root, __compar_fn_t compare), (item, root, compare))
KEEPS(int, wordexp, (const char *text, wordexp_t *words, int flags), (text, words, flags))
KEEPS(locale_t, newlocale, (int categories, const char *name, locale_t base), (categories, name, base))
KEEPS(locale_t, duplocale, (locale_t from), (from))
ALSO(__newlocale, newlocale);
ALSO(__duplocale, duplocale);
KEEPS(char *, setlocale, (int category, const char *name), (category, name))
KEEPS(nl_catd, catopen, (const char *name, int flags), (name, flags))
KEEPS(FILE *, fopencookie, (void *cookie, const char *mode, cookie_io_functions_t functions), (cookie, mode, functions))

KEEPS(error_t, argz_create, (char *const arguments[], char **list, size_t *size), (arguments, list, size))
KEEPS(error_t, argz_create_sep, (const char *text, int separator, char **list, size_t *size), (text, separator, list, size))
KEEPS(error_t, argz_append, (char **list, size_t *size, const char *more, size_t length), (list, size, more, length))
KEEPS(error_t, argz_add, (char **list, size_t *size, const char *more), (list, size, more))
KEEPS(error_t, argz_add_sep, (char **list, size_t *size, const char *more, int separator), (list, size, more, separator))
KEEPS(error_t, argz_insert, (char **list, size_t *size, char *before, const char *more), (list, size, before, more))
KEEPS(error_t, argz_replace, (char **list, size_t *size, const char *text, const char *with, unsigned *count), (list, size, text, with, count))
KEEPS(error_t, envz_add, (char **list, size_t *size, const char *name, const char *value), (list, size, name, value))
KEEPS(error_t, envz_merge, (char **list, size_t *size, const char *other, size_t length, int wins), (list, size, other, length, wins))

/* libc calls the program's own malloc for an obstack. */
KEEPS(int, _obstack_begin, (struct obstack *stack, int size, int alignment, void *(*get)(long), void (*put)(void *)), (stack, size, alignment, get, put))
KEEPS(int, _obstack_begin_1, (struct obstack *stack, int size, int alignment, void *(*get)(void *, long), void (*put)(void *, void *), void *arg), (stack, size, alignment, get, put, arg))
KEEPS(void, _obstack_newchunk, (struct obstack *stack, int length), (stack, length))
KEEPS(int, obstack_vprintf, (struct obstack *stack, const char *format, va_list more), (stack, format, more))
int __obstack_vprintf_chk(struct obstack *stack, int flag, const char *format, va_list more);
int __obstack_printf_chk(struct obstack *stack, int flag, const char *format, ...);
KEEPS(int, __obstack_vprintf_chk, (struct obstack *stack, int flag, const char *format, va_list more), (stack, flag, format, more))
STANDS_BEFORE int obstack_printf(struct obstack *stack, const char *format, ...) {
    va_list more;
    va_start(more, format);
    kept("calls obstack_printf", __builtin_return_address(0));
    int length = REAL(obstack_vprintf)(stack, format, more);
    va_end(more);
    return length;
}
STANDS_BEFORE int __obstack_printf_chk(struct obstack *stack, int flag, const char *format, ...) {
    va_list more;
    va_start(more, format);
    kept("calls obstack_printf", __builtin_return_address(0));
    int length = REAL(__obstack_vprintf_chk)(stack, flag, format, more);
    va_end(more);
    return length;
}

KEEPS(int, posix_spawn_file_actions_addopen, (posix_spawn_file_actions_t *all, int fd, const char *path, int flags, mode_t mode), (all, fd, path, flags, mode))
KEEPS(int, posix_spawn_file_actions_addclose, (posix_spawn_file_actions_t *all, int fd), (all, fd))
KEEPS(int, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t *all, int fd, int to), (all, fd, to))
KEEPS(int, posix_spawn_file_actions_addchdir_np, (posix_spawn_file_actions_t *all, const char *path), (all, path))
KEEPS(int, posix_spawn_file_actions_addfchdir_np, (posix_spawn_file_actions_t *all, int fd), (all, fd))
KEEPS(int, posix_spawn_file_actions_addclosefrom_np, (posix_spawn_file_actions_t *all, int from), (all, from))
KEEPS(int, posix_spawn_file_actions_addtcsetpgrp_np, (posix_spawn_file_actions_t *all, int fd), (all, fd))

KEEPS(int, pthread_getattr_np, (pthread_t thread, pthread_attr_t *attributes), (thread, attributes))
KEEPS_VERSION(int, pthread_attr_setaffinity_np, "GLIBC_2.3.4", (pthread_attr_t *attributes, size_t size, const cpu_set_t *set), (attributes, size, set))
KEEPS(int, pthread_attr_setsigmask_np, (pthread_attr_t *attributes, const sigset_t *set), (attributes, set))
KEEPS(int, pthread_getattr_default_np, (pthread_attr_t *attributes), (attributes))

/* The expressions of GNU's interface: each search may add states to them. */
KEEPS(const char *, re_compile_pattern, (const char *text, size_t length, struct re_pattern_buffer *into), (text, length, into))
KEEPS(regoff_t, re_search, (struct re_pattern_buffer *expression, const char *text, regoff_t length, regoff_t from, regoff_t range, struct re_registers *found), (expression, text, length, from, range, found))
KEEPS(regoff_t, re_search_2, (struct re_pattern_buffer *expression, const char *text, regoff_t length, const char *more, regoff_t more_length, regoff_t from, regoff_t range, struct re_registers *found, regoff_t end), (expression, text, length, more, more_length, from, range, found, end))
KEEPS(regoff_t, re_match, (struct re_pattern_buffer *expression, const char *text, regoff_t length, regoff_t from, struct re_registers *found), (expression, text, length, from, found))
KEEPS(regoff_t, re_match_2, (struct re_pattern_buffer *expression, const char *text, regoff_t length, const char *more, regoff_t more_length, regoff_t from, struct re_registers *found, regoff_t end), (expression, text, length, more, more_length, from, found, end))
KEEPS(char *, re_comp, (const char *text), (text))
KEEPS(int, re_exec, (const char *text), (text))

/* --- Memory of the caller that libc goes on using after the call --- */

KEEPS(int, aio_read, (struct aiocb *order), (order))
KEEPS(int, aio_read64, (struct aiocb64 *order), (order))
KEEPS(int, aio_write, (struct aiocb *order), (order))
KEEPS(int, aio_write64, (struct aiocb64 *order), (order))
KEEPS(int, aio_fsync, (int operation, struct aiocb *order), (operation, order))
KEEPS(int, aio_fsync64, (int operation, struct aiocb64 *order), (operation, order))
KEEPS(int, lio_listio, (int mode, struct aiocb *const list[], int count, struct sigevent *event), (mode, list, count, event))
KEEPS(int, lio_listio64, (int mode, struct aiocb64 *const list[], int count, struct sigevent *event), (mode, list, count, event))
KEEPS(int, getaddrinfo_a, (int mode, struct gaicb *list[], int count, struct sigevent *event), (mode, list, count, event))
KEEPS(int, profil, (unsigned short *counts, size_t size, size_t offset, unsigned scale), (counts, size, offset, scale))
KEEPS(int, sprofil, (struct prof *parts, int count, struct timeval *interval, unsigned flags), (parts, count, interval, flags))
STANDS_BEFORE int sigaltstack(const stack_t *stack, stack_t *before) {
    if (stack && !(stack->ss_flags & SS_DISABLE)) {
        kept("calls sigaltstack", __builtin_return_address(0));
    }
    return REAL(sigaltstack)(stack, before);
}
KEEPS(char *, initstate, (unsigned seed, char *state, size_t size), (seed, state, size))
KEEPS(char *, setstate, (char *state), (state))
KEEPS(int, putenv, (char *text), (text))
KEEPS(void, openlog, (const char *name, int options, int facility), (name, options, facility))

/* --- What the process or the kernel keeps --- */

KEEPS(int, pthread_key_create, (pthread_key_t *key, void (*destroy)(void *)), (key, destroy))
ALSO(__pthread_key_create, pthread_key_create);
KEEPS(int, tss_create, (tss_t *key, tss_dtor_t destroy), (key, destroy))
KEEPS_VERSION(int, timer_create, "GLIBC_2.3.3", (clockid_t clock, struct sigevent *event, timer_t *timer), (clock, event, timer))
KEEPS(void *, shmat, (int segment, const void *where, int flags), (segment, where, flags))
KEEPS(int, mq_notify, (mqd_t queue, const struct sigevent *event), (queue, event))
KEEPS(int, pkey_alloc, (unsigned flags, unsigned rights), (flags, rights))
STANDS_BEFORE sem_t *sem_open(const char *name, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    unsigned value = flags & O_CREAT ? va_arg(more, unsigned) : 0;
    va_end(more);
    kept("calls sem_open", __builtin_return_address(0));
    return REAL(sem_open)(name, flags, mode, value);
}
/* The state of a resolver has memory and sockets. __res_ninit is the name of res_ninit. */
KEEPS(int, __res_ninit, (struct __res_state *state), (state))
/* They close descriptors of others. */
KEEPS(int, close_range, (unsigned first, unsigned last, int flags), (first, last, flags))
KEEPS(void, closefrom, (int first), (first))

/* Returns whether a system call leaves nothing behind in the process. Any other may open or map
 * something. */
static bool leaves_nothing(long number) {
    switch (number) {
    ARCH_OLD_CALLS
    case SYS_futex:
    case SYS_gettid:
    case SYS_getpid:
    case SYS_getppid:
    case SYS_getuid:
    case SYS_geteuid:
    case SYS_getgid:
    case SYS_getegid:
    case SYS_getcpu:
    case SYS_getrandom:
    case SYS_getrusage:
    case SYS_sysinfo:
    case SYS_uname:
    case SYS_gettimeofday:
    case SYS_clock_gettime:
    case SYS_clock_getres:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_sched_yield:
    case SYS_kill:
    case SYS_tkill:
    case SYS_tgkill:
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
    case SYS_sched_getaffinity:
    case SYS_membarrier:
    case SYS_madvise:
    case SYS_mincore:
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
    case SYS_preadv2:
    case SYS_lseek:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_fstat:
    case SYS_newfstatat:
    case SYS_statx:
    case SYS_faccessat:
    case SYS_readlinkat:
    case SYS_getdents64:
        return true;
    default:
        return false;
    }
}

__attribute__((visibility("hidden"))) void *keeps_syscall(long number, void *caller);

/* Returns the function in which calls.S continues for this system call. calls.S calls it. A request
 * may wait at a futex (futex.c). */
void *keeps_syscall(long number, void *caller) {
    if (!leaves_nothing(number)) {
        kept("makes a system call that may leave something behind", caller);
    }
    return number == SYS_futex ? (void *)futex_call : (void *)REAL(syscall);
}
