/*
 * Communication between the processes (ranks) of a job, over TCP; or between threads of one process (clt_comm_create_local).
 *
 * Who holds the job's token is a rank of it; every connection is authenticated, and encrypted unless the job
 * says otherwise. Every wait has a deadline. A rank that dies, hangs or is cut off ends the operations of all
 * others with CLT_E_PEER, whose detail names it.
 *
 * Collectives are called by all ranks in the same order with the same sizes and types (a rank that differs is
 * told so: CLT_E_MISMATCH). Their results are the same bits on every rank and in every run with the same
 * number of ranks. Data are host memory.
 *
 * Threads: any thread may call any function of a communicator; operations are done one after the other, in the
 * order in which they were started.
 */
#ifndef CLTRAIN_COMM_H
#define CLTRAIN_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cltrain/export.h>
#include <cltrain/status.h>
#include <cltrain/tensor.h>

CLT_BEGIN_DECLS

typedef struct clt_comm clt_comm;

typedef enum clt_comm_security {
    CLT_SECURITY_DEFAULT = 0, /* CLTRAIN_COMM_SECURITY in the environment, else TLS */
    CLT_SECURITY_TLS,         /* TLS 1.3: authenticated and encrypted */
    CLT_SECURITY_AUTH,        /* authenticated when connections are made; data in the clear */
    CLT_SECURITY_NONE         /* whoever can connect can take part: for networks that are closed, and for measuring */
} clt_comm_security;

/* Zero means the default in every field. What is not given is taken from the environment: variables of
 * cltrain-run and torchrun (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), Open MPI, MPICH/PMI, Slurm,
 * Kubernetes' indexed jobs. Without any of them the job has one rank. */
typedef struct clt_comm_options {
    int rank, size;         /* size 0: from the environment, both */
    const char *store;      /* where ranks find each other: "tcp://HOST:PORT" (served by rank 0, unless cltrain-run does:
                               it sets CLTRAIN_COMM_STORE_SERVED=1),
                               "file:///FOLDER", "redis://[USER:PASSWORD@]HOST[:PORT][/DB]"; CLTRAIN_COMM_STORE, else tcp
                               at the master's address */
    const char *token;      /* the job's secret, of 16 characters at least; CLTRAIN_COMM_TOKEN, or the file named by
                               CLTRAIN_COMM_TOKEN_FILE. Needed unless security is none or certificates are given */
    const char *job;        /* name of the job, for stores that several share; CLTRAIN_COMM_JOB */
    const char *network;    /* the interface to be reached on, by name or address; CLTRAIN_COMM_INTERFACE; default: the one
                               that routes to the master */
    const char *ports;      /* "29600" or "29600-29699" to listen on; CLTRAIN_COMM_PORTS; default: any */
    clt_comm_security security;
    const char *certificate, *key, *authority; /* PEM files: TLS with certificates in the token's place;
                                                  CLTRAIN_COMM_CERTIFICATE, _KEY, _AUTHORITY */
    int channels;           /* connections a pair for large messages; CLTRAIN_COMM_CHANNELS; default 1 */
    const char *algorithms; /* algorithms to choose from, or with "-" before the name not to: CLTRAIN_COMM_ALGORITHMS */
    double connect_seconds;   /* to find and connect all ranks; CLTRAIN_COMM_CONNECT_SECONDS; default 120 */
    double timeout_seconds;   /* for an operation, from its turn on; CLTRAIN_COMM_TIMEOUT_SECONDS; default 300 */
    double heartbeat_seconds; /* a rank silent for so long is lost; CLTRAIN_COMM_HEARTBEAT_SECONDS; default 5, at least 0.2. Of the own engine: over MPI
                                 and Gloo a rank that hangs is found by the timeout */
    int64_t generation;     /* of the group: 0, or what the launcher counts; CLTRAIN_COMM_GENERATION */
    const char *engine;     /* what carries the job: "cltrain", the library's own; "mpi", under mpirun or srun, which tell rank and size: MPI moves the bytes,
                               in the clear, and store, token, certificates and what else is the own engine's are refused; "gloo": ranks find each other by the
                               store, and Gloo moves the bytes over connections of its own, in the clear, so that security has to be none; "auto", the
                               default: mpi where such a launcher tells the ranks and nothing of the own engine's is given, else cltrain. CLTRAIN_COMM_ENGINE */
} clt_comm_options;

/* Joins the job and returns when all ranks are connected. NULL options: all from the environment. Errors:
 * CLT_E_INVALID names the option or variable; CLT_E_NETWORK the address; CLT_E_TIMEOUT the ranks that did not come;
 * CLT_E_PEER one of which the launcher says that it has ended. */
CLT_API clt_status clt_comm_create(clt_comm **comm, const clt_comm_options *options);

