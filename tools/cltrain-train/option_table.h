/*
 * The options of cltrain-train.
 */
#ifndef CLTRAIN_TRAIN_OPTION_TABLE_H
#define CLTRAIN_TRAIN_OPTION_TABLE_H

#include "tools/common/option_parser.h"

extern const option_row option_rows[];
extern const int option_row_count;

/* Of choices. */
extern const char *const broken_names[];

#endif
