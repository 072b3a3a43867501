/*
 * --class-weights and --balanced-sampling: classes that are rare count, or come, as much as others.
 */
#ifndef CLTRAIN_TRAIN_CLASS_WEIGHTS_H
#define CLTRAIN_TRAIN_CLASS_WEIGHTS_H

#include <stdint.h>

#include <cltrain/cltrain.h>

/* Of "W,W,...", one for each class, or "balanced": samples / (classes x samples of the class), as scikit-learn has it. Of numbers the
 * mean over the training samples is made 1, which balanced ones have. *weights: to be freed.
 * Returns 0, or an exit code after saying what was expected. */
int class_weights_find(float **weights, const char *text, const clt_dataset *train, int64_t classes);

/* One for each sample, so that each class is drawn as often as any other. To be freed. */
int sample_weights_find(double **weights, const clt_dataset *train);

#endif
