/*
 * A process that does nothing but end what a launcher that was killed leaves behind. It knows the process groups of the ranks, and
 * that the launcher is gone by the end of a pipe.
 */
#ifndef CLTRAIN_RUN_GUARD_H
#define CLTRAIN_RUN_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

/* False: it could not be started (errno). Before any thread is. */
bool guard_start(void);
pid_t guard_pid(void);
void guard_add(pid_t group);
void guard_remove(pid_t group);

#endif
