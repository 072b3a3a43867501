/* The public face of a store, for launchers: a rendezvous with the security that it borrows, and text for values. */
#include <string.h>

#include "comm/rendezvous/rendezvous.h"

struct clt_store {
    clt_security *security;
    clt_rendezvous *rendezvous;
};

static const double connect_default = 120;

clt_status clt_store_open(clt_store **store, const clt_comm_options *options, bool serve) {
    if (!store || !options) return clt_fail(CLT_E_INVALID, "clt_store_open: store or options is NULL");
    clt_store *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_fail_memory(sizeof *s);
    clt_comm_security level = options->security == CLT_SECURITY_DEFAULT ? CLT_SECURITY_TLS : options->security;
    clt_status status = CLT_OK;
    if (options->store && !strncmp(options->store, "tcp://", 6))
        CLT_TRY_GOTO(clt_security_create(&s->security, level, options->token, options->certificate, options->key,
                                         options->authority));
    CLT_TRY_GOTO(clt_rendezvous_open(
        &s->rendezvous,
        &(clt_rendezvous_options){.url = options->store, .job = options->job, .network = options->network, .security = s->security,
                                  .serve = serve,
                                  .connect_seconds = options->connect_seconds > 0 ? options->connect_seconds : connect_default}));
    *store = s;
    return CLT_OK;
fail:
    clt_store_close(s);
    return status;
}

void clt_store_close(clt_store *store) {
    if (!store) return;
    clt_rendezvous_close(store->rendezvous);
    clt_security_destroy(store->security);
    clt_free(store);
}

const char *clt_store_url(const clt_store *store) {
    return store ? clt_rendezvous_url(store->rendezvous) : NULL;
}

clt_status clt_store_set(clt_store *store, const char *key, const char *value, double seconds) {
    if (!store || !key || !value) return clt_fail(CLT_E_INVALID, "clt_store_set: store, key or value is NULL");
    return clt_rendezvous_set(store->rendezvous, key, value, strlen(value), clt_seconds() + seconds);
}

static clt_status end_text(const char *key, char value[CLT_STORE_TEXT_BYTES], size_t bytes) {
    if (bytes >= CLT_STORE_TEXT_BYTES || memchr(value, 0, bytes))
        return clt_fail(CLT_E_FORMAT, "'%s' in the store is not text", key);
    value[bytes] = 0;
    return CLT_OK;
}

clt_status clt_store_set_once(clt_store *store, const char *key, const char *value, char stands[CLT_STORE_TEXT_BYTES], double seconds) {
    size_t bytes;
    if (!store || !key || !value || !stands) return clt_fail(CLT_E_INVALID, "clt_store_set_once: an argument is NULL");
    CLT_TRY(clt_rendezvous_set_once(store->rendezvous, key, value, strlen(value), stands, &bytes, clt_seconds() + seconds));
    return end_text(key, stands, bytes);
}

clt_status clt_store_get(clt_store *store, const char *key, char value[CLT_STORE_TEXT_BYTES], double seconds) {
    size_t bytes;
    if (!store || !key || !value) return clt_fail(CLT_E_INVALID, "clt_store_get: store, key or value is NULL");
    CLT_TRY(clt_rendezvous_get(store->rendezvous, key, value, &bytes, clt_seconds() + seconds));
    return end_text(key, value, bytes);
}
