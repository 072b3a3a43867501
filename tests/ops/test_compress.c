/*
 * Compression of gradients against plain host code: what arrives, what stays as the residual, and that nothing is
 * lost between them.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/exec/plan.h"
#include "runtime/ops/ops.h"

static clt_device *device;

static const int64_t sizes[] = {1, 15, 16, 17, 255, 256, 257, 1000, 4099, 100003};

/* How the values of a test are drawn. */
typedef enum kind { NORMAL, ZEROS, EQUAL, SPARSE, DENORMAL, LARGE, KINDS } kind;

static void draw(float *x, int64_t n, kind what, uint64_t stream) {
    clt_random random;
    clt_random_init(&random, 5, stream);
    for (int64_t i = 0; i < n; i++) {
        double value = clt_random_normal(&random);
        switch (what) {
        case NORMAL: x[i] = (float)value; break;
        case ZEROS: x[i] = 0; break;
        case EQUAL: x[i] = value < 0 ? -0.75f : 0.75f; break;
        case SPARSE: x[i] = clt_random_below(&random, 20) ? 0.0f : (float)(value * 1e-3); break;
        case DENORMAL: x[i] = (float)(value * 1e-40); break;
        default: x[i] = (float)(value * 1e30); break;
        }
    }
}

/* ---- a code and its way back, on the device ---- */

typedef struct code {
    const clt_op *encode, *decode;
    clt_compress_attributes at;
    int64_t n;
    clt_graph *graph;
    clt_state_store *store;
    clt_plan *plan;
    clt_tensor *x, *residual, *samples, *wire, *sent;
    void *wire_bytes;
    float *sent_values, *residual_values, *before;
} code;

static size_t wire_size(const code *c) {
    return (size_t)clt_tensor_elements(c->wire) * clt_dtype_bytes(c->wire->dtype);
}

static void code_open(code *c, const clt_op *encode, const clt_op *decode, clt_compress_attributes at, int64_t n) {
    *c = (code){.encode = encode, .decode = decode, .at = at, .n = n};
    c->at.ranks = 1;
    assert_ok(clt_graph_create(&c->graph));
    assert_ok(clt_state_store_create(device, &c->store));
    c->x = clt_input(c->graph, "x", CLT_F32, CLT_SHAPE(n));
    c->residual = clt_state(c->graph, "residual", CLT_F32, CLT_SHAPE(n));
    c->samples = clt_input(c->graph, "samples", CLT_F32, CLT_SHAPE(1));
    c->wire = clt_encode(encode, c->at, c->x, c->residual, c->samples);
    c->sent = clt_decode(decode, c->at, clt_state(c->graph, "flat", CLT_F32, CLT_SHAPE(n)), c->wire);
    assert_ok(clt_graph_status(c->graph));
    clt_tensor *targets[] = {c->wire, c->sent};
    assert_ok(clt_plan_compile(&c->plan, &(clt_plan_options){.device = device,
                                                             .store = c->store,
                                                             .graph = c->graph,
                                                             .targets = targets,
                                                             .n_targets = 2,
                                                             .training = true}));
    size_t bytes = (size_t)n * sizeof(float);
    assert_ok(clt_plan_feed(c->plan, c->samples, (float[]){1}));
    c->wire_bytes = malloc(wire_size(c));
    c->sent_values = calloc(1, bytes);
    c->residual_values = calloc(1, bytes);
    c->before = calloc(1, bytes);
}

static void code_step(code *c, const float *x) {
    size_t bytes = (size_t)c->n * sizeof(float), had;
    memcpy(c->before, c->residual_values, bytes);
    assert_ok(clt_plan_feed(c->plan, c->x, x));
    assert_ok(clt_plan_run(c->plan));
    assert_ok(clt_plan_read(c->plan, c->wire, c->wire_bytes, wire_size(c)));
    assert_ok(clt_plan_read(c->plan, c->sent, c->sent_values, bytes));
    assert_ok(clt_memory_read(clt_state_store_find(c->store, "residual", &had), 0, c->residual_values, bytes));
    assert_int_equal(had, bytes);
}

