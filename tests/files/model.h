/* A small classifier of the digits, for tests of what is written of it. */
#ifndef CLT_TESTS_FILES_MODEL_H
#define CLT_TESTS_FILES_MODEL_H

#include <cltrain/cltrain.h>

typedef struct model {
    clt_graph *graph;
    clt_trainer *trainer;
    clt_loader *loader;
} model;

clt_status model_make(model *m, clt_device *device, clt_dataset *digits, int hidden);
clt_status model_train(model *m, int steps);
void model_destroy(model *m);

#endif
