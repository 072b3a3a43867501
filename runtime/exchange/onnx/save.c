/* Trained weights, back in their places: all other bytes of a file stay. */
#include <stdlib.h>
#include <string.h>

#include <cltrain/train.h>

#include "runtime/exchange/onnx/onnx.h"

/* New bytes of a file. */
typedef struct patch {
    uint64_t offset;
    const clt_onnx_value *value;
} patch;

typedef struct patches {
    patch *items; /* in the order of their places */
    size_t n, capacity;
} patches;

static clt_status fail_weight(const clt_onnx_value *value, const char *what) {
    char shown[CLT_SHOWN_TEXT];
    return clt_fail(CLT_E_UNSUPPORTED, "weight \"%s\": %s", clt_show(value->name, shown), what);
}

/* Where a tensor's values lie in the model's own file: raw, or as a list in one piece. */
static clt_status find_values(const clt_onnx_value *value, clt_wire *bytes) {
    const clt_onnx_tensor *t = value->initializer;
    clt_wire message = t->message;
    clt_wire_field field;
    clt_wire_type ignored;
    uint32_t number = clt_onnx_typed_field(t->type, &ignored);
    int lists = 0;
    *bytes = t->raw;
    if (t->has_raw) return CLT_OK;
    while (clt_wire_next(&message, &field) == 1) {
        if (field.number != number) continue;
        lists++;
        *bytes = field.bytes;
        if (field.type != CLT_WIRE_BYTES) return fail_weight(value, "its values are written one by one, and cannot be replaced");
    }
    return lists == 1 ? CLT_OK : fail_weight(value, "its values are in several lists, and cannot be replaced");
}

