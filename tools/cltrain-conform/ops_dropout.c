/* Dropout, by Philox4x32-10 (Salmon et al. 2011). */
#include "tools/cltrain-conform/cases.h"

#include <string.h>

static void philox(uint32_t counter[4], uint32_t k0, uint32_t k1) {
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * counter[0], b = (uint64_t)0xCD9E8D57u * counter[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ counter[1] ^ k0, (uint32_t)b,
                            (uint32_t)(a >> 32) ^ counter[3] ^ k1, (uint32_t)a};
        memcpy(counter, next, sizeof next);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

bool reference_dropout_keeps(int64_t i, int site, uint64_t step, uint64_t seed, double p) {
    uint32_t counter[4] = {(uint32_t)(i / 4), (uint32_t)site, (uint32_t)step, (uint32_t)(step >> 32)};
    philox(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
    return (double)counter[i % 4] >= p * 4294967296.0;
}

bool reference_attention_keeps(int64_t head, int64_t i, int64_t j, int site, double p) {
    uint32_t key[4] = {0, 0, (uint32_t)site, 0};
    philox(key, 0, 0);
    uint32_t counter[4] = {(uint32_t)(j / 4), (uint32_t)i, (uint32_t)head, 0};
    philox(counter, key[0], key[1]);
    return (double)counter[j % 4] >= p * 4294967296.0;
}

/* Site after site of a graph, with seed and step 0. */
static double drop_out(const array *x, array *y, const attributes *at, bool evaluation, int sites) {
    array_resize(y, x->shape);
    double p = evaluation ? 0 : (double)at->s[0];
    for (int64_t i = 0; i < array_count(y); i++) {
        y->values[i] = x->values[i];
        for (int site = 0; site < sites; site++)
            y->values[i] = reference_dropout_keeps(i, site, 0, 0, p) ? y->values[i] / (1 - p) : 0;
    }
    return 40.0 * sites * (double)array_count(y);
}

static double reference_dropout(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, drop_out(x, y, at, evaluation, 1);
}
static double reference_dropout_twice(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, drop_out(x, y, at, evaluation, 2);
}

/* ---- cases ---- */

BUILD(dropout, clt_dropout(x[0], at->s[0]))
BUILD(dropout_twice, clt_dropout(clt_dropout(x[0], at->s[0]), at->s[0]))

static const operation dropout = OPERATION("dropout", "clt_dropout", dropout, dropout);
static const operation dropout_twice = OPERATION("dropout", "clt_dropout", dropout_twice, dropout_twice);

void cases_dropout(case_list *list) {
    for (int i = 0; i < 4; i++) {
        operand x = {.shape = {2, {i < 2 ? 7 : 1, i < 2 ? 29 : 1031}}};
        test_case *c = case_add(list, &dropout, i % 2 ? "evaluation" : "", &x, 1);
        c->at.s[0] = i < 2 ? 0.5f : 0.1f;
        c->evaluation = i % 2;
        c->full = i > 1;
    }
    for (int n = 1; n < 10; n++) case_add(list, &dropout, "", X(F(n)))->at.s[0] = 0.5f; /* four make a block of random numbers */
    case_add(list, &dropout_twice, "twice", X(F(7, 29)))->at.s[0] = 0.5f;
}
