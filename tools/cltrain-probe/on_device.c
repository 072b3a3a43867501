#include "on_device.h"

#include <limits.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/survey/document.h"

typedef struct answer {
    on_device *o;
    child_job job;
    char doing[160]; /* what the child was at last */
} answer;

/* ---- in the child ---- */

static int in_child(FILE *lines, void *user) {
    const on_device *o = ((const answer *)user)->o;
    clt_device *device = NULL;
    bool wrong = false;
    document_line(lines, json_pack("{s:s}", "while", "opening the device"));
    clt_status status = survey_open(&o->s, o->device, NULL, &device);
    document_line(lines, json_pack("{s:s}", "while", "asking it"));
    if (status == CLT_OK) status = o->ask(lines, device, &wrong, o->user);
    const char *detail = clt_error_detail();
    document_line(lines, json_pack("{s:s, s:o}", "finished", survey_error_status(status, wrong), "reason",
                                   status < 0 ? document_text(detail[0] ? detail : clt_status_message(status)) : json_null()));
    clt_device_close(device);
    return 0;
}

/* ---- in the parent ---- */

int told_whole(const json_t *told, const char *key) {
    json_int_t value = json_integer_value(json_object_get(told, key));
    return value < 0 ? 0 : value > INT_MAX ? INT_MAX : (int)value;
}

double told_number(const json_t *told, const char *key) {
    return json_number_value(json_object_get(told, key));
}

static bool take_line(const char *text, void *user) {
    answer *a = user;
    json_t *told = json_loads(text, 0, NULL);
    const char *finished = document_string(told, "finished"), *doing = document_string(told, "while");
    if (doing[0]) snprintf(a->doing, sizeof a->doing, "%s", doing);
    if (finished[0]) {
        a->o->finished = true;
        snprintf(a->o->status, sizeof a->o->status, "%s", finished);
        snprintf(a->o->reason, sizeof a->o->reason, "%s", document_string(told, "reason"));
    } else if (json_is_object(told)) {
        a->o->take(told, a->o->user);
    }
    a->job.silence_seconds = a->o->silence_seconds;
    json_decref(told);
    return true;
}

int on_device_choose(on_device *o, const shared_options *options, double timeout) {
    const double longest_survey = 30;
    o->silence_seconds = timeout;
    child_show_errors(options->verbose > 0);
    child_catch_signals();
    int code = survey_run(&o->s, false, timeout < longest_survey ? timeout : longest_survey);
    return code ? code : survey_choose(&o->s, options->device, &o->device);
}

void on_device_ask(on_device *o) {
    child_end end;
    answer a = {.o = o, .job = {.run = in_child, .line = take_line, .silence_seconds = o->silence_seconds}};
    a.job.user = &a;
    child_run(&a.job, 1, 1, &end);
    if (o->finished) return;
    snprintf(o->status, sizeof o->status, "%s", child_status(&end));
    snprintf(o->reason, sizeof o->reason, "%s: %s", a.doing[0] ? a.doing : "beginning", end.reason);
}

int on_device_verdict(const on_device *o, int code) {
    if (code) return code;
    if (child_caught()) return EXIT_SIGNAL + child_caught();
    if (strcmp(o->status, "ok") == 0) return 0;
    return run_error("%s: %s: %s", o->device->info.name, o->status, o->reason);
}

json_t *on_device_document(const on_device *o, const char *kind) {
    json_t *document = document_new(kind), *list = json_array();
    json_array_append_new(list, survey_device_json(&o->s, o->device, o->status, o->reason));
    json_object_set_new(document, "devices", list);
    return document;
}

void on_device_free(on_device *o) {
    survey_free(&o->s);
}
