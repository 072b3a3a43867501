/*
 * The labels of data as one number, by which they are known again.
 */
#ifndef CLTRAIN_TRAIN_LABELS_H
#define CLTRAIN_TRAIN_LABELS_H

#include <stdint.h>

#include <cltrain/cltrain.h>

/* A hash of all labels in their order; 0 where there are no classes, or the labels cannot be read. */
uint64_t labels_hash(const clt_dataset *data);

#endif
