/*
 * Connections are made, and each end learns who is at the other.
 *
 * After TLS's own handshake the accepting side sends one byte: so the connecting side knows that it was
 * taken in, which TLS 1.3 does not tell it by itself where certificates are used. With level auth both
 * go on in the clear after that byte.
 */
#define _GNU_SOURCE /* TCP_USER_TIMEOUT, SOCK_CLOEXEC */
#include "comm/secure/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { USER_TIMEOUT_MS = 20000, TAKEN_IN = 0x6f };

/* What is not supported is not needed either. */
static void tune(int descriptor) {
    int one = 1, milliseconds = USER_TIMEOUT_MS;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
    /* Buffers are left to the system, which fits them to the path's bandwidth and delay. */
}

static clt_status start_tls(clt_socket *socket) {
    const clt_security *security = socket->security;
    ERR_clear_error();
    SSL *ssl = socket->ssl = SSL_new(security->context);
    BIO *bio = ssl ? BIO_new(security->method) : NULL;
    if (!bio) return clt_fail(CLT_E_NO_MEMORY, "%s: no memory for a TLS connection", socket->peer);
    BIO_set_data(bio, socket);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    if (socket->accepting) SSL_set_accept_state(ssl);
    else SSL_set_connect_state(ssl);
    /* Who has the key needs no certificate, and nobody else may come with one: no authority is known
     * then. */
    if (!security->with_psk)
        SSL_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    else if (!socket->accepting) SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    return CLT_OK;
}

clt_status clt_socket_make(clt_socket **out, const clt_security *security, int descriptor,
                           bool accepting) {
    *out = NULL;
    clt_socket *made = clt_calloc(1, sizeof *made);
    if (!made) {
        close(descriptor);
        return clt_fail_memory(sizeof *made);
    }
    made->descriptor = descriptor;
    made->security = security;
    made->accepting = accepting;
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    strcpy(made->peer, "?");
    clt_status status = CLT_OK;
    if (getpeername(descriptor, (struct sockaddr *)&address, &bytes))
        status = clt_fail(CLT_E_NETWORK, "a connection was gone at once: %s", strerror(errno));
    else clt_address_text((struct sockaddr *)&address, bytes, made->peer);
    int flags = fcntl(descriptor, F_GETFL);
    if (status == CLT_OK && (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) ||
                             fcntl(descriptor, F_SETFD, FD_CLOEXEC)))
        status =
            clt_fail(CLT_E_SYSTEM, "%s: a socket cannot be set up: %s", made->peer, strerror(errno));
    tune(descriptor);
    if (status == CLT_OK && security->level == CLT_SECURITY_NONE) made->stage = CLT_OPEN;
    else if (status == CLT_OK) status = start_tls(made);
    if (status < 0) {
        clt_socket_destroy(made);
        return status;
    }
    *out = made;
    return CLT_OK;
}

clt_status clt_socket_accepted(clt_socket **socket, const clt_security *security, int descriptor) {
    return clt_socket_make(socket, security, descriptor, true);
}

