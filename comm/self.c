/* A group of one: what every collective would do is there already. */
#include "comm/comm.h"

static clt_status run(void *state, clt_operation *operation) {
    (void)state, (void)operation;
    return CLT_OK;
}

static void wake(void *state) {
    (void)state;
}

static void end(void *state, clt_status status, const char *detail) {
    (void)state, (void)status, (void)detail;
}

static void destroy(void *state) {
    (void)state;
}

static bool is_lost(void *state, int rank) {
    (void)state, (void)rank;
    return false;
}

static clt_transport_counts counts(void *state) {
    (void)state;
    return (clt_transport_counts){0};
}

static const char *algorithm(void *state, size_t bytes) {
    (void)state, (void)bytes;
    return "self";
}

static const clt_engine engine = {
    .name = "self", .run = run, CLT_ENGINE_WITHOUT_MESSAGES, .wake = wake,
    .end = end, .destroy = destroy, .is_lost = is_lost, .counts = counts, .algorithm = algorithm,
};

clt_status clt_comm_open_self(clt_comm **comm, int64_t generation) {
    return clt_comm_open(comm, &(clt_comm_setup){.engine = &engine, .size = 1, .generation = generation, .timeout_seconds = 300});
}

clt_status clt_comm_create_self(clt_comm **comm) {
    if (!comm) return clt_fail(CLT_E_INVALID, "clt_comm_create_self: comm is NULL");
    return clt_comm_open_self(comm, 0);
}
