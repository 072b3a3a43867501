/* Is it right? Values against those of double precision, and words for what is not. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/cltrain-conform/suite.h"

/* ---- results ---- */

const char *verdict_name(verdict v) {
    static const char *const names[] = {"not-asked", "passed", "failed", "skipped"};
    return names[v];
}

verdict result_verdict(const case_result *r) {
    const verdict all[] = {r->supported, r->value, r->gradient, r->repeat, r->memory};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] == FAILED) return FAILED;
    return r->supported;
}

void result_say(case_result *r, verdict *which, verdict v, const char *format, ...) {
    va_list arguments;
    *which = v;
    if (r->reason[0]) return;
    va_start(arguments, format);
    vsnprintf(r->reason, sizeof r->reason, format, arguments);
    va_end(arguments);
}

void result_error(case_result *r, verdict *which, clt_status status, const char *doing) {
    bool skip = status == CLT_E_UNSUPPORTED;
    result_say(r, skip ? &r->supported : which, skip ? SKIPPED : FAILED, "%s%s%s", skip ? "" : doing,
               skip ? "" : ": ", clt_error_detail());
}

/* ---- comparing ---- */

void judge(case_result *r, verdict *which, const char *what, const array *got, const array *want,
           const int64_t *places, int64_t n, const bounds *b) {
    comparison c = array_compare(got, want, places, n);
    double floor = b->floor > 0 ? b->floor : 1e-3, tolerance = b->tolerance > 0 ? b->tolerance : 2e-5;
    double scale = fmax(c.scale, floor),
           nmse = c.error_squared / fmax(c.want_squared, floor * floor * (double)n);
    double most = b->nmse > 0 ? b->nmse : 1e-7;
    if (!isfinite(nmse)) nmse = HUGE_VAL;
    if (isfinite(nmse)) r->nmse = fmax(r->nmse, nmse);
    if (b->ulp > 0 && isfinite(c.ulp)) r->ulp = fmax(r->ulp, c.ulp);
    if (*which == NOT_ASKED) *which = PASSED;
    double value = got->values[c.worst], wanted = want->values[c.worst];
    if (!(c.worst_error <= tolerance * scale) || !(nmse <= most))
        result_say(
            r, which, FAILED,
            "%s: element %lld is %.9g, not %.9g (error %.3g, allowed %.3g; NMSE %.3g, allowed %.3g)",
            what, (long long)c.worst, value, wanted, c.worst_error, tolerance * scale, nmse, most);
    else if (b->ulp > 0 && !(c.ulp <= b->ulp))
        result_say(r, which, FAILED, "%s: off by %.3g units of the last place, allowed are %.3g", what,
                   c.ulp, b->ulp);
}

/* What the simulator has written since: its first words. */
static bool read_log(bench *b, char words[200]) {
    size_t used = 0;
    FILE *file = b->log[0] ? fopen(b->log, "r") : NULL;
    if (!file) return false;
    if (fseek(file, b->log_read, SEEK_SET) == 0) {
        for (int c; (c = fgetc(file)) != EOF;) {
            bool space = c <= ' ';
            if (used < 199 && !(space && (used == 0 || words[used - 1] == ' ')))
                words[used++] = space ? ' ' : (char)c;
        }
        b->log_read = ftell(file);
    }
    fclose(file);
    words[used] = 0;
    return used > 0;
}

void judge_redzones(bench *b, case_result *r) {
    char words[200];
    clt_status status = clt_device_check_redzones(b->device);
    if (r->memory == NOT_ASKED) r->memory = PASSED;
    if (status < 0) result_say(r, &r->memory, FAILED, "%s", clt_error_detail());
    if (read_log(b, words)) result_say(r, &r->memory, FAILED, "Oclgrind: %s", words);
}

static bool add_row(const char *op, const char *backend, void *user) {
    json_t *served = user, *one = json_sprintf("%s:%s", op, backend);
    for (size_t i = 0; i < json_array_size(served); i++)
        if (json_equal(json_array_get(served, i), one)) {
            json_decref(one);
            return true;
        }
    json_array_append_new(served, one);
    return true;
}

static bool add_problem(const clt_problem_info *problem, void *user) {
    return !problem->backend[0] || add_row(problem->op, problem->backend, user);
}

void note_step(bench *b, clt_tensor *loss, const clt_train_options *options, case_result *r) {
    if (!r->served) r->served = json_array();
    clt_probe_problems(b->device, loss, options, add_problem, r->served);
}

void note_rows(const clt_trial *trial, case_result *r) {
    if (!r->served) r->served = json_array();
    clt_trial_rows(trial, add_row, r->served);
}
