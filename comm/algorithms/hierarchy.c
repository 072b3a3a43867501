/*
 * Hierarchy, where several ranks share a host: they reduce among themselves first, so that each value crosses the network once a host and not once
 * a rank. The data is cut into one share for each owner; owners are the first ranks of each host, as many as the smallest host has. An owner
 * adds its share of all ranks of its host, in their order, and reduces that with the owners of the same share on the other hosts, in the order of
 * hosts; each of these adds a part of the share. All goes on at once, each step as far as the one before it has come.
 */
#include <stdio.h>
#include <string.h>

#include "comm/algorithms/algorithms.h"

/* ---- who is where ---- */

enum { HOST_BYTES = 64, LAST_PART = 0xffff };

/* Without the port. */
static void own_host(const clt_network *network, char host[HOST_BYTES]) {
    const char *address = clt_transport_address(network->transport), *colon = strrchr(address, ':');
    snprintf(host, HOST_BYTES, "%.*s", colon ? (int)(colon - address) : (int)strlen(address), address);
}

static clt_status gather(clt_network *network, const clt_operation *o, char (*names)[HOST_BYTES]) {
    clt_flight flight;
    clt_flight_begin(&flight, network, o, 2 * network->size);
    for (int i = 1; i < network->size; i++) {
        int to = clt_ring_rank(network->rank + i, network->size), from = clt_ring_rank(network->rank - i, network->size);
        clt_flight_receive(&flight, from, LAST_PART, names[from], HOST_BYTES);
        clt_flight_send(&flight, to, LAST_PART, names[network->rank], HOST_BYTES, HOST_BYTES);
    }
    return clt_flight_land(&flight);
}

static void number_hosts(clt_hosts *hosts, int size, char (*names)[HOST_BYTES]) {
    int ranks[CLT_MOST_RANKS] = {0}; /* of each host */
    for (int r = 0; r < size; r++) {
        int first = 0;
        while (memcmp(names[first], names[r], HOST_BYTES) != 0) first++;
        hosts->of[r] = first == r ? hosts->n++ : hosts->of[first];
        ranks[hosts->of[r]]++;
    }
    hosts->owners = size;
    for (int h = 0; h < hosts->n; h++) hosts->owners = CLT_MIN(hosts->owners, ranks[h]);
}

clt_status clt_hosts_learn(clt_network *network, const clt_operation *o) {
    size_t size = (size_t)network->size;
    if (size <= 2 || network->hosts) return CLT_OK;
    char(*names)[HOST_BYTES] = clt_calloc(size, HOST_BYTES);
    clt_hosts *hosts = clt_calloc(1, sizeof *hosts + size * sizeof hosts->of[0]);
    clt_status status = names && hosts ? CLT_OK : clt_fail_memory(size * HOST_BYTES);
    if (status == CLT_OK) {
        own_host(network, names[network->rank]);
        status = gather(network, o, names);
    }
    if (status == CLT_OK) {
        number_hosts(hosts, network->size, names);
        network->hosts = hosts;
    } else clt_free(hosts);
    clt_free(names);
    return status;
}

/* ---- the reduction ---- */

typedef struct piece {
    size_t start, bytes;
} piece;

typedef struct hierarchy {
    const clt_operation *o;
    int n_hosts, owners;
    int host, place;              /* this rank's, and which of its host's ranks it is */
    int locals[CLT_MOST_RANKS], n_locals; /* its host's ranks */
    int partners[CLT_MOST_RANKS]; /* by host: who has the same place there, where this one is an owner */
    clt_flight flight;
    clt_reducer within, between;
    clt_transfer *offers[CLT_MOST_RANKS];  /* sends of what is added elsewhere, by host */
    clt_transfer *results[CLT_MOST_RANKS]; /* sends of what is added here */
    const clt_transfer *brought[CLT_MOST_RANKS]; /* receives of what was added elsewhere */
    int first_return;             /* of the flight: sends back to the host's ranks, of each host's part */
} hierarchy;

static void find_places(hierarchy *h, const clt_network *network, const clt_hosts *hosts) {
    int seen[CLT_MOST_RANKS] = {0};
    h->n_hosts = hosts->n;
    h->owners = hosts->owners;
    h->host = hosts->of[network->rank];
    for (int r = 0; r < network->size; r++) {
        if (hosts->of[r] != h->host) continue;
        if (r == network->rank) h->place = h->n_locals;
        h->locals[h->n_locals++] = r;
    }
    for (int r = 0; r < network->size; r++)
        if (seen[hosts->of[r]]++ == h->place) h->partners[hosts->of[r]] = r;
}

static bool is_owner(const hierarchy *h) {
    return h->place < h->owners;
}

/* In elements from `start`, in bytes. */
static piece cut(const hierarchy *h, size_t start, size_t count, int r, int n) {
    size_t element = clt_dtype_bytes(h->o->dtype), from = clt_part_start(count, r, n);
    return (piece){(start + from) * element, (clt_part_start(count, r + 1, n) - from) * element};
}

static piece share_of(const hierarchy *h, int owner) {
    return cut(h, 0, h->o->count, owner, h->owners);
}

