/*
 * FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv): tells texts and data apart; no protection against who wants two to be the same.
 */
#ifndef CLTRAIN_COMMON_HASH_H
#define CLTRAIN_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

/* That of what `hash` is of, with more bytes behind it. */
static inline uint64_t hash_add(uint64_t hash, const void *bytes, size_t n) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++) hash = (hash ^ at[i]) * 0x100000001b3;
    return hash;
}

static inline uint64_t hash_bytes(const void *bytes, size_t n) {
    return hash_add(0xcbf29ce484222325, bytes, n);
}

#endif
