/* sert-run: runs a program with libsert preloaded, if the program can be protected; with --lint, it
 * reports what the program's requests would lose.
 *
 *   sert-run [--lint] [--library FILE] PROGRAM [ARGUMENT...]
 *
 * A program that cannot be protected runs without libsert, and sert-run reports why: no dynamic
 * glibc, an allocator or an unknown C++ runtime inside, or another user's rights. Exit code: the
 * program's; 126 or 127 if it cannot be run; 2 for wrong usage. */
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../src/arch.h"
#include "../src/image.h"

#ifndef LIBRARY
#define LIBRARY "libsert.so.1"
#endif

/* Returns why a program with this loader cannot be protected; NULL if it can. */
static const char *fault_of_loader(const char *loader) {
    return loader == NULL ? "it is linked statically"
        : strstr(loader, ARCH_LOADER) == NULL ? "its C library is not glibc for " ARCH_NAME : NULL;
}

static const char *fault_of_program(const struct image *file) {
    const Elf64_Ehdr *head = image_part(file, 0, sizeof *head);
    if (head == NULL || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) {
        return "it is not an ELF program (for a script, name its interpreter)";
    }
    if (!image_is_known(file)) {
        return "it is not for " ARCH_NAME;
    }
    const Elf64_Phdr *parts = image_part(file, head->e_phoff, (size_t)head->e_phnum * sizeof(Elf64_Phdr));
    const char *loader = NULL;
    for (size_t i = 0; parts && i < head->e_phnum; i++) {
        loader = parts[i].p_type == PT_INTERP ? image_text(file, parts[i].p_offset) : loader;
    }
    const char *fault = fault_of_loader(loader);
    return fault ? fault
        : image_exports(file, "malloc", NULL) ? "it contains its own memory allocator"
        : image_runtime_fault(file);
}

static const char *fault_of(const char *path) {
    struct stat is;
    struct image image;
    if (stat(path, &is) == 0 && is.st_mode & (S_ISUID | S_ISGID)) {
        return "it runs with the rights of another user (setuid or setgid)";
    }
    return image_open(&image, path) ? fault_of_program(&image) : "it cannot be read";
}

/* Returns the path where execvp would find the program; NULL if there is none. */
static const char *find(const char *name, char into[PATH_MAX]) {
    if (strchr(name, '/')) {
        return name;
    }
    const char *path = getenv("PATH");
    for (const char *from = path ? path : "/usr/bin:/bin"; *from;) {
        size_t length = strcspn(from, ":");
        int written = snprintf(into, PATH_MAX, "%.*s/%s", (int)length, from, name);
        if (written > 0 && written < PATH_MAX && access(into, X_OK) == 0) {
            return into;
        }
        from += length + (from[length] == ':');
    }
    return NULL;
}

static void preload(const char *library) {
    const char *before = getenv("LD_PRELOAD");
    char *both = NULL;
    if (asprintf(&both, "%s%s%s", library, before && *before ? " " : "", before ? before : "") < 0) {
        abort();
    }
    setenv("LD_PRELOAD", both, 1);
    free(both);
}

static int wrong_use(void) {
    fputs("usage: sert-run [--lint] [--library FILE] PROGRAM [ARGUMENT...]\n", stderr);
    return 2;
}

int main(int argc, char **argv) {
    const char *library = LIBRARY;
    int next = 1;
    for (; next < argc && strncmp(argv[next], "--", 2) == 0; next++) {
        if (strcmp(argv[next], "--lint") == 0) {
            setenv("SERT_LINT", "1", 1);
        } else if (strcmp(argv[next], "--library") == 0 && next + 1 < argc) {
            library = argv[++next];
        } else {
            return wrong_use();
        }
    }
    if (next >= argc) {
        return wrong_use();
    }
    char path[PATH_MAX];
    const char *program = find(argv[next], path);
    if (program == NULL) {
        fprintf(stderr, "sert-run: %s: not found\n", argv[next]);
        return 127;
    }
    const char *fault = fault_of(program);
    if (fault) {
        fprintf(stderr, "sert-run: %s is not protected: %s\n", argv[next], fault);
    } else {
        preload(library);
    }
    execv(program, argv + next);
    fprintf(stderr, "sert-run: %s: %s\n", program, strerror(errno));
    return 126;
}
