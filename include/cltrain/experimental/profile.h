/*
 * Profiles: how long each op took on a device, and what it could have taken.
 *
 *     clt_profile_start(&profile, device);
 *     … some clt_trainer_step …
 *     clt_profile_stop(profile);
 *     const clt_profile_row *rows = clt_profile_rows(profile, &count);
 *     clt_profile_save_trace(profile, "steps.json");
 *     clt_profile_destroy(profile);
 *
 * Only launches between start and stop are timed, and only they pay for it. The first steps of a trainer
 * compile kernels: profile later ones.
 *
 * Experimental: what is declared here may change in any release.
 */
#ifndef CLTRAIN_PROFILE_H
#define CLTRAIN_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include <cltrain/device.h>
#include <cltrain/export.h>
#include <cltrain/status.h>

CLT_BEGIN_DECLS

/* Belongs to the device's thread. */
typedef struct clt_profile clt_profile;

/* Waits for the device and begins to time its launches. One profile at a time on a device (else
 * CLT_E_STATE). Errors: CLT_E_DEVICE, CLT_E_NO_MEMORY. */
CLT_API clt_status clt_profile_start(clt_profile **profile, clt_device *device);

/* Waits for the device, ends the timing and sums up; measures the device's peaks if they are not known
 * (clt_device_peaks). A second call does nothing. Errors: CLT_E_DEVICE, also where the driver's times cannot be (a launch that
 * ended before it began, all of them 0 s, or more than the clock has), CLT_E_DEVICE_LOST, CLT_E_NO_MEMORY. */
CLT_API clt_status clt_profile_stop(clt_profile *profile);

/* Stops it if need be. Before clt_device_close. NULL is fine. */
CLT_API void clt_profile_destroy(clt_profile *profile);

/* All launches of one op by one backend. */
typedef struct clt_profile_row {
    char op[64];      /* "conv2d", "relu", "adam"; "outside" for what serves no op, as setting the learning rate */
    char backend[32]; /* "native", "reference" */
    int64_t calls;    /* of the op */
    int64_t launches; /* of kernels */
    double seconds;   /* on the device */
    double flops;     /* arithmetic that the calls ask for; 0 where that is not known (ops of the user's) */
    double bytes;     /* least that they move: operands read once, results written once */
    double roofline_seconds; /* least they could take by the device's peaks; less than that: out of its caches */
    int bound_by_compute; /* which peak that is: 1 multiply-adds, 0 memory */
} clt_profile_row;

/* The rows, most seconds first; they are the profile's. None before the stop. */
CLT_API const clt_profile_row *clt_profile_rows(const clt_profile *profile, size_t *count);

typedef struct clt_profile_totals {
    int64_t runs;           /* of plans: training steps, evaluations, predictions */
    int64_t launches;
    double wall_seconds;    /* from start to stop */
    double device_seconds;  /* the launches together; the rest lies between launches: host, transfers, waiting */
    clt_peaks peaks;
} clt_profile_totals;
CLT_API clt_profile_totals clt_profile_get_totals(const clt_profile *profile);

/* Writes the launches as a Chrome trace (chrome://tracing, ui.perfetto.dev): an event each, with the node,
 * its shapes, the kernel and the backend as arguments. After the stop; CLT_E_STATE before, CLT_E_IO. */
CLT_API clt_status clt_profile_save_trace(const clt_profile *profile, const char *path);

CLT_END_DECLS

#endif
