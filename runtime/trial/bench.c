#include "runtime/trial/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/exec/plan.h"
#include "runtime/trial/witness.h"

enum { MOST_INPUTS = 8, MOST_ROUNDS = 9, MOST_DUELS = 25, MOST_SAMPLES = 64 };

/* Parts of a problem that give parts of its result: places along an axis of one operand and of the result. The problem is linear
 * in that operand: of a sum of all places, each with a sign, the result is the same sum of the results. So one part more tells
 * whether all the others are right (Freivalds, "Probabilistic machines can use less running time", 1977). */
enum { SUM_OF_ALL = -1 };
typedef struct sample {
    clt_linear along;
    int64_t places[MOST_SAMPLES]; /* or SUM_OF_ALL */
    int64_t n; /* 0: the whole */
} sample;

struct clt_bench {
    clt_device *device;
    clt_state_store *store;
    const clt_tensor *node;
    sample part;
    float *values[MOST_INPUTS]; /* in logical order; NULL where the input is not f32 */
    float *scratch;             /* as large as the largest tensor */
    float *wanted;              /* the reference's result: of the part, or of the whole */
    float *first;               /* the whole result of the first candidate that was right; NULL: none yet */
    double reference_us;
};

/* ---- a graph of one node ---- */

typedef struct trial {
    clt_graph *graph;
    clt_tensor *inputs[MOST_INPUTS], *result;
    clt_plan *plan;
} trial;

static clt_shape part_shape(clt_shape shape, int axis, const sample *part) {
    if (part) shape.dims[axis] = part->n;
    return shape;
}

/* The shape of the result may be among the attributes. */
static void set_attributes(const clt_tensor *node, const sample *part, void *attributes) {
    memcpy(attributes, node->attributes, node->op->attributes_bytes);
    for (const clt_attribute *a = node->op->schema; part && a && a->name; a++)
        if (a->type == CLT_ATTRIBUTE_RESULT)
            ((clt_shape *)(void *)((char *)attributes + a->offset))->dims[part->along.result_axis] = part->n;
}

/* The reference's own graph is contiguous: values are brought to the layouts of the others when they are fed. */
static clt_status build(const clt_tensor *node, const sample *part, bool contiguous, trial *t) {
    char name[16];
    CLT_TRY(clt_graph_create(&t->graph));
    for (int i = 0; i < clt_own_inputs(node); i++) {
        const clt_tensor *given = node->inputs[i];
        bool cut = part && i == part->along.input;
        snprintf(name, sizeof name, "x%d", i);
        t->inputs[i] = clt_input(t->graph, name, given->dtype,
                                 part_shape(given->shape, cut ? part->along.axis : 0, cut ? part : NULL));
        if (!contiguous && clt_tensor_valid(t->inputs[i])) t->inputs[i]->layout = given->layout;
    }
    void *attributes = clt_alloc(node->op->attributes_bytes);
    if (!attributes) return clt_fail_memory(node->op->attributes_bytes);
    if (node->attributes) set_attributes(node, part, attributes);
    clt_tensor *copy = clt_node(t->graph, node->op, node->attributes ? attributes : NULL, t->inputs, clt_own_inputs(node));
    clt_free(attributes);
    CLT_TRY(clt_graph_status(t->graph));
    if (!contiguous) copy->layout = node->layout;
    copy->unread = node->unread;
    t->result = clt_node_result(copy);
    return CLT_OK;
}

static clt_status compile(clt_bench *b, const clt_choice *choice, trial *t) {
    return clt_plan_compile(&t->plan, &(clt_plan_options){.device = b->device,
                                                          .store = b->store,
                                                          .graph = t->graph,
                                                          .targets = &t->result,
                                                          .n_targets = 1,
                                                          .training = true,
                                                          .forced = choice});
}

static void trial_free(trial *t) {
    clt_plan_destroy(t->plan);
    clt_graph_destroy(t->graph);
    *t = (trial){0};
}

/* ---- values ---- */

/* Random numbers that come again only after a prime number of them: quick to make, and no stride of a
 * kernel meets the period. */
static void fill(float *values, int64_t n, uint64_t stream) {
    enum { PERIOD = 65521 };
    clt_random random;
    clt_random_init(&random, 20, stream);
    for (int64_t i = 0; i < n; i++)
        values[i] = i < PERIOD ? (float)clt_random_u32(&random) / 2147483648.0f - 1.0f : values[i - PERIOD];
}

