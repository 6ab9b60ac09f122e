/* Reads the program file: which C++ runtime is linked into it, and how it was linked.
 *
 * The library uses it for the running program and for the modules that it admits, and sert-run uses
 * it for the program that it starts. Every offset in the file is checked. */
#ifndef SERT_IMAGE_H
#define SERT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The name of the function that returns a thread's record of exceptions (__cxa_eh_globals of the
 * C++ ABI). */
#define IMAGE_RECORD "__cxa_get_globals"

/* The path of the running program's file. */
#define IMAGE_OF_PROGRAM "/proc/self/exe"

/* A whole ELF file for this processor, mapped. */
struct image {
    const unsigned char *at;
    size_t size;
};

/* Returns a pointer to the `length` bytes at offset `from`, or NULL if they are not all in the
 * file. */
const void *image_part(const struct image *image, size_t from, size_t length);
/* Returns the string at offset `from`, or NULL if it does not end in the file. */
const char *image_text(const struct image *image, size_t from);
/* Returns whether the file is ELF for this processor. */
bool image_is_known(const struct image *image);

/* Maps the file at `path`. Returns whether that succeeded. */
bool image_open(struct image *image, const char *path);
void image_close(const struct image *image);

/* Return whether the file itself defines `name` in its dynamic symbols, or in any symbol table. For
 * a function, `value` (which may be NULL) gets its address relative to the load address. */
bool image_exports(const struct image *image, const char *name, uint64_t *value);
bool image_defines(const struct image *image, const char *name, uint64_t *value);

/* Returns whether these bytes of a program contain a C++ runtime: they hold the names of its own
 * types. */
bool image_has_runtime(const void *at, size_t size);
/* Returns why requests of a program with this C++ runtime inside cannot be stopped safely; NULL if
 * they can, or if the file has no runtime inside. */
const char *image_runtime_fault(const struct image *image);

#endif