/* The part of an owner's share that a host adds. */
static piece part_of(const hierarchy *h, int owner, int host) {
    size_t start = clt_part_start(h->o->count, owner, h->owners), end = clt_part_start(h->o->count, owner + 1, h->owners);
    return cut(h, start, end - start, host, h->n_hosts);
}

static char *at(const hierarchy *h, piece p) {
    return (char *)h->o->data + p.start;
}

static void begin_within(hierarchy *h, char *scratch) {
    for (int i = 1; i < h->n_locals; i++) {
        int to = clt_ring_rank(h->place + i, h->n_locals), from = clt_ring_rank(h->place - i, h->n_locals);
        piece theirs = to < h->owners ? share_of(h, to) : (piece){0};
        clt_flight_send(&h->flight, h->locals[to], 1, at(h, theirs), theirs.bytes, theirs.bytes);
        if (is_owner(h)) h->within.receives[from] = clt_flight_receive(&h->flight, h->locals[from], 1, scratch + (size_t)from * h->within.bytes, h->within.bytes);
    }
}

static void begin_between(hierarchy *h, char *scratch) {
    piece mine = part_of(h, h->place, h->host);
    for (int i = 1; i < h->n_hosts; i++) {
        int to = clt_ring_rank(h->host + i, h->n_hosts), from = clt_ring_rank(h->host - i, h->n_hosts);
        piece theirs = part_of(h, h->place, to), back = part_of(h, h->place, from);
        h->offers[to] = clt_flight_send(&h->flight, h->partners[to], 2, at(h, theirs), theirs.bytes, 0);
        h->results[to] = clt_flight_send(&h->flight, h->partners[to], 3, at(h, mine), mine.bytes, 0);
        h->between.receives[from] = clt_flight_receive(&h->flight, h->partners[from], 2, scratch + (size_t)from * mine.bytes, mine.bytes);
        h->brought[from] = clt_flight_receive(&h->flight, h->partners[from], 3, at(h, back), back.bytes);
    }
}

static void begin_return(hierarchy *h) {
    h->first_return = h->flight.n;
    for (int i = 1; is_owner(h) && i < h->n_locals; i++)
        for (int host = 0; host < h->n_hosts; host++) {
            piece part = part_of(h, h->place, host);
            clt_flight_send(&h->flight, h->locals[clt_ring_rank(h->place + i, h->n_locals)], 4 + (unsigned)host, at(h, part), part.bytes, 0);
        }
    for (int owner = 0; owner < h->owners; owner++)
        for (int host = 0; owner != h->place && host < h->n_hosts; host++) {
            piece part = part_of(h, owner, host);
            clt_flight_receive(&h->flight, h->locals[owner], 4 + (unsigned)host, at(h, part), part.bytes);
        }
}

/* How much of a part of the own share the host has added. */
static size_t added(const hierarchy *h, piece part) {
    size_t done = share_of(h, h->place).start + h->within.done;
    return done <= part.start ? 0 : CLT_MIN(done - part.start, part.bytes);
}

/* Hands on what has come. Whether that was all. */
static bool advance(hierarchy *h) {
    bool all = true;
    clt_reducer_advance(&h->within, SIZE_MAX);
    clt_reducer_advance(&h->between, added(h, part_of(h, h->place, h->host)));
    for (int host = 0; host < h->n_hosts; host++) {
        piece part = part_of(h, h->place, host);
        size_t done = host == h->host ? h->between.done : h->brought[host]->done;
        all = all && done == part.bytes && added(h, part) == part.bytes;
        if (host != h->host) {
            h->offers[host]->ready = added(h, part);
            h->results[host]->ready = h->between.done;
        }
        for (int i = 0; i < h->n_locals - 1; i++) h->flight.transfers[h->first_return + i * h->n_hosts + host].ready = done;
    }
    return all;
}

static clt_status begin(hierarchy *h, clt_network *network) {
    int transfers = h->n_locals + h->owners + 4 * h->n_hosts + h->n_hosts * (h->n_locals + h->owners);
    piece share = is_owner(h) ? share_of(h, h->place) : (piece){0}, part = is_owner(h) ? part_of(h, h->place, h->host) : (piece){0};
    size_t first = (size_t)h->n_locals * share.bytes, second = (size_t)h->n_hosts * part.bytes;
    void *scratch;
    clt_flight_begin(&h->flight, network, h->o, transfers);
    h->within = (clt_reducer){.operation = h->o, .own = at(h, share), .bytes = share.bytes, .n = h->n_locals};
    h->between = (clt_reducer){.operation = h->o, .own = at(h, part), .bytes = part.bytes, .n = h->n_hosts};
    CLT_TRY(clt_network_scratch(network, 1, first + second, &scratch));
    begin_within(h, scratch);
    if (is_owner(h)) begin_between(h, (char *)scratch + first);
    begin_return(h);
    return h->flight.status;
}

clt_status clt_hierarchy_all_reduce(clt_network *network, clt_operation *o) {
    hierarchy h = {.o = o};
    find_places(&h, network, network->hosts);
    h.flight.status = begin(&h, network);
    while (is_owner(&h) && h.flight.status == CLT_OK && !advance(&h)) clt_flight_step(&h.flight);
    return clt_flight_land(&h.flight);
}
