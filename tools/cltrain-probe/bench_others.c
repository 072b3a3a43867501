/* The backends that do not serve an op in a run, beside the one that does: what `bench --full` measures them at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "tools/survey/document.h"
#include "tools/common/message.h"

/* ---- in the child ---- */

/* "native#2" is a row of native. */
static bool add_to_table(const clt_row_info *row, void *table) {
    json_t *backend = json_sprintf("%.*s", (int)strcspn(row->backend, "#"), row->backend);
    json_array_append_new(table, json_pack("{s:s, s:o}", "op", row->op, "backend", backend));
    return true;
}

json_t *bench_table_json(clt_device *device) {
    json_t *table = json_array();
    clt_probe_rows(device, add_to_table, table);
    return table;
}

/* ---- in the parent ---- */

/* A problem's first word is its op. */
static bool is_op(const bench_row *row, const char *op) {
    size_t length = strcspn(row->shape.problem, " ");
    return op[0] && strlen(op) == length && strncmp(row->shape.problem, op, length) == 0;
}

static bool serves(const bench_row *row, const char *backend) {
    size_t length = strcspn(row->backend, "#");
    return strlen(backend) == length && strncmp(row->backend, backend, length) == 0;
}

static bool has_other(const bench *b, int from, const bench_row *row, const char *backend) {
    for (int i = from; i < b->n_rows; i++)
        if (strcmp(b->rows[i].shape.problem, row->shape.problem) == 0 && strcmp(b->rows[i].asked, backend) == 0) return true;
    return false;
}

int bench_add_others(bench *b) {
    int n = b->n_rows;
    for (int i = 0; i < n; i++) {
        if (b->rows[i].is_limit) continue;
        for (size_t k = 0; k < json_array_size(b->table); k++) {
            const json_t *entry = json_array_get(b->table, k);
            const char *backend = document_string(entry, "backend");
            if (!is_op(&b->rows[i], document_string(entry, "op")) || serves(&b->rows[i], backend)) continue;
            if (!backend[0] || has_other(b, n, &b->rows[i], backend)) continue;
            bench_row *rows = realloc(b->rows, ((size_t)b->n_rows + 1) * sizeof *rows);
            if (!rows) return run_error("no memory");
            b->rows = rows;
            bench_row *other = &rows[b->n_rows++];
            *other = (bench_row){.shape = rows[i].shape, .status = "ok", .nmse = -1, .nmse_after = -1};
            snprintf(other->asked, sizeof other->asked, "%s", backend);
        }
    }
    return 0;
}
