#include "stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"

/* Of a rank. */
typedef struct facts {
    char device[256], driver[128];
    clt_peaks peaks; /* zeros: they cannot be measured */
} facts;

static bool all_alike(const facts *all, int n) {
    bool alike = true;
    for (int i = 1; i < n; i++) alike &= !strcmp(all[i].device, all[0].device) && !strcmp(all[i].driver, all[0].driver);
    return alike;
}

static clt_status gather_peaks(const ranks *group, clt_device *device, facts *all) {
    if (clt_device_peaks(device, &all[group->rank].peaks) < 0) {
        warning("the device cannot be measured, and counts as one like the others: %s", clt_error_detail());
        all[group->rank].peaks = (clt_peaks){0};
    }
    return ranks_gather(group, all, sizeof *all);
}

static clt_peaks *take_peaks(const facts *all, int n) {
    clt_peaks *peaks = calloc((size_t)n, sizeof *peaks);
    for (int i = 0; peaks && i < n; i++) {
        peaks[i] = all[i].peaks;
        if (peaks[i].fma_flops > 0 && peaks[i].copy_bytes > 0) continue;
        free(peaks);
        return NULL;
    }
    return peaks;
}

clt_status stages_measure(const ranks *group, clt_device *device, clt_peaks **peaks) {
    facts *all = calloc((size_t)group->size, sizeof *all);
    *peaks = NULL;
    if (!all) return CLT_E_NO_MEMORY;
    const clt_device_info *info = clt_device_get_info(device);
    facts *own = &all[group->rank];
    snprintf(own->device, sizeof own->device, "%.*s", (int)sizeof own->device - 1, info->name);
    snprintf(own->driver, sizeof own->driver, "%.*s", (int)sizeof own->driver - 1, info->driver);
    clt_status status = ranks_gather(group, all, sizeof *all);
    bool alike = status < 0 || all_alike(all, group->size);
    if (!alike) status = gather_peaks(group, device, all);
    if (!alike && status >= 0) *peaks = take_peaks(all, group->size);
    free(all);
    return status;
}
