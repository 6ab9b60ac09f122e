/* What is done once (once.c). */
#ifndef SERT_ONCE_H
#define SERT_ONCE_H

/* In a forked child nobody is inside a guard of ours. */
void once_forked(void);

#endif
