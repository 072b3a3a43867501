/*
 * The mover of MPI (3.1 and later): a plugin that is built for one MPI library, since their binary interfaces differ.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/mover/mover.h"

typedef struct group {
    MPI_Comm lanes[CLT_LANES], all;
    int rank, size;
} group;

/* A request and what has to live until it is done. */
typedef struct pending {
    MPI_Request request;
    bool collective;
    int *arrays;
} pending;

static char text[MPI_MAX_ERROR_STRING + 64];
static bool began; /* MPI is this plugin's to end */
static bool stuck; /* and may not be ended: something is under way for ever */

static int note(int error, const char *call) {
    int length = 0;
    char why[MPI_MAX_ERROR_STRING] = "";
    if (error == MPI_SUCCESS) return 0;
    MPI_Error_string(error, why, &length);
    snprintf(text, sizeof text, "%s: %s", call, why);
    return 1;
}
#define TRY(call)                                \
    do {                                         \
        int error_ = (call);                     \
        if (error_) return note(error_, #call);  \
    } while (0)

static const char *words(void) {
    return text;
}

static void end_mpi(void) {
    int over = 0;
    MPI_Finalized(&over);
    if (began && !stuck && !over) MPI_Finalize();
}

static int begin_mpi(void) {
    int initialized = 0, level = MPI_THREAD_SINGLE;
    TRY(MPI_Initialized(&initialized));
    if (!initialized) {
        TRY(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level));
        began = true;
        atexit(end_mpi);
    } else TRY(MPI_Query_thread(&level));
    if (level >= MPI_THREAD_SERIALIZED) return 0;
    snprintf(text, sizeof text, "the program has initialized MPI for one thread alone: MPI_THREAD_SERIALIZED is needed");
    return 1;
}

static int make_lanes(group *g) {
    MPI_Comm *const made[] = {&g->all, &g->lanes[CLT_LANE_HEAD], &g->lanes[CLT_LANE_BODY], &g->lanes[CLT_LANE_NEWS]};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        TRY(MPI_Comm_dup(MPI_COMM_WORLD, made[i]));
        TRY(MPI_Comm_set_errhandler(*made[i], MPI_ERRORS_RETURN));
    }
    return 0;
}

static int open_group(void **out, const clt_mover_options *options, int *rank, int *size) {
    if (begin_mpi()) return 1;
    TRY(MPI_Comm_rank(MPI_COMM_WORLD, rank));
    TRY(MPI_Comm_size(MPI_COMM_WORLD, size));
    if (*size > options->most_ranks) {
        snprintf(text, sizeof text, "%d ranks; there may be %d", *size, options->most_ranks);
        return 1;
    }
    group *g = calloc(1, sizeof *g);
    if (!g) return snprintf(text, sizeof text, "no memory"), 1;
    g->rank = *rank;
    g->size = *size;
    if (make_lanes(g)) {
        free(g);
        return 1;
    }
    *out = g;
    return 0;
}

/* Communicators stay: what a rank said at the end may arrive when this one has closed. A later communicator with the number of a freed one would take
 * that for its own first message, and its real first one would then be lost (Open MPI numbers the messages of a communicator). */
static void close_group(void *state, bool orderly) {
    stuck |= !orderly;
    if (orderly) free(state);
}

static pending *new_pending(clt_request *request, bool collective, size_t integers) {
    pending *p = calloc(1, sizeof *p);
    if (p) p->collective = collective;
    if (p && !(p->arrays = calloc(integers + 1, sizeof *p->arrays))) free(p), p = NULL;
    if (!p) snprintf(text, sizeof text, "no memory");
    request->word = (uint64_t)(uintptr_t)p;
    return p;
}

/* What could not be begun has no request. */
static int begun(int error, const char *call, clt_request *request, pending *p) {
    if (error == MPI_SUCCESS) return 0;
    free(p->arrays);
    free(p);
    request->word = 0;
    return note(error, call);
}

/* Requests are waited for in test(), later. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */
static int largest(void *state, int64_t *values, int n, clt_request *request) {
    const group *g = state;
    pending *p = new_pending(request, true, 0);
    return !p || begun(MPI_Iallreduce(MPI_IN_PLACE, values, n, MPI_INT64_T, MPI_MAX, g->all, &p->request), "MPI_Iallreduce", request, p);
}

