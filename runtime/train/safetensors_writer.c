#include <string.h>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/name.h"
#include "runtime/train/safetensors.h"

struct clt_safetensors_writer {
    clt_file_writer *file;
    char *path; /* for messages, as are the names */
    json_t *names;
    uint64_t *bytes; /* of each tensor */
    size_t count;
    size_t at;     /* the tensor being written */
    uint64_t done; /* its bytes that are written */
};

/* Puts a new value into `object` and takes it over, also on error. The key was found to be UTF-8. */
static clt_status put(json_t *object, const char *key, json_t *value) {
    if (!json_object_get(object, key)) return clt_json_set(object, key, value);
    json_decref(value);
    return clt_fail(CLT_E_INVALID, "the name \"%.120s\" is there twice", key);
}

static clt_status add_metadata(json_t *header, const clt_safetensors_pair *pairs, size_t count) {
    if (count == 0) return CLT_OK;
    json_t *metadata = json_object();
    CLT_TRY(put(header, "__metadata__", metadata));
    for (size_t i = 0; i < count; i++) {
        json_t *value;
        CLT_TRY(clt_json_check_text(pairs[i].key));
        clt_status status = clt_json_string(&value, pairs[i].value);
        if (status < 0) return clt_fail_context(status, "metadata \"%.120s\": ", pairs[i].key);
        CLT_TRY(put(metadata, pairs[i].key, value));
    }
    return CLT_OK;
}

static clt_status add_entry(json_t *header, const clt_safetensors_entry *entry, uint64_t bytes,
                            uint64_t *offset) {
    uint64_t begin = *offset;
    if (bytes > INT64_MAX - begin) return clt_fail(CLT_E_RANGE, "more than 2^63 bytes of tensors");
    *offset = begin + bytes;
    json_t *facts = json_pack("{s:s, s:[], s:[I, I]}", "dtype", clt_safetensors_dtype_name(entry->dtype),
                              "shape", "data_offsets", (json_int_t)begin, (json_int_t)*offset);
    CLT_TRY(put(header, entry->name, facts));
    for (int i = 0; i < entry->shape.rank; i++) {
        json_t *shape = json_object_get(facts, "shape");
        if (json_array_append_new(shape, json_integer(entry->shape.dims[i]))) return clt_fail_memory(8);
    }
    return CLT_OK;
}

static clt_status add_entries(clt_safetensors_writer *writer, json_t *header,
                              const clt_safetensors_entry *entries) {
    uint64_t offset = 0;
    for (size_t i = 0; i < writer->count; i++) {
        const clt_safetensors_entry *entry = &entries[i];
        clt_status status = clt_tensor_name_check(entry->name);
        if (status < 0) return clt_fail_context(status, "the name of a tensor: ");
        if (!clt_safetensors_tensor_bytes(entry->dtype, &entry->shape, &writer->bytes[i]))
            return clt_fail(CLT_E_INVALID, "tensor \"%.120s\": no such dtype or shape", entry->name);
        CLT_TRY(add_entry(header, entry, writer->bytes[i], &offset));
        if (json_array_append_new(writer->names, json_string(entry->name)))
            return clt_fail_memory(strlen(entry->name));
    }
    return CLT_OK;
}

/* Length, JSON, and spaces up to a multiple of 8: the data is aligned when the file is mapped. */
static clt_status write_header(clt_safetensors_writer *writer, const json_t *header) {
    clt_text text = {0};
    clt_status status = CLT_OK;
    CLT_TRY_GOTO(clt_json_dump(header, JSON_COMPACT, &text));
    while (text.status == CLT_OK && text.length % 8) clt_text_add(&text, " ");
    CLT_TRY_GOTO(text.status);
    if (text.length > CLT_SAFETENSORS_MAX_HEADER_BYTES) {
        status = clt_fail(CLT_E_RANGE, "a header of %zu bytes, more than the format's %u", text.length,
                          CLT_SAFETENSORS_MAX_HEADER_BYTES);
        goto fail;
    }
    if (clt_safetensors_check_bounds(text.data, text.length) < 0) {
        status = CLT_E_RANGE; /* for want of room, in the words of the reader */
        goto fail;
    }
    unsigned char prefix[8];
    for (int i = 0; i < 8; i++) prefix[i] = (unsigned char)((uint64_t)text.length >> (8 * i));
    CLT_TRY_GOTO(clt_file_writer_write(writer->file, prefix, sizeof prefix));
    status = clt_file_writer_write(writer->file, text.data, text.length);
fail:
    clt_text_free(&text);
    return status;
}

