/*
 * Who connected and has not yet shown who it is. Each gets a few seconds and a few bytes of memory;
 * when there are too many, the oldest goes. Whoever does not belong here is named in the log.
 */
#define _GNU_SOURCE /* accept4 */
#include "comm/transport/parts.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "comm/secure/parts.h"

#define STRANGER_SECONDS 5.0
#define DEAF_SECONDS     0.1
enum { ACCEPTED_AT_ONCE = 16 };

static void forget(clt_transport *t, int i) {
    t->strangers[i] = t->strangers[--t->n_strangers];
}

static void drop(clt_transport *t, int i, const char *why) {
    clt_stranger *one = &t->strangers[i];
    clt_log_refusal(t->security, clt_socket_peer(one->socket), why);
    clt_socket_destroy(one->socket);
    forget(t, i);
}

static void drop_oldest(clt_transport *t, const char *why) {
    int oldest = 0;
    for (int i = 1; i < t->n_strangers; i++)
        if (t->strangers[i].since < t->strangers[oldest].since) oldest = i;
    if (t->n_strangers) drop(t, oldest, why);
}

void clt_strangers_expire(clt_transport *t, double now) {
    for (int i = t->n_strangers - 1; i >= 0; i--)
        if (now - t->strangers[i].since > STRANGER_SECONDS)
            drop(t, i, "it did not say who it is in time");
}

void clt_strangers_drop_all(clt_transport *t) {
    while (t->n_strangers) clt_socket_destroy(t->strangers[--t->n_strangers].socket);
}

/* ---- coming in ---- */

static void turn_away(const clt_transport *t, int descriptor, const struct sockaddr *address,
                      socklen_t bytes) {
    char text[64];
    clt_address_text(address, bytes, text);
    close(descriptor);
    clt_log_refusal(t->security, text, clt_answer_reason(CLT_COMPLETE));
}

static void take_in(clt_transport *t, int descriptor) {
    clt_socket *socket;
    if (clt_socket_accepted(&socket, t->security, descriptor) < 0) return; /* gone already */
    if (t->n_strangers == t->most_strangers)
        drop_oldest(t, "it did not say who it is, while others wait");
    t->strangers[t->n_strangers++] = (clt_stranger){.socket = socket, .since = clt_seconds()};
}

static bool is_out_of_resources(int error) {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

void clt_strangers_accept(clt_transport *t) {
    for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
        struct sockaddr_storage address;
        socklen_t bytes = sizeof address;
        int descriptor =
            accept4(t->listener, (struct sockaddr *)&address, &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (descriptor >= 0) {
            if (t->complete) turn_away(t, descriptor, (struct sockaddr *)&address, bytes);
            else take_in(t, descriptor);
        } else if (is_out_of_resources(errno)) {
            /* The listener stays readable: it is left alone for a moment, lest the wait turns into a
             * spin. */
            clt_log_refusal(t->security, "who waits to connect", "no descriptor is left to accept with");
            t->deaf_until = clt_seconds() + DEAF_SECONDS;
            drop_oldest(t, "no descriptor is left for others");
            return;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } /* else: that one is gone again, the next may be well */
    }
}

/* ---- hello ---- */

static bool is_dead(const clt_socket *socket) {
    struct pollfd one = {clt_socket_descriptor(socket), POLLRDHUP, 0};
    return poll(&one, 1, 0) > 0;
}

static clt_socket **place_of(clt_transport *t, uint32_t rank, uint32_t channel) {
    clt_peer *peer = &t->peers[rank];
    return channel == 0 ? &peer->control.socket : &peer->links[channel - 1].socket;
}

static clt_answer judge(clt_transport *t, const clt_hello *hello) {
    if (hello->version != CLT_PROTOCOL_VERSION) return CLT_OTHER_VERSION;
    if (strcmp(hello->job, t->job) != 0) return CLT_OTHER_JOB;
    if (hello->generation != t->generation) return CLT_OTHER_GENERATION;
    if (hello->size != (uint32_t)t->size || hello->channels != (uint32_t)t->channels)
        return CLT_OTHER_SIZE;
    /* The higher rank connects to the lower. */
    if (hello->to != (uint32_t)t->rank || hello->from >= (uint32_t)t->size ||
        hello->from <= (uint32_t)t->rank)
        return CLT_WRONG_RANK;
    if (hello->channel > hello->channels) return CLT_WRONG_CHANNEL;
    const clt_socket *there = *place_of(t, hello->from, hello->channel);
    /* One that gave up waiting for an answer comes again. */
    return there && !is_dead(there) ? CLT_DUPLICATE : CLT_WELCOME;
}

static bool send_answer(clt_socket *socket, clt_answer answer) {
    unsigned char bytes[CLT_ANSWER_BYTES];
    clt_answer_encode(answer, bytes);
    struct iovec piece = {bytes, sizeof bytes};
    size_t moved;
    return clt_socket_write(socket, &piece, 1, &moved) == CLT_OK && moved == sizeof bytes;
}

static void introduce(clt_transport *t, int i) {
    clt_stranger *one = &t->strangers[i];
    clt_hello hello;
    if (!clt_hello_decode(&hello, one->hello)) {
        drop(t, i, "it does not speak this protocol");
        return;
    }
    clt_answer answer = t->complete ? CLT_COMPLETE : judge(t, &hello);
    bool sent = send_answer(one->socket, answer);
    if (answer != CLT_WELCOME || !sent) {
        drop(t, i, answer != CLT_WELCOME ? clt_answer_reason(answer) : "it left while it was greeted");
        return;
    }
    clt_socket **place = place_of(t, hello.from, hello.channel);
    clt_socket_destroy(*place);
    *place = one->socket;
    forget(t, i);
}

void clt_strangers_advance(clt_transport *t, int i) {
    clt_stranger *one = &t->strangers[i];
    clt_status status = clt_socket_handshake(one->socket);
    if (status == CLT_END) return;
    size_t moved = 0;
    if (status == CLT_OK)
        status = clt_socket_read(one->socket, one->hello + one->got, CLT_HELLO_BYTES - one->got, &moved);
    if (status < 0) {
        drop(t, i, clt_error_detail());
        return;
    }
    one->got += moved;
    if (!clt_hello_begins(one->hello, one->got)) drop(t, i, "it does not speak this protocol");
    else if (one->got == CLT_HELLO_BYTES) introduce(t, i);
}