static void code_close(code *c) {
    clt_plan_destroy(c->plan);
    clt_state_store_destroy(c->store);
    clt_graph_destroy(c->graph);
    free(c->wire_bytes);
    free(c->sent_values);
    free(c->residual_values);
    free(c->before);
}

/* Nothing is lost in a step: what was sent and what stays is what there was. `slack` is relative to the largest
 * of the block. */
static void check_nothing_lost(const code *c, const float *x, double slack) {
    double largest = 0;
    for (int64_t i = 0; i < c->n; i++) {
        for (int64_t k = i; i % 256 == 0 && k < CLT_MIN(i + 256, c->n); k++)
            largest = fmax(k == i ? 0 : largest, fabs((double)x[k] + (double)c->before[k]));
        double v = x[i] + c->before[i], got = (double)c->sent_values[i] + (double)c->residual_values[i];
        double allowed = fmax(1e-37, slack * largest); /* denormals may be flushed */
        if (!(fabs(got - v) <= allowed))
            fail_msg("element %lld of %lld: sent %g and kept %g of %g", (long long)i, (long long)c->n,
                     (double)c->sent_values[i], (double)c->residual_values[i], v);
    }
}

/* ---- what a block must look like ---- */

static void block_of(const code *c, const float *x, int64_t block, float v[256], int *length) {
    *length = (int)CLT_MIN(256, c->n - block);
    for (int i = 0; i < *length; i++) v[i] = x[block + i] + c->before[block + i];
}

static void check_int8(const code *c, const float *x) {
    for (int64_t block = 0; block < c->n; block += 256) {
        float v[256];
        int length;
        double largest = 0;
        block_of(c, x, block, v, &length);
        for (int i = 0; i < length; i++) largest = fmax(largest, fabs((double)v[i]));
        double scale = largest / 127 * (1 + 1 / 128.0);
        for (int i = 0; i < length; i++) {
            double left = fabs((double)c->residual_values[block + i]);
            if (largest < 7.8e-31) assert_true(c->sent_values[block + i] == 0);
            else if (!(left <= 0.5000001 * scale)) fail_msg("%g is left of %g by a scale of %g", left, (double)v[i], scale);
        }
    }
}

static void check_onebit(const code *c, const float *x) {
    for (int64_t block = 0; block < c->n; block += 256) {
        float v[256];
        int length, end = 0, n[2] = {0, 0};
        double mean[2] = {0, 0}, largest = 0;
        block_of(c, x, block, v, &length);
        for (int i = 0; i < length; i++) {
            if (v[i] != 0) end = i + 1;
            largest = fmax(largest, fabs((double)v[i]));
        }
        if (largest < 1e-37) continue; /* denormals: as the device has it */
        for (int i = 0; i < end; i++) mean[v[i] < 0] += (double)v[i], n[v[i] < 0]++;
        for (int i = 0; i < length; i++) {
            double wanted = i < end ? mean[v[i] < 0] / n[v[i] < 0] : 0, got = (double)c->sent_values[block + i];
            if (!(fabs(got - wanted) <= fabs(wanted) / 250 + 1e-44))
                fail_msg("element %d of %d, up to %d: %g for %g", i, length, end, got, wanted);
        }
    }
}

