#include "comm/secure/socket.h"

#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* Pieces that are together no longer go out as one record. */
enum { GATHERED_BYTES = 2048 };

/* ---- the system's calls ---- */

static bool note_error(clt_socket *socket, int error, size_t *moved) {
    *moved = 0;
    if (error == EAGAIN || error == EWOULDBLOCK) return true;
    socket->error = error;
    return false;
}

bool clt_socket_send_raw(clt_socket *socket, const struct iovec *pieces, int n, size_t *moved) {
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = (size_t)n};
    ssize_t sent;
    do sent = sendmsg(socket->descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0) return note_error(socket, errno, moved);
    *moved = (size_t)sent;
    return true;
}

bool clt_socket_receive_raw(clt_socket *socket, void *data, size_t bytes, size_t *moved) {
    ssize_t got;
    do got = recv(socket->descriptor, data, bytes, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0) return note_error(socket, errno, moved);
    *moved = (size_t)got;
    if (got == 0 && bytes > 0) socket->ended = true;
    return got > 0 || bytes == 0;
}

bool clt_socket_flush(clt_socket *socket) {
    clt_stream *out = &socket->out;
    while (out->start < out->end) {
        struct iovec piece = {out->data + out->start, out->end - out->start};
        size_t moved;
        if (!clt_socket_send_raw(socket, &piece, 1, &moved)) return false;
        if (moved == 0) return true;
        out->start += moved;
    }
    out->start = out->end = 0;
    return true;
}

clt_status clt_socket_fail(const clt_socket *socket, const char *during) {
    if (socket->error)
        return clt_fail(CLT_E_NETWORK, "%s: connection lost %s: %s", socket->peer, during,
                        strerror(socket->error));
    if (socket->ended) return clt_fail(CLT_E_NETWORK, "%s: connection closed %s", socket->peer, during);
    return clt_fail(CLT_E_NETWORK, "%s: connection broken %s: %s", socket->peer, during,
                    clt_tls_reason("unknown"));
}

/* ---- TLS ---- */

/* A job may last for longer than one key should. */
static void renew_key(clt_socket *socket, size_t sent) {
    socket->keyed_bytes += sent;
    if (socket->keyed_bytes < socket->security->rekey_bytes) return;
    socket->keyed_bytes = 0;
    SSL_key_update(socket->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
}

/* One record. *moved = 0: there is no room for another now. */
static clt_status write_record(clt_socket *socket, const void *data, size_t bytes, size_t *moved) {
    *moved = 0;
    clt_stream *out = &socket->out;
    /* `out` then takes the record whole, so that OpenSSL never stops in the middle of one. */
    if (CLT_STREAM_BYTES - (out->end - out->start) < 2 * CLT_RECORD_ROOM) {
        if (!clt_socket_flush(socket)) return clt_socket_fail(socket, "while writing");
        if (CLT_STREAM_BYTES - (out->end - out->start) < 2 * CLT_RECORD_ROOM) return CLT_OK;
    }
    ERR_clear_error();
    if (SSL_write_ex(socket->ssl, data, CLT_MIN(bytes, CLT_RECORD_BYTES), moved) != 1)
        return clt_socket_fail(socket, "while writing");
    renew_key(socket, *moved);
    return CLT_OK;
}

static clt_status write_pieces(clt_socket *socket, const struct iovec *pieces, int n, size_t *moved) {
    for (int i = 0; i < n; i++) {
        const char *data = pieces[i].iov_base;
        for (size_t at = 0, part; at < pieces[i].iov_len; at += part) {
            CLT_TRY(write_record(socket, data + at, pieces[i].iov_len - at, &part));
            *moved += part;
            if (part == 0) return CLT_OK;
        }
    }
    return CLT_OK;
}

/* A header and a few bytes: one record. */
static clt_status write_gathered(clt_socket *socket, const struct iovec *pieces, int n, size_t *moved) {
    char all[GATHERED_BYTES];
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        if (pieces[i].iov_len) memcpy(all + bytes, pieces[i].iov_base, pieces[i].iov_len);
        bytes += pieces[i].iov_len;
    }
    return bytes ? write_record(socket, all, bytes, moved) : CLT_OK;
}

static clt_status write_tls(clt_socket *socket, const struct iovec *pieces, int n, size_t *moved) {
    size_t bytes = 0;
    for (int i = 0; i < n && bytes <= GATHERED_BYTES; i++)
        bytes = pieces[i].iov_len > GATHERED_BYTES ? GATHERED_BYTES + 1 : bytes + pieces[i].iov_len;
    if (bytes <= GATHERED_BYTES) CLT_TRY(write_gathered(socket, pieces, n, moved));
    else CLT_TRY(write_pieces(socket, pieces, n, moved));
    return clt_socket_flush(socket) ? CLT_OK : clt_socket_fail(socket, "while writing");
}

