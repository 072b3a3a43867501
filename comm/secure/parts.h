/*
 * What the files of this folder share: how a job's connections are protected, seen from inside.
 */
#ifndef CLT_COMM_SECURE_PARTS_H
#define CLT_COMM_SECURE_PARTS_H

#include <openssl/ssl.h>

#include "comm/secure/secure.h"
#include "runtime/base/thread.h"

enum { CLT_PSK_BYTES = 32, CLT_HOST_BYTES = 256 };

struct clt_security {
    clt_comm_security level;
    SSL_CTX *context;    /* NULL: level none */
    BIO_METHOD *method;  /* how TLS reaches a clt_socket */
    bool with_psk;       /* else certificates */
    unsigned char psk[CLT_PSK_BYTES];
    uint64_t rekey_bytes; /* sent under one key at most */

    clt_mutex refused_lock;
    double refused_since; /* the second that is counted */
    unsigned refused_logged;
    uint64_t refused_silent;
    char refused_last[64];
};

/* "192.0.2.7:41523" or "[::1]:80"; "?" for what is no such address. */
void clt_address_text(const struct sockaddr *address, socklen_t bytes, char text[64]);

/* look_up.c: an address of a host, by name or in numbers, with the port (NULL: 0), until the deadline. CLT_E_NETWORK and
 * CLT_E_TIMEOUT name the host. */
clt_status clt_look_up(const char *host, const char *port, double deadline, struct sockaddr_storage *address, socklen_t *bytes);

/* TLS over a clt_socket (bio.c): plain calls of send and recv that raise no signal. */
BIO_METHOD *clt_bio_method(void);

/* The last of OpenSSL's errors on this thread, in words; `otherwise` if there is none. */
const char *clt_tls_reason(const char *otherwise);

#endif
