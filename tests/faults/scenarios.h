/*
 * What users of the library do, from beginning to end, as functions that give an error back like them: each frees all it
 * made, whatever failed.
 */
#ifndef CLT_TESTS_FAULTS_SCENARIOS_H
#define CLT_TESTS_FAULTS_SCENARIOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cltrain/cltrain.h>

/* The bits of all that came out. */
typedef struct digest {
    uint64_t hash;
    char words[200]; /* a part of it that can be read */
} digest;

typedef struct scenario {
    const char *name;
    bool opens; /* devices of its own: `device` is NULL */
    bool cold;  /* its programs are not in the cache, but built */
    bool mute;  /* gives no error back: what came out under a fault may differ, but not afterwards */
    bool slow;  /* a run takes seconds: of its N only some are tried */
    /* Calls depend on the clock: their number, and which is the Nth. */
    bool timed;
    clt_status (*run)(clt_device *device, digest *d);
} scenario;

extern const scenario scenarios[];
extern const size_t n_scenarios;

/* A folder for what scenarios write; set before the first. */
extern const char *scenario_folder;

#endif
