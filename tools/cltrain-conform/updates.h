/* An optimizer's steps in double precision, with what is done to gradients before. */
#ifndef CONFORM_UPDATES_H
#define CONFORM_UPDATES_H

#include "tools/cltrain-conform/cases.h"

typedef struct recipe {
    const char *name;
    clt_train_options options;
    bool full;
    float broken;  /* NaN or infinity in the gradients of the steps BROKEN; 0: none */
    float dropout; /* of what the gradient is */
    int size;      /* of the parameter; 0: some sizes */
    int columns;   /* of the parameter, which is a matrix then; 0: a vector */
    float large;   /* gradients are so many times larger; 0: not */
    bool classes;  /* CPUs and GPUs have kernels of their own for it */
    int samples;   /* whose gradients are added up; 0: one */
    int parts;     /* gradients are multiples of 1/parts; 0: 1/64, or a matrix of rank 2 */
} recipe;

typedef struct host {
    const recipe *of;
    const clt_train_options *o;
    int n, made; /* updates so far */
    double *p, *m, *v, *g, *residual;
    double *mean; /* the moving average of p, where one is kept */
    double *factor; /* PowerSGD's right one, of the step before: columns x rank; 0: there is none yet */
    clt_tensor *rounded; /* p in 16 bits, and back */
    float *copy;  /* what that was */
    bool located; /* what was not finite was named */
} host;

int samples_of(const recipe *of);
clt_shape shape_of_parameter(const recipe *of, int n);
clt_shape shape_of_batch(const recipe *of, int n, int samples);
/* An update by the gradient as it arrived. */
void update_on_host(host *h, int step);
/* The gradient as it arrives where ranks exchange it compressed, of one rank; the residual is what does not. */
void compress_on_host(host *h);
/* How far parameters may be off by what is not computed above: the last step's residual. 0: they may not. */
double compress_slack(const host *h);

#endif
