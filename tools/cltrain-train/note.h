/*
 * What the files of a run tell of it besides the training: how the data were split, the best test of --patience so far, and what was counted.
 */
#ifndef TRAIN_NOTE_H
#define TRAIN_NOTE_H

#include <cltrain/cltrain.h>

#include "ranks.h"
#include "report.h"

/* What a run has counted, which goes on with it. */
typedef struct note_counts {
    clt_metrics epoch;       /* of the steps of the epoch that has begun, as read; no samples: it has none */
    int64_t skipped, broken; /* steps and samples */
    char best[128];          /* the best test that a run without --patience found in its file, as JSON; "": none */
} note_counts;

/* Files that the trainer writes from now on tell of the split, of report->best_epoch and its loss, and of what was counted; NULL: not of that. */
clt_status note_keep(clt_trainer *trainer, const report *report, const note_counts *counts);

/* Another split holds out other samples, and so do, where samples are drawn for the test, another number of them and another seed (`seeds`: that matters): the
 * test would see what was trained on. Returns 0, or an exit code after saying what was another one. */
int note_check_split(const char *path, const report *report, bool drawn, bool seeds);

/* On all ranks: the best epoch that the file of rank 0, of so many epochs, tells, where there is --patience, and what was counted. A file that tells nothing leaves
 * both as they are. */
clt_status note_recall(const char *path, int64_t epochs, const ranks *group, report *report, note_counts *counts);

/* Whether what was exported to the path is of report->best_epoch, as far as it tells. */
bool note_is_of_best(const char *path, const report *report);

#endif
