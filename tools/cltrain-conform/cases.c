#include "tools/cltrain-conform/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const exemption exemptions[] = {
    {"batch_norm_moments", "only with several ranks", "ranks"},
    {"batch_norm_combine", "only with several ranks", "ranks"},
    {"hyper_scale", "only with several ranks", "ranks"},
    {"reduce_scatter", "only with several ranks", "ranks"},
    {"all_gather_in_place", "only with several ranks", "ranks"},
    {"topk_encode", "with --full", NULL},
    {"topk_decode", "with --full", NULL},
    {"clear_if_skipped", "with --full", NULL},
    {"feedback_add", "with --full", NULL},
    {"feedback_subtract", "with --full", NULL},
    {"seed_factor", "with --full", NULL},
    {"orthogonalize", "with --full", NULL},
    {"shard", "a view: nothing is launched for it; the case of ranks that share an optimizer reads through it", NULL},
    {"from_host", "no kernel: tests/train/test_offload.c", NULL},
    {"to_host", "no kernel: tests/train/test_offload.c", NULL},
    {"flat_part", "a view: nothing is launched for it; the case of PowerSGD reads through it", NULL},
    {"relayout", "no kernel that served wants channels-last images here", NULL},
    {"reshape", "a view: nothing is launched for it; its cases read through it", NULL},
    {NULL, NULL, NULL},
};

static test_case *append(case_list *list) {
    if (list->n == list->capacity) {
        int capacity = list->capacity ? 2 * list->capacity : 256;
        test_case *items = realloc(list->items, (size_t)capacity * sizeof *items);
        if (!items) exit(3);
        list->items = items;
        list->capacity = capacity;
    }
    test_case *c = &list->items[list->n++];
    memset(c, 0, sizeof *c);
    return c;
}

static void add_text(char id[CASE_ID], const char *text) {
    size_t used = strlen(id);
    snprintf(id + used, CASE_ID - used, "%s", text);
}

static void add_shape(char id[CASE_ID], const clt_shape *shape) {
    char text[24];
    for (int d = 0; d < shape->rank; d++) {
        snprintf(text, sizeof text, "%s%lld", d ? "x" : "", (long long)shape->dims[d]);
        add_text(id, text);
    }
    if (shape->rank == 0) add_text(id, "scalar");
}

test_case *case_add(case_list *list, const operation *op, const char *variant, const operand *x, int n) {
    test_case *c = append(list);
    c->op = op->name;
    c->operation = op;
    c->n = n;
    memcpy(c->x, x, (size_t)n * sizeof *x);
    c->dtype = x[0].dtype;
    add_text(c->id, op->name);
    if (variant[0]) add_text(c->id, "/");
    add_text(c->id, variant);
    for (int i = 0; i < n; i++) {
        add_text(c->id, i ? "," : "/");
        add_shape(c->id, &x[i].shape);
    }
    return c;
}

test_case *case_add_run(case_list *list, const char *op, const char *variant,
                        void (*run)(const test_case *, bench *, case_result *)) {
    test_case *c = append(list);
    c->op = op;
    c->run = run;
    add_text(c->id, op);
    add_text(c->id, "/");
    add_text(c->id, variant);
    return c;
}

/* ---- storage types ---- */

/* Ops that take f16 and bf16; of pointwise ones some, for their kernels are generated alike. */
static bool takes_halves(const char *op) {
    static const char *const names[] = {"add", "mul", "relu", "gelu", "tanh", "sigmoid", "where", "matmul", "conv2d", "attention", "sum", "mean", "max", "softmax",
                                        "log_softmax", "layer_norm", "batch_norm", "max_pool2d", "avg_pool2d", "global_avg_pool2d", "dropout",
                                        "rotary", "permute", "slice", "concat", "pad", "expand"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(op, names[i])) return true;
    return false;
}

/* Values that were chosen for f32, and what its rows alone are cut by, say nothing of other types. Layers' own parameters stay f32, which norms take beside
 * others. */
