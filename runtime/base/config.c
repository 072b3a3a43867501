#include "runtime/base/config.h"

#include <math.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/base/json.h"

enum { MOST_FILE_BYTES = 1 << 20 };

static clt_status parse(clt_config *config, const char *text, size_t length) {
    json_error_t error;
    config->object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(config->object)) return CLT_OK;
    if (config->object) return clt_fail(CLT_E_FORMAT, "%s is not a JSON object", config->path);
    if (json_error_code(&error) == json_error_out_of_memory) return clt_fail_memory(length);
    return clt_fail(CLT_E_FORMAT, "%s: line %d: %s", config->path, error.line, error.text);
}

clt_status clt_config_open(clt_config *config, const char *path) {
    void *bytes;
    size_t length;
    *config = (clt_config){.path = path};
    CLT_TRY(clt_file_read(path, MOST_FILE_BYTES, &bytes, &length));
    clt_status status = parse(config, bytes, length);
    clt_free(bytes);
    if (status < 0) clt_config_close(config);
    return status;
}

void clt_config_close(clt_config *config) {
    json_decref(config->object);
    config->object = NULL;
}

const json_t *clt_config_member(const clt_config *config, const char *key) {
    const json_t *value = json_object_get(config->object, key);
    return json_is_null(value) ? NULL : value;
}

clt_status clt_config_size(const clt_config *config, const char *key, int64_t standard, int64_t most, int64_t *size) {
    const json_t *value = clt_config_member(config, key);
    *size = standard;
    if (!value && standard) return CLT_OK;
    if (!json_is_integer(value)) return clt_fail(CLT_E_FORMAT, "%s: \"%s\" is %s", config->path, key, value ? "not a whole number" : "missing");
    *size = json_integer_value(value);
    if (*size >= 1 && *size <= most) return CLT_OK;
    return clt_fail(CLT_E_RANGE, "%s: \"%s\" is %lld: expected 1 to %lld", config->path, key, (long long)*size, (long long)most);
}

clt_status clt_config_real(const clt_config *config, const json_t *value, const char *key, double standard, float *number) {
    if (value && !json_is_number(value)) return clt_fail(CLT_E_FORMAT, "%s: \"%s\" is not a number", config->path, key);
    *number = (float)(value ? json_number_value(value) : standard);
    return isfinite(*number) ? CLT_OK : clt_fail(CLT_E_RANGE, "%s: \"%s\" is too large", config->path, key);
}

clt_status clt_config_refuse(const clt_config *config, const char *key, const char *expected) {
    clt_text found = {0};
    char shown[CLT_SHOWN_TEXT];
    clt_status status = clt_json_dump(json_object_get(config->object, key), JSON_ENCODE_ANY | JSON_COMPACT, &found);
    if (status == CLT_OK)
        status = clt_fail(CLT_E_UNSUPPORTED, "%s: \"%s\" is %s: expected %s", config->path, key, clt_show(clt_text_data(&found), shown), expected);
    clt_text_free(&found);
    return status;
}

clt_status clt_config_expect_text(const clt_config *config, const char *key, const char *expected) {
    const json_t *value = clt_config_member(config, key);
    const char *text = json_string_value(value);
    return !value || (text && !strcmp(text, expected)) ? CLT_OK : clt_config_refuse(config, key, expected);
}

clt_status clt_config_expect_switch(const clt_config *config, const char *key, bool expected) {
    const json_t *value = clt_config_member(config, key);
    return !value || (expected ? json_is_true(value) : json_is_false(value)) ? CLT_OK : clt_config_refuse(config, key, expected ? "true" : "false");
}

clt_status clt_config_expect_empty(const clt_config *config, const char *key) {
    const json_t *value = clt_config_member(config, key);
    bool empty = json_is_array(value) ? json_array_size(value) == 0 : json_is_object(value) && json_object_size(value) == 0;
    return !value || empty ? CLT_OK : clt_config_refuse(config, key, "none");
}
