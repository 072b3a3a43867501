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
#include "comm/rendezvous/store.h"

#include <stdio.h>
#include <string.h>

enum { SET_BYTES = 8 + (CLT_RENDEZVOUS_RANKS + 3) / 4 };

/* For how long one that may itself be lost waits for others: they are to find out, too, that they are cut off. If it was told so by
 * connections that were closed, it is hardly that. */
static const double silent_seconds = 10, closed_seconds = 1;
/* For how long who has left is waited for: it may be on its way here from a group that was formed in vain. */
static const double left_seconds = 5;
/* An attempt at reaching the store; the first and the longest pause between two looks. */
static const double attempt_seconds = 2, first_pause = 1e-3, longest_pause = 50e-3;

typedef struct agreement {
    clt_rendezvous *rendezvous;
    const clt_membership *m;
    clt_presence *ranks; /* as of the last watch */
} agreement;

static void name_key(const agreement *a, const char *what, int number, char key[CLT_RENDEZVOUS_KEY_BYTES + 1]) {
    int length = snprintf(key, CLT_RENDEZVOUS_KEY_BYTES + 1, "members/%lld/%s", (long long)a->m->generation, what);
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
    return clt_fail(CLT_E_FORMAT, "'%s' in the store is not a set of %d ranks", key, size);
}

/* ---- the store, which may be out of reach for a while; whoever watches may know that it is so for good ---- */

static clt_status watch(agreement *a) {
    return a->m->watch(a->m->context, false, a->ranks);
}

static bool again(agreement *a, clt_status *status) {
    if (*status != CLT_E_NETWORK || clt_seconds() >= a->m->deadline) return false;
    *status = a->m->watch(a->m->context, true, a->ranks);
    return *status == CLT_OK;
}

static double soon(const agreement *a) {
    return CLT_MIN(clt_seconds() + attempt_seconds, a->m->deadline);
}

static clt_status set(agreement *a, const char *key, const void *value, size_t bytes) {
    clt_status status;
    do status = clt_rendezvous_set(a->rendezvous, key, value, bytes, soon(a));
    while (again(a, &status));
    return status;
}

static clt_status set_once(agreement *a, const char *key, const void *value, size_t bytes, void *stands, size_t *stands_bytes) {
    clt_status status;
    do status = clt_rendezvous_set_once(a->rendezvous, key, value, bytes, stands, stands_bytes, soon(a));
    while (again(a, &status));
    return status;
}

static clt_status look(agreement *a, const char *key, void *value, size_t *bytes) {
    clt_status status;
    do status = clt_rendezvous_look(a->rendezvous, key, value, bytes, soon(a));
    while (again(a, &status));
    return status;
}

/* Between two looks: often at first, then less so. */
static clt_status pause_and_watch(agreement *a, double *pause) {
    clt_store_pause(*pause, a->m->deadline);
    *pause = CLT_MIN(1.5 * *pause, longest_pause);
    return watch(a);
}

/* ---- deciding ---- */

/* What the decider knows: who came, and accuses[i * size + j]: i took j for lost when it came. */
typedef struct hearing {
    bool *came, *accuses;
} hearing;

static bool is_lost(const agreement *a, int rank) {
    return rank != a->m->rank && a->ranks[rank] >= CLT_SILENT;
}

/* For how long a rank is waited for. One that takes most of the others for lost may rather be lost itself, and waits to see who else
 * comes. */
static double patience(const agreement *a, int rank) {
    int lost = 0, silent = 0, others = a->m->size - 1;
    for (int r = 0; r < a->m->size; r++) {
        lost += is_lost(a, r);
        silent += is_lost(a, r) && a->ranks[r] == CLT_SILENT;
    }
    bool doubtful = others > 1 && 2 * lost > others, cut_off = others > 1 && 2 * silent > others;
    if (!is_lost(a, rank)) return a->ranks[rank] == CLT_LEFT ? left_seconds : a->m->grace_seconds;
    if (cut_off && a->ranks[rank] == CLT_SILENT) return silent_seconds;
    return doubtful ? closed_seconds : 0;
}

