/*
 * JSON that is made and written with jansson, each call of which fails where there is no memory.
 */
#ifndef CLT_BASE_JSON_H
#define CLT_BASE_JSON_H

#include <jansson.h>

#include "runtime/base/base.h"

/* A string, *string. CLT_E_INVALID: the text is not UTF-8, which JSON demands. */
clt_status clt_json_string(json_t **string, const char *text);
/* The same question, of a text that is to be a key. */
clt_status clt_json_check_text(const char *text);

/* Puts a new value into an object and takes it over, also on error. NULL, as either: there was no memory for it. */
clt_status clt_json_set(json_t *object, const char *key, json_t *value);
clt_status clt_json_set_text(json_t *object, const char *key, const char *text);

/* Adds the value as text; NULL: there was no memory for it. `flags`: of json_dumps. */
clt_status clt_json_dump(const json_t *value, size_t flags, clt_text *text);

#endif
