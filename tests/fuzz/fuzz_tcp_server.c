/* What clients say to the tcp store's server. */
#include "comm/rendezvous/tcp_server.c"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

enum { CLIENTS = 2 };

static void add_client(clt_tcp_server *s, fuzz_input bytes, int *other) {
    FUZZ_CHECK(admit(s, fuzz_connection(bytes, other)) == CLT_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    clt_security *security;
    clt_tcp_server s = {.listener = -1, .wake = {-1, -1}, .address = "here"};
    int others[CLIENTS];
    fuzz_begin(size);
    FUZZ_CHECK(clt_security_create(&security, CLT_SECURITY_NONE, NULL, NULL, NULL, NULL) == CLT_OK);
    FUZZ_CHECK(clt_tcp_table_create(&s.table) == CLT_OK);
    s.security = security;
    fuzz_input first = fuzz_piece(&input);
    add_client(&s, first, &others[0]);
    add_client(&s, input, &others[1]);
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < s.n_clients; i++)
            if (!s.clients[i]->gone) serve(&s, s.clients[i]);
        sweep(&s, clt_seconds());
    }
    sweep(&s, clt_seconds() + 60);
    for (size_t i = 0; i < s.n_clients; i++) free_client(s.clients[i]);
    clt_free(s.clients);
    for (int i = 0; i < CLIENTS; i++) close(others[i]);
    clt_tcp_table_destroy(s.table);
    clt_security_destroy(security);
    return 0;
}
