/* One-time initialisations (once.c). */
#ifndef SERT_ONCE_H
#define SERT_ONCE_H

/* Resets the guards in a forked child, where no thread is inside one. */
void once_forked(void);

#endif
