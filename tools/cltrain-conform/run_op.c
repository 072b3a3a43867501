/* A case of one op: values drawn, run, and held against the definition and its differences. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cltrain-conform/suite.h"

/* A run of which all is kept, for the next one must give the same bits. */
typedef struct outcome {
    void *y, *gradients[MOST_OPERANDS], *buffers[MOST_OPERANDS];
} outcome;

typedef struct work {
    const test_case *c;
    bench *b;
    case_result *r;
    char names[MOST_OPERANDS][32];
    array x[MOST_OPERANDS], seed, y;
    clt_graph *graph;
    clt_tensor *result;
    clt_trial *trial;
    clt_dtype dtype;
    clt_shape shape;
    outcome first, again;
    double reference_work;
} work;

/* ---- values ---- */

static bool near_kink(const operand *o, double value) {
    for (int i = 0; i < o->n_kinks; i++)
        if (fabs(value - o->kinks[i]) < 0.01) return true;
    return false;
}

static bool is_float(clt_dtype dtype) {
    return dtype == CLT_F32 || dtype == CLT_F16 || dtype == CLT_BF16;
}

static double draw_one(const operand *o, random_stream *random) {
    double low = o->low, high = o->high, value;
    if (low == 0 && high == 0) low = -2, high = 2;
    if (!is_float(o->dtype) || o->whole) return floor(low + (high - low) * random_uniform(random));
    do value = float_round(low + (high - low) * random_uniform(random), o->dtype);
    while (near_kink(o, value));
    return value;
}

static void draw(const operand *o, random_stream *random, array *a) {
    double low = o->low, high = o->high;
    if (low == 0 && high == 0) low = -2, high = 2;
    array_resize(a, o->shape);
    int64_t n = array_count(a);
    for (int64_t i = 0; i < n; i++) {
        if (o->values || !o->distinct) {
            a->values[i] = !o->values ? draw_one(o, random) : is_float(o->dtype) ? float_round(o->values[i % o->n_values], o->dtype) : o->values[i % o->n_values];
            continue;
        }
        int64_t j = random_below(random, i + 1);
        a->values[i] = a->values[j];
        a->values[j] = float_round((high - low) * (double)i / (double)n + low, o->dtype);
    }
    for (int k = 0; k < o->n_special; k++) a->values[random_below(random, n)] = o->special[k];
}

static void *to_device(const array *a, clt_dtype dtype, size_t *bytes) {
    int64_t n = array_count(a);
    *bytes = (size_t)n * clt_dtype_bytes(dtype);
    void *to = malloc(*bytes);
    if (!to) exit(3);
    for (int64_t i = 0; i < n; i++) {
        if (dtype == CLT_F32) ((float *)to)[i] = (float)a->values[i];
        else if (dtype == CLT_I32) ((int32_t *)to)[i] = (int32_t)a->values[i];
        else if (is_float(dtype)) ((uint16_t *)to)[i] = half_bits(a->values[i], dtype);
        else ((uint8_t *)to)[i] = (uint8_t)a->values[i];
    }
    return to;
}

static void from_device(const void *from, clt_dtype dtype, clt_shape shape, array *a) {
    array_resize(a, shape);
    for (int64_t i = 0; i < array_count(a); i++)
        a->values[i] = dtype == CLT_F32   ? (double)((const float *)from)[i]
                   : dtype == CLT_I32 ? (double)((const int32_t *)from)[i]
                   : is_float(dtype)  ? half_value(((const uint16_t *)from)[i], dtype)
                                      : (double)((const uint8_t *)from)[i];
}

/* ---- making ---- */

static bool wants_gradient(const test_case *c, int i) {
    return !c->operation->no_gradient && !c->x[i].constant && is_float(c->x[i].dtype);
}

static bool is_buffer(const test_case *c, int i) {
    return c->x[i].variable && c->x[i].constant && c->operation->buffer_after;
}

