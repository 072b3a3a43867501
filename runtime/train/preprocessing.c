#include "runtime/train/preprocessing.h"

#include "runtime/train/weight_files.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/json.h"
#include "runtime/base/shape.h"
#include "runtime/data/preprocessing.h"

const char clt_preprocessing_key[] = "cltrain.preprocessing";
const char clt_model_key[] = "cltrain.model";

/* ---- writing ---- */

/* Puts a new array into `object`; NULL, as from jansson: there was no memory for it. */
static json_t *add_array(json_t *object, const char *key, clt_status *status) {
    json_t *array = json_array();
    *status = clt_json_set(object, key, array);
    return *status == CLT_OK ? array : NULL;
}

static clt_status append(json_t *array, json_t *value) {
    return json_array_append_new(array, value) ? clt_fail_memory(sizeof(json_t *)) : CLT_OK;
}

static clt_status put_names(json_t *object, const char *key, const clt_names *names) {
    clt_status status;
    json_t *array = add_array(object, key, &status);
    for (int64_t i = 0; array && i < names->n; i++) {
        json_t *name;
        status = clt_json_string(&name, names->items[i]);
        if (status < 0) return clt_fail_context(status, "%s %lld of the data: ", key, (long long)i);
        CLT_TRY(append(array, name));
    }
    return status;
}

static clt_status put_numbers(json_t *object, const char *key, const double *numbers, size_t n) {
    clt_status status;
    json_t *array = add_array(object, key, &status);
    for (size_t i = 0; array && i < n; i++) CLT_TRY(append(array, json_real(numbers[i])));
    return status;
}

static clt_status put_shape(json_t *object, const char *key, const clt_shape *shape) {
    clt_status status;
    json_t *array = add_array(object, key, &status);
    for (int i = 0; array && i < shape->rank; i++) CLT_TRY(append(array, json_integer(shape->dims[i])));
    return status;
}

static clt_status fill(json_t *object, const clt_preprocessing *p) {
    CLT_TRY(clt_json_set_text(object, "dtype", clt_dtype_name(p->dtype)));
    CLT_TRY(put_shape(object, "shape", &p->shape));
    if (p->features.n) CLT_TRY(put_names(object, "features", &p->features));
    if (p->texts.n) CLT_TRY(put_names(object, "texts", &p->texts));
    if (p->moments.n) {
        CLT_TRY(put_numbers(object, "mean", p->moments.mean, p->moments.n));
        CLT_TRY(put_numbers(object, "deviation", p->moments.deviation, p->moments.n));
    }
    if (p->fill) CLT_TRY(put_numbers(object, "missing", p->fill, (size_t)clt_shape_elements(&p->shape)));
    if (p->label) {
        clt_status status = clt_json_set_text(object, "label", p->label);
        if (status < 0) return clt_fail_context(status, "the label's name: ");
    }
    if (p->label_column) CLT_TRY(clt_json_set(object, "label_column", json_integer(p->label_column)));
    if (p->target.rank >= 0) CLT_TRY(put_shape(object, "target", &p->target));
    if (p->target_moments.n) {
        CLT_TRY(clt_json_set(object, "target_mean", json_real(p->target_moments.mean[0])));
        CLT_TRY(clt_json_set(object, "target_deviation", json_real(p->target_moments.deviation[0])));
    }
    if (p->class_names.n) return put_names(object, "classes", &p->class_names);
    return p->classes ? clt_json_set(object, "classes", json_integer(p->classes)) : CLT_OK;
}

clt_status clt_preprocessing_write(const clt_preprocessing *p, clt_text *text) {
    json_t *object = json_object();
    if (!object) return clt_fail_memory(sizeof object);
    clt_status status = fill(object, p);
    if (status == CLT_OK) status = clt_json_dump(object, JSON_COMPACT | JSON_REAL_PRECISION(17), text);
    json_decref(object);
    return status;
}

/* ---- reading: as hostile as any file ---- */

/* More would take gigabytes when they are parsed. */
enum { MOST_VALUES = 4000000, MOST_CLASSES = 1 << 24 };

typedef struct reader {
    const char *path;
    const json_t *object;
    clt_preprocessing *p;
} reader;

static clt_status refuse(const reader *r, const char *key, const char *wanted) {
    return clt_fail(CLT_E_FORMAT, "%s: metadata \"%s\": \"%s\" is not %s", r->path, clt_preprocessing_key, key, wanted);
}

static clt_status read_dtype(const reader *r) {
    static const clt_dtype known[] = {CLT_F32, CLT_I32, CLT_U8};
    const char *name = json_string_value(json_object_get(r->object, "dtype"));
    for (size_t i = 0; name && i < CLT_COUNT_OF(known); i++)
        if (!strcmp(name, clt_dtype_name(known[i]))) return r->p->dtype = known[i], CLT_OK;
    return refuse(r, "dtype", "f32, i32 or u8");
}

