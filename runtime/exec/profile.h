/*
 * What plans tell a profile. It is asked for with clt_device_profile(), and NULL but while someone
 * profiles.
 */
#ifndef CLT_EXEC_PROFILE_H
#define CLT_EXEC_PROFILE_H

#include <cltrain/profile.h>

#include "runtime/graph/graph.h"

/* Whose a launch is. `profile` and `item` are the profile's notes; zero at first. */
typedef struct clt_launch_origin {
    const clt_tensor *node;
    const char *row; /* static */
    uint64_t profile;
    int item;
} clt_launch_origin;

/* A run of a plan begins: its launches follow. NULL is fine in all of these. */
void clt_profile_begin_run(clt_profile *profile);
/* The next launch is this one's; `previous` is the run's launch before it or NULL. */
clt_status clt_profile_next(clt_profile *profile, clt_launch_origin *origin, const clt_launch_origin *previous);
void clt_profile_end_run(clt_profile *profile);

#endif
