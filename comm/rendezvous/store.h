/*
 * What a store does for a rendezvous: one table each for files, TCP and Redis.
 *
 * Keys are "JOB/KEY", of CLT_STORE_KEY_BYTES at most, without a NUL; values are of CLT_RENDEZVOUS_VALUE_BYTES at most, and so is the memory
 * that they are read into. Deadlines are of clt_seconds(); a look is always made once, however late it is.
 */
#ifndef CLT_COMM_STORE_H
#define CLT_COMM_STORE_H

#include "comm/rendezvous/rendezvous.h"

enum { CLT_STORE_JOB_BYTES = 127, CLT_STORE_KEY_BYTES = 3 * CLT_STORE_JOB_BYTES + 1 + CLT_RENDEZVOUS_KEY_BYTES };

typedef struct clt_store_ops {
    const char *scheme; /* what the url begins with */
    /* `rest`: the url behind the scheme. */
    clt_status (*open)(void **store, const char *rest, const clt_rendezvous_options *options, double deadline);
    void (*close)(void *store);
    clt_status (*set)(void *store, const char *key, const void *value, size_t bytes, double deadline);
    /* *stands and *stands_bytes are never NULL. */
    clt_status (*set_once)(void *store, const char *key, const void *value, size_t bytes, void *stands, size_t *stands_bytes,
                           double deadline);
    /* CLT_END: there is none. */
    clt_status (*look)(void *store, const char *key, void *value, size_t *bytes, double deadline);
    /* Waits for the key; CLT_END when the deadline passed. NULL: looks are repeated. */
    clt_status (*wait)(void *store, const char *key, void *value, size_t *bytes, double deadline);
    clt_status (*remove)(void *store, const char *key, double deadline);
    /* HOST:PORT where it is served, or NULL. */
    const char *(*served_at)(void *store);
} clt_store_ops;

extern const clt_store_ops clt_store_file, clt_store_tcp, clt_store_redis;

/* Sleeps for `seconds`, but not past the deadline. */
void clt_store_pause(double seconds, double deadline);

/* ---- parts of urls (url.c) ---- */

/* Replaces %XX by the byte, in place. CLT_E_INVALID: no two hex digits, or a NUL. */
clt_status clt_url_decode(char *text);
/* Letters, digits, '-', '_' and '.' stand for themselves, all else for %XX. False if `capacity` is too small for it and a NUL. */
bool clt_url_encode(const char *text, char *out, size_t capacity);

#endif
