/* Memory that libc allocates and its caller frees; and functions of libc that call the program
 * back.
 *
 * If the result is one block, it becomes the request's afterwards: libc may have allocated more on
 * the way, for example for an older stream. If the result is many blocks, all allocations during
 * the call are the request's. */
#include <dirent.h>
#include <execinfo.h>
#include <ftw.h>
#include <glob.h>
#include <ifaddrs.h>
#include <link.h>
#include <net/if.h>
/* Use its prototypes without variable-length arrays. */
#define _REGEX_NELTS(n)
#include <regex.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "mask.h"
#include "memory.h"
#include "real.h"
#include "stop.h"
#include "thread.h"

static struct thread *taker(void) {
    struct thread *thread = thread_request();
    return thread && !thread->unaccounted ? thread : NULL;
}

/* --- One block --- */

static void *taken_by(void *result, void *caller) {
    struct thread *thread = taker();
    if (thread) {
        memory_adopt(thread, result);
        stop_here(thread, caller);
    }
    return result;
}
#define TAKEN(result) taken_by(result, __builtin_return_address(0))

#undef strdup
#undef strndup
STANDS_BEFORE char *strdup(const char *text) {
    return TAKEN(REAL(strdup)(text));
}
char *__strdup(const char *text);
STANDS_BEFORE char *__strdup(const char *text) {
    return TAKEN(REAL(__strdup)(text));
}
STANDS_BEFORE char *strndup(const char *text, size_t most) {
    return TAKEN(REAL(strndup)(text, most));
}
ALSO(__strndup, strndup);
STANDS_BEFORE wchar_t *wcsdup(const wchar_t *text) {
    return TAKEN(REAL(wcsdup)(text));
}
STANDS_BEFORE char *canonicalize_file_name(const char *path) {
    return TAKEN(REAL(canonicalize_file_name)(path));
}
STANDS_BEFORE char *get_current_dir_name(void) {
    return TAKEN(REAL(get_current_dir_name)());
}
STANDS_BEFORE char *tempnam(const char *directory, const char *prefix) {
    return TAKEN(REAL(tempnam)(directory, prefix));
}
STANDS_BEFORE char **backtrace_symbols(void *const *addresses, int count) {
    return TAKEN(REAL(backtrace_symbols)(addresses, count));
}
ALSO(__backtrace_symbols, backtrace_symbols);
/* The whole list is one block. */
STANDS_BEFORE int getifaddrs(struct ifaddrs **list) {
    int result = REAL(getifaddrs)(list);
    return result == 0 ? (taken_by(*list, __builtin_return_address(0)), 0) : result;
}
/* Only if the caller passes no buffer. */
STANDS_BEFORE char *realpath(const char *path, char *into) {
    char *result = REAL_VERSION(realpath, "GLIBC_2.3")(path, into);
    return into ? result : TAKEN(result);
}
STANDS_BEFORE char *getcwd(char *into, size_t size) {
    char *result = REAL(getcwd)(into, size);
    return into ? result : TAKEN(result);
}

/* A line is the request's if the caller passed none. A longer line in place of the request's own is
 * its own too; in place of an older one it is not. */
static ssize_t line_taken(ssize_t length, const void *before, void *line, void *caller) {
    if (before == NULL) {
        taken_by(line, caller);
    }
    return length;
}
STANDS_BEFORE ssize_t getdelim(char **line, size_t *size, int end, FILE *stream) {
    void *before = *line;
    ssize_t length = REAL(getdelim)(line, size, end, stream);
    return line_taken(length, before, *line, __builtin_return_address(0));
}
ssize_t __getdelim(char **line, size_t *size, int end, FILE *stream);
STANDS_BEFORE ssize_t __getdelim(char **line, size_t *size, int end, FILE *stream) {
    void *before = *line;
    ssize_t length = REAL(__getdelim)(line, size, end, stream);
    return line_taken(length, before, *line, __builtin_return_address(0));
}
STANDS_BEFORE ssize_t getline(char **line, size_t *size, FILE *stream) {
    void *before = *line;
    ssize_t length = REAL(getline)(line, size, stream);
    return line_taken(length, before, *line, __builtin_return_address(0));
}

static int printed(int length, char **text, void *caller) {
    if (length >= 0) {
        taken_by(*text, caller);
    }
    return length;
}
STANDS_BEFORE int vasprintf(char **text, const char *format, va_list more) {
    return printed(REAL(vasprintf)(text, format, more), text, __builtin_return_address(0));
}
STANDS_BEFORE int asprintf(char **text, const char *format, ...) {
    va_list more;
    va_start(more, format);
    int length = printed(REAL(vasprintf)(text, format, more), text, __builtin_return_address(0));
    va_end(more);
    return length;
}
ALSO(__asprintf, asprintf);
int __vasprintf_chk(char **text, int flag, const char *format, va_list more);
int __asprintf_chk(char **text, int flag, const char *format, ...);
STANDS_BEFORE int __vasprintf_chk(char **text, int flag, const char *format, va_list more) {
    return printed(REAL(__vasprintf_chk)(text, flag, format, more), text, __builtin_return_address(0));
}
STANDS_BEFORE int __asprintf_chk(char **text, int flag, const char *format, ...) {
    va_list more;
    va_start(more, format);
    int length = printed(REAL(__vasprintf_chk)(text, flag, format, more), text, __builtin_return_address(0));
    va_end(more);
    return length;
}

