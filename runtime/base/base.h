/*
 * What every room uses: errors, log, memory, small helpers. The operating
 * system is met in this folder (and in comm/), nowhere else.
 */
#ifndef CLT_BASE_BASE_H
#define CLT_BASE_BASE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cltrain/allocator.h>
#include <cltrain/log.h>
#include <cltrain/status.h>

#define CLT_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define CLT_MIN(a, b) ((a) < (b) ? (a) : (b))
#define CLT_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Of a number of options: see CLT_ZERO. */
static inline float clt_or_default(float value, float otherwise) {
    return value != 0.0f ? value : signbit(value) ? 0.0f : otherwise;
}

/* The greatest that divides both: Euclid's algorithm. */
static inline int64_t clt_greatest_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* ---- errors (error.c) ---- */

/* Keeps the detail for clt_error_detail() and returns `status`. Allocates nothing. */
clt_status clt_fail(clt_status status, const char *format, ...) CLT_PRINTF(2, 3);

/* Puts words before the detail at hand: "reading x.csv: " + detail. Returns `status`. */
clt_status clt_fail_context(clt_status status, const char *format, ...) CLT_PRINTF(2, 3);

clt_status clt_fail_memory(size_t bytes);

/* Sets the detail as it was: an error that travels from another thread or stuck. */
clt_status clt_fail_again(clt_status status, const char *detail);

#ifdef __clang_analyzer__ /* sees one file at a time: it has to be told that none of these returns CLT_OK */
#define clt_fail(status, ...) (clt_fail(status, __VA_ARGS__), (status))
#define clt_fail_context(status, ...) (clt_fail_context(status, __VA_ARGS__), (status))
#define clt_fail_memory(bytes) (clt_fail_memory(bytes), CLT_E_NO_MEMORY)
#define clt_fail_again(status, detail) (clt_fail_again(status, detail), (status))
#endif

/* Returns from the calling function on an error. */
#define CLT_TRY(expression)                      \
    do {                                         \
        clt_status try_status_ = (expression);   \
        if (try_status_ < 0) return try_status_; \
    } while (0)

/* Jumps to `fail` on an error, leaving it in `status`, for functions with one clean-up path. */
#define CLT_TRY_GOTO(expression)         \
    do {                                 \
        status = (expression);           \
        if (status < 0) goto fail;       \
    } while (0)

/* ---- log (log.c) ---- */

void clt_log_message(clt_log_level level, const char *format, ...) CLT_PRINTF(2, 3);
bool clt_log_enabled(clt_log_level level);

/* ---- memory (alloc.c): through the replaceable allocator; NULL on failure ---- */

void *clt_alloc(size_t bytes);                   /* not cleared; bytes 0 gives a block all the same */
void *clt_calloc(size_t count, size_t bytes);    /* cleared; NULL if the product does not fit */
void *clt_realloc(void *memory, size_t bytes);
void clt_free(void *memory);                     /* NULL is fine */
char *clt_strdup(const char *text);

/* Grows *items (of `item_bytes` each) so that `count + 1` fit: for appending. */
clt_status clt_grow(void *items, size_t *capacity, size_t count, size_t item_bytes);

/* a * b into *product; false if it does not fit. */
bool clt_mul_size(size_t a, size_t b, size_t *product);

/* ---- text (text.c) ---- */

/* A string that grows. Starts as {0}; the first failure sticks in `status`. */
typedef struct clt_text {
    char *data; /* NUL-terminated once anything was added; clt_text_data for always */
    size_t length, capacity;
    clt_status status;
} clt_text;

void clt_text_add(clt_text *text, const char *format, ...) CLT_PRINTF(2, 3);
void clt_text_add_bytes(clt_text *text, const char *bytes, size_t length);
const char *clt_text_data(const clt_text *text);
void clt_text_free(clt_text *text);

bool clt_ends_with(const char *text, const char *suffix);

/* A text for a message: what is not printable ASCII as \xHH, a long one cut short with "...". Returns `shown`. */
#define CLT_SHOWN_TEXT 128
const char *clt_show(const char *text, char shown[CLT_SHOWN_TEXT]);

/* Case-insensitive strstr != NULL, ASCII. */
bool clt_text_contains(const char *text, const char *fragment);

/* Whether a list of names, separated by commas, allows one: with a "-" before it, a name
 * is left out; if any has none, only those are allowed. NULL allows all. */
bool clt_list_allows(const char *list, const char *name);
/* Whether the name is there, and with no "-". */
bool clt_list_names(const char *list, const char *name);
/* CLT_E_INVALID, with `what` and the names there are, where the list has a word that is none of the n, or, with `minus`, one
 * of them with a "-" before it. */
clt_status clt_list_check(const char *what, const char *list, bool minus, const char *const *names, size_t n);
/* The same of a text that is to be one of the names, or empty, or NULL. */
clt_status clt_choice_check(const char *what, const char *text, const char *const *names, size_t n);

/* 128 bits as 32 hex digits and a NUL: XXH3 of what was added. */
#define CLT_HASH_TEXT 33
void clt_hash_text(const void *bytes, size_t length, char out[CLT_HASH_TEXT]);
/* Continues a hash text with more bytes: out = hash(out ‖ bytes). Starts from an empty string. */
void clt_hash_add(char out[CLT_HASH_TEXT], const void *bytes, size_t length);

/* ---- time (thread.c) ---- */

double clt_seconds(void); /* monotonic */
double clt_wall_seconds(void); /* since 1970, by the machine's clock, which may be set */

#endif
