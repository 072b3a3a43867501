/*
 * Names of hosts. The system's resolver knows no deadline and cannot be told to stop: it works in a thread of its own, which
 * is left to itself when it takes too long.
 */
#define _GNU_SOURCE /* EAI_SYSTEM, struct addrinfo */
#include "comm/secure/parts.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>

#include "runtime/base/thread.h"

/* The asking and the looking side own it together: whoever leaves last frees it. */
typedef struct question {
    clt_thread thread; /* that looks; joined when it has answered, so that nothing of it is left, else detached */
    clt_mutex mutex;
    clt_condition answered;
    bool done, abandoned;
    int error, system_error; /* of getaddrinfo; errno where that says so */
    struct sockaddr_storage address;
    socklen_t bytes;
    char host[CLT_HOST_BYTES], port[8];
} question;

static int ask_system(const char *host, const char *port, int flags, struct sockaddr_storage *address, socklen_t *bytes) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags}, *found;
    int error = getaddrinfo(host, port, &hints, &found);
    if (error) return error;
    memcpy(address, found->ai_addr, found->ai_addrlen);
    *bytes = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static void forget(question *q) {
    clt_condition_destroy(&q->answered);
    clt_mutex_destroy(&q->mutex);
    clt_free(q);
}

static void *look(void *user) {
    question *q = user;
    struct sockaddr_storage address;
    socklen_t bytes = 0;
    int error = ask_system(q->host, q->port[0] ? q->port : NULL, 0, &address, &bytes), number = errno;
    clt_mutex_lock(&q->mutex);
    q->error = error, q->system_error = number;
    if (!error) q->address = address, q->bytes = bytes;
    q->done = true;
    bool last = q->abandoned;
    clt_condition_wake_all(&q->answered);
    clt_mutex_unlock(&q->mutex);
    if (last) forget(q);
    return NULL;
}

static clt_status start(question **out, const char *host, const char *port) {
    question *q = clt_calloc(1, sizeof *q);
    if (!q) return clt_fail_memory(sizeof *q);
    strncpy(q->host, host, sizeof q->host - 1);
    strncpy(q->port, port ? port : "", sizeof q->port - 1);
    clt_status status = clt_mutex_init(&q->mutex);
    if (status < 0) {
        clt_free(q);
        return status;
    }
    status = clt_condition_init(&q->answered);
    if (status < 0) {
        clt_mutex_destroy(&q->mutex);
        clt_free(q);
        return status;
    }
    status = clt_thread_start(&q->thread, look, q); /* which does not read it */
    if (status < 0) forget(q);
    else *out = q;
    return status;
}

static clt_status fail_of(const char *host, int error, int number) {
    return clt_fail(CLT_E_NETWORK, "host %s: %s", host, error == EAI_SYSTEM ? strerror(number) : gai_strerror(error));
}

/* Frees the question, or leaves it to the thread. */
static clt_status wait_for(question *q, double deadline, struct sockaddr_storage *address, socklen_t *bytes) {
    clt_status status = CLT_OK;
    clt_mutex_lock(&q->mutex);
    while (!q->done && clt_seconds() < deadline) clt_condition_wait_until(&q->answered, &q->mutex, deadline);
    bool done = q->done;
    clt_thread thread = q->thread;
    q->abandoned = !done;
    if (!done) status = clt_fail(CLT_E_TIMEOUT, "host %s: no answer from the resolver of names within the time allowed", q->host);
    else if (q->error) status = fail_of(q->host, q->error, q->system_error);
    else *address = q->address, *bytes = q->bytes;
    clt_mutex_unlock(&q->mutex);
    if (done) clt_thread_join(thread), forget(q);
    else clt_thread_detach(thread);
    return status;
}

clt_status clt_look_up(const char *host, const char *port, double deadline, struct sockaddr_storage *address, socklen_t *bytes) {
    question *q = NULL;
    if (ask_system(host, port, AI_NUMERICHOST, address, bytes) == 0) return CLT_OK;
    CLT_TRY(start(&q, host, port));
    return wait_for(q, deadline, address, bytes);
}