static bool is_common(const test_case *c) {
    int64_t elements = 0;
    bool drawn = c->operation && c->dtype == CLT_F32 && !c->full && !c->large && !c->evaluation && !c->seed_special;
    for (int i = 0; i < c->n; i++) {
        drawn &= !c->x[i].values && !c->x[i].n_special && c->x[i].high < 100 && c->x[i].low > -100 && (!c->x[i].variable || strstr(c->op, "norm"));
        elements += clt_shape_elements(&c->x[i].shape);
    }
    return drawn && elements >= 8 && elements < 20000;
}

static void add_stored(case_list *list, int of, clt_dtype dtype, bool full) {
    char id[CASE_ID];
    test_case *c = append(list);
    *c = list->items[of]; /* behind `append`, which may move them */
    size_t op = strlen(c->op);
    snprintf(id, sizeof id, "%.*s/%s%s", (int)op, c->id, clt_dtype_name(dtype), c->id + op);
    memcpy(c->id, id, sizeof id);
    c->dtype = dtype;
    c->full = full;
    for (int i = 0; i < c->n; i++)
        if (!c->x[i].variable && !c->x[i].constant && c->x[i].dtype == CLT_F32) c->x[i].dtype = dtype;
}

/* The first few cases of each op again, with operands stored as each of the 16-bit types: the first as f16 and the second as bf16, with --full
 * all of them as both. Some are named: those by work-groups, and of an op whose first cases say more than its own. */
static void cases_stored(case_list *list) {
    enum { EACH = 4 };
    static const struct {
        const char *id;
        clt_dtype dtype;
    } named[] = {{"softmax/long/3x1031", CLT_BF16},      {"cross_entropy/33x10,33", CLT_F16},       {"cross_entropy/131x37,131", CLT_BF16},
                 {"cross_entropy/131x37,131", CLT_F16},  {"cross_entropy/small/3x301,3", CLT_BF16}, {"cross_entropy/3x1031,3", CLT_F16},
                 {"cross_entropy/no-class-above/131x37,131", CLT_BF16},
                 {"attention/blocks/1x1x37x32,1x1x131x32,1x1x131x32", CLT_F16},
                 {"attention/blocks/1x1x37x32,1x1x131x32,1x1x131x32", CLT_BF16},
                 {"attention/few/1x4x1x64,1x2x131x64,1x2x131x64", CLT_F16},
                 {"attention/dropout-few/2x2x2x32,2x2x70x32,2x2x70x32,2x1x1x70", CLT_BF16}};
    int n = list->n;
    for (int i = 0; i < n; i++) {
        int before = 0;
        for (size_t k = 0; k < sizeof named / sizeof named[0]; k++)
            if (!strcmp(list->items[i].id, named[k].id)) add_stored(list, i, named[k].dtype, list->items[i].full);
        if (!is_common(&list->items[i]) || !takes_halves(list->items[i].op)) continue;
        for (int k = 0; k < i; k++) before += is_common(&list->items[k]) && !strcmp(list->items[k].op, list->items[i].op);
        if (before >= EACH) continue;
        add_stored(list, i, CLT_F16, before != 0);
        add_stored(list, i, CLT_BF16, before != 1);
    }
}

bool cases_make(case_list *list) {
    *list = (case_list){.n = 0};
    cases_pointwise(list);
    int first = list->n;
    cases_matmul(list);
    cases_conv2d(list);
    cases_blocks(list);
    cases_pool(list);
    cases_norm(list);
    cases_reduce(list);
    for (int i = first; i < list->n; i++) list->items[i].classes = true;
    cases_shape(list);
    cases_attention(list);
    cases_embedding(list);
    cases_select(list);
    cases_recurrent(list);
    cases_dropout(list);
    cases_user(list);
    cases_several(list);
    cases_update(list);
    cases_ranks(list);
    cases_metrics(list);
    cases_network(list);
    cases_train(list);
    cases_stored(list);
    return list->n > 0;
}
