/* Hyperparameters, as TensorBoard's plugin hparams reads them: messages of its api.proto and plugin_data.proto, in the metadata of
 * values without data. */
#include "runtime/observe/observe.h"

#include <string.h>

enum { DATA_EXPERIMENT = 2, DATA_SESSION_START = 3, DATA_SESSION_END = 4 };
enum { EXPERIMENT_TIME = 3, EXPERIMENT_HPARAMS = 4, EXPERIMENT_METRICS = 5 };
enum { INFO_NAME = 1, INFO_TYPE = 4, TYPE_STRING = 1, TYPE_FLOAT64 = 3, METRIC_NAME = 1, METRIC_TAG = 2 };
enum { START_HPARAMS = 1, START_TIME = 5, ENTRY_KEY = 1, ENTRY_VALUE = 2, JSON_NUMBER = 2, JSON_TEXT = 3 };
enum { END_STATUS = 1, END_TIME = 2, STATUS_SUCCESS = 1, STATUS_FAILURE = 2 };

static clt_status check_hparam(const clt_hparam *hparams, size_t at) {
    const clt_hparam *h = &hparams[at];
    CLT_TRY(clt_event_check_name("the name", h->name));
    for (size_t i = 0; i < at; i++)
        if (!strcmp(hparams[i].name, h->name)) return clt_fail(CLT_E_INVALID, "%s is there twice", h->name);
    if (h->text) return h->text[0] ? clt_event_check_name("the text", h->text) : CLT_OK;
    return isfinite(h->number) ? CLT_OK : clt_fail(CLT_E_RANGE, "%s is %g, which TensorBoard cannot read", h->name, h->number);
}

static clt_status check_all(const clt_hparam *hparams, size_t n, const char *const *metrics, size_t n_metrics) {
    if ((n > 0 && !hparams) || (n_metrics > 0 && !metrics)) return clt_fail(CLT_E_INVALID, "clt_events_hparams: an argument is NULL");
    for (size_t i = 0; i < n; i++) {
        clt_status status = check_hparam(hparams, i);
        if (status < 0) return clt_fail_context(status, "clt_events_hparams: hyperparameter %zu: ", i);
    }
    for (size_t i = 0; i < n_metrics; i++) {
        clt_status status = clt_event_check_name("the tag", metrics[i]);
        if (status < 0) return clt_fail_context(status, "clt_events_hparams: metric %zu: ", i);
    }
    return CLT_OK;
}

static void add_metric(clt_text *to, const char *tag) {
    size_t info = clt_proto_begin(to, EXPERIMENT_METRICS), name = clt_proto_begin(to, METRIC_NAME);
    clt_proto_text(to, METRIC_TAG, tag);
    clt_proto_end(to, name);
    clt_proto_end(to, info);
}

static void add_experiment(clt_text *to, const clt_hparam *hparams, size_t n, const char *const *metrics, size_t n_metrics) {
    size_t message = clt_proto_begin(to, DATA_EXPERIMENT);
    clt_proto_double(to, EXPERIMENT_TIME, clt_wall_seconds());
    for (size_t i = 0; i < n; i++) {
        size_t info = clt_proto_begin(to, EXPERIMENT_HPARAMS);
        clt_proto_text(to, INFO_NAME, hparams[i].name);
        clt_proto_varint(to, INFO_TYPE, hparams[i].text ? TYPE_STRING : TYPE_FLOAT64);
        clt_proto_end(to, info);
    }
    for (size_t i = 0; i < n_metrics; i++) add_metric(to, metrics[i]);
    clt_proto_end(to, message);
}

static void add_entry(clt_text *to, const clt_hparam *hparam) {
    size_t entry = clt_proto_begin(to, START_HPARAMS);
    clt_proto_text(to, ENTRY_KEY, hparam->name);
    size_t value = clt_proto_begin(to, ENTRY_VALUE);
    if (hparam->text) clt_proto_text(to, JSON_TEXT, hparam->text);
    else clt_proto_double(to, JSON_NUMBER, hparam->number);
    clt_proto_end(to, value);
    clt_proto_end(to, entry);
}

static void add_start(clt_text *to, const clt_hparam *hparams, size_t n) {
    size_t message = clt_proto_begin(to, DATA_SESSION_START);
    for (size_t i = 0; i < n; i++) add_entry(to, &hparams[i]);
    clt_proto_double(to, START_TIME, clt_wall_seconds());
    clt_proto_end(to, message);
}

/* A tensor has to be there: the plugin's own is f32 [0]. */
static void add_value(clt_events *events, const char *tag, const clt_text *content) {
    clt_text *to = &events->record;
    clt_event_value_begin(events, tag);
    size_t tensor = clt_proto_begin(to, VALUE_TENSOR);
    clt_proto_varint(to, TENSOR_DTYPE, DTYPE_FLOAT);
    size_t shape = clt_proto_begin(to, TENSOR_SHAPE);
    clt_proto_bytes(to, SHAPE_DIM, "", 0);
    clt_proto_end(to, shape);
    clt_proto_end(to, tensor);
    clt_event_plugin(events, "hparams", content);
    clt_event_value_end(events);
}

clt_status clt_events_hparams(clt_events *events, const clt_hparam *hparams, size_t n, const char *const *metrics, size_t n_metrics) {
    if (!events) return clt_fail(CLT_E_INVALID, "clt_events_hparams: events is NULL");
    CLT_TRY(check_all(hparams, n, metrics, n_metrics));
    clt_text experiment = {0}, start = {0};
    add_experiment(&experiment, hparams, n, metrics, n_metrics);
    add_start(&start, hparams, n);
    clt_event_begin(events, 0);
    add_value(events, "_hparams_/experiment", &experiment);
    add_value(events, "_hparams_/session_start_info", &start);
    clt_text_free(&experiment);
    clt_text_free(&start);
    return clt_event_end(events);
}

clt_status clt_events_session_end(clt_events *events, bool success) {
    if (!events) return clt_fail(CLT_E_INVALID, "clt_events_session_end: events is NULL");
    clt_text content = {0};
    size_t message = clt_proto_begin(&content, DATA_SESSION_END);
    clt_proto_varint(&content, END_STATUS, success ? STATUS_SUCCESS : STATUS_FAILURE);
    clt_proto_double(&content, END_TIME, clt_wall_seconds());
    clt_proto_end(&content, message);
    clt_event_begin(events, 0);
    add_value(events, "_hparams_/session_end_info", &content);
    clt_text_free(&content);
    return clt_event_end(events);
}
