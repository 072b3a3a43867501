/*
 * Sockets that know who is at the other end: TLS 1.3 over TCP, with a key from the job's token or with
 * certificates.
 *
 * Nothing here blocks longer than its deadline, raises a signal (SIGPIPE) or trusts a byte before the
 * handshake is over.
 */
#ifndef CLT_COMM_SECURE_H
#define CLT_COMM_SECURE_H

#include <sys/socket.h>
#include <sys/uio.h>

#include <cltrain/comm.h>

#include "runtime/base/base.h"

/* How connections of a job are protected. Immutable; any thread. */
typedef struct clt_security clt_security;

/* Token, level and files as in clt_comm_options (not NULL where needed: the environment has been read).
 * Logs a warning for level none. The pre-shared key is HKDF-SHA256 of the token. CLT_E_INVALID: the
 * token is missing or too short, a file cannot be used. */
clt_status clt_security_create(clt_security **security, clt_comm_security level, const char *token, const char *certificate,
                               const char *key, const char *authority);
void clt_security_destroy(clt_security *security);
clt_comm_security clt_security_level(const clt_security *security);

/* Warns in the log of a connection that was refused: a few times a second at most, and of how many more
 * there were. Any thread. */
void clt_log_refusal(const clt_security *security, const char *peer, const char *why);

/* One end of a connection. Non-blocking; one thread at a time. Borrows the security. */
typedef struct clt_socket clt_socket;

/* Connects to an address, or takes an accepted descriptor over, and shakes hands with whoever is there,
 * until the deadline (clt_seconds). The descriptor is closed on error. CLT_E_NETWORK: refused,
 * unreachable; CLT_E_DENIED: the other end does not hold the token; CLT_E_TIMEOUT. Details name the
 * address. */
clt_status clt_socket_connect(clt_socket **socket, const clt_security *security, const struct sockaddr *address,
                              socklen_t address_bytes, double deadline);

/* The accepting side without blocking, so that one slow stranger does not hold up others: starts a
 * handshake, then clt_socket_handshake until it returns CLT_OK; CLT_END: call again when the descriptor
 * is readable or writable, as clt_socket_events says. */
clt_status clt_socket_accepted(clt_socket **socket, const clt_security *security, int descriptor);
clt_status clt_socket_handshake(clt_socket *socket);

/* Up to the whole of the pieces; *moved may be less, and 0, when the other end is slow. CLT_E_NETWORK
 * when the connection is gone: detail says how. End of stream is CLT_E_NETWORK too, with *moved = 0.
 * TLS takes in some bytes before it can send them: as long as clt_socket_events(socket, false, false)
 * says POLLOUT, a write (of no pieces, if there is nothing else) is to follow when poll() says so. */
clt_status clt_socket_write(clt_socket *socket, const struct iovec *pieces, int n, size_t *moved);
clt_status clt_socket_read(clt_socket *socket, void *data, size_t bytes, size_t *moved);

/* Whole or not at all, until the deadline: for handshakes and stores. */
clt_status clt_socket_write_all(clt_socket *socket, const void *data, size_t bytes, double deadline);
clt_status clt_socket_read_all(clt_socket *socket, void *data, size_t bytes, double deadline);

/* For poll(): the descriptor, and the events that a stopped read or write waits for (TLS may want to
 * write in order to read). Bytes that were decrypted and not yet read do not show in poll:
 * clt_socket_pending, true when a read filled its buffer, so that there may be more. */
int clt_socket_descriptor(const clt_socket *socket);
short clt_socket_events(const clt_socket *socket, bool reading, bool writing);
bool clt_socket_pending(const clt_socket *socket);
/* Whether a connection that failed was closed, or reset, by the other host; not: nothing was heard any more. */
bool clt_socket_was_closed(const clt_socket *socket);
/* "192.0.2.7:41523", of the other end. Lives with the socket. */
const char *clt_socket_peer(const clt_socket *socket);

/* Closes. NULL is fine. */
void clt_socket_destroy(clt_socket *socket);

/* ---- addresses and listening ---- */

/* A listening descriptor (close(2) it) on an interface (name or address; NULL: the address of this host
 * that routes to `towards`, HOST or HOST:PORT; if that is NULL too, loopback) and the first free port
 * of "LOW-HIGH" (NULL: any). *text: "ADDRESS:PORT" to be reached at. CLT_E_INVALID names the interface
 * or port range that there is none of. */
#define CLT_LOOK_UP_SECONDS 30 /* for a name in `towards` */
clt_status clt_listen(const char *network, const char *towards, const char *ports, int *descriptor, char text[64]);

/* The address that clt_listen would listen at, without a port. */
clt_status clt_own_address(const char *network, const char *towards, char text[64]);

/* "HOST:PORT" ("[::1]:80" for IPv6) to an address; names are looked up until the deadline (clt_seconds). CLT_E_NETWORK and
 * CLT_E_TIMEOUT name the host. */
clt_status clt_resolve(const char *host_and_port, double deadline, struct sockaddr_storage *address, socklen_t *bytes);

#endif
