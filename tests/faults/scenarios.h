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
    bool apart; /* most of it asks nothing of the device: of one that is lost, too, it may tell what it did before */
    bool dear;  /* many kernels are compiled for it: not among those of which a few points are tried */
    bool tries; /* on a device that is opened for that: where it is lost, a candidate is, and nothing of the caller's */
    bool slow;  /* a run takes seconds: of its N only some are tried */
    /* Calls depend on the clock: their number, and which is the Nth. */
    bool timed;
    clt_status (*run)(clt_device *device, digest *d);
} scenario;

/* Those of the other files. */
clt_status run_ranks(clt_device *device, digest *d);
clt_status run_recover(clt_device *device, digest *d);
clt_status run_network(clt_device *device, digest *d);
clt_status run_shard(clt_device *device, digest *d);
clt_status run_shard_gradients(clt_device *device, digest *d);
clt_status run_shard_parameters(clt_device *device, digest *d);
clt_status run_f16(clt_device *device, digest *d);
clt_status run_bf16(clt_device *device, digest *d);
clt_status run_int8(clt_device *device, digest *d);
clt_status run_onebit(clt_device *device, digest *d);
clt_status run_topk(clt_device *device, digest *d);
clt_status run_powersgd(clt_device *device, digest *d);
clt_status run_self(clt_device *device, digest *d);
clt_status run_collectives(clt_device *device, digest *d);
clt_status run_wire(clt_device *device, digest *d);
clt_status run_store(clt_device *device, digest *d);
clt_status run_ops(clt_device *device, digest *d);
clt_status run_rows(clt_device *device, digest *d);
clt_status run_data(clt_device *device, digest *d);
clt_status run_readers(clt_device *device, digest *d);

extern const scenario scenarios[];
extern const size_t n_scenarios;

/* A folder for what scenarios write; set before the first. */
extern const char *scenario_folder;

#endif
