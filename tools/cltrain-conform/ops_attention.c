/* Scaled dot-product attention. */
#include "tools/cltrain-conform/cases.h"

#include <math.h>
#include <stdlib.h>

/* How many keys a query sees: `ids` are the places of queries, [N, T], or NULL. */
static int64_t seen(const array *ids, int64_t image, int64_t i, int64_t queries, int64_t keys, bool causal) {
    int64_t last = ids ? (int64_t)ids->values[image * queries + i] : causal ? i : keys - 1;
    return last + 1 < keys ? last + 1 : keys;
}

/* What a mask [N, heads, T, S], with 1 in the place of any, adds to a score; of bytes, 0 hides. */
static double hidden(const array *mask, bool bytes, int64_t image, int64_t head, int64_t i, int64_t j) {
    const int64_t place[4] = {image, head, i, j}, *dims = mask->shape.dims;
    int64_t at = 0;
    for (int d = 0; d < 4; d++) at = at * dims[d] + (dims[d] > 1 ? place[d] : 0);
    return !bytes ? mask->values[at] : mask->values[at] != 0 ? 0 : -INFINITY;
}

/* at: s[0] the scale, 0 for 1/sqrt(D); s[1] dropout; flag: causal; last: the mask is of bytes. Further operands: a mask, and the places of queries. */
static double reference_attention(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    const array *mask = n > 3 && x[3].shape.rank == 4 ? &x[3] : NULL, *ids = n > 3 && x[n - 1].shape.rank == 2 ? &x[n - 1] : NULL;
    const int64_t *q = x[0].shape.dims, *k = x[1].shape.dims, d = q[3];
    double scale = at->s[0] != 0 ? (double)at->s[0] : (double)(float)(1 / sqrt((double)d)), *p = malloc((size_t)k[2] * sizeof *p);
    array_clear(y, x[0].shape);
    for (int64_t row = 0; p && row < q[0] * q[1] * q[2]; row++) {
        int64_t image = row / q[2] / q[1], head = row / q[2] % q[1] / (q[1] / k[1]), i = row % q[2];
        int64_t first = (image * k[1] + head) * k[2], keys = seen(ids, image, i, q[2], k[2], at->flag);
        double most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < keys; j++) {
            p[j] = 0;
            for (int64_t c = 0; c < d; c++) p[j] += scale * x[0].values[row * d + c] * x[1].values[(first + j) * d + c];
            if (mask) p[j] += hidden(mask, at->last, image, row / q[2] % q[1], i, j);
            most = fmax(most, p[j]);
        }
        if (most == -INFINITY) continue; /* it sees none */
        for (int64_t j = 0; j < keys; j++) sum += p[j] = exp(p[j] - most);
        for (int64_t j = 0; j < keys && at->s[1] != 0 && !evaluation; j++)
            p[j] = reference_attention_keeps(row / q[2], i, j, 0, (double)at->s[1]) ? p[j] / (1 - (double)at->s[1]) : 0;
        for (int64_t j = 0; j < keys; j++)
            for (int64_t c = 0; c < d; c++) y->values[row * d + c] += p[j] / sum * x[2].values[(first + j) * d + c];
    }
    free(p);
    return 4.0 * (double)(q[0] * q[1] * q[2] * k[2] * d);
}

/* at: s[0] the base; flag: interleaved. A second operand has the places, [N, T]. */
static double reference_rotary(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)evaluation;
    int64_t heads = x->shape.dims[1], length = x->shape.dims[2], d = x->shape.dims[3], half = d / 2;
    array_resize(y, x->shape);
    for (int64_t row = 0; row < array_count(x) / d; row++)
        for (int64_t i = 0; i < half; i++) {
            double place = n > 1 ? x[1].values[row / length / heads * length + row % length] : (double)(row % length);
            double angle = place * pow((double)at->s[0], -2.0 * (double)i / (double)d), c = cos(angle), s = sin(angle);
            int64_t a = row * d + (at->flag ? 2 * i : i), b = at->flag ? a + 1 : a + half;
            y->values[a] = x->values[a] * c - x->values[b] * s;
            y->values[b] = x->values[b] * c + x->values[a] * s;
        }
    return 6.0 * (double)array_count(x);
}