static void draw_all(work *w) {
    random_stream random = random_of(w->c->id);
    for (int i = 0; i < w->c->n; i++) {
        draw(&w->c->x[i], &random, &w->x[i]);
        if (w->c->x[i].variable) snprintf(w->names[i], sizeof w->names[i], "%s", w->c->x[i].variable);
        else snprintf(w->names[i], sizeof w->names[i], "x%d", i);
    }
}

static clt_status build(work *w) {
    clt_tensor *inputs[MOST_OPERANDS] = {NULL};
    int n = 0;
    clt_status status = clt_graph_create(&w->graph);
    if (status < 0) return status;
    for (int i = 0; i < w->c->n; i++)
        if (!w->c->x[i].variable)
            inputs[n++] = clt_input(w->graph, w->names[i], w->c->x[i].dtype, w->c->x[i].shape);
    w->result = w->c->operation->build(w->graph, inputs, n, &w->c->at);
    w->shape = clt_tensor_shape(w->result);
    w->dtype = clt_tensor_dtype(w->result);
    return clt_graph_status(w->graph);
}

static clt_status compile(work *w) {
    const char *wrt[MOST_OPERANDS];
    clt_trial_options options = {.wrt = wrt, .evaluation = w->c->evaluation, .backend = w->b->backend};
    for (int i = 0; i < w->c->n; i++)
        if (wants_gradient(w->c, i)) wrt[options.n_wrt++] = w->names[i];
    clt_status status = clt_trial_create(&w->trial, w->b->device, w->result, &options);
    if (status < 0) return status;
    note_rows(w->trial, w->r);
    if (options.n_wrt == 0) return CLT_OK;
    random_stream random = random_of(w->b->row);
    operand seed = {.dtype = w->dtype, .shape = w->shape, .low = -1, .high = 1, .special = {w->c->seed_special}, .n_special = w->c->seed_special != 0};
    draw(&seed, &random, &w->seed);
    return CLT_OK;
}

/* ---- running ---- */

static clt_status set(work *w, const char *name, const array *a, clt_dtype dtype) {
    size_t bytes;
    void *values = to_device(a, dtype, &bytes);
    clt_status status = clt_trial_set(w->trial, name, values, bytes);
    free(values);
    return status;
}

static clt_status get_all(work *w, outcome *o) {
    size_t bytes = (size_t)clt_shape_elements(&w->shape) * clt_dtype_bytes(w->dtype);
    o->y = malloc(bytes);
    clt_status status = o->y ? clt_trial_get(w->trial, NULL, o->y, bytes) : CLT_E_NO_MEMORY;
    for (int i = 0; i < w->c->n && status == CLT_OK; i++) {
        size_t count = (size_t)array_count(&w->x[i]);
        bool gradient = wants_gradient(w->c, i);
        if (!gradient && !is_buffer(w->c, i)) continue;
        void **to = gradient ? &o->gradients[i] : &o->buffers[i];
        *to = malloc(count * sizeof(float));
        if (!*to) return CLT_E_NO_MEMORY;
        status = gradient ? clt_trial_gradient(w->trial, w->names[i], *to, count)
                          : clt_trial_get(w->trial, w->names[i], *to, count * sizeof(float));
    }
    return status;
}

static clt_status run_once(work *w, outcome *o) {
    clt_status status = CLT_OK;
    for (int i = 0; i < w->c->n && status == CLT_OK; i++)
        status = set(w, w->names[i], &w->x[i], w->c->x[i].dtype);
    if (status == CLT_OK && w->seed.values) status = set(w, NULL, &w->seed, CLT_F32);
    if (status == CLT_OK) status = clt_trial_run(w->trial);
    return status == CLT_OK ? get_all(w, o) : status;
}

static void free_outcome(outcome *o) {
    free(o->y);
    for (int i = 0; i < MOST_OPERANDS; i++) {
        free(o->gradients[i]);
        free(o->buffers[i]);
    }
    *o = (outcome){.y = NULL};
}

/* ---- the questions ---- */

