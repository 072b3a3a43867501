#include "runtime/exchange/onnx/file.h"

#include <string.h>

#include "runtime/base/bytes.h"

/* Names in messages are cut: one in a file may be as long as the file. */
static clt_status fail_tensor(const clt_onnx_tensor *tensor, const char *what) {
    char shown[CLT_SHOWN_TEXT];
    return clt_fail(CLT_E_FORMAT, "tensor \"%s\": %s", clt_show(tensor->name, shown), what);
}

static clt_status open_bytes(clt_onnx_file *file, const char *path, clt_wire *bytes) {
    static const unsigned char none[1];
    *file = (clt_onnx_file){.view.file = -1};
    file->path = clt_strdup(path);
    if (!file->path) return clt_fail_memory(strlen(path));
    CLT_TRY(clt_file_view_open(&file->view, path));
    bytes->at = file->view.bytes ? file->view.bytes : none;
    bytes->end = bytes->at + file->view.length;
    return CLT_OK;
}

clt_status clt_onnx_file_open(clt_onnx_file *file, const char *path) {
    clt_wire bytes;
    CLT_TRY(open_bytes(file, path, &bytes));
    clt_status status = clt_onnx_model_read(&file->model, bytes);
    return status < 0 ? clt_fail_context(status, "%s: ", path) : CLT_OK;
}

clt_status clt_onnx_file_open_tensor(clt_onnx_file *file, const char *path, clt_onnx_tensor *tensor) {
    clt_wire bytes;
    CLT_TRY(open_bytes(file, path, &bytes));
    file->model.arena.limit = SIZE_MAX;
    clt_status status = clt_onnx_tensor_read(&file->model.arena, bytes, tensor);
    return status < 0 ? clt_fail_context(status, "%s: ", path) : CLT_OK;
}

void clt_onnx_file_close(clt_onnx_file *file) {
    clt_onnx_model_free(&file->model);
    for (size_t i = 0; i < file->n_data_files; i++) {
        clt_file_view_close(&file->data_files[i].view);
        clt_free(file->data_files[i].location);
        clt_free(file->data_files[i].path);
    }
    clt_free(file->data_files);
    clt_file_view_close(&file->view);
    clt_free(file->path);
    *file = (clt_onnx_file){.view.file = -1};
}

/* ---- data in files of their own ---- */

static clt_status open_data_file(clt_onnx_file *file, const char *location, clt_onnx_data_file **opened) {
    for (size_t i = 0; i < file->n_data_files; i++)
        if (!strcmp(file->data_files[i].location, location)) {
            *opened = &file->data_files[i];
            return CLT_OK;
        }
    CLT_TRY(clt_grow(&file->data_files, &file->capacity, file->n_data_files, sizeof *file->data_files));
    clt_onnx_data_file *added = &file->data_files[file->n_data_files++];
    clt_text path = {0};
    *added = (clt_onnx_data_file){.location = clt_strdup(location), .view.file = -1};
    clt_status status = added->location ? clt_file_beside(file->path, location, &path) : clt_fail_memory(strlen(location));
    added->path = path.data;
    if (status == CLT_OK) status = clt_file_view_open(&added->view, added->path);
    if (status < 0) { /* it is asked for again, and fails again */
        clt_file_view_close(&added->view);
        clt_free(added->location);
        clt_free(added->path);
        file->n_data_files--;
        return status;
    }
    *opened = added;
    return CLT_OK;
}

clt_status clt_onnx_open_all(clt_onnx_file *file) {
    clt_onnx_data_file *ignored;
    for (size_t i = 0; i < file->model.n_initializers; i++)
        if (file->model.initializers[i].external) CLT_TRY(open_data_file(file, file->model.initializers[i].external->location, &ignored));
    return CLT_OK;
}

/* The file, where the length that is told is that of the shape. */
static clt_status open_external(clt_onnx_file *file, const clt_onnx_tensor *tensor, uint64_t bytes, clt_onnx_data_file **data) {
    const clt_onnx_external *external = tensor->external;
    char shown[CLT_SHOWN_TEXT];
    clt_status status = open_data_file(file, external->location, data);
    if (status < 0) return clt_fail_context(status, "tensor \"%s\": ", clt_show(tensor->name, shown));
    return external->has_length && external->length != bytes ? fail_tensor(tensor, "its external data have another length than its shape") : CLT_OK;
}

/* Of the file, behind the tensor's offset. */
static uint64_t bytes_there(const clt_onnx_tensor *tensor, const clt_onnx_data_file *data) {
    return tensor->external->offset > data->view.length ? 0 : data->view.length - tensor->external->offset;
}

