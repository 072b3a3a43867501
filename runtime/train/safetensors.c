#include "runtime/base/bytes.h"
#include "runtime/train/safetensors.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"

/* Names in messages are cut: one in a file may be as long as the header. */
#define NAME "\"%.120s\""

struct clt_safetensors {
    char *path;
    FILE *stream;
    json_t *header; /* owns the names and the metadata's texts */
    uint64_t data_start, data_bytes;
    size_t count;
    clt_safetensors_entry *entries;        /* in the order of their bytes */
    const clt_safetensors_entry **by_name; /* the same, sorted for bsearch */
};

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
#define ROW(name, bytes) {#name, bytes},
    CLT_SAFETENSORS_DTYPE_MAP(ROW)
#undef ROW
};

static bool is_dtype(clt_safetensors_dtype dtype) {
    return (unsigned)dtype < CLT_SAFETENSORS_DTYPE_COUNT;
}

const char *clt_safetensors_dtype_name(clt_safetensors_dtype dtype) {
    return is_dtype(dtype) ? dtypes[dtype].name : "?";
}

size_t clt_safetensors_dtype_bytes(clt_safetensors_dtype dtype) {
    return is_dtype(dtype) ? dtypes[dtype].bytes : 0;
}

bool clt_safetensors_tensor_bytes(clt_safetensors_dtype dtype, const clt_shape *shape, uint64_t *bytes) {
    if (!is_dtype(dtype) || shape->rank < 0 || shape->rank > CLT_MAX_RANK) return false;
    /* Signed, as offsets are to most JSON readers. */
    int64_t product = (int64_t)dtypes[dtype].bytes;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0) return false;
        if (__builtin_mul_overflow(product, shape->dims[i], &product)) return false;
    }
    *bytes = (uint64_t)product;
    return true;
}

/* ---- the header ---- */

static clt_status fail_tensor(const clt_safetensors *file, const char *name, const char *what) {
    return clt_fail(CLT_E_FORMAT, "%s: tensor " NAME ": %s", file->path, name, what);
}

static clt_status parse_dtype(const clt_safetensors *file, clt_safetensors_entry *entry, json_t *value) {
    const char *text = json_string_value(value);
    if (!text) return fail_tensor(file, entry->name, "no dtype, or one that is not a string");
    for (int i = 0; i < CLT_SAFETENSORS_DTYPE_COUNT; i++) {
        if (strcmp(text, dtypes[i].name)) continue;
        entry->dtype = (clt_safetensors_dtype)i;
        return CLT_OK;
    }
    return clt_fail(CLT_E_FORMAT, "%s: tensor " NAME ": unknown dtype \"%.40s\"", file->path,
                    entry->name, text);
}

static clt_status parse_shape(const clt_safetensors *file, clt_safetensors_entry *entry, json_t *value) {
    if (!json_is_array(value))
        return fail_tensor(file, entry->name, "no shape, or one that is not an array");
    size_t rank = json_array_size(value);
    if (rank > CLT_MAX_RANK)
        return clt_fail(CLT_E_FORMAT,
                        "%s: tensor " NAME ": %zu dimensions, more than the %d that are read",
                        file->path, entry->name, rank, CLT_MAX_RANK);
    entry->shape.rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        json_t *dimension = json_array_get(value, i);
        if (!json_is_integer(dimension) || json_integer_value(dimension) < 0)
            return fail_tensor(file, entry->name, "a dimension that is not a whole number from 0");
        entry->shape.dims[i] = json_integer_value(dimension);
    }
    if (!clt_safetensors_tensor_bytes(entry->dtype, &entry->shape, &entry->bytes))
        return fail_tensor(file, entry->name, "the product of its dimensions is too large");
    return CLT_OK;
}

static clt_status parse_offsets(const clt_safetensors *file, clt_safetensors_entry *entry,
                                json_t *value) {
    json_t *first = json_array_get(value, 0), *last = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return fail_tensor(file, entry->name, "data_offsets is not an array of two whole numbers");
    json_int_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin || (uint64_t)end > file->data_bytes)
        return clt_fail(CLT_E_FORMAT,
                        "%s: tensor " NAME
                        ": its bytes [%lld, %lld) are not inside the %llu of the data",
                        file->path, entry->name, (long long)begin, (long long)end,
                        (unsigned long long)file->data_bytes);
    if ((uint64_t)(end - begin) != entry->bytes)
        return clt_fail(
            CLT_E_FORMAT, "%s: tensor " NAME ": %lld bytes of data, but its dtype and shape need %llu",
            file->path, entry->name, (long long)(end - begin), (unsigned long long)entry->bytes);
    entry->offset = (uint64_t)begin;
    return CLT_OK;
}

static clt_status parse_entry(const clt_safetensors *file, clt_safetensors_entry *entry,
                              const char *name, json_t *facts) {
    entry->name = name;
    if (!json_is_object(facts)) return fail_tensor(file, name, "not described by a JSON object");
    CLT_TRY(parse_dtype(file, entry, json_object_get(facts, "dtype")));
    CLT_TRY(parse_shape(file, entry, json_object_get(facts, "shape")));
    return parse_offsets(file, entry, json_object_get(facts, "data_offsets"));
}

