/*
 * --lr-find: a learning rate range test; Smith 2017, "Cyclical learning rates for training neural networks".
 */
#ifndef CLTRAIN_TRAIN_LR_FIND_H
#define CLTRAIN_TRAIN_LR_FIND_H

#include <cltrain/cltrain.h>

enum { LR_FIND_STEPS = 100 };

typedef struct lr_find {
    double lr[LR_FIND_STEPS], loss[LR_FIND_STEPS]; /* of each step; losses are smoothed */
    int n;            /* steps that were done: up to where the loss is four times its lowest, or no number */
    double suggested; /* where the loss falls fastest; NaN: nowhere */
} lr_find;

/* Trains a step at each of LR_FIND_STEPS rates from 1e-7 to 10. The trainer is of no use afterwards. A collective of the ranks. */
clt_status lr_find_run(lr_find *found, clt_trainer *trainer, clt_loader *loader);

/* A table with a bar for each tenth step, or a JSON object on stdout or in a file. Returns 0, or EXIT_FAILED after saying why not. */
int lr_find_print(const lr_find *found, const char *json);

#endif
