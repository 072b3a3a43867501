/*
 * --tensorboard: what TensorBoard shows of a run. What cannot be written is warned of once, and training goes on.
 */
#ifndef CLTRAIN_TRAIN_BOARD_H
#define CLTRAIN_TRAIN_BOARD_H

#include "data_spec.h"
#include "report.h"

typedef struct board board;

/* Returns NULL after saying why the folder cannot be written. */
board *board_open(const char *folder);
/* All of these: NULL is fine. */

/* The run's options, the network, and some samples of the test where they are images. */
void board_start(board *board, const report *report, const data_parts *data, const clt_tensor *network);
void board_progress(board *board, const report *report, double lr, const clt_metrics *train, double samples_per_second);
/* Metrics, and how weights and gradients are distributed: of each parameter a million values at most. */
void board_epoch(board *board, const report *report, double lr, clt_trainer *trainer, const clt_graph *graph);
/* Of --test-every. */
void board_test(board *board, const report *report);
/* A batch of the last test with what the model predicted, `width` logits a sample: for curves and mistakes. */
void board_add(board *board, const clt_batch *batch, const float *output, int64_t width);
void board_end(board *board, const report *report, const clt_preprocessing *preprocessing, bool success);
void board_close(board *board);

#endif
