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
    {"part", "a view: nothing is launched for it; the case of ranks that share an optimizer reads through it", NULL},
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

bool cases_make(case_list *list) {
    *list = (case_list){.n = 0};
    cases_pointwise(list);
    int first = list->n;
    cases_contract(list);
    cases_blocks(list);
    cases_image(list);
    for (int i = first; i < list->n; i++) list->items[i].classes = true;
    cases_reduce(list);
    cases_shape(list);
    cases_update(list);
    cases_ranks(list);
    cases_metrics(list);
    cases_network(list);
    cases_train(list);
    return list->n > 0;
}
