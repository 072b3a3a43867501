/*
 * What the fuzzers share. A fuzzer is a function from bytes to nothing that must neither crash, leak, nor take more
 * memory than its input can be worth. libFuzzer drives it (CLTRAIN_FUZZ), and replay.c over the kept corpus.
 */
#ifndef CLT_TESTS_FUZZ_H
#define CLT_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* To be called first, with the size of the input: no message is written, and an allocation of the library's that is
 * larger than 16 MiB and 8192 times the input ends the program. (Deflate expands bytes by 1032, to floats by 4, and
 * arrays grow by 2.) */
void fuzz_begin(size_t size);

/* A promise that the code makes: the program ends where it is not kept. */
#define FUZZ_CHECK(condition) fuzz_check((condition), #condition, __FILE__, __LINE__)
void fuzz_check(bool kept, const char *condition, const char *file, int line);

/* ---- cutting the input up ---- */

typedef struct fuzz_input {
    const uint8_t *data;
    size_t size;
} fuzz_input;

/* 0 where there is nothing left. */
uint8_t fuzz_byte(fuzz_input *input);
/* The next `size` bytes, or what is left. */
fuzz_input fuzz_take(fuzz_input *input, size_t size);
/* What comes before the next newline, or all that is left, as text in memory of its own size (fuzz_free). */
char *fuzz_line(fuzz_input *input);
/* All that is left, in the same way. */
char *fuzz_rest(fuzz_input *input);
void fuzz_free(char *text);
/* A piece whose length stands before it, in two bytes. */
fuzz_input fuzz_piece(fuzz_input *input);

/* ---- files ---- */

/* Writes a file in a folder of this program's own, packed by gzip if so wanted, and gives its path, which stays as it is
 * for the name. */
const char *fuzz_file(const char *name, fuzz_input bytes, bool packed);
/* The path of a file of that name. */
const char *fuzz_path(const char *name);

/* ---- connections ---- */

/* A connected descriptor at which these bytes wait to be read; *other is the other end, not blocking either. */
int fuzz_connection(fuzz_input bytes, int *other);

#endif
