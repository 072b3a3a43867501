/*
 * The engine of groups whose bytes a mover moves.
 */
#ifndef CLT_COMM_MOVER_ENGINE_H
#define CLT_COMM_MOVER_ENGINE_H

#include <cltrain/comm.h>

#include "comm/mover/mover.h"

/* Joins all ranks that the mover has. timeout_seconds: of an operation. The options' most_ranks is filled in. */
clt_status clt_mover_create(clt_comm **comm, const clt_mover *mover, const clt_mover_options *options, int64_t generation, double timeout_seconds);

#endif