static bool is_channels_last(const clt_tensor *tensor) {
    return !clt_tensor_contiguous(tensor) && tensor->layout == CLT_LAYOUT_CHANNELS_LAST;
}

/* N, C, pixels to N, pixels, C or back: of `rows` x `columns` matrices one after the other the transposes. */
static void transpose(const float *from, float *to, int64_t n, int64_t rows, int64_t columns) {
    for (int64_t m = 0; m < n; m++, from += rows * columns, to += rows * columns)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++) to[c * rows + r] = from[r * columns + c];
}

static void add_signed(const float *from, float *to, int64_t places, int64_t inner) {
    enum { BLOCK = 512 }; /* what is read together */
    double sums[BLOCK];
    for (int64_t begin = 0; begin < inner; begin += BLOCK) {
        int64_t n = CLT_MIN(inner - begin, (int64_t)BLOCK);
        uint32_t bits = 1;
        memset(sums, 0, sizeof sums);
        for (int64_t p = 0; p < places; p++, bits = bits * 1664525u + 1013904223u)
            for (int64_t i = 0; i < n; i++)
                sums[i] += bits >> 31 ? -(double)from[p * inner + begin + i] : (double)from[p * inner + begin + i];
        for (int64_t i = 0; i < n; i++) to[begin + i] = (float)sums[i];
    }
}

/* The parts of a tensor along an axis, one behind the other. */
static void gather(const float *from, float *to, const clt_shape *shape, int axis, const sample *part) {
    int64_t inner = 1, outer = 1;
    for (int d = 0; d < axis; d++) outer *= shape->dims[d];
    for (int d = axis + 1; d < shape->rank; d++) inner *= shape->dims[d];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < part->n; k++, to += inner) {
            const float *all = from + o * shape->dims[axis] * inner;
            if (part->places[k] == SUM_OF_ALL) add_signed(all, to, shape->dims[axis], inner);
            else memcpy(to, all + part->places[k] * inner, (size_t)inner * sizeof *to);
        }
}

static clt_status feed_one(clt_bench *b, const trial *t, const sample *part, int i) {
    const clt_tensor *input = t->inputs[i];
    const clt_shape *given = &b->node->inputs[i]->shape;
    int64_t n = clt_tensor_elements(input), *d = t->inputs[i]->shape.dims;
    const float *values = b->values[i];
    if (!values) memset(b->scratch, 0, (size_t)n * clt_dtype_bytes(input->dtype));
    else if (part && i == part->along.input) gather(values, b->scratch, given, part->along.axis, part);
    else if (is_channels_last(input)) transpose(values, b->scratch, d[0], d[1], d[2] * d[3]);
    else memcpy(b->scratch, values, (size_t)n * sizeof *values);
    return clt_plan_feed(t->plan, input, b->scratch);
}

/* Memory comes from a pool: a candidate that writes nothing would find the result of the one before. So it finds NaN. */
static clt_status feed(clt_bench *b, const trial *t, const sample *part) {
    size_t bytes = (size_t)clt_tensor_elements(t->result) * sizeof(float);
    for (int i = 0; i < clt_own_inputs(b->node); i++) CLT_TRY(feed_one(b, t, part, i));
    memset(b->scratch, 0xff, bytes);
    return clt_plan_write(t->plan, t->result, b->scratch, bytes);
}

static clt_status read_result(clt_bench *b, const trial *t, float *values) {
    const int64_t *d = t->result->shape.dims;
    size_t bytes = (size_t)clt_tensor_elements(t->result) * sizeof *values;
    bool swap = is_channels_last(t->result);
    CLT_TRY(clt_plan_read(t->plan, t->result, swap ? b->scratch : values, bytes));
    if (swap) transpose(b->scratch, values, d[0], d[2] * d[3], d[1]);
    return CLT_OK;
}

/* ---- time ---- */

static clt_status run_for(const trial *t, int times, double *us) {
    double start = clt_seconds();
    for (int i = 0; i < times; i++) CLT_TRY(clt_plan_run(t->plan));
    CLT_TRY(clt_plan_wait(t->plan, t->result));
    *us = 1e6 * (clt_seconds() - start) / times;
    return CLT_OK;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, ascending);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Runs in a row, so that waiting for the device is not what is timed; and rounds of them, as time allows. */