/* A group of ranks in this process, 1 to 64 of them, such as a thread for each of several devices: comms[0] to comms[n - 1], each to be used as a rank
 * of a job is, and destroyed by itself. Memory is shared, and no port is opened. timeout_seconds as in the options; 0: 300. On an error all are NULL. */
CLT_API clt_status clt_comm_create_local(clt_comm **comms, int n, double timeout_seconds);

/* A job of one rank, whose collectives copy. */
CLT_API clt_status clt_comm_create_self(clt_comm **comm);

/* Says good-bye: others are not told of a failure. Operations under way end with CLT_E_ABORTED. NULL is fine. */
CLT_API void clt_comm_destroy(clt_comm *comm);

/* Called by all ranks of a group: those with the same color, a number from 0 on, become a group of their own, in the old order; -1: none, and *part is NULL. Its messages and
 * collectives go over the connections of the whole, by whatever engine, in algorithms of its own; both groups may be used at once. The whole can be split 256 times; from then on its
 * own messages have tags below 2^30, and those of a part below 2^21. What ends one of them ends all. A part has to be destroyed first, when all that was started in it has ended.
 * CLT_E_INVALID; CLT_E_UNSUPPORTED: it is a part itself, or was split too often; errors of a collective. */
CLT_API clt_status clt_comm_split(clt_comm *comm, int color, clt_comm **part);

/* NULL stands for a process without a group, in these as in what is asked of wires below: rank 0 of 1, generation 0. */
CLT_API int clt_comm_rank(const clt_comm *comm);
CLT_API int clt_comm_size(const clt_comm *comm);
/* What carries the job: "cltrain", "gloo", "mpi", "local", "part" of another group, or "self", a group of one. Static storage. */
CLT_API const char *clt_comm_engine(const clt_comm *comm);
/* What the group can do because of that: the sum of those below. */
typedef enum clt_comm_ability {
    CLT_CAN_ENCRYPT = 1,   /* what ranks send can be encrypted: options.security */
    CLT_CAN_NAME_LOST = 2, /* the error of a rank that died names it, as clt_comm_is_lost does */
    CLT_CAN_SHRINK = 4     /* clt_comm_shrink */
} clt_comm_ability;
CLT_API unsigned clt_comm_abilities(const clt_comm *comm);
/* No two groups of a job have the same: CLT_COMM_GENERATIONS times what the launcher counts, and one more for each round of a shrink. */
enum { CLT_COMM_GENERATIONS = 1000 };
CLT_API int64_t clt_comm_generation(const clt_comm *comm);

/* ---- operations -------------------------------------------------------------
 *
 * Each has a last argument `work`: NULL waits for the end; else the operation is started, and *work is to be given
 * to clt_work_wait, after which it is gone. The data belong to the operation until then.
 */

typedef struct clt_work clt_work;

typedef enum clt_reduction { CLT_REDUCE_SUM = 0, CLT_REDUCE_MAX, CLT_REDUCE_MIN } clt_reduction;

/* data: `count` elements, replaced by the reduction over all ranks. Sums of f16 and bf16 are made in f32 and rounded once;
 * u8 wraps around. */
CLT_API clt_status clt_comm_all_reduce(clt_comm *comm, void *data, size_t count, clt_dtype dtype, clt_reduction reduction,
                                       clt_work **work);

/* data: the ranks' parts one after the other, counts[r] elements each. On return the own part holds the reduction; the
 * others' are undefined. counts: one a rank, equal on all. */
CLT_API clt_status clt_comm_reduce_scatter(clt_comm *comm, void *data, const size_t *counts, clt_dtype dtype,
                                           clt_reduction reduction, clt_work **work);

/* data: as above; the own part is given, the others' are filled in. */
CLT_API clt_status clt_comm_all_gather(clt_comm *comm, void *data, const size_t *counts, clt_dtype dtype, clt_work **work);

/* data: given on rank `root`, filled in on the others. */
CLT_API clt_status clt_comm_broadcast(clt_comm *comm, void *data, size_t count, clt_dtype dtype, int root, clt_work **work);

/* From one rank to another. Messages between two ranks with the same tag arrive in order; sizes must agree. Any number may be under
 * way; each tag that was ever used with a rank keeps some 50 bytes until the communicator is destroyed. */
CLT_API clt_status clt_comm_send(clt_comm *comm, const void *data, size_t count, clt_dtype dtype, int to, uint32_t tag,
                                 clt_work **work);
CLT_API clt_status clt_comm_receive(clt_comm *comm, void *data, size_t count, clt_dtype dtype, int from, uint32_t tag,
                                    clt_work **work);

/* Returns when all ranks have called it. */
CLT_API clt_status clt_comm_barrier(clt_comm *comm, clt_work **work);

