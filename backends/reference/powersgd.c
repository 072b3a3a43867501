#include "backends/reference/reference.h"

static const char path[] = "reference/powersgd.cl";

static void begin_flat(clt_lowering *l, const clt_tensor *node, const char *kernel) {
    int64_t n = clt_tensor_elements(node);
    clt_launch_begin(l, path, kernel, n, CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_int(l, n);
}

static void lower_feedback_add(clt_lowering *l, const clt_tensor *node) {
    begin_flat(l, node, "ref_feedback_add");
}

static void lower_feedback_subtract(clt_lowering *l, const clt_tensor *node) {
    const clt_feedback_attributes *at = node->attributes;
    begin_flat(l, node, "ref_feedback_subtract");
    clt_launch_float(l, at->scale);
}

static void lower_seed_factor(clt_lowering *l, const clt_tensor *node) {
    const clt_feedback_attributes *at = node->attributes;
    begin_flat(l, node, "ref_seed_factor");
    clt_launch_int(l, at->seed);
}

/* A column being made orthogonal to those before it. */
typedef struct column {
    clt_lowering *l;
    const clt_tensor *x, *y;
    int along; /* scratch */
    int64_t index;
} column;

static void launch_column(const column *c) {
    clt_launch_int(c->l, c->y->shape.dims[0]);
    clt_launch_int(c->l, c->y->shape.dims[1]);
    clt_launch_int(c->l, c->index);
}

static void take_away(const column *c, int turn) {
    if (c->index > 0) {
        clt_launch_begin(c->l, path, "ref_orthogonalize_products", c->index * CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP);
        clt_launch_tensor(c->l, turn == 0 ? c->x : c->y);
        clt_launch_tensor(c->l, c->y);
        clt_launch_scratch(c->l, c->along);
        launch_column(c);
    }
    clt_launch_begin(c->l, path, "ref_orthogonalize_subtract", c->y->shape.dims[0], CLT_REFERENCE_GROUP);
    clt_launch_tensor(c->l, c->x);
    clt_launch_tensor(c->l, c->y);
    clt_launch_scratch(c->l, c->along);
    launch_column(c);
    clt_launch_int(c->l, turn);
}

/* Launches a column, so that loops stay short. */
static void lower_orthogonalize(clt_lowering *l, const clt_tensor *node) {
    int64_t rank = node->shape.dims[1];
    column c = {.l = l, .x = node->inputs[0], .y = node, .along = clt_lower_scratch(l, (size_t)rank * sizeof(float))};
    for (; c.index < rank; c.index++) {
        take_away(&c, 0);
        if (c.index > 0) take_away(&c, 1);
        clt_launch_begin(l, path, "ref_orthogonalize_norm", CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP);
        clt_launch_tensor(l, c.x);
        clt_launch_tensor(l, c.y);
        launch_column(&c);
    }
}

const clt_backend_row clt_reference_powersgd_rows[] = {
    {CLT_REFERENCE(feedback_add), .lower = lower_feedback_add},
    {CLT_REFERENCE(feedback_subtract), .lower = lower_feedback_subtract},
    {CLT_REFERENCE(seed_factor), .lower = lower_seed_factor},
    {CLT_REFERENCE(orthogonalize), .lower = lower_orthogonalize},
    {0},
};
