/*
 * Who is in the next generation. Below "members/GENERATION/":
 *
 *     here/RANK     "SIZE:HEX", the ranks that RANK takes for lost: it has come
 *     chief/N       the rank that decides; N counts those that were given up because no list came of them
 *     list          "SIZE:HEX", who is in: set once
 *
 * That the list is set once is all that agreement rests upon. Two deciders at a time, of which one was given up too early, do no harm:
 * both, like everybody else, go by the list that stands.
 */
#include "comm/rendezvous/rendezvous.h"

#include <stdio.h>
#include <string.h>

enum { SET_BYTES = 8 + (CLT_RENDEZVOUS_RANKS + 3) / 4 };

/* For how long one that may itself be lost waits for others: they are to find out, too, that they are cut off. */
static const double doubtful_seconds = 10;

typedef struct agreement {
    clt_rendezvous *rendezvous;
    int64_t generation;
    int rank, size;
    const bool *lost;
    double grace_seconds, deadline;
} agreement;

static void name_key(const agreement *a, const char *what, int number, char key[CLT_RENDEZVOUS_KEY_BYTES + 1]) {
    int length = snprintf(key, CLT_RENDEZVOUS_KEY_BYTES + 1, "members/%lld/%s", (long long)a->generation, what);
    if (number >= 0) snprintf(key + length, (size_t)(CLT_RENDEZVOUS_KEY_BYTES + 1 - length), "/%d", number);
}

/* ---- sets of ranks as text: one hex digit for four ranks, the lowest first ---- */

static size_t write_set(const bool *set, int size, char text[SET_BYTES]) {
    int length = snprintf(text, SET_BYTES, "%d:", size);
    for (int r = 0; r < size; r += 4) {
        int digit = 0;
        for (int i = 0; i < 4 && r + i < size; i++) digit |= set[r + i] << i;
        text[length++] = "0123456789abcdef"[digit];
    }
    return (size_t)length;
}

static clt_status read_set(const char *key, const char *text, size_t bytes, int size, bool *set) {
    char head[16];
    size_t length = (size_t)snprintf(head, sizeof head, "%d:", size);
    if (bytes != length + ((size_t)size + 3) / 4 || memcmp(text, head, length)) goto fail;
    for (int r = 0; r < size; r++) {
        char c = text[length + (size_t)r / 4];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) goto fail;
        set[r] = digit >> (r % 4) & 1;
    }
    return CLT_OK;
fail:
    return clt_fail(CLT_E_FORMAT, "'%s' in the store is no set of %d ranks", key, size);
}

/* ---- deciding ---- */

/* What the decider knows: who came, and accuses[i * size + j]: i takes j for lost. */
typedef struct hearing {
    bool *came, *accuses;
} hearing;