static void divide_time(double us, double seconds, int most_rounds, int *times, int *rounds) {
    const double least_us = 2000;
    *times = (int)CLT_MAX(1, CLT_MIN(least_us / CLT_MAX(us, 1), 500));
    *rounds = (int)CLT_MAX(1, CLT_MIN(1e6 * seconds / (CLT_MAX(us, 1) * *times), most_rounds));
}

static clt_status time_runs(const trial *t, double seconds, double give_up_us, double *us) {
    double rounds_us[MOST_ROUNDS];
    int times, rounds;
    CLT_TRY(run_for(t, 1, us));
    if (*us > give_up_us) return CLT_OK;
    divide_time(*us, seconds, MOST_ROUNDS, &times, &rounds);
    for (int i = 0; i < rounds; i++) CLT_TRY(run_for(t, times, &rounds_us[i]));
    *us = median(rounds_us, rounds);
    return CLT_OK;
}

/* ---- the reference ---- */

/* The sum of all, and as many places as the work allows, from the last to the first: edges of tiles are at the end. */
static sample choose_part(const clt_tensor *node, double work, double sample_work) {
    sample part = {.n = 0};
    if (!node->op->linear || !node->op->linear(node, &part.along)) return part;
    int64_t length = node->shape.dims[part.along.result_axis];
    double fraction = sample_work / CLT_MAX(work, 1);
    int64_t n = (int64_t)CLT_MIN(fraction * (double)length, MOST_SAMPLES);
    part.n = CLT_MAX(n, CLT_MIN(length, 1));
    if (fraction >= 1 || part.n >= length) return (sample){.n = 0};
    part.places[0] = SUM_OF_ALL;
    for (int64_t i = 1; i < part.n; i++)
        part.places[i] = part.n == 2 ? length - 1 : (i - 1) * (length - 1) / (part.n - 2);
    return part;
}

static double part_fraction(const clt_bench *b) {
    return b->part.n ? (double)b->part.n / (double)b->node->shape.dims[b->part.along.result_axis] : 1;
}

/* Twice if that is not long: the first run may compile something, and what is little work is long for that alone. */
static clt_status run_reference(clt_bench *b, const clt_choice *choice, double work) {
    const double short_us = 100e3, little_work = 1e7;
    const sample *part = b->part.n ? &b->part : NULL;
    trial t = {0};
    clt_status status;
    CLT_TRY_GOTO(build(b->node, part, true, &t));
    CLT_TRY_GOTO(compile(b, choice, &t));
    CLT_TRY_GOTO(feed(b, &t, part));
    CLT_TRY_GOTO(run_for(&t, 1, &b->reference_us));
    if (b->reference_us < short_us || work < little_work) CLT_TRY_GOTO(run_for(&t, 1, &b->reference_us));
    b->reference_us /= part_fraction(b);
    status = read_result(b, &t, b->wanted);
fail:
    trial_free(&t);
    return status;
}

static clt_status make_values(clt_bench *b) {
    int64_t elements = clt_tensor_elements(clt_node_result(b->node)), largest = elements;
    for (int i = 0; i < clt_own_inputs(b->node); i++) {
        int64_t n = clt_tensor_elements(b->node->inputs[i]);
        largest = CLT_MAX(largest, n);
        if (b->node->inputs[i]->dtype != CLT_F32) continue;
        b->values[i] = clt_alloc((size_t)n * sizeof(float));
        if (!b->values[i]) return clt_fail_memory((size_t)n * sizeof(float));
        fill(b->values[i], n, (uint64_t)i);
    }
    b->scratch = clt_alloc((size_t)largest * sizeof(float));
    b->wanted = clt_alloc((size_t)elements * sizeof(float));
    return b->scratch && b->wanted ? CLT_OK : clt_fail_memory((size_t)largest * sizeof(float));
}

static clt_status check_node(const clt_tensor *node, const clt_backend_row *oracle) {
    bool fits = clt_own_inputs(node) <= MOST_INPUTS && node->dtype == CLT_F32 && !node->op->writes && !node->op->is_view;
    if (fits && oracle) return CLT_OK;
    return clt_fail(CLT_E_UNSUPPORTED, "%s is not compared with a reference", clt_node_name(node));
}

