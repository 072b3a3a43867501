#include <cltrain/version.h>

const char *clt_version(void) {
    return CLT_VERSION;
}
