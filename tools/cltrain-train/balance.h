/*
 * --balance: shares of a batch by the ranks' own speed. Twice, some steps are measured, without the time in which a rank
 * waited for others; then each gets samples in proportion to what it did a second.
 */
#ifndef CLTRAIN_TRAIN_BALANCE_H
#define CLTRAIN_TRAIN_BALANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "ranks.h"

typedef struct balance {
    int rounds;  /* done */
    int steps;   /* of this round */
    double begun, waited; /* when measuring began */
} balance;

/* After each update, on all ranks; `waited`: seconds so far. When a round ends, `shares` becomes what is best, the same on all
 * ranks; *changed says whether that is something else. */
clt_status balance_step(balance *b, const ranks *group, int64_t *shares, int64_t whole, double waited, bool *changed);

#endif
