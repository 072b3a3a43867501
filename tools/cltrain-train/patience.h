/*
 * --patience: the best test so far, which files of the run know.
 */
#ifndef TRAIN_PATIENCE_H
#define TRAIN_PATIENCE_H

#include <cltrain/cltrain.h>

#include "ranks.h"
#include "report.h"

/* Files that the trainer writes from now on tell of report->best_epoch and its loss. */
clt_status patience_keep(clt_trainer *trainer, const report *report);

/* What the file of rank 0, of so many epochs, tells, on all ranks; one that tells nothing leaves the report as it is. */
clt_status patience_recall(const char *path, int64_t epochs, const ranks *group, report *report);

#endif
