#include "lines.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image.h"

/* The maximum number of objects whose lines are looked up. */
#define OBJECTS 32u
/* Reads addresses from the standard input. The first argument is the object. */
#define COMMAND                                                                                        \
    "tool=addr2line; command -v $tool >/dev/null || tool=llvm-addr2line; "                             \
    "exec timeout 30 $tool -aifCe \"$1\" 2>/dev/null"

/* The text for a stack, and how far away its line is. */
struct text {
    char *is;
    unsigned depth;
};

static const struct link_map *object_of(uintptr_t at) {
    Dl_info info;
    void *map = NULL;
    return at && dladdr1((void *)at, &info, &map, RTLD_DL_LINKMAP) != 0 ? map : NULL;
}

/* Returns whether a line of debug information is in a source file, and not in a header of the
 * compiler or of an installed library. */
static bool is_own(const char *line) {
    static const char *const headers[] = {"/usr/include/", "/usr/lib/", "??"};
    bool is_own = strstr(line, "/include/c++/") == NULL && strstr(line, ":?") == NULL;
    for (unsigned i = 0; i < sizeof headers / sizeof *headers; i++) {
        is_own = is_own && strncmp(line, headers[i], strlen(headers[i])) != 0;
    }
    return is_own;
}

/* Writes the addresses of the stacks in an object for addr2line. A return address is that of the
 * instruction after the call. */
static void write_addresses(int fd, const struct stack stacks[], size_t count, const struct link_map *object) {
    for (size_t i = 0; i < count; i++) {
        for (unsigned depth = 0; depth < LINES_DEPTH; depth++) {
            if (object_of(stacks[i].at[depth]) == object) {
                dprintf(fd, "0x%zx\n", (size_t)(stacks[i].at[depth] - object->l_addr - 1));
            }
        }
    }
}

/* Reads a line without its end. Returns whether there is one. */
static bool read_line(FILE *from, char **line, size_t *room) {
    ssize_t length = getline(line, room, from);
    if (length > 0 && (*line)[length - 1] == '\n') {
        (*line)[length - 1] = 0;
    }
    return length > 0;
}

/* Reads what addr2line says about one address: pairs of a function and a line, first the innermost
 * inlined function. It is preceded by the address, and the next address follows. Keeps the first
 * line that is the program's own; until there is one, the first function. */
static void read_names(FILE *from, struct text *text, unsigned depth, char **line, size_t *room) {
    char *function = NULL;
    size_t function_room = 0;
    while (read_line(from, &function, &function_room) && strncmp(function, "0x", 2) != 0 && read_line(from, line, room)) {
        bool has_line = is_own(*line);
        if (depth < text->depth && (has_line || (text->is == NULL && strcmp(function, "??") != 0))) {
            free(text->is);
            text->is = NULL;
            char *discriminator = strstr(*line, " (discriminator");
            if (discriminator) {
                *discriminator = 0;
            }
            int length = has_line ? asprintf(&text->is, "%s (%s)", function, *line) : asprintf(&text->is, "%s", function);
            text->depth = length > 0 && has_line ? depth : text->depth;
        }
    }
    free(function);
}

static const char *path_of(const struct link_map *object, char into[PATH_MAX]) {
    ssize_t length = *object->l_name ? -1 : readlink(IMAGE_OF_PROGRAM, into, PATH_MAX - 1);
    if (length > 0) {
        into[length] = 0;
    }
    return length > 0 ? into : object->l_name;
}

/* Returns a copy of the environment without variables that would load this library into the
 * command, or let it use the network. */
static char **environment(void) {
    static const char *const without[] = {"LD_PRELOAD=", "SERT_LINT=", "DEBUGINFOD_URLS="};
    size_t count = 0, kept = 0;
    while (environ && environ[count]) {
        count++;
    }
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++) {
        bool is_kept = true;
        for (unsigned j = 0; j < sizeof without / sizeof *without; j++) {
            is_kept = is_kept && strncmp(environ[i], without[j], strlen(without[j])) != 0;
        }
        if (is_kept) {
            copy[kept++] = environ[i];
        }
    }
    return copy;
}

/* Starts the command, which reads from `input`. Returns a stream of its output, or NULL. */
static FILE *start(const char *object, int input, pid_t *child) {
    char *arguments[] = {"sh", "-c", COMMAND, "sh", (char *)(uintptr_t)object, NULL};
    char **variables = environment();
    int ends[2];
    if (variables == NULL || pipe2(ends, O_CLOEXEC) != 0) {
        free(variables);
        return NULL;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    bool has_started = posix_spawn(child, "/bin/sh", &actions, NULL, arguments, variables) == 0;
    posix_spawn_file_actions_destroy(&actions);
    free(variables);
    close(ends[1]);
    FILE *from = has_started ? fdopen(ends[0], "r") : NULL;
    if (from == NULL) {
        close(ends[0]);
    }
    return from;
}

static void name_object(const struct stack stacks[], struct text texts[], size_t count, const struct link_map *object) {
    char path[PATH_MAX], *line = NULL;
    size_t room = 0;
    pid_t child = 0;
    int addresses = memfd_create("addresses", MFD_CLOEXEC);
    write_addresses(addresses, stacks, count, object);
    lseek(addresses, 0, SEEK_SET);
    FILE *from = start(path_of(object, path), addresses, &child);
    bool has_more = from && read_line(from, &line, &room);
    for (size_t i = 0; has_more && i < count; i++) {
        for (unsigned depth = 0; depth < LINES_DEPTH; depth++) {
            if (object_of(stacks[i].at[depth]) == object) {
                read_names(from, &texts[i], depth, &line, &room);
            }
        }
    }
    if (from) {
        fclose(from);
    }
    if (child) {
        waitpid(child, NULL, 0);
    }
    free(line);
    close(addresses);
}

/* Returns the symbol at an address, as the loader knows it. */
static char *symbol_at(uintptr_t at) {
    Dl_info info = {0};
    char *text = NULL;
    if (at == 0 || dladdr((void *)at, &info) == 0) {
        return NULL;
    }
    uintptr_t base = (uintptr_t)(info.dli_sname ? info.dli_saddr : info.dli_fbase);
    const char *symbol = info.dli_sname ? info.dli_sname : "";
    return asprintf(&text, "%s %s+0x%zx", info.dli_fname, symbol, (size_t)(at - base)) > 0 ? text : NULL;
}

char **lines_of(const struct stack stacks[], size_t count) {
    const struct link_map *objects[OBJECTS];
    unsigned known = 0;
    struct text *texts = calloc(count, sizeof *texts);
    char **lines = calloc(count, sizeof *lines);
    for (size_t i = 0; i < count && texts; i++) {
        texts[i].depth = LINES_DEPTH;
    }
    for (size_t i = 0; i < count * LINES_DEPTH && texts && known < OBJECTS; i++) {
        const struct link_map *object = object_of(stacks[i / LINES_DEPTH].at[i % LINES_DEPTH]);
        bool is_new = object != NULL;
        for (unsigned j = 0; j < known; j++) {
            is_new = is_new && objects[j] != object;
        }
        if (is_new) {
            objects[known++] = object;
            name_object(stacks, texts, count, object);
        }
    }
    for (size_t i = 0; i < count && texts && lines; i++) {
        lines[i] = texts[i].is ? texts[i].is : symbol_at(stacks[i].at[0]);
    }
    free(texts);
    return lines;
}
