/*
 * What the files of a run tell of it besides the training: how the data were split, and the best test of --patience so far.
 */
#ifndef TRAIN_NOTE_H
#define TRAIN_NOTE_H

#include <cltrain/cltrain.h>

#include "ranks.h"
#include "report.h"

/* Files that the trainer writes from now on tell of the split, of report->best_epoch and its loss. */
clt_status note_keep(clt_trainer *trainer, const report *report);

/* Another split holds out other samples, and so do, where samples are drawn for the test, another number of them and another seed (`seeds`: that matters): the
 * test would see what was trained on. Returns 0, or an exit code after saying what was another one. */
int note_check_split(const char *path, const report *report, bool drawn, bool seeds);

/* The best epoch that the file of rank 0, of so many epochs, tells, on all ranks; one that tells nothing leaves the report as it is. */
clt_status note_recall_best(const char *path, int64_t epochs, const ranks *group, report *report);

/* Whether what was exported to the path is of report->best_epoch, as far as it tells. */
bool note_is_of_best(const char *path, const report *report);

#endif