static clt_status hear(const agreement *a, hearing *h, int rank, double until) {
    char key[CLT_RENDEZVOUS_KEY_BYTES + 1], text[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    name_key(a, "here", rank, key);
    clt_status status = until > clt_seconds() ? clt_rendezvous_get(a->rendezvous, key, text, &bytes, until)
                                              : clt_rendezvous_look(a->rendezvous, key, text, &bytes, a->deadline);
    if (status == CLT_END || status == CLT_E_TIMEOUT) return CLT_OK;
    CLT_TRY(status);
    /* Who wrote nonsense has not come. */
    h->came[rank] = read_set(key, text, bytes, a->size, h->accuses + (size_t)rank * (size_t)a->size) == CLT_OK;
    return CLT_OK;
}

/* Those not known to be lost are waited for. One that takes most of the others for lost may rather be lost itself, and waits to
 * see who else comes. */
static clt_status hear_all(const agreement *a, hearing *h) {
    double begin = clt_seconds(), until = CLT_MIN(begin + a->grace_seconds, a->deadline);
    int lost = 0;
    for (int r = 0; r < a->size; r++) lost += r != a->rank && a->lost[r];
    bool doubtful = a->size > 2 && 2 * lost > a->size - 1;
    for (int r = 0; r < a->size; r++)
        if (!a->lost[r] || r == a->rank) CLT_TRY(hear(a, h, r, until));
    for (int r = 0; r < a->size; r++)
        if (a->lost[r] && r != a->rank) CLT_TRY(hear(a, h, r, doubtful ? CLT_MIN(until, begin + doubtful_seconds) : 0));
    return CLT_OK;
}

static int count_quarrels(const agreement *a, const hearing *h, int rank) {
    int count = 0;
    size_t n = (size_t)a->size, r = (size_t)rank;
    for (size_t i = 0; i < n; i++)
        if (i != r && h->came[i]) count += h->accuses[i * n + r] || h->accuses[r * n + i];
    return count;
}

/* Leaves out whoever quarrels with most, until nobody does; of several the last one, but the decider only if it must be. */
static void settle(const agreement *a, hearing *h) {
    for (;;) {
        int worst = -1, most = 0;
        for (int r = a->size - 1; r >= 0; r--) {
            if (!h->came[r]) continue;
            int count = count_quarrels(a, h, r);
            if (count > most || (count == most && worst == a->rank && count > 0)) worst = r, most = count;
        }
        if (worst < 0) return;
        h->came[worst] = false;
    }
}

static clt_status decide(const agreement *a) {
    size_t n = (size_t)a->size;
    char key[CLT_RENDEZVOUS_KEY_BYTES + 1], text[SET_BYTES];
    hearing h = {clt_calloc(n, sizeof(bool)), clt_calloc(n, n)};
    clt_status status = h.came && h.accuses ? hear_all(a, &h) : clt_fail_memory(n * n);
    if (status == CLT_OK) {
        settle(a, &h);
        name_key(a, "list", -1, key);
        status = clt_rendezvous_set_once(a->rendezvous, key, text, write_set(h.came, a->size, text), NULL, NULL, a->deadline);
    }
    clt_free(h.came);
    clt_free(h.accuses);
    return status;
}

/* Who decides, at this attempt. */
static clt_status find_chief(const agreement *a, int attempt, int *chief) {
    char key[CLT_RENDEZVOUS_KEY_BYTES + 1], own[16], text[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    name_key(a, "chief", attempt, key);
    int length = snprintf(own, sizeof own, "%d", a->rank);
    CLT_TRY(clt_rendezvous_set_once(a->rendezvous, key, own, (size_t)length, text, &bytes, a->deadline));
    *chief = -1;
    for (size_t i = 0; i < bytes && i < 6 && text[i] >= '0' && text[i] <= '9'; i++)
        *chief = (*chief < 0 ? 0 : *chief * 10) + (text[i] - '0');
    if (*chief >= a->size) *chief = -1; /* nonsense: nobody, so the next attempt */
    return CLT_OK;
}

static clt_status come(const agreement *a) {
    char key[CLT_RENDEZVOUS_KEY_BYTES + 1], text[SET_BYTES];
    name_key(a, "here", a->rank, key);
    return clt_rendezvous_set(a->rendezvous, key, text, write_set(a->lost, a->size, text), a->deadline);
}

/* Waits for the list, and takes part in making it. */
static clt_status get_list(const agreement *a, char *text, size_t *bytes) {
    char key[CLT_RENDEZVOUS_KEY_BYTES + 1];
    name_key(a, "list", -1, key);
    for (int attempt = 0;; attempt++) {
        int chief;
        CLT_TRY(find_chief(a, attempt, &chief));
        if (chief == a->rank) CLT_TRY(decide(a));
        /* One that takes longer than its grace and a second has died, or hangs. */
        double until = chief < 0 || (chief != a->rank && a->lost[chief]) ? 0 : clt_seconds() + a->grace_seconds + 1;
        until = CLT_MIN(until, a->deadline);
        clt_status status = until > clt_seconds() ? clt_rendezvous_get(a->rendezvous, key, text, bytes, until)
                                                  : clt_rendezvous_look(a->rendezvous, key, text, bytes, a->deadline);
        if (status == CLT_OK || (status < 0 && status != CLT_E_TIMEOUT)) return status;
        if (clt_seconds() >= a->deadline)
            return clt_fail(CLT_E_TIMEOUT, "the ranks did not agree on who is left until the deadline ('%s')", key);
    }
}

static clt_status take_list(const agreement *a, const bool *in, int *members, int *n_members) {
    if (!in[a->rank])
        return clt_fail(CLT_E_FENCED, "generation %lld was formed without rank %d", (long long)a->generation, a->rank);
    *n_members = 0;
    for (int r = 0; r < a->size; r++)
        if (in[r]) members[(*n_members)++] = r;
    return CLT_OK;
}

clt_status clt_membership_agree(clt_rendezvous *rendezvous, int64_t generation, int rank, int size, const bool *lost,
                                double grace_seconds, double deadline, int *members, int *n_members) {
    if (size < 1 || size > CLT_RENDEZVOUS_RANKS || rank < 0 || rank >= size)
        return clt_fail(CLT_E_INVALID, "rank %d of %d: expected a rank below the size, and a size from 1 to %d", rank, size,
                        CLT_RENDEZVOUS_RANKS);
    const agreement a = {rendezvous, generation, rank, size, lost, grace_seconds, deadline};
    char key[CLT_RENDEZVOUS_KEY_BYTES + 1], text[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes = 0;
    CLT_TRY(come(&a));
    CLT_TRY(get_list(&a, text, &bytes));
    bool *in = clt_calloc((size_t)size, sizeof *in);
    if (!in) return clt_fail_memory((size_t)size);
    name_key(&a, "list", -1, key);
    clt_status status = read_set(key, text, bytes, size, in);
    if (status == CLT_OK) status = take_list(&a, in, members, n_members);
    clt_free(in);
    return status;
}
