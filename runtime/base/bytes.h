/*
 * Numbers in files and on the wire: least significant byte first, whatever the processor does.
 */
#ifndef CLT_BASE_BYTES_H
#define CLT_BASE_BYTES_H

#include <stdint.h>

static inline void clt_bytes_put(unsigned char *bytes, uint64_t value, int n) {
    for (int i = 0; i < n; i++) bytes[i] = (unsigned char)(value >> 8 * i);
}

static inline uint64_t clt_bytes_get(const unsigned char *bytes, int n) {
    uint64_t value = 0;
    for (int i = 0; i < n; i++) value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

#endif
