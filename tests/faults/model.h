/*
 * The small models that scenarios train, and what they share.
 */
#ifndef CLT_TESTS_FAULTS_MODEL_H
#define CLT_TESTS_FAULTS_MODEL_H

#include "tests/faults/scenarios.h"

#define TRY(expression)                 \
    do {                                \
        status = (expression);          \
        if (status < 0) goto done;      \
    } while (0)

void digest_add(digest *d, const void *bytes, size_t n);
void digest_add_text(digest *d, const char *text);

/* What a file holds, or its first line. */
clt_status digest_add_file(digest *d, const char *path);
clt_status digest_add_first_line(digest *d, const char *path);

/* A file in the scenarios' folder. */
void scenario_path(char path[512], const char *name);

enum { BATCH = 8, CLASSES = 4 };

typedef struct model {
    clt_graph *graph;
    clt_tensor *output, *loss;
    clt_dataset *data;
    clt_loader *loader;
    clt_trainer *trainer;
} model;

/* Gives the output. */
typedef clt_tensor *(*make_model)(clt_graph *g, clt_tensor **label);
clt_tensor *model_mlp(clt_graph *g, clt_tensor **label);
clt_tensor *model_convnet(clt_graph *g, clt_tensor **label);

/* Whatever comes back is to be destroyed. */
clt_status model_create(model *m, clt_device *device, make_model make, clt_train_options options, clt_loader_options loading);
void model_destroy(model *m);
/* So many batches, over the ends of epochs. */
clt_status model_train(model *m, int batches);
clt_status model_evaluate(model *m, digest *d);

clt_status digest_add_values(digest *d, clt_trainer *t, const char *name, size_t count);
clt_status digest_add_mlp(digest *d, model *m);
clt_status digest_add_convnet(digest *d, model *m);

#endif
