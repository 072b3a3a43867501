/* What is seen only when all results are there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cltrain-conform/conform.h"

/* ---- the same losses everywhere ---- */

enum { MOST_RUNS = 256 };

/* Nobody is right before the others: of three or more those have failed that are away from the middle; of two that differ both have. */
typedef struct runs {
    json_t *results[MOST_RUNS];
    const char *where[MOST_RUNS], *row[MOST_RUNS];
    int n;
} runs;

static double loss_of(const runs *all, int which, size_t step) {
    return json_number_value(json_array_get(json_object_get(all->results[which], "series"), step));
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of an even number it lies between two, which differ by twice what either is away from it. */
static double middle(const runs *all, size_t step) {
    double losses[MOST_RUNS] = {0};
    for (int i = 0; i < all->n; i++) losses[i] = loss_of(all, i, step);
    qsort(losses, (size_t)all->n, sizeof *losses, by_size);
    return (losses[(all->n - 1) / 2] + losses[all->n / 2]) / 2;
}

/* The one it is the furthest from. */
static int furthest(const runs *all, int from, size_t step) {
    int far = from;
    for (int i = 0; i < all->n; i++)
        if (fabs(loss_of(all, i, step) - loss_of(all, from, step)) > fabs(loss_of(all, far, step) - loss_of(all, from, step))) far = i;
    return far;
}

static bool judge_step(const runs *all, int which, size_t step) {
    double loss = loss_of(all, which, step), believed = middle(all, step), part = all->n % 2 ? 1 : 0.5;
    if (fabs(loss - believed) <= 1e-3 * part * fmax(0.1, fabs(believed))) return true;
    int other = furthest(all, which, step);
    json_object_set_new(all->results[which], "status", json_string("failed"));
    json_object_set_new(all->results[which], "value", json_string("failed"));
    json_object_set_new(all->results[which], "reason",
                        json_sprintf("the loss of step %d is %.9g, and %.9g on %s (%s): one of them is wrong", (int)step + 1, loss,
                                     loss_of(all, other, step), all->where[other], all->row[other]));
    return false;
}

static void compare_runs(const runs *all) {
    size_t steps = all->n > 0 ? json_array_size(json_object_get(all->results[0], "series")) : 0;
    for (int i = 0; i < all->n; i++)
        for (size_t step = 0; step < steps; step++)
            if (!judge_step(all, i, step)) break;
}

void conform_compare(conform *c) {
    for (int k = 0; k < c->cases.n; k++) {
        runs all = {.n = 0};
        for (int i = 0; c->cases.items[k].compared && i < c->n_columns; i++)
            for (int r = 0; r < c->columns[i].n_rows; r++) {
                json_t *result = *result_at(c, &c->columns[i], k, r);
                if (all.n == MOST_RUNS || !json_is_array(json_object_get(result, "series"))) continue;
                all.where[all.n] = c->columns[i].device->info.name;
                all.row[all.n] = c->columns[i].rows[r].name;
                all.results[all.n++] = result;
            }
        compare_runs(&all);
    }
}

/* ---- ops without a case ---- */

static bool serves_op(const json_t *served, const char *op) {
    size_t length = strlen(op);
    for (size_t i = 0; i < json_array_size(served); i++) {
        const char *text = json_string_value(json_array_get(served, i));
        if (text && strncmp(text, op, length) == 0 && text[length] == ':') return true;
    }
    return false;
}

static bool was_run(const conform *c, const device_column *column, const char *op) {
    for (int k = 0; k < c->cases.n; k++)
        for (int r = 0; r < column->n_rows; r++)
            if (serves_op(json_object_get(*result_at(c, column, k, r), "served"), op)) return true;
    return false;
}

static bool all_skipped(const conform *c, const device_column *column, const char *cases) {
    for (int k = 0; k < c->cases.n; k++)
        for (int r = 0; r < column->n_rows; r++) {
            const json_t *result = *result_at(c, column, k, r);
            if (result && strcmp(c->cases.items[k].op, cases) == 0 && strcmp(status_names[status_of(result)], "skipped") != 0) return false;
        }
    return true;
}

static void cover_one(const conform *c, const device_column *column, json_t *all, const char *op) {
    const char *status = "passed", *reason = NULL;
    for (size_t i = 0; i < json_array_size(all); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(all, i), "op")), op) == 0) return;
    if (!was_run(c, column, op)) {
        status = "failed";
        reason = "the library has this op, and no case launched it";
        for (const exemption *e = exemptions; e->op; e++)
            if (strcmp(e->op, op) == 0 && (!e->skipped || all_skipped(c, column, e->skipped))) status = "skipped", reason = e->reason;
        if (c->options->sample_reference > 1 && strcmp(status, "failed") == 0) status = "skipped", reason = "--sample-reference has no case of it";
    }
    json_array_append_new(all, json_pack("{s:s, s:s, s:s?}", "op", op, "status", status, "reason", reason));
}

void conform_cover(conform *c) {
    for (int i = 0; i < c->n_columns; i++) {
        const device_column *column = &c->columns[i];
        json_t *all = json_array();
        for (size_t k = 0; strcmp(column->status, "ok") == 0 && k < json_array_size(column->table); k++)
            cover_one(c, column, all,
                      json_string_value(json_object_get(json_array_get(column->table, k), "op")));
        json_array_append_new(c->coverage, all);
    }
}