/* Rows of x[0] in a buffer that was empty, at the places x[1]. at: first, its capacity. */
static double reference_cache(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    const int64_t *dims = x->shape.dims;
    clt_shape shape = x->shape;
    shape.dims[2] = at->first;
    array_clear(y, shape);
    for (int64_t row = 0; row < dims[0] * dims[1] * dims[2]; row++) {
        int64_t head = row / dims[2], place = (int64_t)x[1].values[head / dims[1] * dims[2] + row % dims[2]];
        for (int64_t c = 0; c < dims[3]; c++) y->values[(head * at->first + place) * dims[3] + c] = x->values[row * dims[3] + c];
    }
    return (double)array_count(x);
}

BUILD(rotary, clt_rotary(x[0], .base = at->s[0], .interleaved = at->flag, .position_ids = n > 1 ? x[1] : NULL))
static clt_tensor *build_attention(clt_graph *graph, clt_tensor *const *x, int n, const attributes *at) {
    (void)graph;
    clt_attention_options options = {.scale = at->s[0], .causal = at->flag, .dropout = at->s[1]};
    for (int i = 3; i < n; i++) *(clt_tensor_shape(x[i]).rank == 4 ? &options.mask : &options.position_ids) = x[i];
    return clt_attention_with(x[0], x[1], x[2], options);
}
BUILD(cache, clt_cache(x[0], "c", at->first, x[1]))

static const operation attention = OPERATION("attention", "clt_attention_with", attention, attention);
/* Scores of 100: what exp is given has an error of 100 units in the last place of 1. */
static const operation large_scores = OPERATION("attention", "clt_attention_with", attention, attention, .tolerance = 2e-4);
/* Keys' gradients are as small as the queries, and differences of scores of 1e5 as uncertain. */
static const operation hidden_scores = OPERATION("attention", "clt_attention_with", attention, attention, .floor = 0.1);

static const operation cache = OPERATION("cache", "clt_cache", cache, cache, .no_gradient = true, .ulp = 1);

/* N images, heads of queries and of keys, T queries, S keys, of D. */
static test_case *add(case_list *list, const char *variant, bool causal, const int sizes[6]) {
    operand x[] = {{.shape = SHAPE(sizes[0], sizes[1], sizes[3], sizes[5])},
                   {.shape = SHAPE(sizes[0], sizes[2], sizes[4], sizes[5])},
                   {.shape = SHAPE(sizes[0], sizes[2], sizes[4], sizes[5])}};
    test_case *c = case_add(list, &attention, variant, x, 3);
    c->at.flag = causal;
    return c;
}

/* The same, with places of queries. */
static void add_places(case_list *list, const char *variant, const int sizes[6], const double *places, int n_places) {
    operand x[] = {{.shape = SHAPE(sizes[0], sizes[1], sizes[3], sizes[5])},
                   {.shape = SHAPE(sizes[0], sizes[2], sizes[4], sizes[5])},
                   {.shape = SHAPE(sizes[0], sizes[2], sizes[4], sizes[5])},
                   {.dtype = CLT_I32, .shape = SHAPE(sizes[0], sizes[3]), .values = places, .n_values = n_places, .high = 1}};
    case_add(list, &attention, variant, x, 4);
}

/* The same with a mask, of dimensions 1 where `whole` says nothing, and dropout. */
static test_case *add_masked(case_list *list, const char *variant, bool causal, const int sizes[6], clt_dtype dtype, int whole, float dropout) {
    operand x[] = {{.shape = SHAPE(sizes[0], sizes[1], sizes[3], sizes[5])},
                   {.shape = SHAPE(sizes[0], sizes[2], sizes[4], sizes[5])},
                   {.shape = SHAPE(sizes[0], sizes[2], sizes[4], sizes[5])},
                   {.dtype = dtype, .shape = SHAPE(sizes[0], sizes[1], sizes[3], sizes[4]), .constant = true}};
    for (int d = 0; d < 4; d++)
        if (!(whole >> d & 1)) x[3].shape.dims[d] = 1;
    if (dtype == CLT_U8) x[3].low = 0, x[3].high = 2;
    test_case *c = case_add(list, &attention, variant, x, 4);
    c->at.flag = causal;
    c->at.s[1] = dropout;
    c->at.last = dtype == CLT_U8;
    return c;
}