static clt_status hear(agreement *a, hearing *h, int rank, double begin) {
    char key[CLT_RENDEZVOUS_KEY_BYTES + 1], text[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    double pause = first_pause;
    name_key(a, "here", rank, key);
    for (;;) {
        double now = clt_seconds(), waited = CLT_MIN(patience(a, rank), a->m->grace_seconds);
        clt_status status = look(a, key, text, &bytes);
        CLT_TRY(status);
        /* Who wrote nonsense has not come. */
        if (status == CLT_OK)
            h->came[rank] = read_set(key, text, bytes, a->m->size, h->accuses + (size_t)rank * (size_t)a->m->size) == CLT_OK;
        if (status == CLT_OK || now >= begin + waited || now >= a->m->deadline) return CLT_OK;
        CLT_TRY(pause_and_watch(a, &pause));
    }
}

static clt_status hear_all(agreement *a, hearing *h) {
    double begin = clt_seconds();
    for (int r = 0; r < a->m->size; r++)
        if (!is_lost(a, r)) CLT_TRY(hear(a, h, r, begin));
    for (int r = 0; r < a->m->size; r++)
        if (!h->came[r]) CLT_TRY(hear(a, h, r, begin));
    return CLT_OK;
}

static int count_quarrels(const agreement *a, const hearing *h, int rank) {
    int count = 0;
    size_t n = (size_t)a->m->size, r = (size_t)rank;
    for (size_t i = 0; i < n; i++)
        if (i != r && h->came[i]) count += h->accuses[i * n + r] || h->accuses[r * n + i];
    return count;
}

/* Leaves out whoever quarrels with most, until nobody does; of several the last one, but the decider only if it must be. */
static void settle(const agreement *a, hearing *h) {
    for (;;) {
        int worst = -1, most = 0;
        for (int r = a->m->size - 1; r >= 0; r--) {
            if (!h->came[r]) continue;
            int count = count_quarrels(a, h, r);
            if (count > most || (count == most && worst == a->m->rank && count > 0)) worst = r, most = count;
        }
        if (worst < 0) return;
        h->came[worst] = false;
    }
}

static clt_status decide(agreement *a) {
    size_t n = (size_t)a->m->size;
    char key[CLT_RENDEZVOUS_KEY_BYTES + 1], text[SET_BYTES];
    hearing h = {clt_calloc(n, sizeof(bool)), clt_calloc(n, n)};
    clt_status status = h.came && h.accuses ? hear_all(a, &h) : clt_fail_memory(n * n);
    if (status == CLT_OK) {
        settle(a, &h);
        name_key(a, "list", -1, key);
        status = set_once(a, key, text, write_set(h.came, a->m->size, text), NULL, NULL);
    }
    clt_free(h.came);
    clt_free(h.accuses);
    return status;
}

/* Who decides, at this attempt. */
static clt_status find_chief(agreement *a, int attempt, int *chief) {
    char key[CLT_RENDEZVOUS_KEY_BYTES + 1], own[16], text[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    name_key(a, "chief", attempt, key);
    int length = snprintf(own, sizeof own, "%d", a->m->rank);
    CLT_TRY(set_once(a, key, own, (size_t)length, text, &bytes));
    *chief = -1;
    for (size_t i = 0; i < bytes && i < 6 && text[i] >= '0' && text[i] <= '9'; i++)
        *chief = (*chief < 0 ? 0 : *chief * 10) + (text[i] - '0');
    if (*chief >= a->m->size) *chief = -1; /* nonsense: nobody, so the next attempt */
    return CLT_OK;
}

static clt_status come(agreement *a, bool *lost) {
    char key[CLT_RENDEZVOUS_KEY_BYTES + 1], text[SET_BYTES];
    for (int r = 0; r < a->m->size; r++) lost[r] = is_lost(a, r);
    name_key(a, "here", a->m->rank, key);
    return set(a, key, text, write_set(lost, a->m->size, text));
}

/* Waits for what that chief writes. CLT_END: nothing; it is lost, or hangs. */
static clt_status await_list(agreement *a, int chief, const char *key, char *text, size_t *bytes) {
    double begin = clt_seconds(), pause = first_pause;
    for (;;) {
        /* One that takes longer than its grace and a second hangs. */
        double now = clt_seconds();
        bool over = chief < 0 || is_lost(a, chief) || now >= begin + a->m->grace_seconds + 1;
        clt_status status = look(a, key, text, bytes);
        if (status != CLT_END) return status;
        if (now >= a->m->deadline)
            return clt_fail(CLT_E_TIMEOUT, "the ranks did not agree on who is left until the deadline ('%s')", key);
        if (over) return CLT_END;
        CLT_TRY(pause_and_watch(a, &pause));
    }
}

/* Waits for the list, and takes part in making it. */
static clt_status get_list(agreement *a, const char *key, char *text, size_t *bytes) {
    clt_status status = CLT_END;
    for (int attempt = 0; status == CLT_END; attempt++) {
        int chief;
        CLT_TRY(find_chief(a, attempt, &chief));
        if (chief == a->m->rank) CLT_TRY(decide(a));
        status = await_list(a, chief, key, text, bytes);
    }
    return status;
}

static clt_status take_list(const clt_membership *m, const bool *in, int *members, int *n_members) {
    if (!in[m->rank])
        return clt_fail(CLT_E_FENCED, "generation %lld was formed without rank %d", (long long)m->generation, m->rank);
    *n_members = 0;
    for (int r = 0; r < m->size; r++)
        if (in[r]) members[(*n_members)++] = r;
    return CLT_OK;
}

static clt_status agree(agreement *a, bool *set, int *members, int *n_members) {
    char key[CLT_RENDEZVOUS_KEY_BYTES + 1], text[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes = 0;
    CLT_TRY(watch(a));
    CLT_TRY(come(a, set));
    name_key(a, "list", -1, key);
    CLT_TRY(get_list(a, key, text, &bytes));
    CLT_TRY(read_set(key, text, bytes, a->m->size, set));
    return take_list(a->m, set, members, n_members);
}

clt_status clt_membership_agree(clt_rendezvous *rendezvous, const clt_membership *m, int *members, int *n_members) {
    if (m->size < 1 || m->size > CLT_RENDEZVOUS_RANKS || m->rank < 0 || m->rank >= m->size)
        return clt_fail(CLT_E_INVALID, "rank %d of %d: expected a rank below the size, and a size from 1 to %d", m->rank, m->size,
                        CLT_RENDEZVOUS_RANKS);
    size_t n = (size_t)m->size;
    agreement a = {rendezvous, m, clt_calloc(n, sizeof *a.ranks)};
    bool *set = clt_calloc(n, sizeof *set);
    clt_status status = a.ranks && set ? agree(&a, set, members, n_members) : clt_fail_memory(n * sizeof *a.ranks);
    clt_free(a.ranks);
    clt_free(set);
    return status;
}
