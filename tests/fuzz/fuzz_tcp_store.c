/* What a server answers to the tcp store's client. */
#include "comm/rendezvous/tcp_store.c"
#include "tests/fuzz/fuzz.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    clt_security *security;
    char where[] = "nowhere", value[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes = 0;
    int other;
    fuzz_begin(size);
    FUZZ_CHECK(clt_security_create(&security, CLT_SECURITY_NONE, NULL, NULL, NULL, NULL) == CLT_OK);
    uint8_t how = fuzz_byte(&input);
    request q = {.code = CLT_TCP_LOOK, .key = "default/key", .milliseconds = 1};
    if (how & 1) q.answer = value, q.answer_bytes = &bytes;
    if (how & 2) q.value = "a value", q.bytes = 7;
    tcp_store s = {.where = where, .security = security};
    int descriptor = fuzz_connection(input, &other);
    FUZZ_CHECK(clt_socket_accepted(&s.socket, security, descriptor) == CLT_OK);
    for (int i = 0; i < 3; i++) {
        clt_status status = exchange(&s, &q, 0);
        FUZZ_CHECK(bytes <= sizeof value);
        if (status < 0) break;
    }
    disconnect(&s);
    close(other);
    clt_security_destroy(security);
    return 0;
}
