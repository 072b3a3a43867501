/*
 * Samples a second of an epoch. Steps are queued, so the watch may only be stopped
 * when the device has been waited for.
 */
#ifndef CLTRAIN_TRAIN_STOPWATCH_H
#define CLTRAIN_TRAIN_STOPWATCH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct stopwatch {
    bool running;
    double begun, seconds;
    int64_t samples;
} stopwatch;

void stopwatch_go(stopwatch *watch); /* no change if it is running */
void stopwatch_stop(stopwatch *watch);
/* NaN before there is anything to divide. */
double stopwatch_rate(const stopwatch *watch);

#endif
