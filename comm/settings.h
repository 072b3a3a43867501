/*
 * What a communicator is made with: its options, and the environment where they say nothing.
 */
#ifndef CLT_COMM_SETTINGS_H
#define CLT_COMM_SETTINGS_H

#include <cltrain/comm.h>

#include "runtime/base/base.h"

#define CLT_COMM_OWN_ENGINE "cltrain"

/* Strings are owned; NULL: not given. `towards`: HOST or HOST:PORT, which other ranks are near. */
typedef struct clt_comm_settings {
    int rank, size;
    int64_t generation;
    bool serve;       /* this rank serves the tcp store */
    bool rank_serves; /* rank 0 does */
    char *store, *towards, *token, *job, *network, *ports, *algorithms, *certificate, *key, *authority, *engine;
    clt_comm_security security;
    int channels;
    double connect_seconds, timeout_seconds, heartbeat_seconds;
} clt_comm_settings;

/* CLT_E_INVALID names the option or variable that makes no sense. NULL options: all from the environment. */
clt_status clt_comm_settings_resolve(clt_comm_settings *settings, const clt_comm_options *options);
void clt_comm_settings_free(clt_comm_settings *settings);

#endif
