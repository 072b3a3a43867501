#include "stopwatch.h"

#include <math.h>

#include "system.h"

#include "tools/common/clock.h"

void stopwatch_go(stopwatch *watch) {
    if (watch->running) return;
    watch->running = true;
    watch->begun = now_seconds();
}

void stopwatch_stop(stopwatch *watch) {
    if (!watch->running) return;
    watch->running = false;
    watch->seconds += now_seconds() - watch->begun;
}

double stopwatch_rate(const stopwatch *watch) {
    double seconds = watch->seconds + (watch->running ? now_seconds() - watch->begun : 0);
    return watch->samples > 0 && seconds > 0 ? (double)watch->samples / seconds : NAN;
}
