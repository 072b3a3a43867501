/*
 * What a rank may be sent: on a control connection, on a data connection, and by strangers who connect. A transport
 * is put together by hand, of rank 1 among three, with messages that it waits for and others that it sends.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/transport/parts.h"

enum { SIZE = 3, OWN = 1, SMALL = 64, LARGE = CLT_EAGER_BYTES + 1000 };

typedef struct bench {
    clt_transport t;
    clt_security *security;
    int others[4], n_others;
    clt_transfer small, large, added, sent, sent_large;
    _Alignas(16) char data[5][LARGE];
} bench;

static void add(void *destination, const void *source, size_t bytes, void *context) {
    char *to = destination;
    const char *from = source;
    (void)context;
    for (size_t i = 0; i < bytes; i++) to[i] = (char)(to[i] + from[i]);
}

static clt_socket *connect_to(bench *b, fuzz_input bytes) {
    clt_socket *socket;
    int descriptor = fuzz_connection(bytes, &b->others[b->n_others++]);
    FUZZ_CHECK(clt_socket_accepted(&socket, b->security, descriptor) == CLT_OK);
    return socket;
}

static void make_peer(clt_transport *t, int rank) {
    clt_peer *peer = &t->peers[rank];
    peer->rank = rank;
    peer->sends.end = &peer->sends.first;
    peer->receives.end = &peer->receives.first;
    peer->early_end = &peer->early;
    if (rank == OWN) return;
    peer->links = clt_calloc((size_t)t->channels, sizeof *peer->links);
    peer->control.in = clt_alloc(CLT_CONTROL_BYTES);
    FUZZ_CHECK(peer->links && peer->control.in);
}

static bench *make(int channels) {
    bench *b = calloc(1, sizeof *b);
    FUZZ_CHECK(b && clt_security_create(&b->security, CLT_SECURITY_NONE, NULL, NULL, NULL, NULL) == CLT_OK);
    clt_transport *t = &b->t;
    *t = (clt_transport){.rank = OWN, .size = SIZE, .channels = channels, .security = b->security, .heartbeat_seconds = 5,
                         .listener = -1, .waker = -1, .most_strangers = 2};
    clt_hash_text("job", 3, t->job);
    t->peers = clt_calloc(SIZE, sizeof *t->peers);
    t->lost = clt_calloc(SIZE, sizeof *t->lost);
    t->strangers = clt_calloc(2, sizeof *t->strangers);
    t->scratch = clt_alloc(CLT_FRAME_BYTES + CLT_ALIGNMENT);
    FUZZ_CHECK(t->peers && t->lost && t->strangers && t->scratch);
    for (int r = 0; r < SIZE; r++) make_peer(t, r);
    return b;
}

static void free_bench(bench *b) {
    clt_transport *t = &b->t;
    clt_strangers_drop_all(t);
    for (int r = 0; r < SIZE; r++) {
        clt_peer *peer = &t->peers[r];
        for (clt_early *e = peer->early, *next; e; e = next) {
            next = e->next;
            clt_free(e);
        }
        for (int c = 0; peer->links && c < t->channels; c++) clt_socket_destroy(peer->links[c].socket);
        clt_socket_destroy(peer->control.socket);
        clt_free(peer->control.in);
        clt_free(peer->control.out);
        clt_free(peer->links);
        clt_free(peer->notices);
    }
    clt_free(t->peers);
    clt_free(t->lost);
    clt_free(t->strangers);
    clt_free(t->scratch);
    for (int i = 0; i < b->n_others; i++) close(b->others[i]);
    clt_security_destroy(b->security);
    free(b);
}

static void post(bench *b, clt_transfer *transfer, int which, uint64_t slot, size_t bytes, bool sending) {
    *transfer = (clt_transfer){.peer = 2, .slot = slot, .type = 1, .data = b->data[which], .bytes = bytes, .ready = bytes};
    if (which == 2) transfer->consume = add;
    if (sending) clt_transport_send(&b->t, transfer);
    else clt_transport_receive(&b->t, transfer);
}

/* Bytes reach a transfer from its start, and never more than it has. */
static void check_transfers(const bench *b) {
    const clt_transfer *const all[] = {&b->small, &b->large, &b->added, &b->sent, &b->sent_large};
    for (size_t i = 0; i < CLT_COUNT_OF(all); i++) {
        FUZZ_CHECK(all[i]->done <= all[i]->bytes);
        for (size_t k = all[i]->bytes; i < 3 && k < LARGE; k++) FUZZ_CHECK(all[i]->data == NULL || b->data[i][k] == 0);
    }
    FUZZ_CHECK(b->t.peers[2].early_bytes <= CLT_EAGER_LIMIT && b->t.peers[2].n_notices <= CLT_NOTICE_LIMIT);
}

