/* What others may have left in the store for those who agree on the next generation. The store gives one line of the
 * input for each value that is asked for, and no value for an empty one. */
#include "comm/rendezvous/membership.c"
#include "tests/fuzz/fuzz.h"

static fuzz_input values;
static int asked;

static clt_status next_value(void *value, size_t *bytes) {
    char *line = fuzz_line(&values);
    *bytes = CLT_MIN(strlen(line), (size_t)CLT_RENDEZVOUS_VALUE_BYTES);
    memcpy(value, line, *bytes);
    bool none = line[0] == 0;
    fuzz_free(line);
    if (++asked > 200 && none) return clt_fail(CLT_E_DENIED, "the store is gone");
    if (asked % 32 == 0) return clt_fail(CLT_E_NETWORK, "the store is away");
    return none ? CLT_END : CLT_OK;
}

clt_status clt_rendezvous_set(clt_rendezvous *rendezvous, const char *key, const void *value, size_t bytes, double deadline) {
    (void)rendezvous, (void)value, (void)deadline;
    FUZZ_CHECK(strlen(key) <= CLT_RENDEZVOUS_KEY_BYTES && bytes <= CLT_RENDEZVOUS_VALUE_BYTES);
    return CLT_OK;
}

clt_status clt_rendezvous_set_once(clt_rendezvous *rendezvous, const char *key, const void *value, size_t bytes, void *stands,
                                   size_t *stands_bytes, double deadline) {
    char other[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t length;
    CLT_TRY(clt_rendezvous_set(rendezvous, key, value, bytes, deadline));
    clt_status status = next_value(other, &length);
    if (status == CLT_END) memcpy(other, value, length = bytes), status = CLT_OK;
    if (stands) memcpy(stands, other, length), *stands_bytes = length;
    return status;
}

clt_status clt_rendezvous_look(clt_rendezvous *rendezvous, const char *key, void *value, size_t *bytes, double deadline) {
    (void)rendezvous, (void)key, (void)deadline;
    return next_value(value, bytes);
}

void clt_store_pause(double seconds, double deadline) {
    (void)seconds, (void)deadline;
}

/* The input names what is known to begin with, and some leave later. */
static clt_presence known[64];

static clt_status tell_presence(void *ranks, bool unreachable, clt_presence *presence) {
    int n = *(int *)ranks;
    memcpy(presence, known, (size_t)n * sizeof *presence);
    if (unreachable) known[asked % n] = (clt_presence)(asked / 32 % 4);
    return CLT_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    memset(known, 0, sizeof known);
    int members[64], n = 0;
    values = (fuzz_input){data, size};
    asked = 0;
    fuzz_begin(size);
    int ranks = 1 + fuzz_byte(&values) % 64, rank = fuzz_byte(&values) % ranks;
    for (uint8_t gone; (gone = fuzz_byte(&values)) != '\n' && values.size;) known[gone % 64] = (clt_presence)(gone / 64);
    const clt_membership m = {.generation = 1, .rank = rank, .size = ranks, .grace_seconds = 1, .deadline = clt_seconds() + 1,
                              .watch = tell_presence, .context = &ranks};
    clt_status status = clt_membership_agree(NULL, &m, members, &n);
    FUZZ_CHECK(status < 0 || (n > 0 && n <= ranks));
    bool own = false;
    for (int i = 0; status == CLT_OK && i < n; i++) {
        FUZZ_CHECK(members[i] >= 0 && members[i] < ranks && (i == 0 || members[i] > members[i - 1]));
        own |= members[i] == rank;
    }
    FUZZ_CHECK(status < 0 || own);
    return 0;
}
