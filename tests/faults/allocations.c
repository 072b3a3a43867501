#include "tests/faults/allocations.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cltrain/allocator.h>

static atomic_bool counting, for_ever_armed;
static atomic_long armed, requests, failed, held;
static _Thread_local bool parsing;

static bool strikes(void) {
    if (!counting || parsing) return false;
    long n = ++requests;
    bool strike = armed && (n == armed || (for_ever_armed && n > armed));
    failed += strike;
    return strike;
}

static void *allocate(size_t bytes, void *user) {
    (void)user;
    void *memory = strikes() ? NULL : malloc(bytes);
    held += memory != NULL;
    return memory;
}

static void *reallocate(void *memory, size_t bytes, void *user) {
    (void)user;
    return strikes() ? NULL : realloc(memory, bytes);
}

static void release(void *memory, void *user) {
    (void)user;
    held--;
    free(memory);
}

/* ---- jansson, which has an allocator for the whole process ---- */

static void *allocate_json(size_t bytes) {
    return allocate(bytes, NULL);
}

static void release_json(void *memory) {
    release(memory, NULL);
}

/* In the place of json_loadb: jansson 2.14 writes behind its parser's buffer if that cannot grow. */
json_t *__real_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error);
json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error);
json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error) {
    parsing = true;
    json_t *value = __real_json_loadb(text, length, flags, error);
    parsing = false;
    return value;
}

/* ---- for the loops ---- */

void allocations_install(void) {
    clt_allocator_set(&(clt_allocator){allocate, reallocate, release, NULL});
    json_set_alloc_funcs(allocate_json, release_json);
}

void allocations_arm(long nth, bool for_ever) {
    armed = nth;
    for_ever_armed = for_ever;
    requests = failed = 0;
    counting = true;
}

void allocations_disarm(void) {
    counting = false;
}

long allocations_calls(void) {
    return requests;
}

long allocations_hits(void) {
    return failed;
}

long allocations_live(void) {
    return held;
}
