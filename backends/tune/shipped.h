/*
 * The files of backends/tune/shipped, embedded in the library at build time.
 */
#ifndef CLT_BACKENDS_TUNE_SHIPPED_H
#define CLT_BACKENDS_TUNE_SHIPPED_H

#include <stddef.h>

typedef struct clt_shipped_tuning {
    const unsigned char *bytes;
    size_t length;
} clt_shipped_tuning;

extern const clt_shipped_tuning clt_shipped[]; /* ended by a row of NULL */

#endif
