/*
 * Strict numbers: the whole text is one, or false.
 */
#ifndef CLTRAIN_TOOLS_NUMBERS_H
#define CLTRAIN_TOOLS_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

/* A decimal whole number from `low` to `high`. */
bool number_whole(const char *text, int64_t low, int64_t high, int64_t *value);

/* A finite number that a float can hold, and not zero if it becomes zero only in a float. */
bool number_real(const char *text, double *value);

/* A number that is none of those only because it is too large. */
bool number_too_large(const char *text);

/* "3x32x32": 1 to `capacity` whole numbers of at least 1; their count, or 0. */
int number_sizes(const char *text, char separator, int64_t *sizes, int capacity);

#endif
