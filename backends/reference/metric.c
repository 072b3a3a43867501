#include "backends/reference/reference.h"

static const char path[] = "reference/metric.cl";

/* Rounds that a work-item makes in one launch (see cl/prelude.cl), and rows or classes that a group reads in as many. */
enum { ROUNDS = 8192, PART = ROUNDS * CLT_REFERENCE_GROUP };

static void lower_metric_add(clt_lowering *l, const clt_tensor *node) {
    const clt_metric_attributes *at = node->attributes;
    clt_launch_begin(l, path, "ref_metric_add", 1, 1);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_float(l, at->weight);
    clt_launch_int(l, at->finite);
}

/* One work-group reads all rows, `part` of them in a launch. */
static void correct_by_item(clt_lowering *l, const clt_tensor *node, int64_t rows, int64_t classes, int64_t part) {
    for (int64_t start = 0; start < rows; start += part) {
        clt_launch_begin_typed(l, path, node->inputs[1]->dtype, "ref_metric_correct", CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP);
        for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
        clt_launch_int(l, start);
        clt_launch_int(l, CLT_MIN(start + part, rows));
        clt_launch_int(l, classes);
    }
}

void clt_reference_metric_count(clt_lowering *l, const clt_tensor *node, int wrong, int64_t rows) {
    for (int64_t start = 0; start < rows; start += PART) {
        clt_launch_begin(l, path, "ref_metric_count", CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP);
        clt_launch_tensor(l, node->inputs[0]);
        clt_launch_scratch(l, wrong);
        clt_launch_int(l, start);
        clt_launch_int(l, CLT_MIN(start + PART, rows));
    }
}

/* A work-group a row, then one that counts the rows. */
static void correct_by_group(clt_lowering *l, const clt_tensor *node, int64_t rows, int64_t classes) {
    int wrong = clt_lower_scratch(l, (size_t)rows * sizeof(int32_t));
    for (int64_t start = 0; start < classes; start += PART) {
        clt_launch_begin_typed(l, path, node->inputs[1]->dtype, "ref_metric_wrong", rows * CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP);
        clt_launch_tensor(l, node->inputs[1]);
        clt_launch_tensor(l, node->inputs[2]);
        clt_launch_scratch(l, wrong);
        clt_launch_int(l, rows);
        clt_launch_int(l, classes);
        clt_launch_int(l, start);
        clt_launch_int(l, CLT_MIN(start + PART, classes));
    }
    clt_reference_metric_count(l, node, wrong, rows);
}

static void lower_metric_correct(clt_lowering *l, const clt_tensor *node) {
    enum { LONG = 256 };
    int64_t rows = node->inputs[1]->shape.dims[0], classes = node->inputs[1]->shape.dims[1];
    int64_t part = PART / classes / CLT_REFERENCE_GROUP * CLT_REFERENCE_GROUP;
    if (classes < LONG || rows <= part) correct_by_item(l, node, rows, classes, part);
    else correct_by_group(l, node, rows, classes);
}

const clt_backend_row clt_reference_metric_rows[] = {
    {CLT_REFERENCE(metric_add), .lower = lower_metric_add},
    {CLT_REFERENCE(metric_correct), .types = CLT_ANY_FLOAT, .lower = lower_metric_correct},
    {0},
};