/* Results that are stored with 16 bits, and `times` as many between them and the operands. */
static void allow_rounding(const work *w, bounds *b, double times) {
    double roundoff = float_roundoff(w->dtype);
    for (int i = 0; i < w->c->n; i++) roundoff = fmax(roundoff, float_roundoff(w->c->x[i].dtype));
    if (roundoff == 0) return;
    b->tolerance = (b->tolerance > 0 ? b->tolerance : 2e-5) + 1.01 * times * roundoff;
    b->nmse = fmax(b->nmse, 1e-7 + times * roundoff * roundoff);
    b->ulp = 0;
}

/* Where operands are rounded to 10 bits. */
static const bounds rounded = {.tolerance = 1e-2, .nmse = 1e-5};

static void judge_values(work *w) {
    const operation *op = w->c->operation;
    bounds b = {.tolerance = op->tolerance, .ulp = op->ulp};
    if (w->b->rounding) b = rounded;
    if (!op->exact) allow_rounding(w, &b, fmax(1, op->roundings));
    array got = {.values = NULL}, want = {.values = NULL};
    w->reference_work = op->reference(w->x, w->c->n, &w->y, &w->c->at, w->c->evaluation);
    if (clt_shape_elements(&w->shape) != array_count(&w->y) || w->shape.rank != w->y.shape.rank) {
        result_say(w->r, &w->r->value, FAILED, "the result has another shape than it should have");
        return;
    }
    from_device(w->first.y, w->dtype, w->shape, &got);
    judge(w->r, &w->r->value, "the result", &got, &w->y, NULL, array_count(&w->y), &b);
    for (int i = 0; i < w->c->n; i++) {
        if (!is_buffer(w->c, i)) continue;
        if (w->c->evaluation)
            array_resize(&want, w->x[i].shape),
                memcpy(want.values, w->x[i].values, (size_t)array_count(&want) * sizeof *want.values);
        else op->buffer_after(w->x, i, &want, &w->c->at);
        from_device(w->first.buffers[i], CLT_F32, w->x[i].shape, &got);
        bounds after = {.tolerance = op->tolerance};
        judge(w->r, &w->r->value, w->names[i], &got, &want, NULL, array_count(&want), &after);
    }
    array_free(&got);
    array_free(&want);
}

/* Which elements of an operand are moved: all, if that takes little, else first and last ones and others. */
static int64_t choose_places(const work *w, int64_t count, int64_t **places) {
    const double most_work = w->b->full ? 2e8 : 5e7;
    int64_t n = (int64_t)(most_work / (2 * w->reference_work + 100));
    random_stream random = random_of(w->c->id);
    n = n < 24 ? 24 : n;
    n = n > count ? count : n;
    *places = malloc((size_t)n * sizeof **places);
    if (!*places) exit(3);
    for (int64_t i = 0; i < n; i++)
        (*places)[i] = n == count || i < 8 ? i : i < 16 ? count - 1 - (i - 8) : random_below(&random, count);
    return n;
}

/* (sum(f(x + eps) seed) - sum(f(x - eps) seed)) / (2 eps), summed element by element: those that do not depend on x
 * cancel exactly. */
static double difference(work *w, int input, int64_t place, array *above, array *below) {
    const double eps = 1e-5;
    const test_case *c = w->c;
    double *value = &w->x[input].values[place], kept = *value;
    *value = kept + eps;
    c->operation->reference(w->x, c->n, above, &c->at, c->evaluation);
    *value = kept - eps;
    c->operation->reference(w->x, c->n, below, &c->at, c->evaluation);
    *value = kept;
    double sum = 0;
    for (int64_t i = 0; i < array_count(above); i++) sum += (above->values[i] - below->values[i]) * w->seed.values[i];
    return sum / (2 * eps);
}

