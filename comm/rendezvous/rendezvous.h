/*
 * Rendezvous: a small store of keys where the ranks of a job find each other and agree.
 *
 * Keys are written whole. Everything has a deadline (clt_seconds). The store is reached by who holds the job's token (tcp), may write
 * to the folder (file) or knows the password (redis); what is read from it is checked by who reads it.
 */
#ifndef CLT_COMM_RENDEZVOUS_H
#define CLT_COMM_RENDEZVOUS_H

#include "comm/secure/secure.h"
#include "runtime/base/base.h"

enum { CLT_RENDEZVOUS_VALUE_BYTES = 4096, CLT_RENDEZVOUS_KEY_BYTES = 200, CLT_RENDEZVOUS_RANKS = 4096 };

typedef struct clt_rendezvous clt_rendezvous;

/* url: see clt_comm_options. `serve`: this process serves the tcp store, on a thread of its own until closed; it listens at the url's
 * port of `network`, or, where that is NULL, at the url's own host. All keys are put below `job` (NULL: "default"): keys outlive a process
 * in files and in Redis, so a job that is started anew needs a name of its own there. `security` is borrowed, for tcp alone. */
typedef struct clt_rendezvous_options {
    const char *url, *job, *network;
    const clt_security *security;
    bool serve;
    double connect_seconds;
} clt_rendezvous_options;
clt_status clt_rendezvous_open(clt_rendezvous **rendezvous, const clt_rendezvous_options *options);
/* A server waits up to two seconds for clients that are still connected. NULL is fine. */
void clt_rendezvous_close(clt_rendezvous *rendezvous);
/* Where others reach it: the url, with the port in place of 0 if it is served here. */
const char *clt_rendezvous_url(const clt_rendezvous *rendezvous);

/* One thread at a time may use a rendezvous; one each for several. Operations that find the store gone try to reach it again until
 * their deadline, and then fail with CLT_E_NETWORK; CLT_E_DENIED is told at once. */

/* Replaces the value. */
clt_status clt_rendezvous_set(clt_rendezvous *rendezvous, const char *key, const void *value, size_t bytes, double deadline);
/* Sets the value if there is none, atomically; *stands (CLT_RENDEZVOUS_VALUE_BYTES; may be NULL) receives the one that stands
 * now, *stands_bytes its length: who reads their own value there was the first. */
clt_status clt_rendezvous_set_once(clt_rendezvous *rendezvous, const char *key, const void *value, size_t bytes, void *stands,
                                   size_t *stands_bytes, double deadline);
/* Waits for the key; value: CLT_RENDEZVOUS_VALUE_BYTES. CLT_E_TIMEOUT names it. */
clt_status clt_rendezvous_get(clt_rendezvous *rendezvous, const char *key, void *value, size_t *bytes, double deadline);
/* Looks for the key without waiting for it: CLT_END if there is none. */
clt_status clt_rendezvous_look(clt_rendezvous *rendezvous, const char *key, void *value, size_t *bytes, double deadline);
/* Removes a key; none is fine. */
clt_status clt_rendezvous_remove(clt_rendezvous *rendezvous, const char *key, double deadline);

/* ---- who belongs to a generation (membership.c) ---- */

/* What a rank knows of another. From CLT_SILENT on it takes it for lost. */
typedef enum clt_presence {
    CLT_PRESENT = 0,
    CLT_LEFT,   /* it said good-bye */
    CLT_SILENT, /* it says nothing, or others say that it is lost: this rank itself may be cut off */
    CLT_CLOSED  /* its connection was closed without a word: its process has ended */
} clt_presence;

typedef struct clt_membership {
    int64_t generation;
    int rank, size; /* in the group that ended */
    double grace_seconds, deadline;
    /* Called first, and every 50 ms or so while it lasts: ranks[size] receives what is known of each by now. An error ends the
     * agreement. unreachable: the store could not be reached for a while. */
    clt_status (*watch)(void *context, bool unreachable, clt_presence *ranks);
    void *context;
} clt_membership;

/* The survivors of a group agree on who is in the next generation. One of them, the first to say so in the store, waits until all others
 * that are not lost have come, or `grace_seconds` after which those not there are left out, and writes the list once and for all; if it is lost
 * before that, another does. Of two ranks that came and of which one took the other for lost when it did, the one with more such
 * quarrels is left out. Who dies after it came may be in the list: the group is formed in vain then, and who is in it agrees on another
 * generation. members[size]: old ranks in rising order. CLT_E_FENCED if this rank is not among them. */
clt_status clt_membership_agree(clt_rendezvous *rendezvous, const clt_membership *membership, int *members, int *n_members);

/* ---- what launchers tell (environment.c) ---- */

/* What the environment says of this process; strings live in the environment. */
typedef struct clt_launch_environment {
    const char *launcher;        /* "torchrun", "Open MPI", "PMI", "Slurm", "Kubernetes"; NULL: none */
    int rank, size, local_rank;  /* 0, 1, 0 without a launcher */
    char master[300];            /* HOST:PORT; "" if it is not told */
    char job[128];               /* a name that no other start of the job has; "" if it is not told */
    int64_t generation;          /* restarts so far */
} clt_launch_environment;
/* CLT_E_INVALID names the variable that is not a number, out of range, or missing beside the others. */
clt_status clt_launch_environment_read(clt_launch_environment *environment);
/* NULL: the variable is not set, or empty. */
const char *clt_environment_text(const char *variable);
/* A whole number from `low` (not below 0) to `high` in a variable; one that is not set, or empty, leaves *value. CLT_E_INVALID names it. */
clt_status clt_environment_number(const char *name, int64_t low, int64_t high, int64_t *value);

#endif