static void cases_masks(case_list *list) {
    enum { N = 1, HEADS = 2, T = 4, S = 8 };
    static const double one_row[] = {1, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}; /* of 7 keys: the second query sees none */
    static const double hide[] = {-1e5};
    for (int f32 = 0; f32 < 2; f32++) {
        clt_dtype dtype = f32 ? CLT_F32 : CLT_U8;
        add_masked(list, f32 ? "mask" : "mask-bytes", false, (int[]){2, 4, 2, 5, 9, 4}, dtype, N | HEADS | T | S, 0);
        add_masked(list, f32 ? "mask-keys" : "mask-keys-bytes", true, (int[]){2, 2, 2, 9, 9, 3}, dtype, N | S, 0);
        add_masked(list, f32 ? "mask-blocks" : "mask-blocks-bytes", false, (int[]){2, 2, 1, 37, 70, 32}, dtype, T | S, 0);
        add_masked(list, f32 ? "mask-blocks" : "mask-blocks-bytes", true, (int[]){1, 2, 2, 35, 35, 32}, dtype, N | HEADS | T | S, 0)->full = true;
        add_masked(list, f32 ? "mask-few" : "mask-few-bytes", false, (int[]){2, 2, 2, 2, 70, 32}, dtype, HEADS | S, 0);
    }
    add_masked(list, "mask-queries", false, (int[]){1, 2, 2, 6, 5, 4}, CLT_F32, T, 0);
    for (int d = 32; d > 1; d /= 8) { /* every key is hidden by the same large number, beside which f32 loses the scores and the logarithm of their sum */
        test_case *c = add_masked(list, "mask-large", false, (int[]){1, 2, 1, 5, 37, d}, CLT_F32, T | S, 0);
        c->x[3].values = hide, c->x[3].n_values = 1;
        c->x[0].low = -1e-5, c->x[0].high = 1e-5;
        c->operation = &hidden_scores;
    }
    for (int wide = 0; wide < 2; wide++) {
        test_case *c = add_masked(list, "mask-none", false, (int[]){2, 2, 2, 3, 7, wide ? 32 : 5}, CLT_U8, T | S, 0);
        c->x[3].values = one_row, c->x[3].n_values = 21;
    }
    add_masked(list, "dropout", false, (int[]){2, 4, 2, 5, 9, 4}, CLT_F32, N | S, 0.3f);
    add_masked(list, "dropout-blocks", true, (int[]){2, 2, 1, 37, 37, 32}, CLT_U8, HEADS | T | S, 0.5f);
    add_masked(list, "dropout-few", false, (int[]){2, 2, 2, 2, 70, 32}, CLT_F32, N | S, 0.4f);
    test_case *without = add(list, "dropout-alone", true, (int[]){1, 4, 2, 19, 19, 64});
    without->at.s[1] = 0.2f;
    without = add(list, "dropout-evaluation", true, (int[]){1, 2, 1, 7, 7, 8});
    without->at.s[1] = 0.2f;
    without->evaluation = true;
}

static void add_cache(case_list *list, const char *variant, clt_shape shape, int capacity, const double *places, int n_places) {
    operand x[] = {{.shape = shape}, {.dtype = CLT_I32, .shape = SHAPE(shape.dims[0], shape.dims[2]), .values = places, .n_values = n_places, .high = 1}};
    case_add(list, &cache, variant, x, 2)->at.first = capacity;
}

static const operation rotary = OPERATION("rotary", "clt_rotary_with", rotary, rotary);

static void add_rotary(case_list *list, const char *variant, bool interleaved, float base, clt_shape shape) {
    operand x = {.shape = shape};
    test_case *c = case_add(list, &rotary, variant, &x, 1);
    c->at.flag = interleaved;
    c->at.s[0] = base;
}

