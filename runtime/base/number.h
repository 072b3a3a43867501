/*
 * Numbers in text, whatever the process's locale.
 */
#ifndef CLT_BASE_NUMBER_H
#define CLT_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the whole text, blanks around it aside, as a decimal number: an optional sign, digits
 * with an optional point, an optional exponent. False for anything else: nothing at all, "nan",
 * "inf", hexadecimal. Rounded correctly; too large gives infinity. */
bool clt_number_parse(const char *text, double *value);

/* Reads the whole text, digits alone, as a number from 0 to `most`. False for anything else: signs, blanks, what is larger. */
bool clt_number_whole(const char *text, uint64_t most, uint64_t *value);

#endif
