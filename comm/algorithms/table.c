#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "comm/algorithms/algorithms.h"
#include "comm/plugins/plugins.h"

enum { KIB = 1024 };

/* ---- the table: sizes are from measuring over loopback, 2 and 4 ranks (cltrain-probe comm) ---- */

static bool is_half(const clt_operation *o) {
    return o->dtype == CLT_F16 || o->dtype == CLT_BF16;
}

/* Sums of halves are to be rounded once, so not at every step; between two ranks there is one step. */
static bool sums_by_steps(const clt_network *network, const clt_operation *o) {
    return network->size == 2 || !is_half(o) || o->reduction != CLT_REDUCE_SUM;
}

/* Each rank needs memory for what all others have. */
static bool fits_scratch(const clt_network *network, const clt_operation *o) {
    size_t bytes;
    return clt_mul_size(o->count * clt_dtype_bytes(o->dtype), (size_t)network->size, &bytes);
}

static bool shares_hosts(const clt_network *network, const clt_operation *o) {
    const clt_hosts *hosts = network->hosts;
    return hosts && hosts->n > 1 && hosts->n < network->size && sums_by_steps(network, o) && fits_scratch(network, o);
}

static bool several(const clt_network *network, const clt_operation *o) {
    return network->size > 2 && sums_by_steps(network, o);
}

#define KIND(name) (1u << CLT_OP_##name)

/* Serve where they are named alone. */
#define ON_DEMAND .least = SIZE_MAX, .most = 0

static const clt_algorithm rows[] = {
    {.name = "gloo_ring", .number = 32, .kinds = KIND(ALL_REDUCE), ON_DEMAND, .supports = sums_by_steps,
     .run = clt_gloo_row_ring},
    {.name = "gloo_bcube", .number = 33, .kinds = KIND(ALL_REDUCE), ON_DEMAND, .supports = sums_by_steps,
     .run = clt_gloo_row_bcube},
    {.name = "gloo", .number = 34, .kinds = KIND(ALL_GATHER), ON_DEMAND, .run = clt_gloo_row_all_gather},
    {.name = "gloo", .number = 34, .kinds = KIND(BROADCAST), ON_DEMAND, .run = clt_gloo_row_broadcast},
    {.name = "gloo", .number = 34, .kinds = KIND(BARRIER), ON_DEMAND, .run = clt_gloo_row_barrier},
    {.name = "direct", .number = 1, .kinds = KIND(ALL_REDUCE), .most = 256 * KIB, .to_all = true, .contacts = true,
     .supports = fits_scratch, .run = clt_direct_all_reduce},
    {.name = "hierarchy", .number = 8, .kinds = KIND(ALL_REDUCE), .most = SIZE_MAX, .supports = shares_hosts,
     .run = clt_hierarchy_all_reduce},
    {.name = "halving_doubling", .number = 2, .kinds = KIND(ALL_REDUCE), .most = 256 * KIB, .supports = several,
     .run = clt_halving_doubling_all_reduce},
    {.name = "ring", .number = 3, .kinds = KIND(ALL_REDUCE), .most = SIZE_MAX, .supports = sums_by_steps,
     .run = clt_ring_all_reduce},
    {.name = "shards", .number = 4, .kinds = KIND(ALL_REDUCE), .most = SIZE_MAX, .supports = fits_scratch,
     .run = clt_shards_all_reduce},

    {.name = "ring", .number = 3, .kinds = KIND(REDUCE_SCATTER), .least = 64 * KIB, .most = SIZE_MAX,
     .supports = sums_by_steps, .run = clt_ring_reduce_scatter},
    {.name = "direct", .number = 1, .kinds = KIND(REDUCE_SCATTER), .most = SIZE_MAX, .supports = fits_scratch,
     .run = clt_direct_reduce_scatter},

    {.name = "direct", .number = 1, .kinds = KIND(ALL_GATHER), .most = 64 * KIB, .run = clt_direct_all_gather},
    {.name = "ring", .number = 3, .kinds = KIND(ALL_GATHER), .most = SIZE_MAX, .run = clt_ring_all_gather},

    {.name = "tree", .number = 5, .kinds = KIND(BROADCAST), .most = 64 * KIB, .run = clt_tree_broadcast},
    {.name = "chain", .number = 6, .kinds = KIND(BROADCAST), .most = SIZE_MAX, .run = clt_chain_broadcast},

    {.name = "dissemination", .number = 7, .kinds = KIND(BARRIER), .most = SIZE_MAX, .contacts = true,
     .run = clt_dissemination_barrier},
};

