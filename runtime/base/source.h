/*
 * Bytes to read from: a file, gzipped or not (its first bytes tell), or a block of memory.
 * What a header claims is never trusted with memory: it is held against the size of the
 * file first, and where that is compressed, memory grows as bytes really arrive.
 */
#ifndef CLT_BASE_SOURCE_H
#define CLT_BASE_SOURCE_H

#include "runtime/base/base.h"

typedef struct clt_source clt_source;

clt_status clt_source_open(clt_source **source, const char *path);
/* `bytes` must outlive the source; `name` stands for the path in messages. */
clt_status clt_source_open_memory(clt_source **source, const char *name, const void *bytes,
                                  size_t length);
void clt_source_close(clt_source *source); /* NULL is fine */

const char *clt_source_path(const clt_source *source);

/* Bytes not read yet, if that is known: false for what is compressed. */
bool clt_source_left(const clt_source *source, uint64_t *bytes);

/* CLT_E_FORMAT for reading further than this many bytes of a compressed source. */
void clt_source_limit(clt_source *source, uint64_t bytes);

/* Reads up to `wanted` bytes; fewer only at the end. CLT_E_IO, or CLT_E_FORMAT for compressed
 * data that is damaged or ends early. */
clt_status clt_source_read(clt_source *source, void *to, size_t wanted, size_t *got);

/* As read, but CLT_E_FORMAT if there are fewer. `what` is named then: "its header". */
clt_status clt_source_read_exactly(clt_source *source, void *to, size_t wanted, const char *what);

/* CLT_E_FORMAT unless all bytes have been read. */
clt_status clt_source_expect_end(clt_source *source);

/* Converts `count` items; returns how many it did before one that is out of range. */
typedef size_t clt_convert(const unsigned char *from, size_t count, void *to);

/* Reads `count` items of `item_bytes` each and converts them into a new block of as many items
 * of `out_bytes` each (release with clt_free). CLT_E_FORMAT, before memory is taken, if the
 * source cannot hold as many; CLT_E_RANGE for an item that `convert` refuses. */
clt_status clt_source_read_array(clt_source *source, uint64_t count, size_t item_bytes, size_t out_bytes,
                                 clt_convert *convert, void **array);

#endif
