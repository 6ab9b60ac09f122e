/* The settings of each class, and the present threshold of its requests.
 *
 * One thread, the controller, computes the thresholds; all threads read them. */
#ifndef SERT_CONTROL_H
#define SERT_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "sert.h"

/* Stores the settings of a class. Returns 0, or EINVAL if a setting is invalid. */
int control_set(const struct sert_arg *arg);
bool control_is_set(uint32_t class_id);
/* The threshold in nanoseconds below which each request of a class arms a timer of its own. */
#define CONTROL_LEAST_WATCHED 100000000u

/* Returns the present threshold of a class, in nanoseconds. */
uint64_t control_threshold(uint32_t class_id);
/* Returns the time at which the threshold of a class last changed, in nanoseconds. */
uint64_t control_changed(uint32_t class_id);
bool control_has_flag(uint32_t class_id, uint32_t flag);
/* Returns whether `time` lies in the present interval of the class. */
bool control_is_of_interval(uint32_t class_id, uint64_t time);
uint32_t control_warm_up(uint32_t class_id);
void control_refused(uint32_t class_id);
void control_stats(struct sert_stats *stats);

/* Starts the controller. Returns 0 or an errno. */
int control_start(void);
/* Resets the state of this module in a forked child, which has no controller. */
void control_forked(void);

#endif
