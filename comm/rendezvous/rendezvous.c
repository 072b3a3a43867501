/*
 * The rendezvous over any store: urls, keys, and waiting.
 */
#include "comm/rendezvous/store.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const clt_store_ops *const stores[] = {&clt_store_tcp, &clt_store_file, &clt_store_redis};

struct clt_rendezvous {
    const clt_store_ops *ops;
    void *store;
    char job[3 * CLT_STORE_JOB_BYTES + 1]; /* encoded: without a '/' */
    char *url;
};

void clt_store_pause(double seconds, double deadline) {
    double left = deadline - clt_seconds();
    seconds = CLT_MIN(seconds, left);
    if (seconds <= 0) return;
    struct timespec span = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&span, NULL);
}

static const clt_store_ops *find_store(const char *url) {
    for (size_t i = 0; i < CLT_COUNT_OF(stores); i++)
        if (!strncmp(url, stores[i]->scheme, strlen(stores[i]->scheme))) return stores[i];
    return NULL;
}

/* The part of an url that may be shown: without user and password. */
static int show_scheme(const char *url) {
    const char *end = strstr(url, "://");
    return end ? (int)CLT_MIN(end - url, 32) : 0;
}

static clt_status set_url(clt_rendezvous *r, const char *url) {
    clt_text text = {0};
    const char *served = r->ops->served_at ? r->ops->served_at(r->store) : NULL;
    if (served) clt_text_add(&text, "%s%s", r->ops->scheme, served);
    else clt_text_add(&text, "%s", url);
    r->url = text.data;
    return text.status;
}

clt_status clt_rendezvous_open(clt_rendezvous **rendezvous, const clt_rendezvous_options *options) {
    const char *url = options->url, *job = options->job && options->job[0] ? options->job : "default";
    if (!url || !url[0]) return clt_fail(CLT_E_INVALID, "no store is named for the ranks to find each other");
    const clt_store_ops *ops = find_store(url);
    if (!ops)
        return clt_fail(CLT_E_INVALID, "the store's url begins with '%.*s': expected tcp://, file:// or redis://", show_scheme(url),
                        url);
    if (strlen(job) > CLT_STORE_JOB_BYTES)
        return clt_fail(CLT_E_INVALID, "the job's name has %zu characters, more than %d", strlen(job), CLT_STORE_JOB_BYTES);
    clt_rendezvous *r = clt_calloc(1, sizeof *r);
    if (!r) return clt_fail_memory(sizeof *r);
    r->ops = ops;
    clt_url_encode(job, r->job, sizeof r->job);
    clt_status status;
    CLT_TRY_GOTO(ops->open(&r->store, url + strlen(ops->scheme), options, clt_seconds() + options->connect_seconds));
    CLT_TRY_GOTO(set_url(r, url));
    *rendezvous = r;
    return CLT_OK;
fail:
    clt_rendezvous_close(r);
    return status;
}

void clt_rendezvous_close(clt_rendezvous *rendezvous) {
    if (!rendezvous) return;
    if (rendezvous->store) rendezvous->ops->close(rendezvous->store);
    clt_free(rendezvous->url);
    clt_free(rendezvous);
}

const char *clt_rendezvous_url(const clt_rendezvous *rendezvous) {
    return rendezvous->url;
}

static clt_status full_key(const clt_rendezvous *r, const char *key, char full[CLT_STORE_KEY_BYTES + 1]) {
    size_t length = strlen(key);
    if (length == 0 || length > CLT_RENDEZVOUS_KEY_BYTES)
        return clt_fail(CLT_E_INVALID, "a key of the store has %zu characters: expected 1 to %d", length, CLT_RENDEZVOUS_KEY_BYTES);
    snprintf(full, CLT_STORE_KEY_BYTES + 1, "%s/%s", r->job, key);
    return CLT_OK;
}

static clt_status check_value(const char *key, size_t bytes) {
    if (bytes <= CLT_RENDEZVOUS_VALUE_BYTES) return CLT_OK;
    return clt_fail(CLT_E_INVALID, "the value of '%s' has %zu bytes: the store takes %d", key, bytes, CLT_RENDEZVOUS_VALUE_BYTES);
}

clt_status clt_rendezvous_set(clt_rendezvous *rendezvous, const char *key, const void *value, size_t bytes, double deadline) {
    char full[CLT_STORE_KEY_BYTES + 1];
    CLT_TRY(full_key(rendezvous, key, full));
    CLT_TRY(check_value(key, bytes));
    return rendezvous->ops->set(rendezvous->store, full, value, bytes, deadline);
}

clt_status clt_rendezvous_set_once(clt_rendezvous *rendezvous, const char *key, const void *value, size_t bytes, void *stands,
                                   size_t *stands_bytes, double deadline) {
    char full[CLT_STORE_KEY_BYTES + 1], other[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t other_bytes;
    CLT_TRY(full_key(rendezvous, key, full));
    CLT_TRY(check_value(key, bytes));
    return rendezvous->ops->set_once(rendezvous->store, full, value, bytes, stands ? stands : other,
                                     stands_bytes ? stands_bytes : &other_bytes, deadline);
}

clt_status clt_rendezvous_look(clt_rendezvous *rendezvous, const char *key, void *value, size_t *bytes, double deadline) {
    char full[CLT_STORE_KEY_BYTES + 1];
    CLT_TRY(full_key(rendezvous, key, full));
    return rendezvous->ops->look(rendezvous->store, full, value, bytes, deadline);
}

/* Often at first, then less so: 1 ms to 50 ms. */
static clt_status wait_by_looking(clt_rendezvous *r, const char *full, void *value, size_t *bytes, double deadline) {
    for (double pause = 1e-3;; pause = CLT_MIN(pause * 1.5, 50e-3)) {
        clt_status status = r->ops->look(r->store, full, value, bytes, deadline);
        if (status != CLT_END || clt_seconds() >= deadline) return status;
        clt_store_pause(pause, deadline);
    }
}

clt_status clt_rendezvous_get(clt_rendezvous *rendezvous, const char *key, void *value, size_t *bytes, double deadline) {
    char full[CLT_STORE_KEY_BYTES + 1];
    CLT_TRY(full_key(rendezvous, key, full));
    clt_status status = rendezvous->ops->wait ? rendezvous->ops->wait(rendezvous->store, full, value, bytes, deadline)
                                              : wait_by_looking(rendezvous, full, value, bytes, deadline);
    if (status == CLT_END) return clt_fail(CLT_E_TIMEOUT, "timed out waiting for key '%s' in the store: the rank that puts it there has not come, or has another job name or engine", full);
    return status;
}

clt_status clt_rendezvous_remove(clt_rendezvous *rendezvous, const char *key, double deadline) {
    char full[CLT_STORE_KEY_BYTES + 1];
    CLT_TRY(full_key(rendezvous, key, full));
    return rendezvous->ops->remove(rendezvous->store, full, deadline);
}