static clt_status check_metadata(const clt_safetensors *file) {
    json_t *metadata = json_object_get(file->header, "__metadata__"), *value;
    const char *key;
    if (!metadata) return CLT_OK;
    if (!json_is_object(metadata))
        return clt_fail(CLT_E_FORMAT, "%s: __metadata__ is not a JSON object", file->path);
    json_object_foreach(metadata, key, value) {
        if (!json_is_string(value))
            return clt_fail(CLT_E_FORMAT, "%s: __metadata__: " NAME " is not a string", file->path, key);
    }
    return CLT_OK;
}

static int compare_offsets(const void *left, const void *right) {
    const clt_safetensors_entry *a = left, *b = right;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    /* Tensors of no bytes lie at the same offset as the one behind them. */
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int compare_names(const void *left, const void *right) {
    const clt_safetensors_entry *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

/* Sorted by offset, each tensor must begin where the one before it ends. */
static clt_status check_coverage(const clt_safetensors *file) {
    uint64_t end = 0;
    for (size_t i = 0; i < file->count; i++) {
        const clt_safetensors_entry *entry = &file->entries[i];
        if (entry->offset != end)
            return clt_fail(CLT_E_FORMAT,
                            "%s: tensor " NAME " begins at byte %llu of the data, %s: %llu", file->path,
                            entry->name, (unsigned long long)entry->offset,
                            entry->offset < end ? "inside the one before it, which ends at"
                                                : "with a hole after the one before it, which ends at",
                            (unsigned long long)end);
        end += entry->bytes;
    }
    if (end != file->data_bytes)
        return clt_fail(CLT_E_FORMAT, "%s: %llu bytes after the last tensor belong to none", file->path,
                        (unsigned long long)(file->data_bytes - end));
    return CLT_OK;
}

static clt_status parse_entries(clt_safetensors *file) {
    CLT_TRY(check_metadata(file));
    size_t most = json_object_size(file->header);
    file->entries = clt_calloc(most + 1, sizeof *file->entries);
    file->by_name = clt_calloc(most + 1, sizeof *file->by_name);
    if (!file->entries || !file->by_name) return clt_fail_memory(most * sizeof *file->entries);
    const char *name;
    json_t *facts;
    json_object_foreach(file->header, name, facts) {
        if (!strcmp(name, "__metadata__")) continue;
        CLT_TRY(parse_entry(file, &file->entries[file->count], name, facts));
        file->count++;
    }
    qsort(file->entries, file->count, sizeof *file->entries, compare_offsets);
    CLT_TRY(check_coverage(file));
    for (size_t i = 0; i < file->count; i++) file->by_name[i] = &file->entries[i];
    qsort(file->by_name, file->count, sizeof *file->by_name, compare_names);
    return CLT_OK;
}

static clt_status parse_header(clt_safetensors *file, const char *text, size_t length) {
    if (length == 0 || text[0] != '{')
        return clt_fail(CLT_E_FORMAT, "%s: not a safetensors file: its header does not begin with '{'",
                        file->path);
    clt_status bounded = clt_safetensors_check_bounds(text, length);
    if (bounded < 0) return clt_fail_context(bounded, "%s: ", file->path);
    json_error_t error;
    file->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!file->header && json_error_code(&error) == json_error_out_of_memory)
        return clt_fail_memory(length);
    if (!file->header)
        return clt_fail(CLT_E_FORMAT, "%s: the header is not valid JSON: %s at byte %d", file->path,
                        error.text, error.position);
    return parse_entries(file);
}

/* ---- the file ---- */

static clt_status read_at(clt_safetensors *file, uint64_t place, void *bytes, size_t length) {
    errno = 0;
    if (fseeko(file->stream, (off_t)place, SEEK_SET) == 0 &&
        fread(bytes, 1, length, file->stream) == length)
        return CLT_OK;
    if (feof(file->stream))
        return clt_fail(CLT_E_FORMAT, "%s: ends before byte %llu", file->path,
                        (unsigned long long)(place + length));
    return clt_fail(CLT_E_IO, "%s: cannot be read: %s", file->path, strerror(errno));
}

/* What else people have weights in; as lengths, these are more than a header has. */
static clt_status refuse_other(const char *path, const unsigned char prefix[8]) {
    static const struct {
        const char *begin, *what;
    } others[] = {{"PK\3\4", "a zip, as torch.save and numpy.savez make it"}, {"\x80\2\x8a\n", "a pickle, as torch.save made it before 1.6"}, {"\x89HDF", "an HDF5 file"}, {"GGUF", "a GGUF file"},
                  {"\x93NUMPY", "an array of NumPy"}};
    for (size_t i = 0; i < CLT_COUNT_OF(others); i++)
        if (!memcmp(prefix, others[i].begin, strlen(others[i].begin)))
            return clt_fail(CLT_E_FORMAT, "%s: not a safetensors file but %s: write it with safetensors.torch.save_file(model.state_dict(), ...)", path, others[i].what);
    return CLT_OK;
}

/* A length of eight printable characters is none. */
static bool is_text(const unsigned char prefix[8]) {
    bool text = true;
    for (int i = 0; i < 8; i++) text = text && ((prefix[i] >= ' ' && prefix[i] < 127) || (prefix[i] && strchr("\r\n\t", prefix[i])));
    return text;
}

/* The length of the header, held against the size of the file before memory is taken. */
static clt_status measure(clt_safetensors *file, size_t *header_bytes) {
    off_t size = fseeko(file->stream, 0, SEEK_END) ? -1 : ftello(file->stream);
    if (size < 0) return clt_fail(CLT_E_IO, "%s: cannot be measured: %s", file->path, strerror(errno));
    if (size < 8)
        return clt_fail(CLT_E_FORMAT, "%s: not a safetensors file: only %lld bytes", file->path,
                        (long long)size);
    unsigned char prefix[8];
    CLT_TRY(read_at(file, 0, prefix, sizeof prefix));
    CLT_TRY(refuse_other(file->path, prefix));
    uint64_t length = clt_bytes_get(prefix, 8);
    if (is_text(prefix)) return clt_fail(CLT_E_FORMAT, "%s: not a safetensors file but text, which begins with \"%.*s\"", file->path, (int)strcspn((const char *)prefix, "\r\n\t"), (const char *)prefix);
    if (prefix[0] == 8 && prefix[1] < 16 && length > CLT_SAFETENSORS_MAX_HEADER_BYTES)
        return clt_fail(CLT_E_FORMAT, "%s: not a safetensors file, but perhaps an ONNX file, which is given as the model", file->path);
    if (length > CLT_SAFETENSORS_MAX_HEADER_BYTES)
        return clt_fail(CLT_E_FORMAT, "%s: not a safetensors file: a header of %llu bytes, more than %u",
                        file->path, (unsigned long long)length, CLT_SAFETENSORS_MAX_HEADER_BYTES);
    if (length > (uint64_t)size - 8)
        return clt_fail(CLT_E_FORMAT, "%s: a header of %llu bytes does not fit into the file's %lld",
                        file->path, (unsigned long long)length, (long long)size);
    *header_bytes = (size_t)length;
    file->data_start = 8 + length;
    file->data_bytes = (uint64_t)size - file->data_start;
    return CLT_OK;
}

static clt_status read_header(clt_safetensors *file) {
    size_t length = 0;
    CLT_TRY(measure(file, &length));
    char *text = clt_alloc(length);
    if (!text) return clt_fail_memory(length);
    clt_status status = read_at(file, 8, text, length);
    if (status == CLT_OK) status = parse_header(file, text, length);
    clt_free(text);
    return status;
}

clt_status clt_safetensors_open(clt_safetensors **file, const char *path) {
    uint64_t bytes;
    CLT_TRY(clt_file_size(path, &bytes)); /* refuses what is not a regular file */
    clt_safetensors *f = clt_calloc(1, sizeof *f);
    if (!f) return clt_fail_memory(sizeof *f);
    clt_status status = CLT_OK;
    f->path = clt_strdup(path);
    if (!f->path) {
        status = clt_fail_memory(strlen(path));
        goto fail;
    }
    f->stream = fopen(path, "rb");
    if (!f->stream) {
        status = clt_fail(CLT_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
        goto fail;
    }
    CLT_TRY_GOTO(read_header(f));
    *file = f;
    return CLT_OK;
fail:
    clt_safetensors_close(f);
    return status;
}

void clt_safetensors_close(clt_safetensors *file) {
    if (!file) return;
    if (file->stream) fclose(file->stream);
    json_decref(file->header);
    clt_free(file->by_name);
    clt_free(file->entries);
    clt_free(file->path);
    clt_free(file);
}

size_t clt_safetensors_count(const clt_safetensors *file) {
    return file->count;
}

const clt_safetensors_entry *clt_safetensors_entry_at(const clt_safetensors *file, size_t index) {
    return index < file->count ? &file->entries[index] : NULL;
}

const clt_safetensors_entry *clt_safetensors_find(const clt_safetensors *file, const char *name) {
    const clt_safetensors_entry wanted = {.name = name}, *key = &wanted;
    const clt_safetensors_entry **found =
        bsearch(&key, file->by_name, file->count, sizeof *file->by_name, compare_names);
    return found ? *found : NULL;
}

const char *clt_safetensors_metadata(const clt_safetensors *file, const char *key) {
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

clt_status clt_safetensors_read(clt_safetensors *file, const clt_safetensors_entry *entry,
                                void *destination, size_t bytes) {
    if (bytes != entry->bytes)
        return clt_fail(CLT_E_INVALID, "%s: tensor " NAME " has %llu bytes, not %zu", file->path,
                        entry->name, (unsigned long long)entry->bytes, bytes);
    if (bytes == 0) return CLT_OK;
    clt_status status = read_at(file, file->data_start + entry->offset, destination, bytes);
    return status < 0 ? clt_fail_context(status, "tensor " NAME ": ", entry->name) : CLT_OK;
}
