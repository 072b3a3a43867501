/*
 * What a file system may hold after a power cut, made up from what was recorded.
 *
 * Certain is what was synced: a file's bytes by its fsync, a folder's names by the folder's. Of bytes that were written
 * since, each sector of 512 may be there, be zeros, or what lay on the disk before; and the file may be of any size between.
 * Of names since the folder's last fsync, each may be as it was after any change of it, whatever others are: or, as in file
 * systems with a journal, as after one change of all.
 */
#ifndef CLT_TESTS_FILES_CRASH_H
#define CLT_TESTS_FILES_CRASH_H

#include <stdint.h>

#include "tests/files/layer.h"

typedef struct crash_file {
    const char *name; /* the journal's */
    unsigned char *bytes;
    size_t length;
} crash_file;

typedef struct crash_state {
    crash_file *files;
    int n;
} crash_state;

/* A state after the first `events` of the journal, drawn by the seed. What was there before the journal is in `before`. */
crash_state crash_draw(const layer_journal *journal, int events, const crash_state *before, uint64_t seed);
/* The file of that name, or NULL. */
const crash_file *crash_find(const crash_state *state, const char *name);
void crash_add(crash_state *state, const char *name, const void *bytes, size_t length);
void crash_free(crash_state *state);

#endif
