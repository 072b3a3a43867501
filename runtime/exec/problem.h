/*
 * The problems of a graph: its ops with their attributes, shapes and layouts, each once.
 */
#ifndef CLT_EXEC_PROBLEM_H
#define CLT_EXEC_PROBLEM_H

#include "backends/tune/tune.h"

typedef struct clt_problem {
    char key[CLT_TUNE_KEY];
    const clt_tensor *node; /* one of those that are this problem; lives as long as its graph */
    int count;              /* how many they are */
    double work;            /* of one, in operations; reading or writing a value counts as some */
    double flop;            /* of one, if it is arithmetic that counts; else 0 */
} clt_problem;

typedef struct clt_problem_list {
    clt_problem *items;
    size_t n, capacity;
    clt_graph *graph; /* of the nodes, if the list owns it; else NULL */
    double work;      /* of all */
    bool all;       /* those without a choice are added too; what has no key gets words like one */
} clt_problem_list;

/* Adds the node's problem if there is a choice of rows or parameters for it, or list->all. */
clt_status clt_problems_add(clt_problem_list *list, const clt_tensor *node, clt_device *device);
/* Most work first. */
void clt_problems_sort(clt_problem_list *list);
void clt_problems_free(clt_problem_list *list);

#endif