static float from_bf16(uint16_t b) {
    uint32_t bits = (uint32_t)b << 16;
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static const float *sorted_values; /* of qsort */

static int by_magnitude(const void *a, const void *b) {
    uint32_t bits[2];
    int32_t i = *(const int32_t *)a, k = *(const int32_t *)b;
    memcpy(&bits[0], &sorted_values[i], 4);
    memcpy(&bits[1], &sorted_values[k], 4);
    bits[0] &= 0x7fffffff, bits[1] &= 0x7fffffff;
    if (bits[0] != bits[1]) return bits[0] > bits[1] ? -1 : 1;
    return i < k ? -1 : i > k;
}

static int by_index(const void *a, const void *b) {
    int32_t i = *(const int32_t *)a, k = *(const int32_t *)b;
    return i < k ? -1 : i > k;
}

static bool bit_of(const uint32_t *words, int64_t place) {
    return words[place / 32] >> place % 32 & 1;
}

/* What the wire says, read bit by bit. */
static void read_wire(const code *c, int64_t *indices, float *values) {
    clt_topk_wire wire = clt_topk_layout(c->n, c->at.k, c->at.bf16);
    const uint32_t *high = c->wire_bytes, *low = high + wire.high_words;
    const void *coded = low + wire.low_words;
    int64_t n = 0;
    for (int64_t place = 0; place < wire.high_words * 32; place++) {
        if (!bit_of(high, place)) continue;
        if (n == c->at.k) fail_msg("more than %lld indices on the wire", (long long)n);
        indices[n] = (place - n) << wire.low_bits;
        for (int b = 0; b < wire.low_bits; b++) indices[n] |= (int64_t)bit_of(low, n * wire.low_bits + b) << b;
        if (c->at.bf16) values[n] = from_bf16(((const uint16_t *)coded)[n]);
        else memcpy(&values[n], (const float *)coded + n, sizeof *values);
        n++;
    }
    assert_int_equal(n, c->at.k);
}

/* The very same indices and values as by sorting, on the wire and as they arrive. */
static void check_topk(const code *c, const float *x) {
    int64_t k = c->at.k;
    float *v = malloc((size_t)c->n * sizeof *v), *values = malloc((size_t)k * sizeof *values);
    int32_t *order = malloc((size_t)c->n * sizeof *order);
    int64_t *indices = malloc((size_t)k * sizeof *indices), sent = 0;
    for (int64_t i = 0; i < c->n; i++) v[i] = x[i] + c->before[i], order[i] = (int32_t)i;
    sorted_values = v;
    qsort(order, (size_t)c->n, sizeof *order, by_magnitude);
    qsort(order, (size_t)k, sizeof *order, by_index);
    read_wire(c, indices, values);
    for (int64_t i = 0; i < k; i++) {
        assert_int_equal(indices[i], order[i]);
        if (c->at.bf16) assert_true(fabsf(values[i] - v[order[i]]) <= fabsf(v[order[i]]) / 256);
        else assert_memory_equal(&values[i], &v[order[i]], sizeof *v);
        for (; sent < order[i]; sent++) assert_true(c->sent_values[sent] == 0);
        assert_true(c->sent_values[sent++] == values[i]);
    }
    for (; sent < c->n; sent++) assert_true(c->sent_values[sent] == 0);
    free(v);
    free(values);
    free(order);
    free(indices);
}

/* ---- all codes alike ---- */

typedef struct method {
    const clt_op *encode, *decode;
    clt_compress_attributes at;
    double ratio; /* top-k: of the values */
    double slack; /* of the rounding of what is left */
    void (*check)(const code *c, const float *x);
} method;

static const method methods[] = {
    {&clt_op_int8_encode, &clt_op_int8_decode, {0}, 0, 0, check_int8},
    {&clt_op_onebit_encode, &clt_op_onebit_decode, {0}, 0, 1.3e-7, check_onebit},
    {&clt_op_topk_encode, &clt_op_topk_decode, {0}, 0.01, 0, check_topk},
    {&clt_op_topk_encode, &clt_op_topk_decode, {0}, 0.7, 0, check_topk},
    {&clt_op_topk_encode, &clt_op_topk_decode, {.bf16 = true}, 0.1, 0, check_topk},
    {&clt_op_topk_encode, &clt_op_topk_decode, {.bf16 = true}, 0.0003, 0, check_topk},
};

static void method_open(code *c, const method *m, int64_t n) {
    clt_compress_attributes at = m->at;
    if (m->ratio > 0) at.k = CLT_MAX(1, (int64_t)(m->ratio * (double)n));
    code_open(c, m->encode, m->decode, at, n);
}

/* Three steps of all sizes and kinds of values. */
static void codes_are_right(void **state) {
    (void)state;
    for (size_t m = 0; m < CLT_COUNT_OF(methods); m++)
        for (size_t s = 0; s < CLT_COUNT_OF(sizes); s++) {
            code c;
            float *x = malloc((size_t)sizes[s] * sizeof *x);
            method_open(&c, &methods[m], sizes[s]);
            for (kind what = 0; what < KINDS; what++)
                for (int step = 0; step < 3; step++) {
                    draw(x, sizes[s], what, (uint64_t)what * 100 + (uint64_t)step);
                    code_step(&c, x);
                    if (what != DENORMAL || methods[m].check != check_topk) methods[m].check(&c, x);
                    check_nothing_lost(&c, x, methods[m].slack);
                }
            code_close(&c);
            free(x);
        }
}

/* A hundred steps: the sum of what was sent and the residual is the sum of what was given. */
static void feedback_loses_nothing(void **state) {
    (void)state;
    enum { N = 3000, STEPS = 100 };
    for (size_t m = 0; m < CLT_COUNT_OF(methods); m++) {
        code c;
        float x[N];
        static double given[N], sent[N];
        memset(given, 0, sizeof given);
        memset(sent, 0, sizeof sent);
        method_open(&c, &methods[m], N);
        for (int step = 0; step < STEPS; step++) {
            draw(x, N, NORMAL, (uint64_t)step);
            code_step(&c, x);
            for (int i = 0; i < N; i++) given[i] += (double)x[i], sent[i] += (double)c.sent_values[i];
        }
        for (int i = 0; i < N; i++) {
            double lost = given[i] - sent[i] - (double)c.residual_values[i];
            if (!(fabs(lost) < 1e-3)) fail_msg("method %zu, element %d: %g of %g lost", m, i, lost, given[i]);
        }
        code_close(&c);
    }
}

/* What is not finite arrives as such, in its block or as itself, and leaves no residual that is not finite. */
static void what_is_not_finite_shows(void **state) {
    (void)state;
    enum { N = 1000, AT = 300 };
    static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f};
    for (size_t m = 0; m < CLT_COUNT_OF(methods); m++)
        for (size_t b = 0; b < CLT_COUNT_OF(bad); b++) {
            code c;
            float x[N];
            draw(x, N, NORMAL, 1);
            x[AT] = bad[b];
            method_open(&c, &methods[m], N);
            code_step(&c, x);
            bool topk = methods[m].check == check_topk;
            for (int i = 0; i < N; i++) {
                bool hit = topk ? i == AT : i / 256 == AT / 256;
                if (topk && isfinite(bad[b])) hit = false;
                assert_int_equal(!isfinite(c.sent_values[i]), hit);
                assert_true(isfinite(c.residual_values[i]));
                if (hit && !topk) assert_true(isnan(c.sent_values[i]) && c.residual_values[i] == 0);
            }
            /* The next step is as if nothing had been. */
            draw(x, N, NORMAL, 2);
            code_step(&c, x);
            methods[m].check(&c, x);
            check_nothing_lost(&c, x, methods[m].slack);
            code_close(&c);
        }
}