static void cases_places(case_list *list) {
    static const double mixed[] = {6, 0, 3, 5, 1, 2, 4, 2}, last[] = {8}, none[] = {0}, far[] = {99, 63, 64, 0, 17, 5, 65, 80}, apart[] = {4, 0, 2, 1, 3, 0};
    static double spread[34];
    for (int i = 0; i < 34; i++) spread[i] = i * 13 % 40;
    add_places(list, "places", (int[]){2, 2, 2, 4, 7, 5}, mixed, 8);
    add_places(list, "places-grouped", (int[]){2, 6, 2, 1, 9, 8}, mixed, 2);
    add_places(list, "places-last", (int[]){1, 2, 1, 1, 9, 64}, last, 1);
    add_places(list, "places-odd", (int[]){3, 1, 1, 2, 7, 3}, mixed, 6);
    add_places(list, "places-blocks", (int[]){2, 2, 1, 17, 40, 32}, spread, 34);
    for (int t = 1; t <= 4; t += 3) { /* few queries: kernels of their own; more keys than they take at once */
        add(list, "few", t > 1, (int[]){2, 2, 1, t, 70, 32});
        add(list, "few", false, (int[]){1, 4, 2, t, 131, 64});
        add_places(list, "few-places", (int[]){2, 2, 2, t, 100, 32}, far, 8);
    }
    add_cache(list, "", (clt_shape)SHAPE(2, 3, 3, 4), 5, apart, 6);
    add_cache(list, "one", (clt_shape)SHAPE(1, 1, 1, 1), 1, none, 1);
    add_cache(list, "token", (clt_shape)SHAPE(3, 2, 1, 7), 9, last, 1);
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        operand x[] = {{.shape = SHAPE(2, 3, 7, 8)}, {.dtype = CLT_I32, .shape = SHAPE(2, 7), .values = mixed, .n_values = 8, .high = 1}};
        test_case *c = case_add(list, &rotary, interleaved ? "places-interleaved" : "places", x, 2);
        c->at.flag = interleaved;
        c->at.s[0] = 10000;
    }
}

void cases_attention(case_list *list) {
    cases_places(list);
    cases_masks(list);
    add_rotary(list, "halves", false, 10000, (clt_shape)SHAPE(2, 3, 7, 8));
    add_rotary(list, "interleaved", true, 10000, (clt_shape)SHAPE(2, 3, 7, 8));
    add_rotary(list, "base", false, 50, (clt_shape)SHAPE(1, 1, 33, 2));
    add_rotary(list, "interleaved-base", true, 50, (clt_shape)SHAPE(1, 2, 5, 66));
    add(list, "", false, (int[]){2, 3, 3, 5, 7, 4});
    add(list, "one", false, (int[]){1, 1, 1, 1, 1, 1});
    add(list, "causal", true, (int[]){2, 2, 2, 7, 7, 5});
    add(list, "causal-few-keys", true, (int[]){1, 2, 1, 9, 4, 3});
    add(list, "causal-few-queries", true, (int[]){1, 1, 1, 3, 8, 8});
    add(list, "grouped", false, (int[]){2, 6, 2, 4, 5, 3});
    add(list, "grouped-causal", true, (int[]){1, 4, 1, 11, 11, 16});
    add(list, "scale", false, (int[]){1, 2, 2, 5, 6, 4})->at.s[0] = -0.3f;
    /* Blocks of native kernels, and what is left over from them. */
    add(list, "blocks", true, (int[]){1, 2, 2, 70, 70, 64})->large = true;
    add(list, "blocks", false, (int[]){1, 1, 1, 37, 131, 32})->large = true;
    add(list, "blocks-odd", true, (int[]){1, 2, 1, 67, 67, 20});
    test_case *large = add(list, "large", false, (int[]){1, 1, 1, 6, 9, 4}); /* exp overflows without the maximum */
    for (int i = 0; i < 2; i++) large->x[i].low = 5, large->x[i].high = 5.6;
    large->at.s[0] = 1;
    large->operation = &large_scores;
    test_case *long_rows = add(list, "long", true, (int[]){1, 2, 2, 515, 515, 64});
    long_rows->full = long_rows->large = true;
}
