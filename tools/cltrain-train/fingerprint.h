/*
 * Data as one number, by which they are known again.
 */
#ifndef CLTRAIN_TRAIN_FINGERPRINT_H
#define CLTRAIN_TRAIN_FINGERPRINT_H

#include <stdint.h>

#include <cltrain/cltrain.h>

/* A hash of all labels in their order; 0 where there are no classes, or the labels cannot be read. */
uint64_t fingerprint_labels(const clt_dataset *data);

/* Of labels, and of the names of samples or, where they have none, of some of them. */
uint64_t fingerprint(const clt_dataset *data);

#endif
