#include "backends/reference/reference.h"

bool clt_reference_may_loop(const clt_candidate *c, int64_t rounds) {
    enum {
        SHORT = 60000, /* any driver makes so many: see cl/prelude.cl */
        MOST = 1 << 20 /* a longer sum in one float loses too many digits */
    };
    return rounds <= SHORT || (rounds <= MOST && clt_device_has(c->device, CLT_CAP_LONG_LOOPS));
}
