/* What each class is granted, and for how long its requests may run as things are.
 *
 * One thread, the controller, computes the thresholds; everybody reads them. */
#ifndef SERT_CONTROL_H
#define SERT_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "sert.h"

/* EINVAL, or 0. */
int control_set(const struct sert_arg *arg);
bool control_is_set(uint32_t class_id);
/* A class whose threshold is below this, in nanoseconds, arms the timer of each request itself. */
#define CONTROL_LEAST_WATCHED 100000000u

/* Nanoseconds. */
uint64_t control_threshold(uint32_t class_id);
/* When it became what it is. */
uint64_t control_changed(uint32_t class_id);
bool control_has_flag(uint32_t class_id, uint32_t flag);
/* Whether that time lies in the present interval. */
bool control_is_of_interval(uint32_t class_id, uint64_t time);
uint32_t control_warm_up(uint32_t class_id);
void control_refused(uint32_t class_id);
void control_stats(struct sert_stats *stats);

/* Starts the controller: 0 or an errno. */
int control_start(void);
/* In a forked child there is none. */
void control_forked(void);

#endif
