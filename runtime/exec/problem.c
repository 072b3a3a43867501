/* The problems of a graph, and how much work they are. */
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/problem.h"

/* A value read or written takes about as long as so many operations. */
static double work_of(const clt_tensor *node) {
    const double per_byte = 4;
    clt_cost cost = clt_node_cost(node);
    return CLT_MAX(cost.flops, per_byte * cost.bytes);
}

clt_status clt_problems_add(clt_problem_list *list, const clt_tensor *node, clt_device *device) {
    clt_problem problem = {.node = node, .count = 1};
    if (list->all && node->op->is_view && !node->op->writes) return CLT_OK;
    if (list->all) clt_tune_words(node, problem.key);
    else if (!clt_tune_matters(node, device) || !clt_tune_key(node, problem.key)) return CLT_OK;
    problem.work = work_of(node);
    problem.flop = clt_node_cost(node).flops;
    list->work += problem.work;
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->items[i].key, problem.key)) continue;
        list->items[i].count++;
        return CLT_OK;
    }
    CLT_TRY(clt_grow(&list->items, &list->capacity, list->n, sizeof *list->items));
    list->items[list->n++] = problem;
    return CLT_OK;
}

static int more_work_first(const void *a, const void *b) {
    const clt_problem *x = a, *y = b;
    double work_x = x->work * x->count, work_y = y->work * y->count;
    if (work_x != work_y) return work_x < work_y ? 1 : -1;
    return strcmp(x->key, y->key);
}

void clt_problems_sort(clt_problem_list *list) {
    if (list->n) qsort(list->items, list->n, sizeof *list->items, more_work_first);
}

void clt_problems_free(clt_problem_list *list) {
    clt_free(list->items);
    clt_graph_destroy(list->graph);
    *list = (clt_problem_list){0};
}
