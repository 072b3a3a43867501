/* Where ranks are, and which of them was lost: what the store says, and addresses, ports and networks as options and variables give them.
 * No name is looked up. */
#include "comm/secure/address.c"
#include "comm/transport/connect.c"
#include "tests/fuzz/fuzz.h"

static fuzz_input value; /* the store's */

clt_status clt_rendezvous_look(clt_rendezvous *rendezvous, const char *key, void *into, size_t *bytes, double deadline) {
    (void)rendezvous, (void)deadline;
    FUZZ_CHECK(strlen(key) < CLT_RENDEZVOUS_KEY_BYTES - 1);
    if (value.size == 0) return CLT_END;
    *bytes = CLT_MIN(value.size, (size_t)CLT_RENDEZVOUS_VALUE_BYTES);
    memcpy(into, value.data, *bytes);
    return CLT_OK;
}

clt_status clt_rendezvous_set(clt_rendezvous *rendezvous, const char *key, const void *bytes, size_t length, double deadline) {
    (void)rendezvous, (void)key, (void)bytes, (void)length, (void)deadline;
    return CLT_OK;
}

clt_status clt_rendezvous_remove(clt_rendezvous *rendezvous, const char *key, double deadline) {
    (void)rendezvous, (void)key, (void)deadline;
    return CLT_OK;
}

/* Any host is this one. */
clt_status clt_look_up(const char *host, const char *port, double deadline, struct sockaddr_storage *address, socklen_t *bytes) {
    (void)deadline;
    FUZZ_CHECK(host[0] && strlen(host) < CLT_HOST_BYTES);
    FUZZ_CHECK(!port || (strlen(port) > 0 && strspn(port, "0123456789") == strlen(port)));
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    memcpy(address, &own, *bytes = sizeof own);
    if (port) {
        unsigned number = 0;
        FUZZ_CHECK(read_port(port, &number) && number >= 1 && number <= 65535);
        set_port(address, number);
    }
    return CLT_OK;
}

static void look_into_store(fuzz_input input) {
    clt_transport t = {.rank = 1, .size = 300, .generation = 7};
    const clt_transport_options options = {.size = 300};
    connector c = {.transport = &t, .options = &options};
    struct sockaddr_storage address;
    socklen_t bytes;
    char text[64];
    value = input;
    if (read_address(&c, 0, &address, &bytes) == CLT_OK) {
        clt_address_text((struct sockaddr *)&address, bytes, text);
        FUZZ_CHECK(!strncmp(text, "127.0.0.1:", 10) && text[10] != '0');
    }
    look_for_lost(&c);
    int lost = atomic_load(&c.lost);
    FUZZ_CHECK(lost >= 0 && lost <= 300 && lost != 1 + t.rank && (check_lost(&c) == CLT_OK) == (lost == 0));
    char again[64], *whole = fuzz_rest(&input);
    snprintf(again, sizeof again, "%d %d", lost - 1, c.lost_status);
    if (lost) FUZZ_CHECK(strlen(whole) == value.size && (!strcmp(whole, again) || whole[0] == '0' || strstr(whole, " 0") || strstr(whole, "-0")));
    fuzz_free(whole);
}

static void read_options(fuzz_input input) {
    char *ports = fuzz_line(&input), *network = fuzz_line(&input), *towards = fuzz_line(&input), text[64];
    struct sockaddr_storage own;
    socklen_t bytes;
    unsigned low, high;
    if (read_ports(ports, &low, &high) == CLT_OK) FUZZ_CHECK(low <= high && high <= 65535 && (low > 0 || ports[0] == 0));
    if (find_own_address(network[0] ? network : NULL, towards, &own, &bytes) == CLT_OK) {
        set_port(&own, 80);
        clt_address_text((struct sockaddr *)&own, bytes, text);
        FUZZ_CHECK(strlen(text) < sizeof text);
    }
    fuzz_free(ports);
    fuzz_free(network);
    fuzz_free(towards);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    fuzz_begin(size);
    if (fuzz_byte(&input) & 1) read_options(input);
    else look_into_store(input);
    return 0;
}