static clt_status read_external(clt_onnx_file *file, const clt_onnx_tensor *tensor, uint64_t bytes, uint64_t skipped, void *to, size_t wanted) {
    const clt_onnx_external *external = tensor->external;
    clt_onnx_data_file *data;
    CLT_TRY(open_external(file, tensor, bytes, &data));
    if (!external->has_length && bytes_there(tensor, data) < bytes) return fail_tensor(tensor, "its external data are shorter than its shape");
    return clt_file_view_read(&data->view, data->path, external->offset + skipped, to, wanted);
}

/* ---- data in fields of their type ---- */

/* The field that holds a type's values, how each is written, and whether as two or more bytes of a varint. */
uint32_t clt_onnx_typed_field(int64_t type, clt_wire_type *written) {
    *written = CLT_WIRE_VARINT;
    switch (type) {
    case CLT_ONNX_FLOAT: *written = CLT_WIRE_32; return 4;
    case CLT_ONNX_DOUBLE: *written = CLT_WIRE_64; return 10;
    case CLT_ONNX_INT64: return 7;
    case CLT_ONNX_UINT32:
    case CLT_ONNX_UINT64: return 11;
    default: return 5; /* int32_data has all smaller ones, f16 and bf16 by their bits */
    }
}

/* Puts the values of one field in their place, as far as they are wanted; *at counts them. */
static int take_values(clt_wire_field *field, clt_wire_type written, size_t bytes, int64_t first, int64_t count, int64_t *at, unsigned char *to) {
    bool packed = field->type == CLT_WIRE_BYTES;
    uint64_t value = field->value;
    int got = 1;
    if (!packed && field->type != written) return -1;
    while (!packed || (got = clt_wire_value(&field->bytes, written, &value)) == 1) {
        if (*at >= first && *at - first < count) clt_bytes_put(to + (size_t)(*at - first) * bytes, value, (int)bytes);
        ++*at;
        if (!packed) break;
    }
    return got;
}

static clt_status read_typed(const clt_onnx_tensor *tensor, size_t bytes, int64_t first, int64_t count, unsigned char *to) {
    clt_wire_type written;
    uint32_t number = clt_onnx_typed_field(tensor->type, &written);
    clt_wire message = tensor->message;
    clt_wire_field field;
    int64_t n = 0;
    while (clt_wire_next(&message, &field) == 1)
        if (field.number == number && take_values(&field, written, bytes, first, count, &n, to) < 0)
            return fail_tensor(tensor, "its list of values is malformed");
    return n == tensor->elements ? CLT_OK : fail_tensor(tensor, n ? "it has another number of values than its shape" : "it has no data");
}

clt_status clt_onnx_data_check(clt_onnx_file *file, const clt_onnx_tensor *tensor) {
    uint64_t there = clt_wire_length(tensor->has_raw ? tensor->raw : tensor->message), element = clt_onnx_type_bytes(tensor->type);
    if (tensor->external) {
        clt_onnx_data_file *data;
        CLT_TRY(open_external(file, tensor, (uint64_t)tensor->elements * element, &data));
        there = bytes_there(tensor, data);
    }
    uint64_t least = tensor->has_raw || tensor->external ? element : 1; /* of an element */
    return (uint64_t)tensor->elements <= (least ? there / least : there) ? CLT_OK : fail_tensor(tensor, "its data are shorter than its shape");
}

clt_status clt_onnx_data_read(clt_onnx_file *file, const clt_onnx_tensor *tensor, int64_t first, int64_t count, void *to) {
    size_t element = clt_onnx_type_bytes(tensor->type), bytes;
    char shown[CLT_SHOWN_TEXT];
    if (element == 0 || element > 8)
        return clt_fail(CLT_E_UNSUPPORTED, "tensor \"%s\": type %s (%lld) is not read", clt_show(tensor->name, shown), clt_onnx_type_name(tensor->type),
                        (long long)tensor->type);
    if (!clt_mul_size((size_t)tensor->elements, element, &bytes)) return fail_tensor(tensor, "it is larger than this process can address");
    if (first < 0 || count < 0 || first > tensor->elements - count) return clt_fail(CLT_E_RANGE, "elements past a tensor's end");
    size_t skipped = (size_t)first * element, wanted = (size_t)count * element;
    if (wanted == 0 && !tensor->external && !tensor->has_raw) return CLT_OK;
    if (tensor->external) return read_external(file, tensor, bytes, skipped, to, wanted);
    if (!tensor->has_raw) return read_typed(tensor, element, first, count, to);
    if (clt_wire_length(tensor->raw) != bytes) return fail_tensor(tensor, "its raw data have another length than its shape");
    return clt_file_view_read(&file->view, file->path, (uint64_t)(tensor->raw.at - file->view.bytes) + skipped, to, wanted);
}
