/*
 * --pipeline key=value,...
 */
#ifndef CLTRAIN_TRAIN_PIPELINE_SPEC_H
#define CLTRAIN_TRAIN_PIPELINE_SPEC_H

#include <cltrain/train.h>

/* As given; stages 0: as many as there are ranks. split: with commas between the names. */
typedef struct pipeline_spec {
    clt_pipeline_options options;
    char split[256];
} pipeline_spec;

/* Returns 0, or EXIT_USAGE after saying what was expected. */
int pipeline_spec_parse(pipeline_spec *spec, const char *text);

#endif
