/*
 * zlib's memory, through the replaceable allocator: z_stream's zalloc and zfree.
 */
#ifndef CLT_BASE_ZLIB_MEMORY_H
#define CLT_BASE_ZLIB_MEMORY_H

#include <zlib.h>

#include "runtime/base/base.h"

static inline voidpf clt_zlib_alloc(voidpf user, uInt items, uInt bytes) {
    (void)user;
    return clt_calloc(items, bytes);
}

static inline void clt_zlib_free(voidpf user, voidpf memory) {
    (void)user;
    clt_free(memory);
}

#endif
