#include "balance.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/clock.h"
#include "tools/common/message.h"
#include "system.h"

/* The first steps with new shares compile what they need. */
enum { ROUNDS = 2, SETTLING_STEPS = 3, MEASURED_STEPS = 12 };

static void say(const int64_t *shares, int n) {
    char text[512] = "";
    for (int i = 0; i < n && strlen(text) + 32 < sizeof text; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", i ? ", " : "", (long long)shares[i]);
    message_line("Balanced: shares of %s samples.", text);
}

static clt_status new_shares(const ranks *group, double own_seconds, int64_t *shares, int64_t whole, double *speeds) {
    speeds[group->rank] = (double)shares[group->rank] / own_seconds;
    clt_status status = ranks_tell(group, speeds);
    if (status >= 0) share_out(whole, speeds, group->size, shares);
    return status;
}

static clt_status end_round(const ranks *group, double own_seconds, int64_t *shares, int64_t whole, bool *changed) {
    size_t n = (size_t)group->size;
    int64_t *before = malloc(n * sizeof *before);
    double *speeds = calloc(n, sizeof *speeds);
    clt_status status = CLT_E_NO_MEMORY;
    if (before && speeds) {
        memcpy(before, shares, n * sizeof *before);
        status = new_shares(group, own_seconds, shares, whole, speeds);
        *changed = memcmp(before, shares, n * sizeof *before) != 0;
    }
    if (status >= 0) say(shares, group->size);
    free(before);
    free(speeds);
    return status;
}

clt_status balance_step(balance *b, const ranks *group, int64_t *shares, int64_t whole, double waited, bool *changed) {
    const double least_seconds = 1e-6; /* a clock may stand still */
    *changed = false;
    if (b->rounds == ROUNDS) return CLT_OK;
    b->steps++;
    if (b->steps == SETTLING_STEPS) {
        b->begun = now_seconds();
        b->waited = waited;
    }
    if (b->steps < SETTLING_STEPS + MEASURED_STEPS) return CLT_OK;
    double seconds = now_seconds() - b->begun - (waited - b->waited);
    b->rounds++;
    b->steps = 0;
    return end_round(group, seconds > least_seconds ? seconds : least_seconds, shares, whole, changed);
}
