#include "exceptions.h"

#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "gate.h"
#include "image.h"
#include "real.h"

typedef struct exceptions *record_of_thread(void);

/* Entries are written before `count` is. */
static record_of_thread *records[EXCEPTIONS_RUNTIMES];
static _Atomic unsigned count;

static const char *add(record_of_thread *record) {
    unsigned known = atomic_load(&count);
    for (unsigned i = 0; i < known; i++) {
        if (records[i] == record) {
            return NULL;
        }
    }
    if (known == EXCEPTIONS_RUNTIMES) {
        return "there are too many C++ runtimes in this process";
    }
    records[known] = record;
    atomic_store_explicit(&count, known + 1, memory_order_release);
    return NULL;
}

static bool has_runtime(const struct dl_phdr_info *object) {
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_R
            && image_has_runtime((const void *)(object->dlpi_addr + segment->p_vaddr), segment->p_filesz)) {
            return true;
        }
    }
    return false;
}

/* Returns whether the object was loaded from this file. A file that was replaced since has other
 * addresses. */
static bool is_loaded_from(const struct dl_phdr_info *object, const struct image *image) {
    const ElfW(Ehdr) *head = image_is_known(image) ? image_part(image, 0, sizeof *head) : NULL;
    size_t size = (size_t)object->dlpi_phnum * sizeof(ElfW(Phdr));
    const void *segments = head && head->e_phnum == object->dlpi_phnum ? image_part(image, head->e_phoff, size) : NULL;
    return segments && memcmp(segments, object->dlpi_phdr, size) == 0;
}

static const char *add_from(const struct dl_phdr_info *object, const struct image *image) {
    if (!is_loaded_from(object, image)) {
        return "its C++ runtime is linked in, and its file is not the one that was loaded";
    }
    const char *fault = image_runtime_fault(image);
    uint64_t record;
    /* A runtime without a record throws nothing. */
    bool has_record = !fault && image_defines(image, IMAGE_RECORD, &record);
    return has_record ? add((record_of_thread *)(object->dlpi_addr + record)) : fault;
}

static const char *add_own(const struct dl_phdr_info *object) {
    struct image image;
    if (!image_open(&image, *object->dlpi_name ? object->dlpi_name : IMAGE_OF_PROGRAM)) {
        return "its C++ runtime is linked in, and its file cannot be read";
    }
    const char *fault = add_from(object, &image);
    image_close(&image);
    return fault;
}

struct search {
    const char *soname, *fault;
    bool is_first;
};

/* Looks for the object in `context`. The program is the first object. */
static int look(struct dl_phdr_info *object, size_t size, void *context) {
    (void)size;
    struct search *search = context;
    bool is_it = search->soname ? gate_has_name(object->dlpi_name, search->soname) : search->is_first;
    search->is_first = false;
    if (is_it && has_runtime(object)) {
        search->fault = add_own(object);
    }
    return search->fault != NULL;
}

const char *exceptions_find(const char *soname) {
    struct search search = {.soname = soname, .is_first = true};
    record_of_thread *shared = (record_of_thread *)real_or_null(IMAGE_RECORD);
    search.fault = shared ? add(shared) : NULL;
    if (search.fault == NULL) {
        REAL(dl_iterate_phdr)(look, &search);
    }
    return search.fault;
}

void exceptions_keep(struct exceptions kept[EXCEPTIONS_RUNTIMES]) {
    unsigned known = atomic_load_explicit(&count, memory_order_acquire);
    for (unsigned i = 0; i < EXCEPTIONS_RUNTIMES; i++) {
        kept[i] = i < known ? *records[i]() : (struct exceptions){0};
    }
}

void exceptions_restore(const struct exceptions kept[EXCEPTIONS_RUNTIMES]) {
    unsigned known = atomic_load_explicit(&count, memory_order_acquire);
    for (unsigned i = 0; i < known; i++) {
        *records[i]() = kept[i];
    }
}
