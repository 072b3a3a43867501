/* Which row serves a node, by what is known. */
#include "backends/tune/tune.h"

#include <stdio.h>

/* The last row that fits, and how many candidates there are: rows, or values of parameters. */
static clt_choice plain_choice(const clt_tensor *node, clt_device *device, int *candidates) {
    clt_choice choice = {0};
    *candidates = 0;
    for (const clt_backend_row *row = NULL; (row = clt_backend_next(node->op, row));) {
        bool wanted = !row->on_demand || clt_backend_is_named(device, row->name);
        if (!wanted || !clt_backend_fits(row, node, device)) continue;
        choice.row = row;
        *candidates += 1;
        for (int i = 0; row->tunables && row->tunables[i].name; i++) *candidates += row->tunables[i].n - 1;
    }
    if (choice.row) clt_backend_defaults(choice.row, node, device, choice.parameters);
    return choice;
}

bool clt_tune_matters(const clt_tensor *node, clt_device *device) {
    char key[CLT_TUNE_KEY];
    int candidates;
    plain_choice(node, device, &candidates);
    return candidates > 1 && clt_tune_key(node, key);
}

static void give_reason(clt_reason *reason, clt_why why, const clt_tuning_result *from) {
    if (!reason) return;
    reason->why = why;
    snprintf(reason->from, sizeof reason->from, "%s", from ? from->problem : "");
}

static bool exact(const clt_tuning_results *list, const char *key, const clt_tensor *node, clt_device *device,
                  clt_choice *choice) {
    const clt_tuning_result *result = clt_tuning_results_find(list, key);
    return result && clt_tuning_result_apply(result, node, device, choice);
}

/* A tuning result on the problem itself first, one made here before one that is shipped; then one on a problem like it. */
static clt_why ask(const clt_tuning_results *measured, const clt_tuning_results *shipped, const char *key, const clt_tensor *node,
                   clt_device *device, clt_choice *choice, const clt_tuning_result **from) {
    *from = NULL;
    if (measured && exact(measured, key, node, device, choice)) {
        bool kept = clt_tuning_results_find(measured, key)->effort == CLT_TUNE_KEPT;
        return kept ? CLT_WHY_DEFAULT : CLT_WHY_MEASURED;
    }
    if (exact(shipped, key, node, device, choice)) return CLT_WHY_SHIPPED;
    if (measured && clt_tuning_results_nearest(measured, key, node, device, choice, from)) return CLT_WHY_NEAREST;
    if (clt_tuning_results_nearest(shipped, key, node, device, choice, from)) return CLT_WHY_SHIPPED_NEAREST;
    return CLT_WHY_DEFAULT;
}

clt_choice clt_tune_choose(const clt_tensor *node, clt_device *device, clt_reason *reason) {
    char key[CLT_TUNE_KEY];
    int candidates;
    clt_choice choice = plain_choice(node, device, &candidates);
    give_reason(reason, !choice.row ? CLT_WHY_NONE : candidates > 1 ? CLT_WHY_DEFAULT : CLT_WHY_ONLY, NULL);
    if (candidates < 2 || !clt_tune_key(node, key)) return choice;
    const clt_tune_database *db = clt_tune_database_of(device);
    if (!db) return choice;
    const clt_tuning_results *measured = clt_tune_get_mode(device) == CLT_TUNE_MODE_OFF ? NULL : &db->measured;
    const clt_tuning_result *from;
    clt_why why = ask(measured, &db->shipped, key, node, device, &choice, &from);
    give_reason(reason, why, from);
    return choice;
}

clt_choice clt_tune_choose_untuned(const clt_tensor *node, clt_device *device) {
    char key[CLT_TUNE_KEY];
    int candidates;
    clt_choice choice = plain_choice(node, device, &candidates);
    const clt_tune_database *db = candidates > 1 ? clt_tune_database_of(device) : NULL;
    const clt_tuning_result *from;
    if (db && clt_tune_key(node, key)) ask(NULL, &db->shipped, key, node, device, &choice, &from);
    return choice;
}

/* ---- in a run ---- */

static clt_status first_choice(clt_tune_run *run, const char *key, const clt_tensor *node, clt_device *device, clt_choice *choice) {
    clt_tuning_result result;
    clt_reason reason;
    *choice = clt_tune_choose(node, device, &reason);
    clt_tuning_result_of(key, choice, &result);
    result.effort = reason.why == CLT_WHY_DEFAULT ? CLT_TUNE_KEPT : CLT_TUNE_QUICK; /* a default says nothing of problems like it */
    return clt_tuning_results_put(&run->choices, &result);
}

clt_status clt_tune_run_choose(clt_tune_run *run, const clt_tensor *node, clt_device *device, clt_choice *choice) {
    char key[CLT_TUNE_KEY];
    int candidates;
    *choice = plain_choice(node, device, &candidates);
    if (candidates < 2 || !clt_tune_key(node, key)) return CLT_OK;
    if (!run->begun) return first_choice(run, key, node, device, choice);
    const clt_tune_database *db = clt_tune_database_of(device);
    const clt_tuning_results none = {0};
    const clt_tuning_result *from;
    ask(&run->choices, db ? &db->shipped : &none, key, node, device, choice, &from);
    return CLT_OK;
}
