#include "runtime/train/weight_files.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/base/halves.h"

enum { MOST_FILES = 4096, MOST_INDEX_BYTES = 64 << 20, MOST_PATH = 4096 };
static const char index_suffix[] = ".index.json";

struct clt_weight_files {
    char **names; /* of the files, as the index has them; NULL: there is no index */
    clt_safetensors **files;
    size_t n_files;
    clt_weight *weights; /* sorted by name */
    size_t n;
};

static int by_name(const void *a, const void *b) {
    return strcmp(((const clt_weight *)a)->entry->name, ((const clt_weight *)b)->entry->name);
}

static const clt_weight *find(const clt_weight_files *f, const char *name) {
    const clt_safetensors_entry entry = {.name = name};
    const clt_weight key = {&entry, NULL};
    return bsearch(&key, f->weights, f->n, sizeof key, by_name);
}

/* ---- the files ---- */

static clt_status gather(clt_weight_files *f, const char *path) {
    size_t count = 0;
    for (size_t i = 0; i < f->n_files; i++) count += clt_safetensors_count(f->files[i]);
    f->weights = clt_calloc(count + 1, sizeof *f->weights);
    if (!f->weights) return clt_fail_memory(count * sizeof *f->weights);
    for (size_t i = 0; i < f->n_files; i++)
        for (size_t k = 0; k < clt_safetensors_count(f->files[i]); k++)
            f->weights[f->n++] = (clt_weight){clt_safetensors_entry_at(f->files[i], k), f->files[i]};
    qsort(f->weights, f->n, sizeof *f->weights, by_name);
    for (size_t i = 1; i < f->n; i++)
        if (!by_name(&f->weights[i - 1], &f->weights[i]))
            return clt_fail(CLT_E_FORMAT, "%s: two of its files have a tensor \"%.120s\"", path, f->weights[i].entry->name);
    return CLT_OK;
}

static clt_status make_room(clt_weight_files *f, size_t n) {
    f->names = clt_calloc(n, sizeof *f->names);
    f->files = clt_calloc(n, sizeof *f->files);
    return f->names && f->files ? CLT_OK : clt_fail_memory(n * sizeof *f->files);
}

/* ---- the index ---- */

