/* [paper 2.10] A program that was linked with -static-libstdc++ (or a static libc++abi) has a C++
 * runtime of its own, with its own record of caught exceptions and its own guards of function
 * statics. The record must be restored after a stop, so its address must be known. The guards must
 * be libsert's, or a stop would leave one taken forever.
 *
 * A symbol table tells both. A stripped program has only its dynamic symbols; if they do not name
 * the record, the program is refused. */
#include "image.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch.h"

#define GUARD "__cxa_guard_acquire"

const void *image_part(const struct image *image, size_t from, size_t length) {
    return from <= image->size && length <= image->size - from ? image->at + from : NULL;
}

const char *image_text(const struct image *image, size_t from) {
    const char *is = image_part(image, from, 1);
    return is && memchr(is, 0, image->size - from) ? is : NULL;
}

bool image_is_known(const struct image *image) {
    const Elf64_Ehdr *head = image_part(image, 0, sizeof *head);
    return head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64 && head->e_machine == ARCH_MACHINE;
}

bool image_open(struct image *image, const char *path) {
    struct stat is;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *at = fd >= 0 && fstat(fd, &is) == 0 && S_ISREG(is.st_mode) ? mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (fd >= 0) {
        close(fd);
    }
    *image = at == MAP_FAILED ? (struct image){0} : (struct image){at, (size_t)is.st_size};
    return at != MAP_FAILED;
}

void image_close(const struct image *image) {
    munmap((void *)(uintptr_t)image->at, image->size);
}

static const Elf64_Sym *find_in(const struct image *image, const Elf64_Shdr *table, const Elf64_Shdr *names, const char *name) {
    size_t count = table->sh_entsize == sizeof(Elf64_Sym) ? table->sh_size / sizeof(Elf64_Sym) : 0;
    const Elf64_Sym *symbols = image_part(image, table->sh_offset, count * sizeof(Elf64_Sym));
    for (size_t i = 0; symbols && i < count; i++) {
        const char *is = symbols[i].st_shndx == SHN_UNDEF || symbols[i].st_name >= names->sh_size
            ? NULL : image_text(image, names->sh_offset + symbols[i].st_name);
        if (is && strcmp(is, name) == 0) {
            return &symbols[i];
        }
    }
    return NULL;
}

/* Looks into each symbol table of this kind (SHT_DYNSYM or SHT_SYMTAB). Sets `has_table` to whether
 * there is one. */
static const Elf64_Sym *find(const struct image *image, uint32_t kind, const char *name, bool *has_table) {
    const Elf64_Ehdr *head = image_is_known(image) ? image_part(image, 0, sizeof *head) : NULL;
    const Elf64_Shdr *sections = head ? image_part(image, head->e_shoff, (size_t)head->e_shnum * sizeof(Elf64_Shdr)) : NULL;
    const Elf64_Sym *found = NULL;
    *has_table = false;
    for (size_t i = 0; sections && found == NULL && i < head->e_shnum; i++) {
        if (sections[i].sh_type == kind && sections[i].sh_link < head->e_shnum) {
            *has_table = true;
            found = find_in(image, &sections[i], &sections[sections[i].sh_link], name);
        }
    }
    return found;
}

bool image_exports(const struct image *image, const char *name, uint64_t *value) {
    bool has_table;
    const Elf64_Sym *found = find(image, SHT_DYNSYM, name, &has_table);
    if (found && value) {
        *value = found->st_value;
    }
    return found != NULL;
}

bool image_defines(const struct image *image, const char *name, uint64_t *value) {
    bool has_table;
    const Elf64_Sym *found = find(image, SHT_SYMTAB, name, &has_table);
    if (found && value) {
        *value = found->st_value;
    }
    return found != NULL || image_exports(image, name, value);
}

static bool is_stripped(const struct image *image) {
    bool has_table;
    find(image, SHT_SYMTAB, IMAGE_RECORD, &has_table);
    return !has_table;
}

/* Returns whether the bytes contain a C++ runtime. Every C++ runtime holds the names of the types
 * of namespace __cxxabiv1. The symbols that a program imports from a shared runtime
 * (_ZTIN10__cxxabiv1...) do not begin so. */
bool image_has_runtime(const void *at, size_t size) {
    static const char name[] = "\0N10__cxxabiv1";
    return memmem(at, size, name, sizeof name - 1) != NULL;
}

const char *image_runtime_fault(const struct image *image) {
    if (!image_has_runtime(image->at, image->size)) {
        return NULL;
    }
    if (image_defines(image, GUARD, NULL)) {
        return "its C++ runtime is linked in and guards function statics itself (link with -lsert before that runtime)";
    }
    if (!image_defines(image, IMAGE_RECORD, NULL) && is_stripped(image)) {
        return "its C++ runtime is linked in and stripped: the record of caught exceptions cannot be found (link with "
               "-Wl,--export-dynamic-symbol=" IMAGE_RECORD ", or keep the symbols)";
    }
    return NULL;
}