/* Wires of several ranks: the sum of what each one says. */
static void ranks_are_added(void **state) {
    (void)state;
    enum { N = 1000, RANKS = 3 };
    for (size_t m = 0; m < CLT_COUNT_OF(methods); m++) {
        code c;
        float x[N], sum[N] = {0}, got[N];
        method_open(&c, &methods[m], N);
        size_t each = wire_size(&c);
        char *wires = malloc(RANKS * each);
        for (int r = 0; r < RANKS; r++) {
            draw(x, N, NORMAL, (uint64_t)r);
            code_step(&c, x);
            memcpy(wires + (size_t)r * each, c.wire_bytes, each);
            for (int i = 0; i < N; i++) sum[i] += c.sent_values[i];
        }
        clt_compress_attributes at = c.at;
        clt_graph *g;
        clt_plan *plan;
        at.ranks = RANKS;
        assert_ok(clt_graph_create(&g));
        clt_tensor *all = clt_input(g, "wires", c.wire->dtype, CLT_SHAPE(RANKS * clt_tensor_elements(c.wire)));
        clt_tensor *flat = clt_state(g, "flat", CLT_F32, CLT_SHAPE(N));
        clt_tensor *y = clt_decode(c.decode, at, flat, all);
        assert_ok(clt_graph_status(g));
        assert_ok(clt_plan_compile(&plan, &(clt_plan_options){.device = device,
                                                              .store = c.store,
                                                              .graph = g,
                                                              .targets = &y,
                                                              .n_targets = 1,
                                                              .training = true}));
        assert_ok(clt_plan_feed(plan, all, wires));
        assert_ok(clt_plan_run(plan));
        assert_ok(clt_plan_read(plan, y, got, sizeof got));
        for (int i = 0; i < N; i++) assert_true(got[i] == sum[i]);
        clt_plan_destroy(plan);
        clt_graph_destroy(g);
        free(wires);
        code_close(&c);
    }
}