static clt_status read_shape(const reader *r, const char *key, clt_shape *shape) {
    static const char wanted[] = "a list of up to 7 sizes from 1, whose product is below 2^31";
    const json_t *array = json_object_get(r->object, key);
    size_t n = json_array_size(array);
    int64_t elements = 1;
    if (!json_is_array(array) || n >= CLT_MAX_RANK) return refuse(r, key, wanted);
    for (size_t i = 0; i < n; i++) {
        json_int_t size = json_integer_value(json_array_get(array, i));
        if (size < 1 || size > INT32_MAX / elements) return refuse(r, key, wanted);
        shape->dims[i] = size;
        elements *= size;
    }
    shape->rank = (int)n;
    return CLT_OK;
}

static clt_status read_names(const reader *r, const char *key, clt_names *names) {
    const json_t *array = json_object_get(r->object, key);
    size_t n = json_array_size(array);
    if (n == 0) return refuse(r, key, "a list of names");
    names->items = clt_calloc(n, sizeof *names->items);
    if (!names->items) return clt_fail_memory(n * sizeof *names->items);
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(array, i));
        if (!name || strlen(name) != json_string_length(json_array_get(array, i))) return refuse(r, key, "a list of names");
        names->items[i] = clt_strdup(name);
        if (!names->items[i]) return clt_fail_memory(strlen(name) + 1);
        names->n++;
    }
    return CLT_OK;
}

static clt_status read_features(const reader *r) {
    if (!json_object_get(r->object, "features")) return CLT_OK;
    CLT_TRY(read_names(r, "features", &r->p->features));
    if (json_object_get(r->object, "texts")) CLT_TRY(read_names(r, "texts", &r->p->texts));
    bool fits = r->p->shape.rank == 1 && r->p->features.n == r->p->shape.dims[0];
    return fits ? CLT_OK : refuse(r, "features", "as many names as a sample has elements");
}

static clt_status read_numbers(const reader *r, const char *key, double *numbers, size_t n) {
    const json_t *array = json_object_get(r->object, key);
    for (size_t i = 0; i < n; i++) {
        const json_t *number = json_array_get(array, i);
        numbers[i] = json_number_value(number);
        if (!json_is_number(number) || !isfinite(numbers[i])) return refuse(r, key, "a list of numbers");
    }
    return CLT_OK;
}

/* As many as elements, or as channels: see clt_dataset_standardize. */
static clt_status read_moments(const reader *r) {
    const json_t *mean = json_object_get(r->object, "mean"), *deviation = json_object_get(r->object, "deviation");
    const clt_shape *shape = &r->p->shape;
    size_t n = shape->rank == 3 ? (size_t)shape->dims[0] : (size_t)clt_shape_elements(shape);
    if (!mean && !deviation) return CLT_OK;
    if (json_array_size(mean) != n || r->p->dtype != CLT_F32) return refuse(r, "mean", "a number for each element, or for each channel");
    if (json_array_size(deviation) != n) return refuse(r, "deviation", "as long as \"mean\"");
    CLT_TRY(clt_moments_make(&r->p->moments, n));
    CLT_TRY(read_numbers(r, "mean", r->p->moments.mean, n));
    CLT_TRY(read_numbers(r, "deviation", r->p->moments.deviation, n));
    for (size_t i = 0; i < n; i++)
        if (!(r->p->moments.deviation[i] > 0 && isfinite(1 / r->p->moments.deviation[i]))) return refuse(r, "deviation", "above 0");
    return CLT_OK;
}

static clt_status read_target_moments(const reader *r) {
    const json_t *mean = json_object_get(r->object, "target_mean"), *deviation = json_object_get(r->object, "target_deviation");
    clt_moments *m = &r->p->target_moments;
    if (!mean && !deviation) return CLT_OK;
    if (!json_is_number(mean) || r->p->target.rank < 0) return refuse(r, "target_mean", "a number, beside the shape \"target\"");
    CLT_TRY(clt_moments_make(m, 1));
    m->mean[0] = json_number_value(mean);
    m->deviation[0] = json_number_value(deviation);
    if (!isfinite(m->mean[0])) return refuse(r, "target_mean", "finite");
    return m->deviation[0] > 0 && isfinite(1 / m->deviation[0]) && isfinite(m->deviation[0]) ? CLT_OK : refuse(r, "target_deviation", "a number above 0");
}

