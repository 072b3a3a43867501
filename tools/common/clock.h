/*
 * The time, for how long things take.
 */
#ifndef CLTRAIN_TOOLS_CLOCK_H
#define CLTRAIN_TOOLS_CLOCK_H

#include <time.h>

/* Seconds since some moment, which no one sets back. */
static inline double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
