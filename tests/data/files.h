/*
 * Files that the tests of readers write, and a watch over what is allocated meanwhile.
 */
#ifndef CLT_TESTS_DATA_FILES_H
#define CLT_TESTS_DATA_FILES_H

#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cltrain/allocator.h>

static inline const char *write_text(const char *name, const char *text) {
    const char *path = support_path(name);
    support_write(path, text, strlen(text));
    return path;
}

static inline const char *write_bytes(const char *name, const void *bytes, size_t length) {
    const char *path = support_path(name);
    support_write(path, bytes, length);
    return path;
}

/* Writes a .npy file as NumPy does: the header padded to 64 bytes, then the data. */
static inline const char *write_npy(const char *name, int version, const char *dict, const void *data,
                             size_t bytes) {
    unsigned char file[8192];
    size_t start = version == 1 ? 10 : 12, length = strlen(dict),
           header = (start + length + 1 + 63) / 64 * 64;
    assert_true(header + bytes <= sizeof file);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (unsigned char)version;
    file[7] = 0;
    uint32_t text = (uint32_t)(header - start);
    for (size_t i = 0; i < start - 8; i++) file[8 + i] = (unsigned char)(text >> 8 * i);
    memset(file + start, ' ', text);
    memcpy(file + start, dict, length);
    file[header - 1] = '\n';
    if (bytes) memcpy(file + header, data, bytes);
    return write_bytes(name, file, header + bytes);
}

static inline const char *write_gz(const char *name, const void *bytes, size_t length) {
    const char *path = support_path(name);
    gzFile file = gzopen(path, "wb");
    if (!file || gzwrite(file, bytes, (unsigned)length) != (int)length || gzclose(file) != Z_OK)
        fail_msg("cannot write %s", path);
    return path;
}

/* `count` zero bytes behind `bytes`, gzipped. */
static inline const char *write_gz_zeros(const char *name, const void *bytes, size_t length,
                                         size_t count) {
    static const char zeros[1 << 16];
    const char *path = support_path(name);
    gzFile file = gzopen(path, "wb9");
    if (!file || (length && gzwrite(file, bytes, (unsigned)length) <= 0))
        fail_msg("cannot write %s", path);
    while (count > 0) {
        unsigned some = (unsigned)(count < sizeof zeros ? count : sizeof zeros);
        if (gzwrite(file, zeros, some) <= 0) fail_msg("cannot write %s", path);
        count -= some;
    }
    if (gzclose(file) != Z_OK) fail_msg("cannot write %s", path);
    return path;
}

static inline void big_endian(unsigned char *to, uint32_t value) {
    for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* ---- what the library asks memory for ---- */

static size_t watch_largest;
static long watch_blocks, watch_fail_at = -1, watch_calls;

static inline void *watch_allocate(size_t bytes, void *user) {
    (void)user;
    if (watch_calls++ == watch_fail_at) return NULL;
    if (bytes > watch_largest) watch_largest = bytes;
    void *memory = malloc(bytes);
    watch_blocks += memory != NULL;
    return memory;
}

static inline void *watch_reallocate(void *memory, size_t bytes, void *user) {
    (void)user;
    if (watch_calls++ == watch_fail_at) return NULL;
    if (bytes > watch_largest) watch_largest = bytes;
    return realloc(memory, bytes);
}

static inline void watch_release(void *memory, void *user) {
    (void)user;
    watch_blocks--;
    free(memory);
}

/* Allocation number `fail_at` from now on fails, from 0; -1: none. */
static inline void watch_begin(long fail_at) {
    static const clt_allocator watch = {watch_allocate, watch_reallocate, watch_release, NULL};
    watch_largest = 0;
    watch_blocks = watch_calls = 0;
    watch_fail_at = fail_at;
    assert_ok(clt_allocator_set(&watch));
}

/* All blocks must have been released; gives the largest one that was asked for. */
static inline size_t watch_end(void) {
    assert_ok(clt_allocator_set(NULL));
    assert_int_equal(watch_blocks, 0);
    return watch_largest;
}

#endif