/* Gradients are sums over samples, and what is sent their means: a step of few samples after one of many weighs as
 * much as it should. */
static void sums_become_means(void **state) {
    (void)state;
    enum { N = 700 };
    for (size_t m = 0; m < CLT_COUNT_OF(methods); m++) {
        code c[2];
        float x[2][N];
        for (int i = 0; i < 2; i++) method_open(&c[i], &methods[m], N);
        for (int step = 0; step < 4; step++) {
            float samples = step % 2 ? 64 : 4; /* powers of two: nothing is rounded */
            draw(x[0], N, NORMAL, (uint64_t)step);
            for (int i = 0; i < N; i++) x[1][i] = x[0][i] * samples;
            assert_ok(clt_plan_feed(c[1].plan, c[1].samples, &samples));
            for (int i = 0; i < 2; i++) code_step(&c[i], x[i]);
            assert_memory_equal(c[0].sent_values, c[1].sent_values, sizeof x[0]);
            assert_memory_equal(c[0].residual_values, c[1].residual_values, sizeof x[0]);
        }
        for (int i = 0; i < 2; i++) code_close(&c[i]);
    }
}

/* ---- casts ---- */

static float from_f16(uint16_t h) {
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double value = exponent == 0    ? ldexp(mantissa, -24)
                   : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                    : ldexp(1024 + mantissa, exponent - 25);
    return (float)(h & 0x8000 ? -value : value);
}

/* To the nearest of all halves, the even one of two: by looking at the neighbours. */
static uint16_t to_f16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    double v = fabs((double)x);
    if (isnan(x)) return 0x7e00;
    if (v >= 65520) return sign | 0x7c00;
    int low = 0, high = 0x7bff;
    while (low < high) { /* the largest half that is not above */
        int middle = (low + high + 1) / 2;
        if ((double)from_f16((uint16_t)middle) <= v) low = middle;
        else high = middle - 1;
    }
    double below = (double)from_f16((uint16_t)low), above = low == 0x7bff ? 65536 : (double)from_f16((uint16_t)(low + 1));
    bool up = v - below > above - v || (v - below == above - v && low % 2);
    return (uint16_t)(sign | (low + up));
}

static uint16_t to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if (isnan(x)) return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static const float special[] = {0.0f,   -0.0f, 1.0f,       65504.0f,  65519.0f,    65520.0f, -1e9f,       INFINITY, -INFINITY,
                                NAN,    1e-5f, 5.9604645e-8f, 2.9802322e-8f, 2.99e-8f, 1.0009766f, 1.00048828125f, 1.00146484375f,
                                3.3e38f, 1.00390625f, 1.01171875f};

