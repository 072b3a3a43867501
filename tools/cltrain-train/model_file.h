/*
 * What the file of a model tells of its use: the data that it was trained on.
 */
#ifndef CLTRAIN_TRAIN_MODEL_FILE_H
#define CLTRAIN_TRAIN_MODEL_FILE_H

#include <cltrain/preprocessing.h>

#include "options.h"
#include "ranks.h"

/* The checkpoint that the run goes on from, which rank 0 knows: after a restart by the launcher its own, if it came to write one, for
 * an older one is another run's; else that of --resume. *path is NULL: it begins anew. */
clt_status model_file_find(const options *given, const ranks *group, const char **path);

/* What the data were that it was trained on, as rank 0 reads it; NULL: there is no file that tells. Returns 0,
 * RANKS_MEET_ANEW, or EXIT_FAILED after saying why. */
int model_file_read(clt_preprocessing **preprocessing, const options *given, ranks *group);

#endif
