#include "tools/survey/document.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cltrain_commit.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/text.h"

enum { DIGITS = 9 }; /* of numbers that are no whole ones */

/* ---- text ---- */

bool document_text_clean(const char *text) {
    for (size_t n; *text; text += n)
        if ((n = text_letter_bytes(text)) == 0) return false;
    return true;
}

json_t *document_text(const char *text) {
    char *clean = strdup(text);
    if (!clean) return NULL;
    text_clean(clean, "");
    json_t *string = json_string(clean);
    free(clean);
    return string;
}

const char *document_string(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void clean_string(json_t *string) {
    size_t length = json_string_length(string);
    char *clean = malloc(length + 1);
    if (!clean) {
        json_string_set(string, "?");
        return;
    }
    memcpy(clean, json_string_value(string), length);
    clean[length] = 0;
    for (char *end; (end = memchr(clean, 0, length));) *end = '?';
    text_clean(clean, "");
    json_string_set(string, clean);
    free(clean);
}

void document_clean(json_t *value) {
    size_t i;
    const char *key;
    json_t *member;
    json_array_foreach(value, i, member) document_clean(member);
    json_object_foreach(value, key, member) document_clean(member);
    if (json_is_string(value)) clean_string(value);
}

void document_line(FILE *lines, json_t *object) {
    json_dumpf(object, lines, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
    fputc('\n', lines);
    fflush(lines);
    json_decref(object);
}

/* ---- where and when ---- */

static void cpu_name(char *name, size_t bytes) {
    char line[512];
    snprintf(name, bytes, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        colon[strcspn(colon, "\n")] = 0;
        snprintf(name, bytes, "%s", colon + 2);
        break;
    }
    if (file) fclose(file);
}

static json_t *host(void) {
    struct utsname system = {.sysname = ""};
    char cpu[256];
    uname(&system);
    cpu_name(cpu, sizeof cpu);
    long processors = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return json_pack("{s:o, s:o, s:o, s:o, s:I, s:I}", "os", document_text(system.sysname), "kernel",
                     document_text(system.release), "machine", document_text(system.machine), "cpu", document_text(cpu),
                     "processors", (json_int_t)processors, "memory_bytes", (json_int_t)pages * page);
}

json_t *document_new(const char *kind) {
    char when[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc)) strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    char schema[64];
    snprintf(schema, sizeof schema, "%s/1", program_name);
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:s}, s:o, s:s}", "schema", schema, "kind", kind, "tool", "name", program_name,
                     "version", clt_version(), "commit", CLTRAIN_COMMIT, "host", host(), "time_utc", when);
}

/* ---- devices ---- */

static const char *const type_names[] = {"gpu", "accelerator", "cpu", "other"};

const char *document_type_name(clt_device_type type) {
    return (unsigned)type < 4 ? type_names[type] : "other";
}

/* The fields of clt_device_info, by their names. */
#define TEXTS(DO) DO(id) DO(name) DO(vendor) DO(platform) DO(driver) DO(cl_version) DO(unusable)
#define NUMBERS(DO)                                                                                                  \
    DO(compute_units) DO(clock_mhz) DO(memory_bytes) DO(max_buffer_bytes) DO(local_memory_bytes)                      \
        DO(max_work_group_size)

/* JSON's whole numbers end at 2^63. */
static json_t *whole(uint64_t value) {
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *document_device(const clt_device_info *info) {
    json_t *o = json_object();
#define SET_TEXT(field) json_object_set_new(o, #field, document_text(info->field));
#define SET_NUMBER(field) json_object_set_new(o, #field, whole(info->field));
    TEXTS(SET_TEXT)
    NUMBERS(SET_NUMBER)
    json_object_set_new(o, "type", json_string(document_type_name(info->type)));
    json_object_set_new(o, "unified_memory", json_boolean(info->unified_memory));
    json_object_set_new(o, "has_compiler", json_boolean(info->has_compiler));
    return o;
}

static bool read_text(const json_t *o, const char *key, char *text, size_t bytes) {
    const char *value = json_string_value(json_object_get(o, key));
    snprintf(text, bytes, "%s", value ? value : "");
    return value != NULL;
}

bool document_read_device(const json_t *o, clt_device_info *info) {
    bool all = json_is_object(o);
    *info = (clt_device_info){.type = CLT_DEVICE_OTHER};
#define READ_TEXT(field) all &= read_text(o, #field, info->field, sizeof info->field);
#define READ_NUMBER(field)                                                                                           \
    all &= json_is_integer(json_object_get(o, #field));                                                              \
    info->field = (uint64_t)json_integer_value(json_object_get(o, #field)) & (sizeof info->field == 4 ? UINT32_MAX : UINT64_MAX);
    TEXTS(READ_TEXT)
    NUMBERS(READ_NUMBER)
    const char *type = json_string_value(json_object_get(o, "type"));
    for (int i = 0; type && i < 4; i++)
        if (strcmp(type, type_names[i]) == 0) info->type = (clt_device_type)i;
    info->unified_memory = json_is_true(json_object_get(o, "unified_memory"));
    info->has_compiler = json_is_true(json_object_get(o, "has_compiler"));
    return all && type;
}

json_t *document_as_written(const json_t *document) {
    char *text = json_dumps(document, JSON_REAL_PRECISION(DIGITS));
    json_t *again = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    return again;
}

int document_write(const json_t *document, FILE *file) {
    FILE *to = file ? file : stdout;
    int bad = json_dumpf(document, to, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS));
    bad |= fputc('\n', to) == EOF;
    bad |= fflush(to) || ferror(to);
    return bad ? output_failed(to) : 0;
}

int document_write_at(const json_t *document, const char *path) {
    output o;
    int code = file_refuse_another("--json", path, FILE_JSON);
    if (!code) code = output_open(&o, path);
    if (code) return code;
    code = document_write(document, o.file);
    if (!code) return output_commit(&o);
    output_abort(&o);
    return code;
}