/* The first that fits the size; else, as one may be forced to serve what it would not be chosen for, the last that can. */
static const clt_algorithm *choose(const clt_network *network, const clt_operation *o, const char *list) {
    const clt_algorithm *last = NULL;
    size_t bytes = o->count * clt_dtype_bytes(o->dtype);
    for (size_t i = 0; i < CLT_COUNT_OF(rows); i++) {
        const clt_algorithm *row = &rows[i];
        bool can = row->kinds & 1u << o->kind && clt_list_allows(list, row->name);
        if (!can || (row->supports && !row->supports(network, o))) continue;
        size_t others = (size_t)network->size - 1, most = row->to_all ? row->most / (others * others) : row->most;
        if (bytes >= row->least && bytes <= most) return row;
        last = row;
    }
    return last;
}

/* A list that leaves nothing for this operation is not for it. */
const clt_algorithm *clt_algorithm_choose(const clt_network *network, const clt_operation *operation) {
    const clt_algorithm *row = choose(network, operation, network->algorithms);
    return row ? row : choose(network, operation, NULL);
}

clt_status clt_algorithm_check_list(const char *list) {
    const char *names[CLT_COUNT_OF(rows)];
    const clt_gloo_functions *gloo;
    for (size_t i = 0; i < CLT_COUNT_OF(rows); i++) names[i] = rows[i].name;
    CLT_TRY(clt_list_check("algorithms", list, true, names, CLT_COUNT_OF(rows)));
    bool named = list && (!strncmp(list, "gloo", 4) || strstr(list, ",gloo"));
    return named ? clt_plugin_gloo(&gloo) : CLT_OK;
}

/* ---- types ----
 *
 * What each transfer carries to be compared: bits 0-3 kind, 4-6 dtype, 8-9 reduction, 10-15 algorithm, 16-31 root. Those of
 * contacts are all the same: what they say is compared here.
 */

enum { CONTACT = 1 << 7 };

static uint32_t type_of(const clt_operation *o, const clt_algorithm *algorithm) {
    return (uint32_t)o->kind | (uint32_t)o->dtype << 4 | (uint32_t)o->reduction << 8 | algorithm->number << 10 |
           (uint32_t)o->peer << 16;
}

uint32_t clt_algorithm_message_type(clt_dtype dtype) {
    return CLT_OP_SEND | (uint32_t)dtype << 4;
}

static clt_operation operation_of(uint32_t type) {
    return (clt_operation){.kind = (clt_operation_kind)(type & 15), .dtype = (clt_dtype)(type >> 4 & 7),
                           .reduction = (clt_reduction)(type >> 8 & 3), .peer = (int)(type >> 16)};
}

static const char *algorithm_name(uint32_t type) {
    for (size_t i = 0; i < CLT_COUNT_OF(rows); i++)
        if (rows[i].number == (type >> 10 & 63)) return rows[i].name;
    return "?";
}

void clt_algorithm_describe(uint32_t type, size_t bytes, char *text, size_t text_bytes) {
    clt_operation o = operation_of(type);
    size_t element = CLT_MAX(clt_dtype_bytes(o.dtype), 1);
    char words[CLT_OPERATION_TEXT];
    o.count = bytes / element;
    if (type == CONTACT) snprintf(text, text_bytes, "another operation");
    else if (o.kind == CLT_OP_SEND) snprintf(text, text_bytes, "a message of %zu %s", o.count, clt_dtype_name(o.dtype));
    else snprintf(text, text_bytes, "%s (or a part of it, by %s)", clt_operation_text(&o, words), algorithm_name(type));
}

