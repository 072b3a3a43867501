/* The file of a device, and what is shipped. */
#include "backends/tune/tune.h"

#include <stdio.h>
#include <string.h>

#include <cltrain/version.h>

#include "backends/tune/shipped.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/device/kernel_source.h"

/* The number of the file's form: what has another is not read. */
#define FORMAT 1
static const char KIND[] = "cltrain-tune";
#define LARGEST_FILE ((size_t)8 << 20)

clt_tune_mode clt_tune_get_mode(const clt_device *device) {
    const char *text = clt_compiles_nothing(device) ? "off" : clt_device_settings(device)->tune;
    if (!text[0] || !strcmp(text, "quick")) return CLT_TUNE_MODE_QUICK;
    return strcmp(text, "full") ? CLT_TUNE_MODE_OFF : CLT_TUNE_MODE_FULL;
}

/* ---- identity ---- */

/* The library's version and the text of its kernels: what was measured holds for those alone. */
static void library_id(const clt_device *device, char id[64]) {
    char hash[CLT_HASH_TEXT] = "";
    for (const clt_kernel_source *s = clt_kernel_sources; s->path; s++) {
        const char *text = clt_kernel_source_find(device, s->path);
        clt_hash_add(hash, text, strlen(text));
    }
    hash[12] = 0;
    snprintf(id, 64, "%s+%s", clt_version(), hash);
}

static void device_id(const clt_device *device, char id[CLT_HASH_TEXT]) {
    const clt_device_info *info = clt_device_get_info(device);
    const char *facts[] = {info->platform, info->vendor, info->name, info->cl_version, info->driver};
    id[0] = 0;
    for (size_t i = 0; i < CLT_COUNT_OF(facts); i++) clt_hash_add(id, facts[i], strlen(facts[i]) + 1);
}

