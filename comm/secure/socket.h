/*
 * A socket seen from inside: what socket.c, handshake.c and bio.c share.
 */
#ifndef CLT_COMM_SECURE_SOCKET_H
#define CLT_COMM_SECURE_SOCKET_H

#include "comm/secure/parts.h"

/* Of TLS records on their way: eight of the largest. */
enum { CLT_RECORD_BYTES = 16384, CLT_RECORD_ROOM = CLT_RECORD_BYTES + 1024, CLT_STREAM_BYTES = 8 * CLT_RECORD_ROOM };

/* Bytes that were read and not yet used, or written and not yet sent. No memory: straight to the system. */
typedef struct clt_stream {
    unsigned char *data;
    size_t start, end;
} clt_stream;

struct clt_socket {
    int descriptor;
    const clt_security *security;
    SSL *ssl; /* NULL: plain */
    enum { CLT_SHAKING_HANDS, CLT_CONFIRMING, CLT_OPEN } stage;
    bool accepting;
    bool more;            /* the last read stopped because its buffer was full */
    bool ended;           /* the other end closed */
    int error;            /* errno of what broke the connection, or 0 */
    uint64_t keyed_bytes; /* sent under the present key */
    clt_stream in, out;   /* TLS, once it is open */
    char peer[64];
};

/* send(2) and recv(2), repeated when interrupted. *moved = 0: not now. false: the connection is gone,
 * which is noted. */
bool clt_socket_send_raw(clt_socket *socket, const struct iovec *pieces, int n, size_t *moved);
bool clt_socket_receive_raw(clt_socket *socket, void *data, size_t bytes, size_t *moved);
/* Sends what `out` holds as far as it goes. */
bool clt_socket_flush(clt_socket *socket);
/* CLT_E_NETWORK, in words, of a connection that is gone. */
clt_status clt_socket_fail(const clt_socket *socket, const char *during);

/* Makes a socket of a connected descriptor; closes it on error. */
clt_status clt_socket_make(clt_socket **out, const clt_security *security, int descriptor, bool accepting);
/* Waits until the descriptor is ready. CLT_E_TIMEOUT. */
clt_status clt_socket_wait(const clt_socket *socket, short events, double deadline);

#endif
