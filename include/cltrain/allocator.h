/*
 * The host memory allocator, replaceable by the embedding program.
 */
#ifndef CLTRAIN_ALLOCATOR_H
#define CLTRAIN_ALLOCATOR_H

#include <stddef.h>

#include <cltrain/export.h>
#include <cltrain/status.h>

CLT_BEGIN_DECLS

/* Same contracts as malloc, realloc and free; called from any thread. */
typedef struct clt_allocator {
    void *(*allocate)(size_t bytes, void *user);
    void *(*reallocate)(void *memory, size_t bytes, void *user);
    void (*release)(void *memory, void *user);
    void *user;
} clt_allocator;

/* Replaces the allocator of the process; NULL restores malloc. Only while no
 * object of the library exists, else blocks would be released by another
 * allocator than the one that made them. CLT_E_INVALID if a function is NULL. */
CLT_API clt_status clt_allocator_set(const clt_allocator *allocator);

CLT_END_DECLS

#endif