clt_status clt_bench_create(clt_bench **bench, clt_device *device, const clt_tensor *node, double work,
                            double sample_work) {
    clt_choice reference = {.row = clt_backend_oracle(node, device)};
    CLT_TRY(check_node(node, reference.row));
    clt_bench *b = clt_calloc(1, sizeof *b);
    if (!b) return clt_fail_memory(sizeof *b);
    b->device = device;
    b->node = node;
    b->part = choose_part(node, work, sample_work);
    clt_status status = CLT_OK;
    if (work * part_fraction(b) > 8 * sample_work)
        status = clt_fail(CLT_E_UNSUPPORTED, "even a part of it takes the reference too long");
    if (status == CLT_OK) status = make_values(b);
    if (status == CLT_OK) status = clt_state_store_create(device, &b->store);
    if (status == CLT_OK) status = run_reference(b, &reference, work * part_fraction(b));
    if (status < 0) clt_bench_destroy(b);
    else *bench = b;
    return status;
}

void clt_bench_destroy(clt_bench *bench) {
    if (!bench) return;
    clt_state_store_destroy(bench->store);
    for (int i = 0; i < MOST_INPUTS; i++) clt_free(bench->values[i]);
    clt_free(bench->scratch);
    clt_free(bench->wanted);
    clt_free(bench->first);
    clt_free(bench);
}

double clt_bench_reference_us(const clt_bench *bench) {
    return bench->reference_us;
}

/* ---- candidates ---- */

static double nmse(const float *got, const float *wanted, int64_t n) {
    double error = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        double difference = (double)got[i] - (double)wanted[i];
        error += difference * difference;
        square += (double)wanted[i] * (double)wanted[i];
    }
    return error == 0 ? 0 : error / square; /* NaN where either is */
}

/* Where the reference gave parts alone, the whole is held against the first candidate that was right in those. */
static clt_status compare(clt_bench *b, float *got, double *worst) {
    int64_t n = clt_tensor_elements(clt_node_result(b->node));
    if (b->part.n) {
        clt_shape shape = part_shape(b->node->shape, b->part.along.result_axis, &b->part);
        gather(got, b->scratch, &b->node->shape, b->part.along.result_axis, &b->part);
        *worst = nmse(b->scratch, b->wanted, clt_shape_elements(&shape));
    } else {
        *worst = nmse(got, b->wanted, n);
    }
    if (!b->first) return CLT_OK;
    double other = nmse(got, b->first, n);
    if (!isnan(*worst) && !(other <= *worst)) *worst = other;
    return CLT_OK;
}

static clt_status verify(clt_bench *b, const trial *t, double *worst, double *us) {
    size_t bytes = (size_t)clt_tensor_elements(clt_node_result(b->node)) * sizeof(float);
    float *got = clt_alloc(bytes);
    if (!got) return clt_fail_memory(bytes);
    clt_status status = feed(b, t, NULL);
    if (status == CLT_OK) status = run_for(t, 1, us);
    if (status == CLT_OK) status = read_result(b, t, got);
    if (status == CLT_OK) status = compare(b, got, worst);
    if (status == CLT_OK && !b->first && *worst <= CLT_BENCH_MOST_NMSE) {
        b->first = got;
        got = NULL;
    }
    clt_free(got);
    return status;
}

/* One that takes all its time with its first run is not run again. */
clt_status clt_bench_run(clt_bench *b, const clt_choice *choice, double seconds, double give_up_us,
                         clt_bench_result *result) {
    const double most_first_us = 5e6;
    trial t = {0};
    clt_status status;
    double first_us = 0;
    *result = (clt_bench_result){.nmse = INFINITY};
    CLT_TRY_GOTO(build(b->node, NULL, false, &t));
    CLT_TRY_GOTO(compile(b, choice, &t));
    CLT_TRY_GOTO(verify(b, &t, &result->nmse, &first_us));
    if (!(result->nmse <= CLT_BENCH_MOST_NMSE)) goto fail;
    /* Some drivers compile in the first run, which then tells nothing; on a simulator it tells enough. */
    if (first_us > most_first_us) result->us = first_us;
    else status = time_runs(&t, seconds, give_up_us, &result->us);
fail:
    trial_free(&t);
    return status;
}

/* ---- samples, of which some are looked at while they run ---- */

typedef struct sampling {
    const trial *t;
    clt_witness witness;
    int calls;
} sampling;

