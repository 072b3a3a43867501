/*
 * Which part of a network a node is of: that of the parameter that it reads, by the parameter's name up to its last dot, as PyTorch names modules.
 */
#ifndef CLT_GRAPH_SCOPE_H
#define CLT_GRAPH_SCOPE_H

#include "runtime/graph/graph.h"

typedef struct clt_scope {
    const clt_variable *variable; /* the parameter; NULL: of no part */
    bool reads;   /* parameters of that part; else the part is that of what it reads */
    bool fixed;   /* it depends on variables alone, as a transposed weight does */
} clt_scope;

/* One for each node, by its index; clt_free them. */
clt_status clt_graph_scopes(const clt_graph *graph, clt_scope **scopes);

/* How much of a parameter's name names its part: "layer1.0.conv1" of "layer1.0.conv1.weight", all of a name without a dot. */
size_t clt_scope_length(const clt_variable *variable);
bool clt_scope_same(const clt_variable *a, const clt_variable *b);

#endif
