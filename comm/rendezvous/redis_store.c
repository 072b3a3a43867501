/*
 * The store in a Redis server. hiredis writes commands and reads replies; the socket is ours, for its own calls have a time limit for each
 * read, not for all, and may raise SIGPIPE. Keys expire, so that jobs leave nothing behind.
 */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "comm/rendezvous/store.h"

#ifdef CLT_WITH_HIREDIS

#include <ctype.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXPIRY_SECONDS "7200"
#define MARK '=' /* before each value: GETRANGE gives no bytes for a key that is not there */

enum { DEFAULT_PORT = 6379, MOST_REPLY_BYTES = CLT_RENDEZVOUS_VALUE_BYTES + 4096, KEY_BYTES = CLT_STORE_KEY_BYTES + 16 };

typedef struct redis_store {
    char where[300]; /* HOST:PORT, for messages too: without the password */
    char *user, *password, *database; /* parts of `url`, or NULL */
    char *url;
    int socket; /* -1: to be connected */
    redisReader *reader;
} redis_store;

static void disconnect(redis_store *s) {
    if (s->socket >= 0) close(s->socket);
    if (s->reader) redisReaderFree(s->reader);
    s->socket = -1;
    s->reader = NULL;
}

/* ---- the socket ---- */

static clt_status wait_for(const redis_store *s, short events, double deadline) {
    struct pollfd one = {s->socket, events, 0};
    for (;;) {
        double left = deadline - clt_seconds();
        if (left <= 0) return clt_fail(CLT_E_TIMEOUT, "no answer within the time allowed");
        int ready = poll(&one, 1, (int)(CLT_MIN(left, 1e6) * 1000) + 1);
        if (ready > 0) return CLT_OK;
        if (ready < 0 && errno != EINTR) return clt_fail(CLT_E_SYSTEM, "poll: %s", strerror(errno));
    }
}

static clt_status open_socket(redis_store *s, double deadline) {
    struct sockaddr_storage address;
    socklen_t bytes;
    CLT_TRY(clt_resolve(s->where, deadline, &address, &bytes));
    s->socket = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->socket < 0) return clt_fail(CLT_E_SYSTEM, "no socket: %s", strerror(errno));
    int one = 1, error = 0;
    socklen_t room = sizeof error;
    setsockopt(s->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(s->socket, (struct sockaddr *)&address, bytes) && errno != EINPROGRESS && errno != EINTR)
        return clt_fail(CLT_E_NETWORK, "%s", strerror(errno));
    CLT_TRY(wait_for(s, POLLOUT, deadline));
    if (getsockopt(s->socket, SOL_SOCKET, SO_ERROR, &error, &room) || error)
        return clt_fail(CLT_E_NETWORK, "%s", strerror(error ? error : errno));
    return CLT_OK;
}

static clt_status write_all(const redis_store *s, const char *data, size_t bytes, double deadline) {
    while (bytes > 0) {
        ssize_t n = send(s->socket, data, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            CLT_TRY(wait_for(s, POLLOUT, deadline));
            continue;
        }
        if (n < 0) return clt_fail(CLT_E_NETWORK, "connection lost while writing: %s", strerror(errno));
        data += n;
        bytes -= (size_t)n;
    }
    return CLT_OK;
}

/* ---- replies ---- */

static clt_status no_redis(void) {
    return clt_fail(CLT_E_FORMAT, "what answers there does not speak as Redis does");
}

/* More bytes of the reply into the reader. The kinds of replies that our commands have: hiredis would take memory for arrays
 * of any length that it is told. */
static clt_status feed(redis_store *s, size_t *total, double deadline) {
    char bytes[4096];
    ssize_t n = recv(s->socket, bytes, sizeof bytes, 0);
    if (n < 0 && errno == EINTR) return CLT_OK;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return wait_for(s, POLLIN, deadline);
    if (n < 0) return clt_fail(CLT_E_NETWORK, "connection lost while reading: %s", strerror(errno));
    if (n == 0) return clt_fail(CLT_E_NETWORK, "the server closed the connection");
    if (*total == 0 && !strchr("+-:$", bytes[0])) return no_redis();
    *total += (size_t)n;
    if (*total > MOST_REPLY_BYTES) return clt_fail(CLT_E_FORMAT, "a reply of more than %d bytes", MOST_REPLY_BYTES);
    if (redisReaderFeed(s->reader, bytes, (size_t)n) != REDIS_OK) return no_redis();
    return CLT_OK;
}

/* What the server says is shown without what would harm a terminal. */
static clt_status fail_reply(const redisReply *reply) {
    char text[200];
    snprintf(text, sizeof text, "%s", reply->str ? reply->str : "");
    for (char *c = text; *c; c++)
        if (!isprint((unsigned char)*c)) *c = '?';
    if (!strncmp(text, "LOADING", 7)) return clt_fail(CLT_E_NETWORK, "%s", text); /* it will be there soon */
    bool denied = !strncmp(text, "NOAUTH", 6) || !strncmp(text, "WRONGPASS", 9) || !strncmp(text, "NOPERM", 6) ||
                  strstr(text, "invalid password") || strstr(text, "no password is set") || strstr(text, "without any password");
    return clt_fail(denied ? CLT_E_DENIED : CLT_E_IO, "%s", text);
}

