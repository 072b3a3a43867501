/* What is seen only when all results are there. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/cltrain-conform/conform.h"

/* ---- the same losses everywhere ---- */

static void compare_series(json_t *result, const json_t *first, const char *where) {
    const json_t *got = json_object_get(result, "series");
    for (size_t i = 0; i < json_array_size(first); i++) {
        double a = json_number_value(json_array_get(got, i)), b = json_number_value(json_array_get(first, i));
        if (fabs(a - b) <= 1e-3 * fmax(0.1, fabs(b))) continue;
        json_object_set_new(result, "status", json_string("failed"));
        json_object_set_new(result, "value", json_string("failed"));
        json_object_set_new(
            result, "reason",
            json_sprintf("the loss of step %d is %.9g, %.9g on %s", (int)i + 1, a, b, where));
        return;
    }
}

void conform_compare(conform *c) {
    for (int k = 0; k < c->cases.n; k++) {
        const json_t *first = NULL;
        char where[320];
        for (int i = 0; c->cases.items[k].compared && i < c->n_columns; i++)
            for (int r = 0; r < c->columns[i].n_rows; r++) {
                json_t *result = *result_at(c, &c->columns[i], k, r);
                if (!json_is_array(json_object_get(result, "series"))) continue;
                if (first) compare_series(result, first, where);
                else {
                    first = json_object_get(result, "series");
                    snprintf(where, sizeof where, "%s (%s)", c->columns[i].device->info.name,
                             c->columns[i].rows[r].name);
                }
            }
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

static void cover_one(const conform *c, const device_column *column, json_t *all, const char *op) {
    const char *status = "passed", *reason = NULL;
    for (size_t i = 0; i < json_array_size(all); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(all, i), "op")), op) == 0) return;
    if (!was_run(c, column, op)) {
        status = "failed";
        reason = "the library has this op, and no case launched it";
        for (const exemption *e = exemptions; e->op; e++)
            if (strcmp(e->op, op) == 0) status = "skipped", reason = e->reason;
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