/* What the witness does is outside of the time where the run is the first or the last. */
static clt_status run_looked_at(sampling *s, int times, double *us) {
    int seen = clt_witness_choose(&s->witness, times);
    if (seen == 0) {
        CLT_TRY(clt_witness_before(&s->witness));
        CLT_TRY(clt_plan_wait(s->t->plan, s->t->result));
    }
    double start = clt_seconds();
    for (int i = 0; i < times; i++) {
        if (i == seen && i > 0) CLT_TRY(clt_witness_before(&s->witness));
        CLT_TRY(clt_plan_run(s->t->plan));
        if (i == seen && i < times - 1) CLT_TRY(clt_witness_after(&s->witness));
    }
    CLT_TRY(clt_plan_wait(s->t->plan, s->t->result));
    *us = 1e6 * (clt_seconds() - start) / times;
    if (seen == times - 1) CLT_TRY(clt_witness_after(&s->witness));
    return clt_witness_judge(&s->witness);
}

/* Single runs all, of samples of many every third: the median is then of those that nothing was enqueued between. */
static clt_status sample_run(void *user, int times, double *seconds) {
    enum { EVERY = 3 };
    sampling *s = user;
    bool look = times == 1 || s->calls % EVERY == 0;
    s->calls++;
    CLT_TRY(look ? run_looked_at(s, times, seconds) : run_for(s->t, times, seconds));
    *seconds *= 1e-6;
    return CLT_OK;
}

static clt_status check_sampled(const clt_bench *b, const sampling *s, clt_measurement *m) {
    if (s->witness.missing == 0) return CLT_OK;
    m->wrong = true;
    m->n = 0;
    return clt_fail(CLT_E_DEVICE, "%s: %s was launched and did not run, in %d of %d timed runs that were looked at",
                    clt_device_get_info(b->device)->name, clt_node_name(b->node), s->witness.missing, s->witness.looked);
}

clt_status clt_bench_sample(clt_bench *b, const clt_choice *choice, const clt_measure_options *options,
                            clt_measurement *measurement, double *nmse, double *nmse_after) {
    trial t = {0};
    sampling s = {.t = &t};
    clt_status status;
    double first_us;
    float *got = clt_alloc((size_t)clt_tensor_elements(b->node) * sizeof *got);
    *nmse = *nmse_after = INFINITY;
    if (!got) return clt_fail_memory((size_t)clt_tensor_elements(b->node) * sizeof *got);
    CLT_TRY_GOTO(build(b->node, NULL, false, &t));
    CLT_TRY_GOTO(compile(b, choice, &t));
    CLT_TRY_GOTO(verify(b, &t, nmse, &first_us));
    if (!(*nmse <= CLT_BENCH_MOST_NMSE)) goto fail;
    clt_device_settle_programs(b->device); /* what is saved beside them disturbs the times */
    CLT_TRY_GOTO(feed(b, &t, NULL)); /* so that timed runs that do nothing leave NaN */
    CLT_TRY_GOTO(clt_witness_init(&s.witness, b->device, t.plan, t.result));
    CLT_TRY_GOTO(clt_sample_times(sample_run, &s, options, measurement));
    CLT_TRY_GOTO(read_result(b, &t, got));
    CLT_TRY_GOTO(compare(b, got, nmse_after));
    status = check_sampled(b, &s, measurement);
fail:
    clt_witness_free(&s.witness);
    clt_free(got);
    trial_free(&t);
    return status;
}

clt_status clt_bench_duel(clt_bench *bench, const clt_choice *a, const clt_choice *b, double seconds, double *ratio) {
    trial t[2] = {{0}, {0}};
    const clt_choice *choices[2] = {a, b};
    double us[2], least[2] = {INFINITY, INFINITY}, ratios[MOST_DUELS];
    int times, rounds;
    clt_status status;
    for (int i = 0; i < 2; i++) {
        CLT_TRY_GOTO(build(bench->node, NULL, false, &t[i]));
        CLT_TRY_GOTO(compile(bench, choices[i], &t[i]));
        CLT_TRY_GOTO(feed(bench, &t[i], NULL));
        CLT_TRY_GOTO(run_for(&t[i], 1, &us[i]));
    }
    divide_time(us[0] + us[1], seconds, MOST_DUELS, &times, &rounds);
    rounds = CLT_MAX(rounds, 3);
    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < 2; k++) {
            CLT_TRY_GOTO(run_for(&t[k], times, &us[k]));
            least[k] = CLT_MIN(least[k], us[k]);
        }
        ratios[i] = us[0] / us[1];
    }
    *ratio = CLT_MAX(median(ratios, rounds), least[0] / least[1]);
fail:
    for (int i = 0; i < 2; i++) trial_free(&t[i]);
    return status;
}
