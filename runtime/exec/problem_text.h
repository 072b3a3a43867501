/*
 * Problems back from their text.
 */
#ifndef CLT_EXEC_PROBLEM_TEXT_H
#define CLT_EXEC_PROBLEM_TEXT_H

#include "runtime/graph/graph.h"

enum { CLT_PROBLEM_MOST_INPUTS = 6 };

/* Makes the node that a text of clt_tune_words describes in an empty graph; its inputs are the graph's. *marked: some
 * tensor says how it lies. CLT_E_FORMAT, CLT_E_SHAPE: also where an op itself would not notice. */
clt_status clt_problem_parse(const char *text, clt_graph *graph, clt_tensor **node, bool *marked);

#endif
