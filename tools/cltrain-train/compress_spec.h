/*
 * --compress METHOD[,key=value...].
 */
#ifndef CLTRAIN_TRAIN_COMPRESS_SPEC_H
#define CLTRAIN_TRAIN_COMPRESS_SPEC_H

#include <cltrain/train.h>

/* Returns 0, or EXIT_USAGE after saying what was expected. */
int compress_spec_parse(clt_compress_options *options, const char *text);

#endif
