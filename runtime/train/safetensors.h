/*
 * safetensors files (https://github.com/huggingface/safetensors, "Format"):
 *
 *     8 bytes     N, the bytes of the header, u64 little-endian
 *     N bytes     JSON, beginning with '{':
 *                   {"__metadata__": {"key": "text", ...},
 *                    "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}
 *     the rest    the tensors' bytes, row-major, little-endian; offsets count from here
 *
 * Tensors lie one behind the other, without holes, overlaps or bytes left over.
 * A file is input like any other: all of this is checked before anything is read.
 * Every error names the file and what is wrong with it.
 */
#ifndef CLT_TRAIN_SAFETENSORS_H
#define CLT_TRAIN_SAFETENSORS_H

#include "runtime/base/base.h"

#include <cltrain/tensor.h>

/* A longer header is refused, as by the format's own library. */
#define CLT_SAFETENSORS_MAX_HEADER_BYTES 100000000u
/* So is one with more JSON values, of which a tensor of two dimensions is eight: parsed, they would take gigabytes. */
#define CLT_SAFETENSORS_MOST_VALUES 2000000u

/* X(name in the file, bytes per element) */
#define CLT_SAFETENSORS_DTYPE_MAP(X)                                              \
    X(F32, 4) X(F16, 2) X(BF16, 2) X(F64, 8) X(I32, 4) X(I64, 8) X(U8, 1) X(I8, 1) \
    X(I16, 2) X(U16, 2) X(U32, 4) X(U64, 8) X(BOOL, 1)

typedef enum clt_safetensors_dtype {
#define CLT_SAFETENSORS_ENUM_(name, bytes) CLT_SAFETENSORS_##name,
    CLT_SAFETENSORS_DTYPE_MAP(CLT_SAFETENSORS_ENUM_)
#undef CLT_SAFETENSORS_ENUM_
    CLT_SAFETENSORS_DTYPE_COUNT
} clt_safetensors_dtype;

const char *clt_safetensors_dtype_name(clt_safetensors_dtype dtype); /* "?" for none */
size_t clt_safetensors_dtype_bytes(clt_safetensors_dtype dtype);     /* 0 for none */

typedef struct clt_safetensors_entry {
    const char *name;
    clt_safetensors_dtype dtype;
    clt_shape shape;
    uint64_t offset; /* of its first byte, counted from the end of the header */
    uint64_t bytes;  /* elements x bytes per element */
} clt_safetensors_entry;

/* ---- reading: one thread at a time for each file ---- */

typedef struct clt_safetensors clt_safetensors;

/* Opens a file and checks its header against its size; holds the header in memory, not the data.
 * CLT_E_IO, CLT_E_FORMAT (also for a dtype or rank that this library has no word for),
 * CLT_E_NO_MEMORY. */
clt_status clt_safetensors_open(clt_safetensors **file, const char *path);
void clt_safetensors_close(clt_safetensors *file); /* NULL is fine */

/* Tensors in the order of their bytes. NULL if there is none of that index or name. */
size_t clt_safetensors_count(const clt_safetensors *file);
const clt_safetensors_entry *clt_safetensors_entry_at(const clt_safetensors *file, size_t index);
const clt_safetensors_entry *clt_safetensors_find(const clt_safetensors *file, const char *name);

/* The text of a metadata key, NULL if there is none; valid while the file is open. */
const char *clt_safetensors_metadata(const clt_safetensors *file, const char *key);

/* Reads a whole tensor of this file; `bytes` must be entry->bytes (CLT_E_INVALID).
 * CLT_E_FORMAT if the file has become shorter meanwhile. */
clt_status clt_safetensors_read(clt_safetensors *file, const clt_safetensors_entry *entry,
                                void *destination, size_t bytes);

/* ---- writing: one atomic replacement (see clt_file_writer) ---- */

typedef struct clt_safetensors_pair {
    const char *key, *value;
} clt_safetensors_pair;

typedef struct clt_safetensors_writer clt_safetensors_writer;

/* Begins a file of these tensors and metadata, both in the order given: the same content gives
 * the same bytes. Of an entry name, dtype and shape count; offset and bytes are worked out here.
 * The data begins 8-byte aligned. All is copied. CLT_E_INVALID: a name twice, reserved or not
 * UTF-8, a dtype or shape that is none; CLT_E_RANGE: header or data too large; CLT_E_IO. */
clt_status clt_safetensors_writer_open(clt_safetensors_writer **writer, const char *path,
                                       const clt_safetensors_entry *entries, size_t n_entries,
                                       const clt_safetensors_pair *metadata, size_t n_metadata);

/* The next bytes of the data: tensors in their order, each in one piece or several.
 * A piece belongs to one tensor: CLT_E_INVALID, and the tensor's name, if it goes past its end. */
clt_status clt_safetensors_writer_write(clt_safetensors_writer *writer, const void *bytes,
                                        size_t length);

/* Puts the file in its place; frees the writer, also on error. CLT_E_STATE if data is missing. */
clt_status clt_safetensors_writer_commit(clt_safetensors_writer *writer);
/* Leaves the old file as it was and frees the writer. NULL is fine. */
void clt_safetensors_writer_abort(clt_safetensors_writer *writer);

/* Bytes of a tensor, overflow-checked: false if the dtype or shape is none or the product does
 * not fit. This and the next are for the two halves of this format. */
bool clt_safetensors_tensor_bytes(clt_safetensors_dtype dtype, const clt_shape *shape, uint64_t *bytes);

/* Bounds the memory that parsing a header takes, and takes none: CLT_E_FORMAT, without the file's name, if the text nests deeper
 * than an object of objects of arrays, or has more than the most values. Text that is not JSON may pass. */
clt_status clt_safetensors_check_bounds(const char *text, size_t length);

#endif
