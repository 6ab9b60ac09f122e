/* sert-run: runs a program with libsert before its C library, if it can be protected; with --lint, to say what
 * its requests would lose.
 *
 *   sert-run [--lint] [--library FILE] PROGRAM [ARGUMENT...]
 *
 * What cannot be protected (no dynamic glibc, an allocator of its own inside, another user's rights) is said, and
 * runs without. Exit code: the program's; 126 or 127 if it cannot be run; 2 for wrong use.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef LIBRARY
#define LIBRARY "libsert.so.1"
#endif

/* A whole program file; every offset in it is asked whether it is inside. */
struct file {
    const unsigned char *at;
    size_t size;
};

static const void *part(const struct file *file, size_t from, size_t length) {
    return from <= file->size && length <= file->size - from ? file->at + from : NULL;
}

static const char *text(const struct file *file, size_t from) {
    const char *is = part(file, from, 1);
    return is && memchr(is, 0, file->size - from) ? is : NULL;
}

/* Why a program of which the loader is `loader` is not for us, or NULL. */
static const char *fault_of_loader(const char *loader) {
    return loader == NULL ? "it is linked statically"
        : strstr(loader, "ld-linux-x86-64") == NULL ? "its C library is not glibc for x86-64" : NULL;
}

static bool defines_malloc(const struct file *file, const Elf64_Shdr *table, const Elf64_Shdr *names) {
    size_t count = table->sh_entsize == sizeof(Elf64_Sym) ? table->sh_size / sizeof(Elf64_Sym) : 0;
    const Elf64_Sym *symbols = part(file, table->sh_offset, count * sizeof(Elf64_Sym));
    for (size_t i = 0; symbols && i < count; i++) {
        const char *name = symbols[i].st_shndx == SHN_UNDEF || symbols[i].st_name >= names->sh_size
            ? NULL : text(file, names->sh_offset + symbols[i].st_name);
        if (name && strcmp(name, "malloc") == 0) {
            return true;
        }
    }
    return false;
}

static bool has_own_malloc(const struct file *file, const Elf64_Ehdr *head) {
    const Elf64_Shdr *sections = part(file, head->e_shoff, (size_t)head->e_shnum * sizeof(Elf64_Shdr));
    for (size_t i = 0; sections && i < head->e_shnum; i++) {
        bool is_table = sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < head->e_shnum;
        if (is_table && defines_malloc(file, &sections[i], &sections[sections[i].sh_link])) {
            return true;
        }
    }
    return false;
}

static const char *fault_of_program(const struct file *file) {
    const Elf64_Ehdr *head = part(file, 0, sizeof *head);
    if (head == NULL || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) {
        return "it is not an ELF program (of a script, name the interpreter)";
    }
    if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_machine != EM_X86_64) {
        return "it is not for x86-64";
    }
    const Elf64_Phdr *parts = part(file, head->e_phoff, (size_t)head->e_phnum * sizeof(Elf64_Phdr));
    const char *loader = NULL;
    for (size_t i = 0; parts && i < head->e_phnum; i++) {
        loader = parts[i].p_type == PT_INTERP ? text(file, parts[i].p_offset) : loader;
    }
    const char *fault = fault_of_loader(loader);
    return fault ? fault : has_own_malloc(file, head) ? "it has an allocator of its own inside" : NULL;
}

static const char *fault_of(const char *path) {
    struct stat is;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &is) != 0 || !S_ISREG(is.st_mode) || is.st_size == 0) {
        return "it cannot be read";
    }
    if (is.st_mode & (S_ISUID | S_ISGID)) {
        return "it runs with another's rights";
    }
    void *at = mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    return at == MAP_FAILED ? "it cannot be read" : fault_of_program(&(struct file){at, (size_t)is.st_size});
}

/* Where execvp would find it; NULL: nowhere. */
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
    fputs("sert-run [--lint] [--library FILE] PROGRAM [ARGUMENT...]\n", stderr);
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