static clt_status read_reply(redis_store *s, redisReply **reply, double deadline) {
    size_t total = 0;
    *reply = NULL;
    while (!*reply) {
        CLT_TRY(feed(s, &total, deadline));
        if (redisReaderGetReply(s->reader, (void **)reply) != REDIS_OK) return no_redis();
    }
    clt_status status = CLT_OK;
    if (s->reader->pos < s->reader->len) status = no_redis(); /* more than was asked for */
    else if ((*reply)->type == REDIS_REPLY_ERROR) status = fail_reply(*reply);
    if (status < 0) freeReplyObject(*reply);
    return status;
}

/* ---- commands ---- */

typedef struct command {
    int n;
    const char *words[8];
    size_t bytes[8];
} command;

static void add(command *c, const char *word, size_t bytes) {
    c->words[c->n] = word;
    c->bytes[c->n++] = bytes;
}

static command words_of(const char *first, const char *second, const char *third, const char *fourth) {
    command c = {0};
    const char *const all[] = {first, second, third, fourth};
    for (size_t i = 0; i < CLT_COUNT_OF(all); i++)
        if (all[i]) add(&c, all[i], strlen(all[i]));
    return c;
}

static clt_status exchange(redis_store *s, const command *c, redisReply **reply, double deadline) {
    char *text;
    int bytes = redisFormatCommandArgv(&text, c->n, (const char **)(uintptr_t)c->words, c->bytes);
    if (bytes < 0) return clt_fail_memory(CLT_RENDEZVOUS_VALUE_BYTES);
    clt_status status = write_all(s, text, (size_t)bytes, deadline);
    redisFreeCommand(text);
    return status < 0 ? status : read_reply(s, reply, deadline);
}

static clt_status say(redis_store *s, const command *c, double deadline) {
    redisReply *reply;
    CLT_TRY(exchange(s, c, &reply, deadline));
    freeReplyObject(reply);
    return CLT_OK;
}

static clt_status connect_once(redis_store *s, double deadline) {
    CLT_TRY(open_socket(s, deadline));
    s->reader = redisReaderCreate();
    if (!s->reader) return clt_fail_memory(sizeof *s->reader);
    command login = words_of("AUTH", s->user ? s->user : s->password, s->user ? s->password : NULL, NULL);
    if (s->password) CLT_TRY(say(s, &login, deadline));
    command select = words_of("SELECT", s->database, NULL, NULL), ping = words_of("PING", NULL, NULL, NULL);
    return say(s, s->database ? &select : &ping, deadline);
}

/* Repeats what failed for want of a connection, until the deadline. */
static clt_status ask(redis_store *s, const command *c, redisReply **reply, double deadline) {
    for (double pause = 10e-3;; pause = CLT_MIN(2 * pause, 0.5)) {
        clt_status status = s->socket >= 0 ? CLT_OK : connect_once(s, deadline);
        if (status == CLT_OK) status = exchange(s, c, reply, deadline);
        if (status == CLT_OK) return status;
        disconnect(s);
        if (status != CLT_E_NETWORK && status != CLT_E_TIMEOUT)
            return clt_fail_context(status, "the store redis://%s: ", s->where);
        if (clt_seconds() + pause >= deadline)
            return clt_fail_context(CLT_E_NETWORK, "the store redis://%s cannot be reached: ", s->where);
        clt_store_pause(pause, deadline);
    }
}

/* ---- the url ---- */

static clt_status bad_url(void) {
    return clt_fail(CLT_E_INVALID, "the store's url: expected redis://[USER:PASSWORD@]HOST[:PORT][/DB]");
}

static clt_status read_login(redis_store *s, char *login) {
    char *colon = strchr(login, ':');
    if (!colon) return bad_url();
    *colon = 0;
    CLT_TRY(clt_url_decode(login));
    CLT_TRY(clt_url_decode(colon + 1));
    s->user = login[0] ? login : NULL;
    s->password = colon + 1;
    return CLT_OK;
}

static clt_status read_host(redis_store *s, const char *host) {
    const char *bracket = strrchr(host, ']'), *colon = strrchr(bracket ? bracket : host, ':');
    if (!host[0] || host[0] == ':' || strlen(host) > sizeof s->where - 8) return bad_url();
    if (colon) snprintf(s->where, sizeof s->where, "%s", host);
    else snprintf(s->where, sizeof s->where, "%s:%d", host, DEFAULT_PORT);
    return CLT_OK;
}

