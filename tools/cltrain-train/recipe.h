/*
 * What a model is trained with unless the command line says otherwise.
 */
#ifndef CLTRAIN_TRAIN_RECIPE_H
#define CLTRAIN_TRAIN_RECIPE_H

#include <stdint.h>
#include <stdio.h>

#include <cltrain/train.h>

#include "options.h"

/* Fills in every option of training that was not given, for rank `rank` of so many, whose batches are in options->each_batch. Returns 0, or EXIT_USAGE after
 * saying which options do not go together. */
int recipe_complete(options *options, int64_t train_samples, int rank, int ranks);

/* Updates in an epoch. What is left at its end is too little for a full batch, or for --accumulate
 * full ones, and is left out: the order is another one in each epoch. `options` must be complete. */
int64_t recipe_epoch_steps(const options *options, int64_t train_samples);

/* Updates of the whole run, as its schedule sees it: to --steps, or of all --epochs. */
int64_t recipe_total_steps(const options *options, int64_t train_samples);

/* Complete options in the library's words. */
clt_train_options recipe_train_options(const options *options, int64_t train_samples,
                                       clt_tensor *output);

const char *recipe_schedule_name(int schedule);

/* The models' defaults, for --help. */
void recipe_print(FILE *file);

#endif
