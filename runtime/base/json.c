#include "runtime/base/json.h"

#include <string.h>

/* Of all that make a string only this one tells why it could not. */
clt_status clt_json_string(json_t **string, const char *text) {
    json_error_t error;
    *string = json_pack_ex(&error, 0, "s", text);
    if (*string) return CLT_OK;
    if (json_error_code(&error) != json_error_invalid_utf8) return clt_fail_memory(strlen(text));
    char shown[CLT_SHOWN_TEXT];
    return clt_fail(CLT_E_INVALID, "\"%s\" is not UTF-8", clt_show(text, shown));
}

clt_status clt_json_check_text(const char *text) {
    json_t *string;
    CLT_TRY(clt_json_string(&string, text));
    json_decref(string);
    return CLT_OK;
}

clt_status clt_json_set(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value) ? clt_fail_memory(strlen(key)) : CLT_OK;
}

clt_status clt_json_set_text(json_t *object, const char *key, const char *text) {
    json_t *string;
    CLT_TRY(clt_json_string(&string, text));
    return clt_json_set(object, key, string);
}

static int append(const char *bytes, size_t length, void *text) {
    clt_text_add_bytes(text, bytes, length);
    return ((clt_text *)text)->status < 0 ? -1 : 0;
}

clt_status clt_json_dump(const json_t *value, size_t flags, clt_text *text) {
    if (!value || json_dump_callback(value, append, text, flags)) text->status = CLT_E_NO_MEMORY;
    return text->status < 0 ? clt_fail_memory(text->length) : CLT_OK;
}