/* Waits for an operation's end and returns its result. The operation is gone then, whatever that is. An operation that
 * is not done within the communicator's timeout ends with CLT_E_TIMEOUT; the communicator cannot be used after that. */
CLT_API clt_status clt_work_wait(clt_work *work);
/* Whether it has ended: clt_work_wait will not block. */
CLT_API bool clt_work_done(const clt_work *work);

/* ---- faults -----------------------------------------------------------------
 *
 * The first error of an operation that concerns others ends the group: all operations, started or to come, end with it on
 * every rank that can be reached, within the heartbeat's limit on the others. What is left is to destroy the communicator,
 * or to go on with those who are left.
 */

/* Ends the group on all ranks: operations under way and to come end with CLT_E_ABORTED and the reason. Any thread. */
CLT_API void clt_comm_abort(clt_comm *comm, const char *reason);

/* The same because this rank has failed: for the others, and for its own operations, the end is what such an error in an operation is.
 * They get CLT_E_PEER (CLT_E_MISMATCH if that is `status`), with the rank and the reason; its own end with `status`. */
CLT_API void clt_comm_fail(clt_comm *comm, clt_status status, const char *reason);

/* CLT_OK while the group stands; else what ended it, with clt_error_detail(). */
CLT_API clt_status clt_comm_state(const clt_comm *comm);

/* Whether a rank of the group is known to be lost. */
CLT_API bool clt_comm_is_lost(const clt_comm *comm, int rank);

/* Called by all survivors of a group that ended (or by all of one that stands, to leave the lost out): a new group of
 * those who call within the connect time, in the old order, with a higher generation. One survivor, chosen through the
 * store, says who belongs to it; who comes later, or was cut off, gets CLT_E_FENCED, and cannot join by itself. Who dies meanwhile is seen
 * as in an operation, and left out in a further round; or the new group ends at its first operation, and this is called again, with it.
 * The store must outlive the dead: CLT_E_NETWORK says so at once if it was tcp:// and served by rank 0, which is lost. The old
 * communicator is still to be destroyed. */
CLT_API clt_status clt_comm_shrink(clt_comm *comm, clt_comm **survivors);

/* ---- what went over the wire ---- */

typedef struct clt_comm_stats {
    uint64_t bytes_sent, bytes_received; /* of payload, by this rank, since the communicator was made */
    uint64_t operations;
    double busy_seconds;                 /* in which an operation was under way */
} clt_comm_stats;
CLT_API clt_comm_stats clt_comm_get_stats(const clt_comm *comm);

/* What an all-reduce of so many bytes would use: "ring", "halving_doubling", "hierarchy" (from the first collective on, by which ranks learn who
 * shares a host), "gloo_ring" …, "none" without a group; static storage. */
CLT_API const char *clt_comm_algorithm(const clt_comm *comm, size_t bytes);

/* ---- for launchers ----------------------------------------------------------
 *
 * The store where ranks find each other, held by what starts them: so no rank's death takes it away, and launchers
 * of several hosts agree through it. Values are text. One thread at a time may use a store.
 */

typedef struct clt_store clt_store;

enum { CLT_STORE_TEXT_BYTES = 4096 }; /* with the NUL */

/* Of the options: store, token, job, network, security, certificate, key, authority and connect_seconds, as they are: nothing is taken
 * from the environment. serve: a tcp store is served from here until it is closed, at the port of the store's url (0: any) of
 * `network`, or of the url's host. */
CLT_API clt_status clt_store_open(clt_store **store, const clt_comm_options *options, bool serve);
/* What is served waits up to two seconds until nobody is connected. NULL is fine. */
CLT_API void clt_store_close(clt_store *store);
/* For the ranks: as it was given, with the port in place of 0. NULL for NULL. */
CLT_API const char *clt_store_url(const clt_store *store);

/* A rank that ends before all have met is waited for, unless who started it writes "RANK STATUS" to the key "lost/GENERATION" of the ranks'
 * job (the generation as clt_comm_generation has it): clt_comm_create of the others then ends with CLT_E_PEER within a second or so. */
CLT_API clt_status clt_store_set(clt_store *store, const char *key, const char *value, double seconds);
/* Sets what is not set yet; *stands: the value that stands, of whoever was first. */
CLT_API clt_status clt_store_set_once(clt_store *store, const char *key, const char *value, char stands[CLT_STORE_TEXT_BYTES],
                                      double seconds);
/* Waits for the key; 0 seconds: looks once. CLT_E_TIMEOUT: it is not there. CLT_E_NETWORK: the store cannot be reached. */
CLT_API clt_status clt_store_get(clt_store *store, const char *key, char value[CLT_STORE_TEXT_BYTES], double seconds);

CLT_END_DECLS

#endif