/* Tensors of no bytes are done as soon as it is their turn. */
static void skip_empty(clt_safetensors_writer *writer) {
    while (writer->at < writer->count && writer->bytes[writer->at] == 0) writer->at++;
}

clt_status clt_safetensors_writer_open(clt_safetensors_writer **writer, const char *path,
                                       const clt_safetensors_entry *entries, size_t n_entries,
                                       const clt_safetensors_pair *metadata, size_t n_metadata) {
    clt_status status;
    json_t *header = json_object();
    clt_safetensors_writer *w = clt_calloc(1, sizeof *w);
    if (!w || !header) {
        status = clt_fail_memory(sizeof *w);
        goto fail;
    }
    w->count = n_entries;
    w->bytes = clt_calloc(n_entries, sizeof *w->bytes);
    w->names = json_array();
    w->path = clt_strdup(path);
    if (!w->bytes || !w->names || !w->path) {
        status = clt_fail_memory(n_entries * sizeof *w->bytes);
        goto fail;
    }
    CLT_TRY_GOTO(add_metadata(header, metadata, n_metadata));
    CLT_TRY_GOTO(add_entries(w, header, entries));
    CLT_TRY_GOTO(clt_file_writer_open(&w->file, path));
    CLT_TRY_GOTO(write_header(w, header));
    skip_empty(w);
    json_decref(header);
    *writer = w;
    return CLT_OK;
fail:
    json_decref(header);
    clt_safetensors_writer_abort(w);
    /* What the file layer says names the path already. */
    return status == CLT_E_IO ? status : clt_fail_context(status, "%s: ", path);
}

clt_status clt_safetensors_writer_write(clt_safetensors_writer *writer, const void *bytes,
                                        size_t length) {
    if (length == 0) return CLT_OK;
    if (writer->at == writer->count)
        return clt_fail(CLT_E_INVALID, "%s: %zu bytes after the last tensor", writer->path, length);
    uint64_t wanted = writer->bytes[writer->at];
    if (length > wanted - writer->done)
        return clt_fail(CLT_E_INVALID, "%s: tensor \"%.120s\" has %llu bytes, not %llu", writer->path,
                        json_string_value(json_array_get(writer->names, writer->at)),
                        (unsigned long long)wanted, (unsigned long long)(writer->done + length));
    CLT_TRY(clt_file_writer_write(writer->file, bytes, length));
    writer->done += length;
    if (writer->done == wanted) {
        writer->done = 0;
        writer->at++;
        skip_empty(writer);
    }
    return CLT_OK;
}

/* Frees all but the file below, which commit or abort has freed. */
static void writer_free(clt_safetensors_writer *writer) {
    json_decref(writer->names);
    clt_free(writer->bytes);
    clt_free(writer->path);
    clt_free(writer);
}

clt_status clt_safetensors_writer_commit(clt_safetensors_writer *writer) {
    clt_status status;
    if (writer->at < writer->count) {
        status =
            clt_fail(CLT_E_STATE, "%s: tensor \"%.120s\" is incomplete: %llu of its %llu bytes",
                     writer->path, json_string_value(json_array_get(writer->names, writer->at)),
                     (unsigned long long)writer->done, (unsigned long long)writer->bytes[writer->at]);
        clt_file_writer_abort(writer->file);
    } else {
        status = clt_file_writer_commit(writer->file);
    }
    writer_free(writer);
    return status;
}

void clt_safetensors_writer_abort(clt_safetensors_writer *writer) {
    if (!writer) return;
    clt_file_writer_abort(writer->file);
    writer_free(writer);
}
