/*
 * Tuning results as text: one JSON object a line.
 *
 *     {"problem": "matmul 128x3072 …", "row": "native", "parameters": {"block": 12}, "us": 413.2,
 *      "default_us": 520.1, "nmse": 2e-14, "tried": 7, "effort": "full"}
 *     {"problem": "matmul 128x3072 …", "row": "native", "parameters": {"block": 3}, "failed": "…"}
 */
#include "backends/tune/tune.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/json.h"

static const char *const efforts[] = {"kept", "quick", "full"};

/* ---- writing ---- */

clt_status clt_tune_write_line(json_t *object, clt_text *text) {
    clt_status status = clt_json_dump(object, JSON_REAL_PRECISION(4) | JSON_ENSURE_ASCII, text);
    json_decref(object);
    clt_text_add(text, "\n");
    return status < 0 ? status : text->status;
}

static clt_status set_real(json_t *object, const char *name, double value) {
    return isfinite(value) ? clt_json_set(object, name, json_real(value)) : CLT_OK;
}

static clt_status set_parameters(json_t *object, const clt_tuning_result *v) {
    json_t *parameters = json_object();
    CLT_TRY(clt_json_set(object, "parameters", parameters));
    for (int i = 0; i < v->n_parameters; i++)
        CLT_TRY(clt_json_set(parameters, v->parameters[i].name, json_integer(v->parameters[i].value)));
    return CLT_OK;
}

static clt_status set_times(json_t *object, const clt_tuning_result *v) {
    CLT_TRY(set_real(object, "us", v->us));
    CLT_TRY(set_real(object, "default_us", v->default_us));
    return set_real(object, "nmse", v->nmse);
}

static clt_status set_result(json_t *object, const clt_tuning_result *v) {
    CLT_TRY(clt_json_set_text(object, "problem", v->problem));
    CLT_TRY(clt_json_set_text(object, "row", v->row));
    if (v->n_parameters) CLT_TRY(set_parameters(object, v));
    if (v->failed[0]) CLT_TRY(clt_json_set_text(object, "failed", v->failed));
    if (v->us > 0) CLT_TRY(set_times(object, v));
    if (v->tried) CLT_TRY(clt_json_set(object, "tried", json_integer(v->tried)));
    return clt_json_set_text(object, "effort", efforts[v->effort]);
}

static clt_status write_result(const clt_tuning_result *v, clt_text *text) {
    json_t *object = json_object();
    clt_status status = set_result(object, v);
    if (status == CLT_OK) return clt_tune_write_line(object, text);
    json_decref(object);
    return status;
}

clt_status clt_tuning_results_write(const clt_tuning_results *list, clt_text *text) {
    for (size_t i = 0; i < list->n; i++) CLT_TRY(write_result(&list->items[i], text));
    return text->status;
}

/* ---- reading ---- */

/* Copies a short printable text; false if it is none. */
static bool take_text(const json_t *value, char *into, size_t bytes) {
    const char *text = json_string_value(value);
    if (!text || strlen(text) >= bytes || !clt_tune_key_valid(text)) return false;
    memcpy(into, text, strlen(text) + 1);
    return true;
}

static bool take_parameters(json_t *object, clt_tuning_result *v) {
    const char *name;
    json_t *value;
    if (!object) return true;
    if (!json_is_object(object) || json_object_size(object) > CLT_MAX_TUNABLES) return false;
    json_object_foreach(object, name, value) {
        if (!json_is_integer(value) || json_integer_value(value) < INT_MIN || json_integer_value(value) > INT_MAX)
            return false;
        if (strlen(name) >= CLT_TUNE_NAME || !clt_tune_key_valid(name)) return false;
        memcpy(v->parameters[v->n_parameters].name, name, strlen(name) + 1);
        v->parameters[v->n_parameters++].value = (int)json_integer_value(value);
    }
    return true;
}

static bool take_effort(const json_t *value, clt_tune_effort *effort) {
    for (size_t i = 0; i < CLT_COUNT_OF(efforts); i++) {
        if (!json_string_value(value) || strcmp(json_string_value(value), efforts[i])) continue;
        *effort = (clt_tune_effort)i;
        return true;
    }
    return false;
}

static double real_of(const json_t *object, const char *name) {
    double value = json_number_value(json_object_get(object, name));
    return value >= 0 && isfinite(value) ? value : 0;
}

static bool take_result(const json_t *object, clt_tuning_result *v) {
    *v = (clt_tuning_result){0};
    if (!take_text(json_object_get(object, "problem"), v->problem, sizeof v->problem)) return false;
    if (!take_text(json_object_get(object, "row"), v->row, sizeof v->row)) return false;
    if (!take_parameters(json_object_get(object, "parameters"), v)) return false;
    if (!take_effort(json_object_get(object, "effort"), &v->effort)) return false;
    const json_t *failed = json_object_get(object, "failed"), *tried = json_object_get(object, "tried");
    if (failed && !take_text(failed, v->failed, sizeof v->failed)) return false;
    v->tried = (int)CLT_MAX(0, CLT_MIN(json_integer_value(tried), INT_MAX));
    v->us = real_of(object, "us");
    v->default_us = real_of(object, "default_us");
    v->nmse = real_of(object, "nmse");
    return true;
}

clt_status clt_tuning_results_read(clt_tuning_results *list, const char *text, size_t length) {
    for (const char *line = text, *end = text + length; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) break; /* a last line without its end was cut off */
        json_error_t error;
        clt_tuning_result result;
        json_t *object = json_loadb(line, (size_t)(stop - line), JSON_REJECT_DUPLICATES, &error);
        bool taken = json_is_object(object) && take_result(object, &result);
        json_decref(object);
        if (taken) CLT_TRY(clt_tuning_results_put(list, &result));
        line = stop + 1;
    }
    return CLT_OK;
}
