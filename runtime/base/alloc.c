#include "runtime/base/base.h"

#include <stdlib.h>
#include <string.h>

static void *standard_allocate(size_t bytes, void *user) {
    (void)user;
    return malloc(bytes);
}

static void *standard_reallocate(void *memory, size_t bytes, void *user) {
    (void)user;
    return realloc(memory, bytes);
}

static void standard_release(void *memory, void *user) {
    (void)user;
    free(memory);
}

static const clt_allocator standard = {standard_allocate, standard_reallocate, standard_release, NULL};
static clt_allocator current = {standard_allocate, standard_reallocate, standard_release, NULL};

clt_status clt_allocator_set(const clt_allocator *allocator) {
    if (!allocator) allocator = &standard;
    if (!allocator->allocate || !allocator->reallocate || !allocator->release)
        return clt_fail(CLT_E_INVALID, "clt_allocator_set: a function of the allocator is NULL");
    current = *allocator;
    return CLT_OK;
}

void *clt_alloc(size_t bytes) {
    return current.allocate(bytes ? bytes : 1, current.user);
}

void *clt_calloc(size_t count, size_t bytes) {
    size_t total;
    if (!clt_mul_size(count, bytes, &total)) return NULL;
    void *memory = clt_alloc(total);
    if (memory) memset(memory, 0, total ? total : 1);
    return memory;
}

void *clt_realloc(void *memory, size_t bytes) {
    return memory ? current.reallocate(memory, bytes ? bytes : 1, current.user) : clt_alloc(bytes);
}

void clt_free(void *memory) {
    if (memory) current.release(memory, current.user);
}

char *clt_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = clt_alloc(bytes);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

clt_status clt_grow(void *items, size_t *capacity, size_t count, size_t item_bytes) {
    if (count < *capacity) return CLT_OK;
    size_t grown = CLT_MAX(*capacity ? *capacity * 2 : 8, count + 1), bytes;
    if (count == SIZE_MAX || !clt_mul_size(grown, item_bytes, &bytes)) return clt_fail_memory(SIZE_MAX);
    void *memory;
    memcpy(&memory, items, sizeof memory);
    memory = clt_realloc(memory, bytes);
    if (!memory) return clt_fail_memory(bytes);
    memcpy(items, &memory, sizeof memory);
    *capacity = grown;
    return CLT_OK;
}

bool clt_mul_size(size_t a, size_t b, size_t *product) {
    return !__builtin_mul_overflow(a, b, product);
}