static int compare_places(const void *left, const void *right) {
    const patch *a = left, *b = right;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* The weights of one file: of external data, by its location, or with NULL of the model's own. */
static clt_status collect(const clt_onnx *o, const char *location, patches *p) {
    for (size_t i = 0; i < o->n_values; i++) {
        const clt_onnx_value *value = &o->values[i];
        const clt_onnx_external *external = value->initializer ? value->initializer->external : NULL;
        if (!value->initializer || !value->tensor || !value->tensor->variable || !clt_variable_is_kept(value->tensor->variable)) continue;
        if (location ? !external || strcmp(external->location, location) : external != NULL) continue;
        clt_wire bytes = {0};
        if (!external) CLT_TRY(find_values(value, &bytes));
        CLT_TRY(clt_grow(&p->items, &p->capacity, p->n, sizeof *p->items));
        p->items[p->n++] = (patch){external ? external->offset : (uint64_t)(bytes.at - o->file.view.bytes), value};
    }
    if (p->n) qsort(p->items, p->n, sizeof *p->items, compare_places);
    return CLT_OK;
}

static clt_status copy_bytes(clt_file_writer *writer, const clt_file_view *view, const char *path, uint64_t from, uint64_t to) {
    enum { PIECE = 1 << 20 };
    char *piece = clt_alloc(PIECE);
    clt_status status = piece ? CLT_OK : clt_fail_memory(PIECE);
    while (status == CLT_OK && from < to) {
        size_t n = (size_t)CLT_MIN(to - from, (uint64_t)PIECE);
        status = clt_file_view_read(view, path, from, piece, n);
        if (status == CLT_OK) status = clt_file_writer_write(writer, piece, n);
        from += n;
    }
    clt_free(piece);
    return status;
}

clt_status clt_onnx_write_weight(clt_file_writer *writer, clt_trainer *trainer, const clt_variable *weight) {
    size_t bytes = clt_variable_bytes(weight);
    float *values = clt_alloc(bytes);
    clt_status status = values ? clt_trainer_get(trainer, weight->name, values, bytes / sizeof *values) : clt_fail_memory(bytes);
    if (status == CLT_OK) status = clt_file_writer_write(writer, values, bytes);
    clt_free(values);
    return status;
}

/* What training did not change keeps the digits that f32 has not. */
static void widen(double *to, const float *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((float)to[i] != values[i]) to[i] = values[i];
}

static clt_status write_doubles(clt_file_writer *writer, clt_trainer *trainer, const clt_onnx_value *value) {
    const clt_onnx_tensor *t = value->initializer;
    size_t n = (size_t)t->elements, bytes = n * sizeof(double);
    double *wide = clt_alloc(bytes);
    float *values = clt_alloc(n * sizeof *values);
    clt_status status = wide && values ? clt_onnx_data_read(value->file, t, 0, t->elements, wide) : clt_fail_memory(bytes);
    if (status == CLT_OK) status = clt_trainer_get(trainer, value->tensor->variable->name, values, n);
    if (status == CLT_OK) {
        widen(wide, values, n);
        status = clt_file_writer_write(writer, wide, bytes);
    }
    clt_free(values);
    clt_free(wide);
    return status;
}

static clt_status write_value(clt_file_writer *writer, clt_trainer *trainer, const clt_onnx_value *value) {
    return value->initializer->type == CLT_ONNX_DOUBLE ? write_doubles(writer, trainer, value) : clt_onnx_write_weight(writer, trainer, value->tensor->variable);
}

static clt_status write_patched(const clt_file_view *view, const char *from, const char *to, clt_trainer *trainer, const patches *p) {
    clt_file_writer *writer;
    uint64_t at = 0;
    CLT_TRY(clt_file_writer_open(&writer, to));
    clt_status status = CLT_OK;
    for (size_t i = 0; status == CLT_OK && i < p->n; i++) {
        const clt_onnx_tensor *t = p->items[i].value->initializer;
        uint64_t bytes = (uint64_t)t->elements * clt_onnx_type_bytes(t->type);
        if (p->items[i].offset < at) status = fail_weight(p->items[i].value, "it shares its place with another");
        if (status == CLT_OK) status = copy_bytes(writer, view, from, at, p->items[i].offset);
        if (status == CLT_OK) status = write_value(writer, trainer, p->items[i].value);
        at = p->items[i].offset + bytes;
    }
    if (status == CLT_OK) status = copy_bytes(writer, view, from, at, view->length);
    return clt_file_writer_end(writer, status);
}

/* DIR/location */
static clt_status path_beside(const char *path, const char *location, clt_text *to) {
    const char *slash = strrchr(path, '/');
    if (slash) clt_text_add_bytes(to, path, (size_t)(slash - path) + 1);
    clt_text_add(to, "%s", location);
    return to->status;
}

static clt_status make_folders(const char *location, const char *to) {
    const char *last = strrchr(to, '/');
    if (!strchr(location, '/') || !last) return CLT_OK;
    clt_text folder = {0};
    clt_text_add_bytes(&folder, to, (size_t)(last - to));
    clt_status status = folder.status == CLT_OK ? clt_file_make_folder(folder.data) : folder.status;
    clt_text_free(&folder);
    return status;
}

/* Whether the model that is at `path` by now has its weights at the location, too. */
static bool has_data_at(const char *path, const char *location) {
    clt_onnx_file file;
    bool has = false;
    if (clt_onnx_file_open(&file, path) == CLT_OK)
        for (size_t i = 0; i < file.model.n_initializers && !has; i++) {
            const clt_onnx_external *external = file.model.initializers[i].external;
            has = external && !strcmp(external->location, location);
        }
    clt_onnx_file_close(&file);
    return has;
}

/* A model beside another would take its weights away, where the data of both have one name. */
static clt_status check_place(const clt_onnx *o, const char *path, const char *to, const clt_onnx_data_file *data) {
    if (!clt_file_exists(to) || clt_file_same(path, o->file.path)) return CLT_OK;
    if (!clt_file_same(to, data->path) && has_data_at(path, data->location)) return CLT_OK;
    return clt_fail(CLT_E_INVALID, "%s would replace %s, the weights of another model: save in another folder, or over the model itself", path, to);
}

clt_status clt_onnx_check_path(clt_onnx *onnx, const char *path) {
    if (!onnx || !path) return clt_fail(CLT_E_INVALID, "clt_onnx_check_path: onnx or path is NULL");
    clt_status status = clt_onnx_open_all(&onnx->file);
    for (size_t i = 0; status == CLT_OK && i < onnx->file.n_data_files; i++) {
        const clt_onnx_data_file *data = &onnx->file.data_files[i];
        clt_text to = {0};
        status = path_beside(path, data->location, &to);
        if (status == CLT_OK) status = check_place(onnx, path, to.data, data);
        clt_text_free(&to);
    }
    return status;
}

static clt_status save_external(clt_onnx *o, clt_trainer *trainer, const char *path, const clt_onnx_data_file *data) {
    patches p = {0};
    clt_text to = {0};
    clt_status status = collect(o, data->location, &p);
    if (status == CLT_OK) status = path_beside(path, data->location, &to);
    if (status == CLT_OK) status = make_folders(data->location, to.data);
    if (status == CLT_OK) status = write_patched(&data->view, data->path, to.data, trainer, &p);
    clt_text_free(&to);
    clt_free(p.items);
    return status;
}

clt_status clt_onnx_save(clt_onnx *onnx, clt_trainer *trainer, const char *path) {
    if (!onnx || !trainer || !path) return clt_fail(CLT_E_INVALID, "clt_onnx_save: onnx, trainer or path is NULL");
    patches p = {0};
    clt_status status = clt_onnx_check_path(onnx, path);
    for (size_t i = 0; status == CLT_OK && i < onnx->file.n_data_files; i++) status = save_external(onnx, trainer, path, &onnx->file.data_files[i]);
    if (status == CLT_OK) status = collect(onnx, NULL, &p);
    if (status == CLT_OK) status = write_patched(&onnx->file.view, onnx->file.path, path, trainer, &p);
    clt_free(p.items);
    return status;
}
