#include "tests/faults/allocations.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <cltrain/allocator.h>

static atomic_bool counting, for_ever_armed;
static atomic_long armed, requests, failed, held;

static bool strikes(void) {
    if (!counting) return false;
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

void allocations_install(void) {
    clt_allocator_set(&(clt_allocator){allocate, reallocate, release, NULL});
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
