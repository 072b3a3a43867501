/* Tuning results and lists of them. */
#include "backends/tune/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void clt_tuning_results_free(clt_tuning_results *list) {
    clt_free(list->items);
    *list = (clt_tuning_results){0};
}

const clt_tuning_result *clt_tuning_results_find(const clt_tuning_results *list, const char *problem) {
    for (size_t i = 0; i < list->n; i++)
        if (!list->items[i].failed[0] && !strcmp(list->items[i].problem, problem)) return &list->items[i];
    return NULL;
}

static bool same_candidate(const clt_tuning_result *a, const clt_tuning_result *b) {
    if (strcmp(a->row, b->row) || a->n_parameters != b->n_parameters) return false;
    for (int i = 0; i < a->n_parameters; i++)
        if (strcmp(a->parameters[i].name, b->parameters[i].name) ||
            a->parameters[i].value != b->parameters[i].value)
            return false;
    return true;
}

bool clt_tuning_results_failed(const clt_tuning_results *list, const char *problem, const clt_choice *choice) {
    clt_tuning_result wanted;
    clt_tuning_result_of(problem, choice, &wanted);
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].failed[0] && !strcmp(list->items[i].problem, problem) &&
            same_candidate(&list->items[i], &wanted))
            return true;
    return false;
}

/* On the same thing: the problem, or a candidate of it that failed. */
static bool replaces(const clt_tuning_result *a, const clt_tuning_result *b) {
    if (strcmp(a->problem, b->problem) || !a->failed[0] != !b->failed[0]) return false;
    return !a->failed[0] || same_candidate(a, b);
}

static void forget_oldest(clt_tuning_results *list, size_t count) {
    list->n -= count;
    memmove(list->items, list->items + count, list->n * sizeof *list->items);
}

clt_status clt_tuning_results_put(clt_tuning_results *list, const clt_tuning_result *result) {
    for (size_t i = 0; i < list->n; i++) {
        if (!replaces(&list->items[i], result)) continue;
        if (list->items[i].effort <= result->effort) list->items[i] = *result;
        return CLT_OK;
    }
    if (list->n >= CLT_TUNING_RESULTS_MOST) forget_oldest(list, CLT_TUNING_RESULTS_MOST / 4);
    CLT_TRY(clt_grow(&list->items, &list->capacity, list->n, sizeof *list->items));
    list->items[list->n++] = *result;
    return CLT_OK;
}

/* ---- to and from choices ---- */

const char *clt_backend_row_id(const clt_backend_row *row, char text[CLT_TUNE_NAME]) {
    int number = 1;
    for (const clt_backend_row *r = NULL; (r = clt_backend_next(row->op, r)) && r != row;)
        number += !strcmp(r->name, row->name);
    if (number == 1) snprintf(text, CLT_TUNE_NAME, "%s", row->name);
    else snprintf(text, CLT_TUNE_NAME, "%s#%d", row->name, number);
    return text;
}

const char *clt_choice_text(const clt_choice *choice, char text[CLT_TUNE_PARAMETERS]) {
    const clt_tunable *tunables = choice->row ? choice->row->tunables : NULL;
    int used = 0;
    text[0] = 0;
    for (int i = 0; tunables && tunables[i].name && used < CLT_TUNE_PARAMETERS; i++)
        used += snprintf(text + used, (size_t)(CLT_TUNE_PARAMETERS - used), "%s%s=%d", i ? " " : "",
                         tunables[i].name, choice->parameters[i]);
    return text;
}

void clt_tuning_result_of(const char *problem, const clt_choice *choice, clt_tuning_result *result) {
    const clt_tunable *tunables = choice->row->tunables;
    *result = (clt_tuning_result){0};
    snprintf(result->problem, sizeof result->problem, "%s", problem);
    clt_backend_row_id(choice->row, result->row);
    for (int i = 0; tunables && tunables[i].name; i++) {
        snprintf(result->parameters[i].name, CLT_TUNE_NAME, "%s", tunables[i].name);
        result->parameters[i].value = choice->parameters[i];
        result->n_parameters = i + 1;
    }
}

static const clt_backend_row *find_row(const clt_op *op, const char *id) {
    char text[CLT_TUNE_NAME];
    for (const clt_backend_row *row = NULL; (row = clt_backend_next(op, row));)
        if (!strcmp(clt_backend_row_id(row, text), id)) return row;
    return NULL;
}

/* Sets one parameter by name; false if there is no such, or the value is not one it may have. */
static bool set_parameter(clt_choice *choice, const char *name, int value) {
    const clt_tunable *tunables = choice->row->tunables;
    for (int i = 0; tunables && tunables[i].name; i++) {
        if (strcmp(tunables[i].name, name)) continue;
        choice->parameters[i] = value;
        for (int k = 0; k < tunables[i].n; k++)
            if (tunables[i].values[k] == value) return true;
    }
    return false;
}

/* A row's defaults may be no value of its lists, but are always allowed. */
static bool is_default(const clt_choice *choice, const clt_tuning_result *result) {
    clt_tuning_result own;
    clt_tuning_result_of(result->problem, choice, &own);
    return same_candidate(&own, result);
}

bool clt_tuning_result_apply(const clt_tuning_result *result, const clt_tensor *node, clt_device *device,
                             clt_choice *choice) {
    clt_choice wanted = {.row = find_row(node->op, result->row)};
    if (!wanted.row || !clt_backend_fits(wanted.row, node, device)) return false;
    clt_backend_defaults(wanted.row, node, device, wanted.parameters);
    if (!is_default(&wanted, result)) {
        for (int i = 0; i < result->n_parameters; i++)
            if (!set_parameter(&wanted, result->parameters[i].name, result->parameters[i].value))
                return false;
        if (!clt_backend_valid(&wanted, node, device)) return false;
    }
    *choice = wanted;
    return true;
}

/* Ties go to the problem that comes first in the alphabet, so that the order of a file decides nothing. */
bool clt_tuning_results_nearest(const clt_tuning_results *list, const char *problem, const clt_tensor *node,
                                clt_device *device, clt_choice *choice, const clt_tuning_result **from) {
    const double limit = 4; /* a batch four times as large, and then some */
    double least = limit;
    const clt_tuning_result *nearest = NULL;
    for (size_t i = 0; i < list->n; i++) {
        const clt_tuning_result *v = &list->items[i];
        clt_choice candidate;
        if (v->failed[0] || v->effort == CLT_TUNE_KEPT) continue;
        double distance = clt_tune_distance(problem, v->problem);
        bool better = distance < least || (distance == least && nearest && strcmp(v->problem, nearest->problem) < 0);
        if (!better || !clt_tuning_result_apply(v, node, device, &candidate)) continue;
        least = distance;
        nearest = v;
        *choice = candidate;
    }
    *from = nearest;
    return nearest != NULL;
}
