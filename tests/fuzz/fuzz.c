#define _GNU_SOURCE /* SOCK_NONBLOCK, mkdtemp */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <cltrain/allocator.h>
#include <cltrain/log.h>

enum { LEAST_LIMIT = 16 << 20, MOST_RATIO = 8192, MOST_FILES = 8 };

void fuzz_check(bool kept, const char *condition, const char *file, int line) {
    if (kept) return;
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
    abort();
}

/* ---- memory ---- */

static size_t limit = LEAST_LIMIT;

static void check_size(size_t bytes) {
    if (bytes <= limit) return;
    fprintf(stderr, "an allocation of %zu bytes, more than the %zu that the input may be worth\n", bytes, limit);
    abort();
}

static void *allocate(size_t bytes, void *user) {
    (void)user;
    check_size(bytes);
    return malloc(bytes);
}

static void *reallocate(void *memory, size_t bytes, void *user) {
    (void)user;
    check_size(bytes);
    return realloc(memory, bytes);
}

static void release(void *memory, void *user) {
    (void)user;
    free(memory);
}

void fuzz_begin(size_t size) {
    static bool begun;
    limit = LEAST_LIMIT + size * MOST_RATIO;
    if (begun) return;
    begun = true;
    clt_log_set(NULL, CLT_LOG_ERROR, NULL);
    FUZZ_CHECK(clt_allocator_set(&(clt_allocator){allocate, reallocate, release, NULL}) == CLT_OK);
}

/* ---- the input ---- */

uint8_t fuzz_byte(fuzz_input *input) {
    if (input->size == 0) return 0;
    input->size--;
    return *input->data++;
}

fuzz_input fuzz_take(fuzz_input *input, size_t size) {
    fuzz_input piece = {input->data, size < input->size ? size : input->size};
    input->data += piece.size;
    input->size -= piece.size;
    return piece;
}

static char *text_of(fuzz_input piece) {
    char *text = malloc(piece.size + 1);
    FUZZ_CHECK(text != NULL);
    if (piece.size) memcpy(text, piece.data, piece.size);
    text[piece.size] = 0;
    return text;
}

char *fuzz_line(fuzz_input *input) {
    const uint8_t *end = input->size ? memchr(input->data, '\n', input->size) : NULL;
    char *text = text_of(fuzz_take(input, end ? (size_t)(end - input->data) : input->size));
    if (end) fuzz_byte(input);
    return text;
}

char *fuzz_rest(fuzz_input *input) {
    return text_of(fuzz_take(input, input->size));
}

void fuzz_free(char *text) {
    free(text);
}

fuzz_input fuzz_piece(fuzz_input *input) {
    size_t size = fuzz_byte(input);
    size |= (size_t)fuzz_byte(input) << 8;
    return fuzz_take(input, size);
}

/* ---- files ---- */

static char folder[256];
static char paths[MOST_FILES][320];
static int n_paths;

static void remove_all(void) {
    for (int i = 0; i < n_paths; i++) unlink(paths[i]);
    rmdir(folder);
}

static void make_folder(void) {
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.200s/cltrain-fuzz-XXXXXX", base ? base : "/tmp");
    FUZZ_CHECK(mkdtemp(folder) != NULL);
    atexit(remove_all);
}

const char *fuzz_path(const char *name) {
    char path[320];
    if (!folder[0]) make_folder();
    snprintf(path, sizeof path, "%s/%.60s", folder, name);
    for (int i = 0; i < n_paths; i++)
        if (!strcmp(paths[i], path)) return paths[i];
    FUZZ_CHECK(n_paths < MOST_FILES);
    return strcpy(paths[n_paths++], path);
}

static void write_packed(const char *path, fuzz_input bytes) {
    gzFile file = gzopen(path, "wb1");
    FUZZ_CHECK(file != NULL);
    FUZZ_CHECK(bytes.size == 0 || gzwrite(file, bytes.data, (unsigned)bytes.size) == (int)bytes.size);
    FUZZ_CHECK(gzclose(file) == Z_OK);
}

const char *fuzz_file(const char *name, fuzz_input bytes, bool packed) {
    const char *path = fuzz_path(name);
    if (packed) {
        write_packed(path, bytes);
        return path;
    }
    FILE *file = fopen(path, "wb");
    FUZZ_CHECK(file != NULL);
    FUZZ_CHECK(fwrite(bytes.data, 1, bytes.size, file) == bytes.size);
    FUZZ_CHECK(fclose(file) == 0);
    return path;
}

/* ---- connections ---- */

int fuzz_connection(fuzz_input bytes, int *other) {
    int ends[2], room = 1 << 20;
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    /* What does not fit into the system's buffer is left out. */
    if (bytes.size && send(ends[1], bytes.data, bytes.size, MSG_NOSIGNAL) < 0) shutdown(ends[1], SHUT_WR);
    *other = ends[1];
    return ends[0];
}