static void judge_gradient(work *w, int input) {
    array got = {.values = NULL}, want = {.values = NULL}, above = {.values = NULL}, below = {.values = NULL};
    int64_t *places = NULL, count = array_count(&w->x[input]);
    char what[64];
    snprintf(what, sizeof what, "the gradient of operand %d", input);
    from_device(w->first.gradients[input], CLT_F32, w->x[input].shape, &got);
    for (int64_t i = 0; i < count && !w->c->operation->gradient; i++)
        if (!isfinite(got.values[i])) {
            result_say(w->r, &w->r->gradient, FAILED, "%s: element %lld is %g", what, (long long)i, got.values[i]);
            break;
        }
    int64_t n = count;
    array_resize(&want, got.shape);
    if (w->c->operation->gradient) w->c->operation->gradient(w->x, input, &w->seed, &want, &w->c->at);
    else {
        n = choose_places(w, count, &places);
        for (int64_t k = 0; k < n; k++) want.values[places[k]] = difference(w, input, places[k], &above, &below);
    }
    /* As many terms as there are results to an element are summed; their sum may be far less than they are. */
    double terms = (double)array_count(&w->y) / (double)(count > 0 ? count : 1);
    bounds usual = {.tolerance = w->c->operation->tolerance, .floor = fmax(w->c->operation->floor, 1e-3 * fmax(terms, 1))};
    bounds allowed = w->b->rounding ? rounded : usual;
    allow_rounding(w, &allowed, 4);
    judge(w->r, &w->r->gradient, what, &got, &want, places, n, &allowed);
    free(places);
    array_free(&got), array_free(&want), array_free(&above), array_free(&below);
}

static bool same(const void *a, const void *b, size_t bytes) {
    return !a || !b || memcmp(a, b, bytes) == 0;
}

static void judge_repeat(work *w, int run) {
    bool equal =
        same(w->first.y, w->again.y, (size_t)clt_shape_elements(&w->shape) * clt_dtype_bytes(w->dtype));
    if (w->r->repeat == NOT_ASKED) w->r->repeat = PASSED;
    if (!equal) result_say(w->r, &w->r->repeat, FAILED, "run %d gave other bits for the result", run);
    for (int i = 0; i < w->c->n; i++) {
        size_t bytes = (size_t)array_count(&w->x[i]) * sizeof(float);
        if (!same(w->first.gradients[i], w->again.gradients[i], bytes))
            result_say(w->r, &w->r->repeat, FAILED,
                       "run %d gave other bits for the gradient of operand %d", run, i);
        if (!same(w->first.buffers[i], w->again.buffers[i], bytes))
            result_say(w->r, &w->r->repeat, FAILED, "run %d gave other bits for %s", run, w->names[i]);
    }
}

static void ask(work *w) {
    case_result *r = w->r;
    int runs = w->b->full ? 3 : 2; /* with other values in what is undefined */
    clt_status status = build(w);
    if (status < 0) {
        result_say(r, &r->supported, FAILED, "building the graph: %s", clt_error_detail());
        return;
    }
    status = compile(w);
    if (status < 0) {
        result_error(r, &r->supported, status, "compiling");
        return;
    }
    r->supported = PASSED;
    status = run_once(w, &w->first);
    if (status < 0) {
        result_error(r, &r->value, status, "running");
        return;
    }
    judge_redzones(w->b, r);
    judge_values(w);
    for (int i = 0; i < w->c->n && r->value == PASSED; i++)
        if (wants_gradient(w->c, i)) judge_gradient(w, i);
    for (int run = 2; run <= runs && status == CLT_OK; run++) {
        status = run_once(w, &w->again);
        if (status == CLT_OK) judge_repeat(w, run);
        else result_error(r, &r->repeat, status, "running once more");
        free_outcome(&w->again);
    }
    judge_redzones(w->b, r);
}

static void run_op(const test_case *c, bench *b, case_result *r) {
    work w = {.c = c, .b = b, .r = r};
    draw_all(&w);
    ask(&w);
    clt_trial_destroy(w.trial);
    if (r->supported == PASSED) judge_redzones(b, r); /* what was written when it was taken apart counts too */
    clt_graph_destroy(w.graph);
    free_outcome(&w.first);
    for (int i = 0; i < MOST_OPERANDS; i++) array_free(&w.x[i]);
    array_free(&w.seed), array_free(&w.y);
}

void case_run(const test_case *c, bench *b, case_result *r) {
    *r = (case_result){.nmse = -1, .ulp = -1};
    if (c->run) c->run(c, b, r);
    else run_op(c, b, r);
}