/* Why a TLS call stopped: CLT_END if it is to be repeated. */
static clt_status why_stopped(const clt_socket *socket, int result) {
    switch (SSL_get_error(socket->ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return CLT_END;
    case SSL_ERROR_SSL:
        if (socket->ended || socket->error)
            break; /* OpenSSL calls the end of the stream an error of the protocol */
        return clt_fail(
            CLT_E_DENIED,
            "%s: not let in, or not to be trusted (%s): is its token or certificate this job's?",
            socket->peer, clt_tls_reason("unknown"));
    }
    return clt_socket_fail(socket, "during the TLS handshake");
}

/* TLS is over (level auth), or goes on with buffers that take several records. */
static clt_status open_stream(clt_socket *socket) {
    if (socket->security->level == CLT_SECURITY_AUTH) {
        if (SSL_has_pending(socket->ssl))
            return clt_fail(CLT_E_DENIED, "%s: sends more than the handshake", socket->peer);
        SSL_free(socket->ssl);
        socket->ssl = NULL;
    } else {
        socket->in.data = clt_alloc(CLT_STREAM_BYTES);
        socket->out.data = clt_alloc(CLT_STREAM_BYTES);
        if (!socket->in.data || !socket->out.data) return clt_fail_memory(CLT_STREAM_BYTES);
    }
    socket->stage = CLT_OPEN;
    return CLT_OK;
}

static clt_status confirm(clt_socket *socket) {
    unsigned char word = TAKEN_IN;
    size_t moved;
    int result = socket->accepting ? SSL_write_ex(socket->ssl, &word, 1, &moved)
                                   : SSL_read_ex(socket->ssl, &word, 1, &moved);
    if (result <= 0) return why_stopped(socket, result);
    if (word != TAKEN_IN) return clt_fail(CLT_E_DENIED, "%s: speaks another protocol", socket->peer);
    return open_stream(socket);
}

clt_status clt_socket_handshake(clt_socket *socket) {
    if (socket->stage == CLT_OPEN) return CLT_OK;
    ERR_clear_error();
    if (socket->stage == CLT_SHAKING_HANDS) {
        int result = SSL_do_handshake(socket->ssl);
        if (result <= 0) return why_stopped(socket, result);
        /* A handshake without the key would have ended above for want of certificates; this makes sure. */
        if (socket->security->with_psk && !SSL_session_reused(socket->ssl))
            return clt_fail(CLT_E_DENIED, "%s: does not use the job's token", socket->peer);
        socket->stage = CLT_CONFIRMING;
    }
    return confirm(socket);
}

static clt_status finish_handshake(clt_socket *socket, double deadline) {
    clt_status status;
    while ((status = clt_socket_handshake(socket)) == CLT_END)
        CLT_TRY(clt_socket_wait(socket, clt_socket_events(socket, true, false), deadline));
    return status;
}

static clt_status wait_connected(int descriptor, const char *text, double deadline) {
    struct pollfd one = {descriptor, POLLOUT, 0};
    int ready, error = 0;
    do {
        double left = deadline - clt_seconds();
        if (left <= 0) return clt_fail(CLT_E_TIMEOUT, "%s: no connection within the time allowed", text);
        ready = poll(&one, 1, (int)(CLT_MIN(left, 1e6) * 1000) + 1);
    } while (ready == 0 || (ready < 0 && errno == EINTR));
    socklen_t bytes = sizeof error;
    if (ready < 0 || getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &bytes)) error = errno;
    return error ? clt_fail(CLT_E_NETWORK, "%s: %s", text, strerror(error)) : CLT_OK;
}

/* In the range of ports that the system gives out, a connection to a free port of this host may meet
 * itself. */
static bool is_own_echo(int descriptor) {
    struct sockaddr_storage own, other;
    socklen_t own_bytes = sizeof own, other_bytes = sizeof other;
    memset(&own, 0, sizeof own), memset(&other, 0, sizeof other);
    return getsockname(descriptor, (struct sockaddr *)&own, &own_bytes) == 0 &&
           getpeername(descriptor, (struct sockaddr *)&other, &other_bytes) == 0 &&
           own_bytes == other_bytes && memcmp(&own, &other, own_bytes) == 0;
}

static clt_status connect_plain(int *descriptor, const struct sockaddr *address, socklen_t bytes,
                                double deadline) {
    char text[64];
    clt_address_text(address, bytes, text);
    int s = *descriptor = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0) return clt_fail(CLT_E_SYSTEM, "%s: no socket: %s", text, strerror(errno));
    clt_status status = CLT_OK;
    if (connect(s, address, bytes)) {
        if (errno == EINPROGRESS || errno == EINTR) status = wait_connected(s, text, deadline);
        else status = clt_fail(CLT_E_NETWORK, "%s: %s", text, strerror(errno));
    }
    if (status == CLT_OK && is_own_echo(s))
        status = clt_fail(CLT_E_NETWORK, "%s: nothing listens there", text);
    if (status < 0) close(s);
    return status;
}

clt_status clt_socket_connect(clt_socket **out, const clt_security *security,
                              const struct sockaddr *address, socklen_t address_bytes, double deadline) {
    *out = NULL;
    int descriptor;
    CLT_TRY(connect_plain(&descriptor, address, address_bytes, deadline));
    CLT_TRY(clt_socket_make(out, security, descriptor, false));
    clt_status status = finish_handshake(*out, deadline);
    if (status == CLT_OK) return CLT_OK;
    clt_socket_destroy(*out);
    *out = NULL;
    return status;
}
