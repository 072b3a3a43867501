/*
 * Devices of a pipeline's stages.
 */
#ifndef CLTRAIN_TRAIN_STAGES_H
#define CLTRAIN_TRAIN_STAGES_H

#include <cltrain/cltrain.h>

#include "ranks.h"

/* What the devices of all ranks can do, measured or as it is known, if they are not all alike; *peaks is to be freed, and NULL where they are, or where one
 * cannot be measured, which is told. Called by all ranks. */
clt_status stages_measure(const ranks *group, clt_device *device, clt_peaks **peaks);

#endif
