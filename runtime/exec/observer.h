/*
 * Who is told of the launches of plans while they are enqueued: a profile (runtime/measure/profile.c).
 */
#ifndef CLT_EXEC_OBSERVER_H
#define CLT_EXEC_OBSERVER_H

#include "runtime/graph/graph.h"

/* Whose a launch is. `observer` and `item` are the observer's notes; zero at first. */
typedef struct clt_launch_origin {
    const clt_tensor *node;
    const char *row; /* static */
    uint64_t observer;
    int item;
} clt_launch_origin;

/* Set with clt_device_set_observer. Calls come from the device's thread. */
typedef struct clt_observer clt_observer;
struct clt_observer {
    void (*begin_run)(clt_observer *observer); /* of a plan: its launches follow */
    /* The next launch is this one's; `previous` is the run's launch before it or NULL. */
    clt_status (*launch)(clt_observer *observer, clt_launch_origin *origin, const clt_launch_origin *previous);
    void (*end_run)(clt_observer *observer);
};

#endif