static void check_cast(clt_dtype dtype, int64_t n, float samples) {
    clt_graph *g;
    clt_state_store *store;
    clt_plan *plan;
    float *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y);
    uint16_t *wire = malloc((size_t)n * sizeof *wire);
    draw(x, n, NORMAL, (uint64_t)n);
    for (size_t i = 0; i < CLT_COUNT_OF(special) && (int64_t)i < n; i++) x[i] = special[i];
    assert_ok(clt_graph_create(&g));
    assert_ok(clt_state_store_create(device, &store));
    clt_tensor *in = clt_input(g, "x", CLT_F32, CLT_SHAPE(n));
    clt_tensor *narrow = clt_narrow(in, clt_fill(g, CLT_SHAPE(1), samples), dtype);
    clt_tensor *wide = clt_widen(clt_state(g, "flat", CLT_F32, CLT_SHAPE(n)), narrow);
    clt_tensor *targets[] = {narrow, wide};
    assert_ok(clt_graph_status(g));
    assert_ok(clt_plan_compile(&plan, &(clt_plan_options){.device = device,
                                                          .store = store,
                                                          .graph = g,
                                                          .targets = targets,
                                                          .n_targets = 2,
                                                          .training = true}));
    assert_ok(clt_plan_feed(plan, in, x));
    assert_ok(clt_plan_run(plan));
    assert_ok(clt_plan_read(plan, narrow, wire, (size_t)n * sizeof *wire));
    assert_ok(clt_plan_read(plan, wide, y, (size_t)n * sizeof *y));
    for (int64_t i = 0; i < n; i++) {
        uint16_t wanted = dtype == CLT_F16 ? to_f16(x[i] / samples) : to_bf16(x[i] / samples);
        float back = dtype == CLT_F16 ? from_f16(wanted) : from_bf16(wanted);
        if (isnan(x[i])) {
            assert_true(isnan(y[i]));
            continue;
        }
        if (wire[i] != wanted) fail_msg("%s: %.9g gives %04x, not %04x", clt_dtype_name(dtype), (double)x[i], wire[i], wanted);
        assert_true(y[i] == back);
    }
    clt_plan_destroy(plan);
    clt_state_store_destroy(store);
    clt_graph_destroy(g);
    free(x);
    free(y);
    free(wire);
}

static void casts_round_to_nearest_even(void **state) {
    (void)state;
    for (size_t s = 0; s < CLT_COUNT_OF(sizes); s++) {
        check_cast(CLT_F16, sizes[s], 1);
        check_cast(CLT_F16, sizes[s], 4);
        check_cast(CLT_BF16, sizes[s], 1);
    }
}

/* ---- refusals ---- */

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    clt_graph *g;
    assert_ok(clt_graph_create(&g));
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(100));
    clt_tensor *residual = clt_state(g, "r", CLT_F32, CLT_SHAPE(100));
    clt_encode(&clt_op_topk_encode, (clt_compress_attributes){.k = 101}, x, residual, clt_fill(g, CLT_SHAPE(1), 1));
    assert_status(clt_graph_status(g), CLT_E_INVALID);
    assert_detail("101");
    clt_graph_destroy(g);
    assert_ok(clt_graph_create(&g));
    x = clt_input(g, "x", CLT_F32, CLT_SHAPE(100));
    clt_tensor *wires = clt_input(g, "w", CLT_I32, CLT_SHAPE(2 * clt_int8_words(100)));
    clt_decode(&clt_op_int8_decode, (clt_compress_attributes){.ranks = 3}, x, wires);
    assert_status(clt_graph_status(g), CLT_E_SHAPE);
    assert_detail("3 ranks");
    clt_graph_destroy(g);
}

int main(void) {
    if (clt_device_open(&device, NULL) < 0) return puts(clt_error_detail()), 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_right),
        cmocka_unit_test(feedback_loses_nothing),
        cmocka_unit_test(what_is_not_finite_shows),
        cmocka_unit_test(ranks_are_added),
        cmocka_unit_test(sums_become_means),
        cmocka_unit_test(casts_round_to_nearest_even),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    int failed = cmocka_run_group_tests_name("compress", tests, NULL, NULL);
    clt_device_close(device);
    return failed;
}