/* ---- first contact ---- */

static uint64_t digest_of(const clt_network *network, const clt_operation *o) {
    uint64_t digest = 0xcbf29ce484222325; /* FNV-1a of the parts */
    for (int r = 0; o->counts && r < network->size; r++) digest = (digest ^ o->counts[r]) * 0x100000001b3;
    return digest;
}

static clt_status begin_contact(clt_network *network, const clt_operation *o) {
    clt_contact *c = &network->contact;
    clt_transfer both = {.slot = clt_flight_slot(o, 0), .type = CONTACT, .bytes = sizeof c->mine};
    c->mine[0] = network->type;
    c->mine[1] = o->count;
    c->mine[2] = digest_of(network, o);
    c->send = c->receive = both;
    c->send.peer = clt_ring_rank(network->rank + 1, network->size);
    c->send.data = c->mine;
    c->send.ready = both.bytes;
    c->receive.peer = clt_ring_rank(network->rank - 1, network->size);
    c->receive.data = c->theirs;
    c->pending = true;
    CLT_TRY(clt_transport_send(network->transport, &c->send));
    return clt_transport_receive(network->transport, &c->receive);
}

static void describe_contact(const uint64_t *contact, char text[CLT_OPERATION_TEXT]) {
    clt_operation o = operation_of((uint32_t)contact[0]);
    o.count = (size_t)contact[1];
    clt_operation_text(&o, text);
}

clt_status clt_contact_check(clt_network *network) {
    clt_contact *c = &network->contact;
    char mine[CLT_OPERATION_TEXT], theirs[CLT_OPERATION_TEXT];
    if (!c->pending || c->receive.active) return CLT_OK;
    c->pending = false;
    if (memcmp(c->mine, c->theirs, sizeof c->mine) == 0) return CLT_OK;
    describe_contact(c->mine, mine);
    describe_contact(c->theirs, theirs);
    return clt_fail(CLT_E_MISMATCH, "rank %d called %s, rank %d %s%s", network->rank, mine, c->receive.peer, theirs,
                    strcmp(mine, theirs) == 0 ? " in other parts or by another algorithm" : "");
}

static clt_status finish_contact(clt_network *network, const clt_operation *o) {
    clt_contact *c = &network->contact;
    clt_flight none;
    clt_flight_begin(&none, network, o, 0);
    clt_status status = clt_contact_check(network);
    while (status == CLT_OK && (c->pending || c->send.active)) status = clt_flight_step(&none);
    none.status = status;
    return status < 0 ? clt_flight_abandon(&none) : CLT_OK;
}

static void abandon_contact(clt_network *network) {
    clt_contact *c = &network->contact;
    if (c->send.active) clt_transport_cancel(network->transport, &c->send);
    if (c->receive.active) clt_transport_cancel(network->transport, &c->receive);
    c->pending = false;
}

clt_status clt_algorithm_run(clt_network *network, clt_operation *o) {
    network->type = CONTACT;
    CLT_TRY(clt_hosts_learn(network, o));
    const clt_algorithm *algorithm = clt_algorithm_choose(network, o);
    bool empty = o->count == 0 && o->kind != CLT_OP_BARRIER;
    bool contact = empty || !algorithm->contacts;
    network->type = type_of(o, algorithm);
    clt_status status = contact ? begin_contact(network, o) : CLT_OK;
    if (status == CLT_OK && !empty) status = algorithm->run(network, o);
    if (status == CLT_OK && contact) status = finish_contact(network, o);
    if (status == CLT_OK) return CLT_OK;
    abandon_contact(network);
    char text[CLT_OPERATION_TEXT];
    return status == CLT_E_MISMATCH ? clt_fail_context(status, "%s: ", clt_operation_text(o, text)) : status;
}