/* "cpu-znver4-0123456789abcdef.jsonl": readable, and different for all that makes a difference. */
static void add_file_name(const clt_device *device, clt_text *text) {
    char library[64], hash[CLT_HASH_TEXT];
    const char *name = clt_device_get_info(device)->name;
    library_id(device, library);
    device_id(device, hash);
    clt_hash_add(hash, library, strlen(library));
    for (int i = 0; i < 48 && name[i]; i++) {
        char c = name[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        clt_text_add_bytes(text, plain ? &c : "-", 1);
    }
    clt_text_add(text, "-%.16s.jsonl", hash);
}

/* ---- header ---- */

/* Driver texts need not be UTF-8: what JSON does not take is left out, for the device's hash tells all. */
static clt_status set_driver_text(json_t *header, const char *key, const char *text) {
    clt_status status = clt_json_set_text(header, key, text);
    return status == CLT_E_INVALID ? CLT_OK : status;
}

static clt_status set_header(json_t *header, const clt_device *device, const char *kind) {
    const clt_device_info *info = clt_device_get_info(device);
    char library[64], id[CLT_HASH_TEXT];
    library_id(device, library);
    device_id(device, id);
    CLT_TRY(clt_json_set(header, kind, json_integer(FORMAT)));
    CLT_TRY(clt_json_set_text(header, "library", library));
    CLT_TRY(set_driver_text(header, "device", info->name));
    CLT_TRY(set_driver_text(header, "platform", info->platform));
    CLT_TRY(set_driver_text(header, "driver", info->driver));
    return clt_json_set_text(header, "id", id);
}

clt_status clt_tune_write_header(const clt_device *device, const char *kind, clt_text *text) {
    json_t *header = json_object();
    clt_status status = set_header(header, device, kind);
    if (status == CLT_OK) return clt_tune_write_line(header, text);
    json_decref(header);
    return status;
}

static json_t *read_header(const char *kind, const char *text, size_t length) {
    json_error_t error;
    const char *stop = length ? memchr(text, '\n', length) : NULL;
    json_t *header = stop ? json_loadb(text, (size_t)(stop - text), JSON_REJECT_DUPLICATES, &error) : NULL;
    if (json_integer_value(json_object_get(header, kind)) == FORMAT) return header;
    json_decref(header);
    return NULL;
}

static bool holds(const json_t *header, const char *name, const char *wanted) {
    const char *text = json_string_value(json_object_get(header, name));
    return text && !strcmp(text, wanted);
}

bool clt_tune_has_header(const char *kind, const char *text, size_t length) {
    json_t *header = read_header(kind, text, length);
    json_decref(header);
    return header != NULL;
}

/* Made for this device; and, where that is asked, by this very library. */
bool clt_tune_header_fits(const clt_device *device, const char *kind, const char *text, size_t length, bool any_library) {
    char library[64], id[CLT_HASH_TEXT];
    json_t *header = read_header(kind, text, length);
    library_id(device, library);
    device_id(device, id);
    bool fits = header && holds(header, "id", id) && (any_library || holds(header, "library", library));
    json_decref(header);
    return fits;
}

/* ---- the file ---- */

clt_status clt_tune_find_path(const clt_device *device, const char *folder, char **found) {
    clt_text path = {0};
    clt_status status = clt_file_cache_folder(clt_device_settings(device)->cache_folder, folder, &path);
    if (status == CLT_OK) {
        clt_text_add(&path, "/");
        add_file_name(device, &path);
        status = path.status;
    }
    if (status == CLT_OK) *found = path.data;
    else clt_text_free(&path);
    return status;
}

/* A file that is not there or does not fit adds nothing. */
static clt_status read_file(const clt_device *device, const char *path, clt_tuning_results *list) {
    void *bytes = NULL;
    size_t length;
    if (!path) return CLT_OK;
    clt_status status = clt_file_read(path, LARGEST_FILE, &bytes, &length);
    if (status < 0) return status == CLT_E_NO_MEMORY ? status : CLT_OK;
    if (clt_tune_header_fits(device, KIND, bytes, length, false)) status = clt_tuning_results_read(list, bytes, length);
    clt_free(bytes);
    return status;
}

static clt_status merge(clt_tuning_results *into, const clt_tuning_results *from) {
    for (size_t i = 0; i < from->n; i++) CLT_TRY(clt_tuning_results_put(into, &from->items[i]));
    return CLT_OK;
}

clt_status clt_tune_store(clt_device *device) {
    clt_tune_database *db = clt_tune_database_of(device);
    clt_tuning_results all = {0};
    clt_text text = {0};
    if (!db) return clt_fail(CLT_E_NO_MEMORY, "there is no host memory for the results of tuning");
    if (!db->path) CLT_TRY(clt_tune_find_path(device, "tune", &db->path));
    clt_status status = merge(&all, &db->measured);
    if (status == CLT_OK) status = read_file(device, db->path, &all); /* equals: those on the disk win */
    if (status == CLT_OK) status = clt_tune_write_header(device, KIND, &text);
    if (status == CLT_OK) status = clt_tuning_results_write(&all, &text);
    if (status == CLT_OK) status = clt_file_write(db->path, text.data, text.length);
    clt_text_free(&text);
    clt_tuning_results_free(&db->measured);
    if (status == CLT_OK) {
        db->measured = all;
        return CLT_OK;
    }
    /* What is not on the disk is not known in the next run, so it is not in this one either. */
    clt_tuning_results_free(&all);
    if (read_file(device, db->path, &db->measured) < 0) clt_tuning_results_free(&db->measured);
    return status;
}

/* ---- what is shipped ---- */

/* Shipped tuning results are for devices of a class: its platform, type and vector width. */
static bool is_of_class(const clt_device *device, const json_t *header) {
    const clt_device_info *info = clt_device_get_info(device);
    const char *platform = json_string_value(json_object_get(header, "platform"));
    bool cpu = holds(header, "type", "cpu");
    return platform && clt_text_contains(info->platform, platform) && cpu == (info->type == CLT_DEVICE_CPU) &&
           json_integer_value(json_object_get(header, "vector_width")) == clt_device_vector_width(device);
}

clt_status clt_tune_read_shipped(const clt_device *device, const struct clt_shipped_tuning *files, clt_tuning_results *list) {
    for (const clt_shipped_tuning *s = files; s->bytes; s++) {
        json_t *header = read_header(KIND, (const char *)s->bytes, s->length);
        bool fits = header && is_of_class(device, header);
        json_decref(header);
        if (fits) CLT_TRY(clt_tuning_results_read(list, (const char *)s->bytes, s->length));
    }
    return CLT_OK;
}

/* ---- the device's ---- */

static void release(void *kept) {
    clt_tune_database *db = kept;
    clt_tuning_results_free(&db->measured);
    clt_tuning_results_free(&db->shipped);
    clt_free(db->path);
    clt_free(db);
}

clt_tune_database *clt_tune_database_of(clt_device *device) {
    clt_tune_database *db = clt_device_kept(device);
    if (db) return db;
    db = clt_calloc(1, sizeof *db);
    if (!db) return NULL;
    clt_status status = clt_tune_find_path(device, "tune", &db->path);
    if (status != CLT_E_NO_MEMORY) status = CLT_OK; /* where there is no place for it, storing says why */
    if (status == CLT_OK) status = clt_tune_read_shipped(device, clt_shipped, &db->shipped);
    if (status == CLT_OK) status = read_file(device, db->path, &db->measured);
    if (status < 0) {
        release(db);
        return NULL;
    }
    clt_device_keep(device, db, release);
    return db;
}

clt_status clt_tune_ready(clt_device *device) {
    return clt_tune_database_of(device) ? CLT_OK : clt_fail(CLT_E_NO_MEMORY, "there is no host memory for what is known of kernels");
}

/* ---- the choices of a run ---- */

clt_status clt_tune_run_write(const clt_tune_run *run, const clt_device *device, clt_text *text) {
    CLT_TRY(clt_tune_write_header(device, KIND, text));
    return clt_tuning_results_write(&run->choices, text);
}

clt_status clt_tune_run_read(clt_tune_run *run, const clt_device *device, const char *text, bool *taken) {
    clt_tuning_results list = {0};
    size_t length = strlen(text);
    *taken = clt_tune_header_fits(device, KIND, text, length, true);
    if (!*taken) return CLT_OK;
    clt_status status = clt_tuning_results_read(&list, text, length);
    if (status < 0) {
        clt_tuning_results_free(&list);
        return status;
    }
    clt_tuning_results_free(&run->choices);
    *run = (clt_tune_run){.choices = list, .begun = true};
    return CLT_OK;
}

void clt_tune_run_free(clt_tune_run *run) {
    clt_tuning_results_free(&run->choices);
}