static clt_status read_tls(clt_socket *socket, char *data, size_t bytes, size_t *moved) {
    while (*moved < bytes) {
        size_t part;
        ERR_clear_error();
        int result = SSL_read_ex(socket->ssl, data + *moved, bytes - *moved, &part);
        if (result == 1) {
            *moved += part;
            continue;
        }
        int error = SSL_get_error(socket->ssl, result);
        if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) break;
        if (error == SSL_ERROR_ZERO_RETURN) socket->ended = true;
        /* What came before the end is handed out first; the end is found again. */
        if (*moved == 0) return clt_socket_fail(socket, "while reading");
        break;
    }
    /* OpenSSL may have answered. */
    if (socket->out.end > socket->out.start && !clt_socket_flush(socket) && *moved == 0)
        return clt_socket_fail(socket, "while reading");
    return CLT_OK;
}

/* ---- both ---- */

clt_status clt_socket_write(clt_socket *socket, const struct iovec *pieces, int n, size_t *moved) {
    *moved = 0;
    if (socket->ssl) return write_tls(socket, pieces, n, moved);
    if (n == 0 || clt_socket_send_raw(socket, pieces, n, moved)) return CLT_OK;
    return clt_socket_fail(socket, "while writing");
}

clt_status clt_socket_read(clt_socket *socket, void *data, size_t bytes, size_t *moved) {
    *moved = 0;
    if (socket->ssl) {
        CLT_TRY(read_tls(socket, data, bytes, moved));
        socket->more = *moved == bytes;
        return CLT_OK;
    }
    return clt_socket_receive_raw(socket, data, bytes, moved) ? CLT_OK
                                                              : clt_socket_fail(socket, "while reading");
}

clt_status clt_socket_wait(const clt_socket *socket, short events, double deadline) {
    struct pollfd one = {socket->descriptor, events, 0};
    for (;;) {
        double left = deadline - clt_seconds();
        if (left <= 0)
            return clt_fail(CLT_E_TIMEOUT, "%s: no answer within the time allowed", socket->peer);
        int ready = poll(&one, 1, (int)(CLT_MIN(left, 1e6) * 1000) + 1);
        if (ready > 0) return CLT_OK;
        if (ready < 0 && errno != EINTR)
            return clt_fail(CLT_E_SYSTEM, "%s: poll: %s", socket->peer, strerror(errno));
    }
}

clt_status clt_socket_write_all(clt_socket *socket, const void *data, size_t bytes, double deadline) {
    struct iovec piece = {(void *)(uintptr_t)data, bytes};
    for (;;) {
        size_t moved;
        CLT_TRY(clt_socket_write(socket, &piece, piece.iov_len > 0, &moved));
        piece.iov_base = (char *)piece.iov_base + moved;
        piece.iov_len -= moved;
        if (piece.iov_len == 0 && socket->out.start == socket->out.end) return CLT_OK;
        if (moved == 0) CLT_TRY(clt_socket_wait(socket, POLLOUT, deadline));
    }
}

clt_status clt_socket_read_all(clt_socket *socket, void *data, size_t bytes, double deadline) {
    char *at = data;
    while (bytes > 0) {
        size_t moved;
        CLT_TRY(clt_socket_read(socket, at, bytes, &moved));
        at += moved;
        bytes -= moved;
        if (moved == 0)
            CLT_TRY(clt_socket_wait(socket, clt_socket_events(socket, true, false), deadline));
    }
    return CLT_OK;
}

int clt_socket_descriptor(const clt_socket *socket) {
    return socket->descriptor;
}

short clt_socket_events(const clt_socket *socket, bool reading, bool writing) {
    if (socket->stage != CLT_OPEN) return SSL_want_write(socket->ssl) ? POLLOUT : POLLIN;
    bool unsent = socket->out.start < socket->out.end;
    return (short)((reading ? POLLIN : 0) | (writing || unsent ? POLLOUT : 0));
}

bool clt_socket_was_closed(const clt_socket *socket) {
    return socket->ended || socket->error == ECONNRESET || socket->error == EPIPE;
}

bool clt_socket_pending(const clt_socket *socket) {
    return socket->more;
}

const char *clt_socket_peer(const clt_socket *socket) {
    return socket->peer;
}

void clt_socket_destroy(clt_socket *socket) {
    if (!socket) return;
    SSL_free(socket->ssl);
    close(socket->descriptor);
    clt_free(socket->in.data);
    clt_free(socket->out.data);
    clt_free(socket);
}
