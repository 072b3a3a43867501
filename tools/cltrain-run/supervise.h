/* One start of the ranks, from the first process to the last. */
#ifndef CLTRAIN_RUN_SUPERVISE_H
#define CLTRAIN_RUN_SUPERVISE_H

#include "agree.h"

/* Returns 0 or an exit code. */
int supervise_prepare(void);

/* Starts the ranks and sees them through; meanwhile signals are for them. END_FAILED: they may be started again. */
end_of_start supervise(const job *j);

#endif
