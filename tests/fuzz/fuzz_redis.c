/* What a server answers to the redis store, and the store's url. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>

#include "runtime/base/base.h"
#include "tests/fuzz/fuzz.h"

/* Every deadline has come: a connection that was lost is not tried again, with pauses, for half a second. */
#define clt_seconds() ((double)INFINITY)
#include "comm/rendezvous/redis_store.c"

#ifdef CLT_WITH_HIREDIS

static void read_answers(fuzz_input input) {
    int other;
    redis_store s = {.where = "nowhere:1", .socket = fuzz_connection(input, &other)};
    s.reader = redisReaderCreate();
    FUZZ_CHECK(s.reader != NULL);
    redisReply *reply;
    while (read_reply(&s, &reply, 0) == CLT_OK) {
        FUZZ_CHECK(reply->len <= MOST_REPLY_BYTES);
        freeReplyObject(reply);
    }
    disconnect(&s);
    close(other);
}

static void look_for_value(fuzz_input input) {
    int other;
    char value[CLT_RENDEZVOUS_VALUE_BYTES], where[] = "x";
    size_t bytes = 0;
    /* It can neither wait for more nor connect again. */
    redis_store s = {.where = "[", .url = where, .socket = fuzz_connection(input, &other)};
    shutdown(other, SHUT_WR);
    s.reader = redisReaderCreate();
    if (redis_look(&s, "default/key", value, &bytes, 0) == CLT_OK) FUZZ_CHECK(bytes <= sizeof value);
    disconnect(&s);
    close(other);
}

static void read_a_url(fuzz_input input) {
    char *url = fuzz_rest(&input), decoded[64];
    redis_store *s = clt_calloc(1, sizeof *s);
    s->socket = -1;
    if (read_url(s, url) == CLT_OK) FUZZ_CHECK(strlen(s->where) < sizeof s->where && s->where[0]);
    if (clt_url_encode(url, decoded, sizeof decoded)) {
        FUZZ_CHECK(clt_url_decode(decoded) == CLT_OK && !strcmp(decoded, url));
    }
    redis_close(s);
    fuzz_free(url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    fuzz_begin(size);
    switch (fuzz_byte(&input) % 3) {
    case 0: read_answers(input); break;
    case 1: look_for_value(input); break;
    default: read_a_url(input); break;
    }
    return 0;
}

#else

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    (void)data, (void)size;
    return 0;
}

#endif