/* A name of a file alone: an index leads to no other folder. */
static bool is_plain(const char *name) {
    return name && name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static size_t place_of(const clt_weight_files *f, const char *name) {
    size_t i = 0;
    while (i < f->n_files && strcmp(f->names[i], name) != 0) i++;
    return i;
}

static clt_status open_beside(clt_weight_files *f, const char *path, const char *name) {
    char whole[MOST_PATH];
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0, length = strlen(name);
    if (f->n_files == MOST_FILES) return clt_fail(CLT_E_FORMAT, "%s: more than %d files", path, MOST_FILES);
    if (folder + length >= sizeof whole) return clt_fail(CLT_E_FORMAT, "%s: the path of \"%.120s\" is too long", path, name);
    memcpy(whole, path, folder);
    memcpy(whole + folder, name, length + 1);
    f->names[f->n_files] = clt_strdup(name);
    if (!f->names[f->n_files]) return clt_fail_memory(length + 1);
    clt_status status = clt_safetensors_open(&f->files[f->n_files], whole);
    if (status < 0) clt_free(f->names[f->n_files]);
    else f->n_files++;
    return status;
}

static clt_status open_all(clt_weight_files *f, const char *path, json_t *map) {
    const char *tensor;
    json_t *value;
    if (!json_is_object(map) || !json_object_size(map)) return clt_fail(CLT_E_FORMAT, "%s: \"weight_map\" is missing, or no object with tensors", path);
    CLT_TRY(make_room(f, CLT_MIN(json_object_size(map), MOST_FILES)));
    json_object_foreach(map, tensor, value) {
        const char *name = json_string_value(value);
        if (!is_plain(name)) return clt_fail(CLT_E_FORMAT, "%s: tensor \"%.120s\": expected the name of a file in the same folder", path, tensor);
        if (place_of(f, name) == f->n_files) CLT_TRY(open_beside(f, path, name));
    }
    return CLT_OK;
}

/* Index and files agree. */
static clt_status check_map(const clt_weight_files *f, const char *path, json_t *map) {
    const char *tensor;
    json_t *value;
    json_object_foreach(map, tensor, value) {
        const clt_weight *weight = find(f, tensor);
        const char *name = json_string_value(value);
        if (!weight || weight->file != f->files[place_of(f, name)])
            return clt_fail(CLT_E_FORMAT, "%s: tensor \"%.120s\" is not in %.120s, where the index has it", path, tensor, name);
    }
    for (size_t i = 0; i < f->n; i++)
        if (!json_object_get(map, f->weights[i].entry->name))
            return clt_fail(CLT_E_FORMAT, "%s: tensor \"%.120s\" is in one of its files, but not in the index", path, f->weights[i].entry->name);
    return CLT_OK;
}

/* An index nests as deep as a header. */
static clt_status parse_index(json_t **index, const char *path, const char *text, size_t length) {
    json_error_t error;
    clt_status status = clt_safetensors_check_bounds(text, length);
    if (status < 0) return clt_fail_context(status, "%s: ", path);
    *index = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (*index) return CLT_OK;
    if (json_error_code(&error) == json_error_out_of_memory) return clt_fail_memory(length);
    return clt_fail(CLT_E_FORMAT, "%s: line %d: %s", path, error.line, error.text);
}

static clt_status open_index(clt_weight_files *f, const char *path) {
    void *bytes;
    size_t length;
    json_t *index = NULL;
    CLT_TRY(clt_file_read(path, MOST_INDEX_BYTES, &bytes, &length));
    clt_status status = parse_index(&index, path, bytes, length);
    clt_free(bytes);
    CLT_TRY(status);
    json_t *map = json_object_get(index, "weight_map");
    CLT_TRY_GOTO(open_all(f, path, map));
    CLT_TRY_GOTO(gather(f, path));
    status = check_map(f, path, map);
fail:
    json_decref(index);
    return status;
}

static clt_status open_one(clt_weight_files *f, const char *path) {
    CLT_TRY(make_room(f, 1));
    CLT_TRY(clt_safetensors_open(&f->files[0], path));
    f->n_files = 1;
    return gather(f, path);
}

clt_status clt_weight_files_open(clt_weight_files **files, const char *path) {
    clt_weight_files *f = clt_calloc(1, sizeof *f);
    if (!f) return clt_fail_memory(sizeof *f);
    clt_status status = clt_ends_with(path, index_suffix) ? open_index(f, path) : open_one(f, path);
    if (status < 0) clt_weight_files_close(f);
    else *files = f;
    return status;
}

void clt_weight_files_close(clt_weight_files *f) {
    if (!f) return;
    for (size_t i = 0; i < f->n_files; i++) {
        clt_safetensors_close(f->files[i]);
        clt_free(f->names[i]);
    }
    clt_free(f->names);
    clt_free(f->files);
    clt_free(f->weights);
    clt_free(f);
}

/* ---- tensors ---- */

const char *clt_weight_files_metadata(const clt_weight_files *f, const char *key) {
    const char *text = NULL;
    for (size_t i = 0; !text && i < f->n_files; i++) text = clt_safetensors_metadata(f->files[i], key);
    return text;
}

clt_safetensors *clt_weight_files_first(const clt_weight_files *f) {
    return f->files[0];
}

size_t clt_weight_files_count(const clt_weight_files *f) {
    return f->n;
}

const clt_weight *clt_weight_files_at(const clt_weight_files *f, size_t index) {
    return &f->weights[index];
}

const clt_weight *clt_weight_files_find(const clt_weight_files *f, const char *name) {
    static const char *const heads[] = {"transformer.", "model."};
    const clt_weight *weight = find(f, name);
    for (size_t i = 0; !weight && i < CLT_COUNT_OF(heads); i++) {
        size_t length = strlen(heads[i]);
        if (!strncmp(name, heads[i], length)) weight = find(f, name + length);
    }
    return weight;
}

bool clt_weight_widens(clt_safetensors_dtype dtype) {
    return dtype == CLT_SAFETENSORS_F32 || dtype == CLT_SAFETENSORS_F16 || dtype == CLT_SAFETENSORS_BF16;
}

clt_status clt_weight_read(const clt_weight *weight, void *destination, size_t bytes) {
    const clt_safetensors_entry *entry = weight->entry;
    if (!clt_weight_widens(entry->dtype) || entry->dtype == CLT_SAFETENSORS_F32) return clt_safetensors_read(weight->file, entry, destination, bytes);
    if (bytes / 2 != entry->bytes) return clt_fail(CLT_E_INVALID, "tensor \"%.120s\" has %llu values, not %zu", entry->name, (unsigned long long)entry->bytes / 2, bytes / 4);
    size_t count = (size_t)entry->bytes / 2;
    void *halves = clt_alloc(count * 2 + 1);
    if (!halves) return clt_fail_memory(count * 2);
    clt_status status = clt_safetensors_read(weight->file, entry, halves, count * 2);
    if (status == CLT_OK) clt_float_widen(destination, halves, entry->dtype == CLT_SAFETENSORS_F16 ? CLT_F16 : CLT_BF16, count);
    clt_free(halves);
    return status;
}