/* --- Many blocks, and callbacks: libc is active meanwhile --- */

static void charging_ends(struct thread *const *thread) {
    if (*thread) {
        (*thread)->charging_anyway--;
    }
}
#define CHARGED                                                                                        \
    __attribute__((cleanup(charging_ends), unused)) struct thread *charged_ = taker();                 \
    if (charged_) charged_->charging_anyway++

STANDS_BEFORE int regcomp(regex_t *expression, const char *pattern, int flags) {
    CHARGED;
    return REAL(regcomp)(expression, pattern, flags);
}

/* The states that a search adds belong to the expression. An expression that is older than the
 * request keeps them. */
STANDS_BEFORE int regexec(const regex_t *expression, const char *text, size_t most, regmatch_t found[], int flags) {
    struct thread *thread = taker(), *own = thread && memory_is_own(thread, *(void *const *)expression) ? thread : NULL;
    __attribute__((cleanup(charging_ends), unused)) struct thread *charged = own;
    if (own) {
        own->charging_anyway++;
    }
    return REAL_VERSION(regexec, "GLIBC_2.3.4")(expression, text, most, found, flags);
}
STANDS_BEFORE struct if_nameindex *if_nameindex(void) {
    CHARGED;
    return REAL(if_nameindex)();
}

typedef int pick_entry(const struct dirent *);
typedef int pick_entry64(const struct dirent64 *);
typedef int order_entries(const struct dirent **, const struct dirent **);
typedef int order_entries64(const struct dirent64 **, const struct dirent64 **);
STANDS_BEFORE int scandir(const char *path, struct dirent ***list, pick_entry *pick, order_entries *order) {
    MASKED;
    CHARGED;
    return REAL(scandir)(path, list, pick, order);
}
STANDS_BEFORE int scandir64(const char *path, struct dirent64 ***list, pick_entry64 *pick, order_entries64 *order) {
    MASKED;
    CHARGED;
    return REAL(scandir64)(path, list, pick, order);
}
STANDS_BEFORE int scandirat(int at, const char *path, struct dirent ***list, pick_entry *pick, order_entries *order) {
    MASKED;
    CHARGED;
    return REAL(scandirat)(at, path, list, pick, order);
}
STANDS_BEFORE int scandirat64(int at, const char *path, struct dirent64 ***list, pick_entry64 *pick, order_entries64 *order) {
    MASKED;
    CHARGED;
    return REAL(scandirat64)(at, path, list, pick, order);
}

STANDS_BEFORE int glob(const char *pattern, int flags, int (*wrong)(const char *, int), glob_t *found) {
    MASKED;
    CHARGED;
    return REAL_VERSION(glob, "GLIBC_2.27")(pattern, flags, wrong, found);
}
STANDS_BEFORE int glob64(const char *pattern, int flags, int (*wrong)(const char *, int), glob64_t *found) {
    MASKED;
    CHARGED;
    return REAL_VERSION(glob64, "GLIBC_2.27")(pattern, flags, wrong, found);
}

STANDS_BEFORE void qsort(void *at, size_t count, size_t size, __compar_fn_t compare) {
    MASKED;
    REAL(qsort)(at, count, size, compare);
}
STANDS_BEFORE void qsort_r(void *at, size_t count, size_t size, __compar_d_fn_t compare, void *arg) {
    MASKED;
    REAL(qsort_r)(at, count, size, compare, arg);
}
STANDS_BEFORE void twalk(const void *root, __action_fn_t action) {
    MASKED;
    REAL(twalk)(root, action);
}
STANDS_BEFORE void tdestroy(void *root, __free_fn_t release) {
    MASKED;
    REAL(tdestroy)(root, release);
}
STANDS_BEFORE int ftw(const char *path, __ftw_func_t visit, int most) {
    MASKED;
    return REAL(ftw)(path, visit, most);
}
STANDS_BEFORE int ftw64(const char *path, __ftw64_func_t visit, int most) {
    MASKED;
    return REAL(ftw64)(path, visit, most);
}
STANDS_BEFORE int nftw(const char *path, __nftw_func_t visit, int most, int flags) {
    MASKED;
    return REAL_VERSION(nftw, "GLIBC_2.3.3")(path, visit, most, flags);
}
STANDS_BEFORE int nftw64(const char *path, __nftw64_func_t visit, int most, int flags) {
    MASKED;
    return REAL_VERSION(nftw64, "GLIBC_2.3.3")(path, visit, most, flags);
}
STANDS_BEFORE int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *arg) {
    MASKED;
    return REAL(dl_iterate_phdr)(visit, arg);
}