/* Places of parts, one behind the other. */
static void place(const int *bytes, int n, int *own_bytes, int *places) {
    int at = 0;
    for (int r = 0; r < n; at += bytes[r++]) own_bytes[r] = bytes[r], places[r] = at;
}

static int exchange(void *state, const void *out, const int *out_bytes, void *in, const int *in_bytes, clt_request *request) {
    const group *g = state;
    int n = g->size;
    pending *p = new_pending(request, true, 4 * (size_t)n);
    if (!p) return 1;
    place(out_bytes, n, p->arrays, p->arrays + n);
    place(in_bytes, n, p->arrays + 2 * n, p->arrays + 3 * n);
    return begun(MPI_Ialltoallv(out, p->arrays, p->arrays + n, MPI_BYTE, in, p->arrays + 2 * n, p->arrays + 3 * n, MPI_BYTE, g->all, &p->request), "MPI_Ialltoallv",
                 request, p);
}

static int gather(void *state, void *all, const int *bytes, clt_request *request) {
    const group *g = state;
    int n = g->size;
    pending *p = new_pending(request, true, 2 * (size_t)n);
    if (!p) return 1;
    place(bytes, n, p->arrays, p->arrays + n);
    return begun(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, all, p->arrays, p->arrays + n, MPI_BYTE, g->all, &p->request), "MPI_Iallgatherv", request, p);
}

static int broadcast(void *state, void *data, int bytes, int root, clt_request *request) {
    const group *g = state;
    pending *p = new_pending(request, true, 0);
    return !p || begun(MPI_Ibcast(data, bytes, MPI_BYTE, root, g->all, &p->request), "MPI_Ibcast", request, p);
}

/* The standard promises tags up to 32767; Open MPI has 31 bits. */
static int check_tag(const group *g, uint32_t tag) {
    int *most, found = 0;
    TRY(MPI_Comm_get_attr(g->lanes[0], MPI_TAG_UB, &most, &found));
    if (found && tag <= (uint32_t)*most) return 0;
    snprintf(text, sizeof text, "tag %lu is above %d, the largest of this MPI library", (unsigned long)tag, found ? *most : 32767);
    return 1;
}

static int message(void *state, bool sends, clt_lane lane, void *data, int bytes, int peer, uint32_t tag, clt_request *request) {
    const group *g = state;
    pending *p;
    request->word = 0;
    if (check_tag(g, tag) || !(p = new_pending(request, false, 0))) return 1;
    int error = sends ? MPI_Isend(data, bytes, MPI_BYTE, peer, (int)tag, g->lanes[lane], &p->request)
                      : MPI_Irecv(data, bytes, MPI_BYTE, peer, (int)tag, g->lanes[lane], &p->request);
    return begun(error, sends ? "MPI_Isend" : "MPI_Irecv", request, p);
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

static int test(clt_request *request, bool *done) {
    pending *p = (pending *)(uintptr_t)request->word;
    int is = 0;
    if (!p) return *done = true, 0;
    TRY(MPI_Test(&p->request, &is, MPI_STATUS_IGNORE));
    *done = is;
    if (!is) return 0;
    free(p->arrays);
    free(p);
    request->word = 0;
    return 0;
}

/* Collectives cannot be cancelled. */
static bool cancel(clt_request *request) {
    enum { TESTS = 1000 };
    pending *p = (pending *)(uintptr_t)request->word;
    bool done = !p;
    if (p && !p->collective) MPI_Cancel(&p->request);
    for (int i = 0; !done && i < TESTS; i++)
        if (test(request, &done)) return false;
    return done;
}

static const clt_mover mover = {
    .abi = CLT_MOVER_ABI, .name = "mpi", .open = open_group, .close = close_group, .largest = largest, .exchange = exchange, .gather = gather,
    .broadcast = broadcast, .message = message, .test = test, .cancel = cancel, .words = words,
};

__attribute__((visibility("default"))) const clt_mover *clt_mover_plugin(void);
const clt_mover *clt_mover_plugin(void) {
    return &mover;
}