static clt_status read_fill(const reader *r) {
    const json_t *fill = json_object_get(r->object, "missing");
    size_t n = (size_t)clt_shape_elements(&r->p->shape);
    if (!fill) return CLT_OK;
    if (json_array_size(fill) != n || r->p->shape.rank != 1) return refuse(r, "missing", "a number for each element of a table");
    r->p->fill = clt_calloc(n, sizeof *r->p->fill);
    return r->p->fill ? read_numbers(r, "missing", r->p->fill, n) : clt_fail_memory(n * sizeof *r->p->fill);
}

static clt_status read_classes(const reader *r) {
    const json_t *classes = json_object_get(r->object, "classes");
    if (!classes) return CLT_OK;
    if (json_is_array(classes)) {
        CLT_TRY(read_names(r, "classes", &r->p->class_names));
        r->p->classes = (int)r->p->class_names.n;
        return CLT_OK;
    }
    json_int_t n = json_integer_value(classes);
    if (n < 1 || n > MOST_CLASSES) return refuse(r, "classes", "a list of names, or how many");
    r->p->classes = (int)n;
    return CLT_OK;
}

static clt_status read_label(const reader *r) {
    const json_t *label = json_object_get(r->object, "label"), *column = json_object_get(r->object, "label_column");
    const char *name = json_string_value(label);
    if (column && !(json_is_integer(column) && json_integer_value(column) >= 1)) return refuse(r, "label_column", "a whole number from 1");
    r->p->label_column = json_integer_value(column);
    if (!label) return CLT_OK;
    if (!name) return refuse(r, "label", "a name");
    r->p->label = clt_strdup(name);
    return r->p->label ? CLT_OK : clt_fail_memory(strlen(name) + 1);
}

static clt_status read_all(const reader *r) {
    CLT_TRY(read_dtype(r));
    CLT_TRY(read_shape(r, "shape", &r->p->shape));
    if (json_object_get(r->object, "target")) CLT_TRY(read_shape(r, "target", &r->p->target));
    else r->p->target.rank = -1;
    CLT_TRY(read_features(r));
    CLT_TRY(read_moments(r));
    CLT_TRY(read_target_moments(r));
    CLT_TRY(read_fill(r));
    CLT_TRY(read_classes(r));
    return read_label(r);
}

static clt_status check_bounds(const char *text, const char *path) {
    size_t values = 0;
    for (const char *at = text; *at; at++) values += strchr(",[{", *at) != NULL;
    if (values <= MOST_VALUES) return CLT_OK;
    return clt_fail(CLT_E_FORMAT, "%s: metadata \"%s\" has more than %d values", path, clt_preprocessing_key, MOST_VALUES);
}

clt_status clt_preprocessing_read(clt_preprocessing **preprocessing, const char *text, const char *path) {
    json_error_t error;
    CLT_TRY(check_bounds(text, path));
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!object && json_error_code(&error) == json_error_out_of_memory) return clt_fail_memory(strlen(text));
    clt_preprocessing *p = clt_calloc(1, sizeof *p);
    clt_status status = p ? CLT_OK : clt_fail_memory(sizeof *p);
    if (status == CLT_OK && !json_is_object(object))
        status = clt_fail(CLT_E_FORMAT, "%s: metadata \"%s\" is not a JSON object: %s", path, clt_preprocessing_key, object ? "another value" : error.text);
    if (status == CLT_OK) status = read_all(&(reader){path, object, p});
    json_decref(object);
    if (status < 0) clt_preprocessing_destroy(p);
    else *preprocessing = p;
    return status;
}

clt_status clt_preprocessing_parse(clt_preprocessing **preprocessing, const char *json) {
    if (!preprocessing || !json) return clt_fail(CLT_E_INVALID, "clt_preprocessing_parse: an argument is NULL");
    return clt_preprocessing_read(preprocessing, json, "the text");
}

size_t clt_preprocessing_json(const clt_preprocessing *preprocessing, char *json, size_t bytes) {
    clt_text text = {0};
    if (!preprocessing || clt_preprocessing_write(preprocessing, &text) < 0) clt_text_free(&text);
    if (bytes) snprintf(json, bytes, "%s", clt_text_data(&text));
    size_t length = text.length;
    clt_text_free(&text);
    return length;
}

clt_status clt_preprocessing_load(clt_preprocessing **preprocessing, const char *path) {
    clt_weight_files *files;
    if (!preprocessing || !path) return clt_fail(CLT_E_INVALID, "clt_preprocessing_load: an argument is NULL");
    CLT_TRY(clt_weight_files_open(&files, path));
    const char *text = clt_weight_files_metadata(files, clt_preprocessing_key);
    clt_status status = text ? clt_preprocessing_read(preprocessing, text, path)
                             : clt_fail(CLT_E_NOT_FOUND, "%s does not tell what data the model was trained on", path);
    clt_weight_files_close(files);
    return status;
}
