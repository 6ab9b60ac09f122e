/* Reads the program file: which C++ runtime is linked into it, and how it was linked.
 *
 * Used by the library for the program that runs and the modules that it admits, and by sert-run for the program that it
 * starts. Every offset in the file is checked. */
#ifndef SERT_IMAGE_H
#define SERT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The function that returns a thread's record of exceptions (__cxa_eh_globals of the C++ ABI). */
#define IMAGE_RECORD "__cxa_get_globals"

/* The program that runs. */
#define IMAGE_OF_PROGRAM "/proc/self/exe"

/* A whole ELF file for x86-64, mapped. */
struct image {
    const unsigned char *at;
    size_t size;
};

/* The `length` bytes at `from`, or NULL if they are not all in the file. */
const void *image_part(const struct image *image, size_t from, size_t length);
/* The string at `from`, or NULL if it does not end in the file. */
const char *image_text(const struct image *image, size_t from);
/* Whether the file is ELF for x86-64. */
bool image_is_known(const struct image *image);

/* Maps the file at `path`. Whether it could. */
bool image_open(struct image *image, const char *path);
void image_close(const struct image *image);

/* Whether the file itself defines `name` in its dynamic symbols, or in any symbol table. `value` (NULL: not wanted): of a
 * function its address, relative to the load address. */
bool image_exports(const struct image *image, const char *name, uint64_t *value);
bool image_defines(const struct image *image, const char *name, uint64_t *value);

/* Whether these bytes of a program have a C++ runtime in them: they hold the names of its own types. */
bool image_has_runtime(const void *at, size_t size);
/* Why requests of a program with this C++ runtime inside cannot be stopped safely; NULL if they can, or if the file has
 * none inside. */
const char *image_runtime_fault(const struct image *image);

#endif
