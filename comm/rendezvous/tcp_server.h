/*
 * The tcp store's server and what is spoken with it.
 *
 * A request is a head, the key, the value; an answer a head and a value. A client has one request at a time. Numbers are little-endian.
 */
#ifndef CLT_COMM_TCP_SERVER_H
#define CLT_COMM_TCP_SERVER_H

#include "comm/rendezvous/store.h"

enum {
    CLT_TCP_HEAD_BYTES = 16,
    CLT_TCP_REQUEST_BYTES = CLT_TCP_HEAD_BYTES + CLT_STORE_KEY_BYTES + CLT_RENDEZVOUS_VALUE_BYTES,
    CLT_TCP_ANSWER_BYTES = CLT_TCP_HEAD_BYTES + CLT_RENDEZVOUS_VALUE_BYTES
};
#define CLT_TCP_MAGIC 0x31537443u /* "CtS1" */

/* `code` of a request: */
typedef enum clt_tcp_request {
    CLT_TCP_HELLO = 1, /* answered by OK: whoever does not speak this is found out at once */
    CLT_TCP_SET,
    CLT_TCP_SET_ONCE,  /* OK with the value that stands */
    CLT_TCP_LOOK,      /* OK with the value, or NONE */
    CLT_TCP_WAIT,      /* the same, but NONE only after `milliseconds` */
    CLT_TCP_REMOVE
} clt_tcp_request;

/* … and of an answer: */
typedef enum clt_tcp_answer { CLT_TCP_OK = 1, CLT_TCP_NONE, CLT_TCP_FULL } clt_tcp_answer;

typedef struct clt_tcp_head {
    uint8_t code;
    uint16_t key_bytes;
    uint32_t value_bytes, milliseconds;
} clt_tcp_head;

void clt_tcp_write_head(const clt_tcp_head *head, unsigned char bytes[CLT_TCP_HEAD_BYTES]);
/* False if it is none, or names more bytes than there may be. */
bool clt_tcp_read_head(clt_tcp_head *head, const unsigned char bytes[CLT_TCP_HEAD_BYTES]);

/* ---- the keys (tcp_table.c) ---- */

typedef struct clt_tcp_table clt_tcp_table;

clt_status clt_tcp_table_create(clt_tcp_table **table);
void clt_tcp_table_destroy(clt_tcp_table *table);
/* CLT_E_RANGE: there would be too many keys, or bytes. */
clt_status clt_tcp_table_set(clt_tcp_table *table, const char *key, size_t key_bytes, const void *value, size_t bytes);
/* NULL: there is none. */
const void *clt_tcp_table_find(const clt_tcp_table *table, const char *key, size_t key_bytes, size_t *bytes);
void clt_tcp_table_remove(clt_tcp_table *table, const char *key, size_t key_bytes);

/* ---- the server (tcp_server.c) ---- */

typedef struct clt_tcp_server clt_tcp_server;

/* Listens at PORT (0: any) of `network`, or of HOST where that is NULL, and answers on a thread of its own. */
clt_status clt_tcp_server_start(clt_tcp_server **server, const char *host_and_port, const char *network,
                                const clt_security *security);
/* "ADDRESS:PORT" */
const char *clt_tcp_server_address(const clt_tcp_server *server);
/* Waits up to two seconds until no client is connected. NULL is fine. */
void clt_tcp_server_stop(clt_tcp_server *server);

#endif