static clt_status read_url(redis_store *s, const char *rest) {
    s->url = clt_strdup(rest);
    if (!s->url) return clt_fail_memory(strlen(rest));
    char *host = s->url, *at = strrchr(s->url, '@'), *slash = strchr(at ? at : s->url, '/');
    if (slash) {
        *slash = 0;
        s->database = slash[1] ? slash + 1 : NULL;
        if (s->database && (strlen(s->database) > 9 || strspn(s->database, "0123456789") != strlen(s->database)))
            return bad_url();
    }
    if (at) {
        *at = 0;
        host = at + 1;
        CLT_TRY(read_login(s, s->url));
    }
    return read_host(s, host);
}

/* ---- the table ---- */

static void redis_close(void *store) {
    redis_store *s = store;
    disconnect(s);
    if (s->password) explicit_bzero(s->password, strlen(s->password));
    clt_free(s->url);
    clt_free(s);
}

static clt_status redis_open(void **store, const char *rest, const clt_rendezvous_options *options, double deadline) {
    (void)options;
    redis_store *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_fail_memory(sizeof *s);
    s->socket = -1;
    redisReply *reply = NULL;
    command ping = words_of("PING", NULL, NULL, NULL);
    clt_status status = read_url(s, rest);
    if (status == CLT_OK) status = ask(s, &ping, &reply, deadline);
    if (status < 0) {
        redis_close(s);
        return status;
    }
    freeReplyObject(reply);
    *store = s;
    return CLT_OK;
}

static void name_key(const char *key, char name[KEY_BYTES]) {
    snprintf(name, KEY_BYTES, "cltrain:%s", key);
}

static clt_status put(redis_store *s, const char *key, const void *value, size_t bytes, bool once, double deadline) {
    char name[KEY_BYTES], marked[1 + CLT_RENDEZVOUS_VALUE_BYTES] = {MARK};
    name_key(key, name);
    if (bytes) memcpy(marked + 1, value, bytes);
    command c = words_of("SET", name, NULL, NULL);
    add(&c, marked, 1 + bytes);
    add(&c, "EX", 2);
    add(&c, EXPIRY_SECONDS, strlen(EXPIRY_SECONDS));
    if (once) add(&c, "NX", 2);
    redisReply *reply;
    CLT_TRY(ask(s, &c, &reply, deadline));
    freeReplyObject(reply); /* NOLINT(clang-analyzer-core.CallAndMessage) */
    return CLT_OK;
}

static clt_status redis_set(void *store, const char *key, const void *value, size_t bytes, double deadline) {
    return put(store, key, value, bytes, false, deadline);
}

static clt_status redis_look(void *store, const char *key, void *value, size_t *bytes, double deadline) {
    redis_store *s = store;
    char name[KEY_BYTES], last[16];
    name_key(key, name);
    snprintf(last, sizeof last, "%d", CLT_RENDEZVOUS_VALUE_BYTES + 1); /* one more than there may be */
    command c = words_of("GETRANGE", name, "0", last);
    redisReply *reply;
    CLT_TRY(ask(s, &c, &reply, CLT_MAX(deadline, clt_seconds() + 0.5)));
    clt_status status = CLT_OK;
    if (reply->type == REDIS_REPLY_STRING && reply->len == 0) { /* NOLINT(clang-analyzer-core.NullDereference) */
        status = CLT_END;
    } else if (reply->type != REDIS_REPLY_STRING || reply->str[0] != MARK || reply->len > 1 + CLT_RENDEZVOUS_VALUE_BYTES) {
        status = clt_fail(CLT_E_FORMAT, "the store redis://%s: '%s' is not a value of ours", s->where, name);
    } else {
        *bytes = reply->len - 1;
        memcpy(value, reply->str + 1, *bytes);
    }
    freeReplyObject(reply);
    return status;
}

static clt_status redis_set_once(void *store, const char *key, const void *value, size_t bytes, void *stands, size_t *stands_bytes,
                                 double deadline) {
    for (;;) {
        CLT_TRY(put(store, key, value, bytes, true, deadline));
        clt_status status = redis_look(store, key, stands, stands_bytes, deadline);
        if (status != CLT_END) return status;
        /* Again: the one in our way was removed meanwhile. */
        if (clt_seconds() >= deadline) return clt_fail(CLT_E_TIMEOUT, "'%s' does not stay in the store", key);
    }
}

static clt_status redis_remove(void *store, const char *key, double deadline) {
    char name[KEY_BYTES];
    name_key(key, name);
    command c = words_of("DEL", name, NULL, NULL);
    redisReply *reply;
    CLT_TRY(ask(store, &c, &reply, deadline));
    freeReplyObject(reply);
    return CLT_OK;
}

const clt_store_ops clt_store_redis = {.scheme = "redis://", .open = redis_open, .close = redis_close, .set = redis_set,
                                       .set_once = redis_set_once, .look = redis_look, .remove = redis_remove};

#else

static clt_status redis_open(void **store, const char *rest, const clt_rendezvous_options *options, double deadline) {
    (void)store, (void)rest, (void)options, (void)deadline;
    return clt_fail(CLT_E_UNSUPPORTED, "a redis:// store: the library was built without hiredis");
}

const clt_store_ops clt_store_redis = {.scheme = "redis://", .open = redis_open};

#endif
