/*
 * What of forward is kept for backward, and what is computed again when backward comes to it (Chen et al., "Training Deep Nets with Sublinear Memory
 * Cost", 2016). Forward is cut into stages. Of each, all is kept, or what is dear to compute, or nothing but what later stages read; which, and where the
 * cuts are, is found by dynamic programming: the least work that is done again within so many bytes.
 */
#ifndef CLT_EXEC_KEEP_H
#define CLT_EXEC_KEEP_H

#include "runtime/base/base.h"

/* A node of forward, in the order of execution. Its results are kept or computed again together. */
typedef struct clt_keep_node {
    uint64_t bytes; /* of its results; 0 for views */
    double cost;    /* of computing it again, in any unit */
    int last;       /* the last node that reads a result; its own place where none does */
    bool saved;     /* backward reads a result */
    bool wanted;    /* saved, or a cheap node reads it that is */
    bool cheap;     /* next to nothing beside products and convolutions */
    bool fixed;     /* cannot be computed again */
    int block;      /* of the network, the parameters of which it reads; 0: it reads none */
    bool ends;      /* it is the last of its block, by a mark */
    bool keep;      /* the answer */
} clt_keep_node;

/* The least work within a budget for what is kept, and at any time computed again; false: none fits. CLT_E_NO_MEMORY. */
clt_status clt_keep_within(clt_keep_node *nodes, int n, uint64_t budget, bool *fits);
/* The least bytes for which there is an answer, about, and that answer. */
clt_status clt_keep_least(clt_keep_node *nodes, int n);
/* What leads from block to block, and all of the last one. Blocks are told by marks, or else by their numbers. */
clt_status clt_keep_blocks(clt_keep_node *nodes, int n);

#endif