static void meet_peer(fuzz_input input, uint8_t how) {
    bench *b = make(1 + (how >> 7));
    clt_transport *t = &b->t;
    clt_peer *peer = &t->peers[2];
    fuzz_input control = fuzz_piece(&input), first = fuzz_piece(&input);
    peer->control.socket = connect_to(b, control);
    peer->links[0].socket = connect_to(b, first);
    if (t->channels == 2) peer->links[1].socket = connect_to(b, input);
    t->peers[0].control.ended = true;
    /* One that has been here for long: of what it may send unasked little is left, and it is soon told of more. */
    peer->taken = CLT_EAGER_LIMIT / 4 - 100;
    peer->early_bytes = CLT_EAGER_LIMIT - CLT_EAGER_LIMIT / 4 - 100;
    if (how & 2) post(b, &b->sent, 3, 7, SMALL, true);
    if (how & 4) post(b, &b->sent_large, 4, 8, LARGE, true);
    if (how & 8) post(b, &b->large, 1, 2, LARGE, false);
    if (how & 2) peer->holds_back = true, peer->n_ready += CLT_NOTICE_LIMIT / 2; /* many are waited for */
    if (how & 16) post(b, &b->added, 2, 3, LARGE, false);
    if (how & 32) clt_control_read(t, peer); /* small messages come before they are asked for */
    post(b, &b->small, 0, 1, SMALL, false);
    for (int round = 0; round < 64; round++) {
        bool moved = clt_control_read(t, peer);
        for (int c = 0; c < t->channels; c++) {
            moved |= clt_link_read(t, peer, &peer->links[c]);
            moved |= clt_link_write(t, peer, &peer->links[c], true);
        }
        clt_messages_offer(t, peer);
        clt_control_flush(t, peer);
        check_transfers(b);
        if (!moved) break;
    }
    if (how & 64) {
        clt_transfer *const all[] = {&b->small, &b->large, &b->added, &b->sent, &b->sent_large};
        for (size_t i = 0; i < CLT_COUNT_OF(all); i++) clt_transport_cancel(t, all[i]);
    }
    free_bench(b);
}

static void meet_stranger(fuzz_input input, uint8_t how) {
    bench *b = make(1 + (how >> 7));
    clt_transport *t = &b->t;
    unsigned char bytes[CLT_HELLO_BYTES + CLT_ANSWER_BYTES];
    clt_hello hello = {.version = CLT_PROTOCOL_VERSION, .size = SIZE, .from = 2, .to = OWN, .channels = (uint32_t)t->channels};
    memcpy(hello.job, t->job, sizeof hello.job);
    clt_hello_encode(&hello, bytes);
    /* A hello that is right, in which as many bytes as there are places told are others. */
    for (int i = 0; how & 2 && i < 4 && input.size >= 2; i++) {
        uint8_t place = fuzz_byte(&input);
        bytes[place % CLT_HELLO_BYTES] = fuzz_byte(&input);
    }
    if (how & 2) input = (fuzz_input){bytes, CLT_HELLO_BYTES};
    for (int i = 0; i < 2; i++)
        t->strangers[t->n_strangers++] = (clt_stranger){.socket = connect_to(b, input), .since = clt_seconds()};
    t->complete = how & 4;
    for (int i = 0; i < 4 && t->n_strangers; i++) clt_strangers_advance(t, 0);
    clt_strangers_expire(t, clt_seconds() + 60);
    FUZZ_CHECK(t->n_strangers == 0);
    free_bench(b);
}

/* What is decoded is encoded to the same bytes. */
static void check_codes(fuzz_input input) {
    unsigned char bytes[CLT_HELLO_BYTES] = {0}, again[CLT_HELLO_BYTES];
    clt_frame frame;
    clt_hello hello;
    clt_answer answer;
    if (input.size) memcpy(bytes, input.data, CLT_MIN(input.size, sizeof bytes));
    if (clt_frame_decode(&frame, bytes)) {
        clt_frame_encode(&frame, again);
        FUZZ_CHECK(memcmp(bytes, again, CLT_HEADER_BYTES) == 0);
    }
    if (clt_hello_decode(&hello, bytes)) {
        clt_hello_encode(&hello, again);
        FUZZ_CHECK(memcmp(bytes, again, CLT_HELLO_BYTES) == 0);
    }
    if (!clt_answer_decode(&answer, bytes)) return;
    clt_answer_encode(answer, again);
    FUZZ_CHECK(memcmp(bytes, again, CLT_ANSWER_BYTES) == 0 && clt_answer_reason(answer)[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    fuzz_begin(size);
    uint8_t how = fuzz_byte(&input);
    check_codes(input);
    if (how & 1) meet_peer(input, how);
    else meet_stranger(input, how);
    return 0;
}
