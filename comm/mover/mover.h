/*
 * What a library that clusters have already, such as MPI, gives: it moves bytes between ranks, and the engine above it (engine.c) does the rest. A plugin
 * that is loaded at run time has one, so these are plain C types, and nothing of the library itself is seen here.
 */
#ifndef CLT_COMM_MOVER_MOVER_H
#define CLT_COMM_MOVER_MOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Something that was begun: to be tested until it is done. */
typedef struct clt_request {
    uint64_t word;
} clt_request;

/* Messages of different lanes never meet. */
typedef enum clt_lane { CLT_LANE_HEAD, CLT_LANE_BODY, CLT_LANE_NEWS, CLT_LANES } clt_lane;

typedef struct clt_mover_options {
    int most_ranks; /* more are refused */
    /* For those that are not told by a launcher of their own: the rank, and where all find each other. */
    int rank, size;
    const char *host; /* this rank's address, to listen at */
    double connect_seconds;
    void *store;
    /* Each returns 0, or the caller knows why not. get waits for the key; *bytes: of room, then of the value. */
    int (*set)(void *store, const char *key, const void *value, size_t bytes);
    int (*get)(void *store, const char *key, void *value, size_t *bytes);
} clt_mover_options;

/* Each returns 0, or else words() says what went wrong. One thread at a time calls them. What is begun reads or writes its memory until it is done, which
 * after an error of the group may be never. Sizes are bytes; arrays
 * of them have an element a rank, and are read by the call alone. */
typedef struct clt_mover {
    int abi;          /* CLT_MOVER_ABI */
    const char *name; /* "mpi", "gloo" */
    bool names_lost;  /* listening to a rank that died fails, and others go on */
    /* All ranks of the job: *rank of *size. */
    int (*open)(void **group, const clt_mover_options *options, int *rank, int *size);
    /* orderly: all that was begun is done. */
    void (*close)(void *group, bool orderly);
    /* The largest of each of n values, in their place. */
    int (*largest)(void *group, int64_t *values, int n, clt_request *request);
    /* To each rank its part of `out`, one behind the other; from each rank one of `in`. */
    int (*exchange)(void *group, const void *out, const int *out_bytes, void *in, const int *in_bytes, clt_request *request);
    /* Of each rank its part, where `all` has the own already. */
    int (*gather)(void *group, void *all, const int *bytes, clt_request *request);
    int (*broadcast)(void *group, void *data, int bytes, int root, clt_request *request);
    /* Those with the same peer, lane and tag arrive in order. */
    int (*message)(void *group, bool sends, clt_lane lane, void *data, int bytes, int peer, uint32_t tag, clt_request *request);
    int (*test)(clt_request *request, bool *done);
    /* Until it is over, or so long; test then tells. NULL: nothing moves but by test. */
    void (*wait)(const clt_request *request, int microseconds);
    bool (*cancel)(clt_request *request); /* true: it is done or was taken back, and its memory is free */
    const char *(*words)(void);
} clt_mover;

enum { CLT_MOVER_ABI = 2 };
/* What a plugin exports. */
#define CLT_MOVER_SYMBOL "clt_mover_plugin"
typedef const clt_mover *clt_mover_plugin_function(void);

#ifdef __cplusplus
}
#endif

#endif
