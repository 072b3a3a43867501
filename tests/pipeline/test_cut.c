/* Cuts: stages that hand on what they compute come to the gradients of the whole, bit by bit, whichever micro-batches are in flight meanwhile. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include <cltrain/cltrain.h>

#include "runtime/base/random.h"
#include "runtime/exec/plan.h"
#include "runtime/ops/ops.h"
#include "runtime/pipeline/cut.h"

enum { BATCH = 6, WIDTH = 10, CLASSES = 7, STAGES = 3, MICROS = 4, MOST = 32, VALUES = 4096 };

SUPPORT_DEVICE

/* A network with what a cut has to look after: a residual over two cuts, a weight that the first and the last stage read, a norm, dropout, and a constant that two
 * stages read. */
typedef struct model {
    clt_graph *graph;
    clt_tensor *x, *labels, *loss, *begins[STAGES - 1];
} model;

static model make_model(void) {
    model m;
    assert_ok(clt_graph_create(&m.graph));
    m.x = clt_input(m.graph, "x", CLT_F32, CLT_SHAPE(BATCH, WIDTH));
    m.labels = clt_input(m.graph, "labels", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *tied = clt_parameter(m.graph, "tied", CLT_SHAPE(WIDTH, WIDTH), (clt_init){.kind = CLT_INIT_XAVIER_UNIFORM});
    clt_tensor *constant = clt_exp(clt_fill(m.graph, CLT_SHAPE(1, WIDTH), 0.1f));
    clt_tensor *a = clt_mul(clt_relu(clt_matmul(m.x, tied)), constant);
    clt_tensor *b = m.begins[0] = clt_linear(a, "b", WIDTH);
    b = clt_layer_norm(clt_dropout(clt_tanh(b), 0.3f), "norm", 1);
    clt_tensor *c = m.begins[1] = clt_matmul(b, tied);
    c = clt_mul(clt_add(c, a), constant);
    m.loss = clt_cross_entropy(clt_linear(c, "c", CLASSES), m.labels);
    assert_ok(clt_graph_status(m.graph));
    return m;
}

/* What one rank has: of each micro-batch in flight a plan. */
typedef struct part {
    clt_graph *graph;
    clt_tensor *x, *labels, *rng, *loss, *params[MOST], *grads[MOST];
    clt_edges edges;
    clt_plan *plans[MICROS];
    int n;
} part;

/* stage < 0: the whole. */
static part make_part(const model *m, clt_state_store *store, int stage, bool apart) {
    part p = {0};
    clt_tensor **map, *begins[STAGES - 1], *targets[2 * MOST];
    int n = 0;
    assert_ok(clt_graph_clone(m->graph, &m->loss, 1, (clt_sizes){0}, &p.graph, &map));
    p.x = map[m->x->index];
    p.labels = map[m->labels->index];
    p.loss = map[m->loss->index];
    p.rng = p.graph->rng;
    for (int s = 0; s < STAGES - 1; s++) begins[s] = map[m->begins[s]->index];
    if (stage >= 0) assert_ok(clt_stages_assign(p.graph, begins, STAGES));
    for (size_t i = 0; i < p.graph->n_nodes; i++)
        if (p.graph->nodes[i]->kind == CLT_NODE_VARIABLE) p.params[p.n++] = p.graph->nodes[i];
    p.graph->stage = STAGES - 1;
    assert_ok(clt_gradients(p.loss, clt_fill(p.graph, p.loss->shape, 1), p.params, p.n, p.grads));
    memcpy(targets, p.grads, (size_t)p.n * sizeof *targets);
    targets[p.n] = p.loss;
    if (stage >= 0) {
        assert_ok(clt_stages_cut(p.graph, targets, p.n + 1, &(clt_cut){stage, STAGES, 1, apart}, &p.edges));
        for (int i = 0; i < p.n; i++)
            if (p.params[i]->stage == stage) targets[n++] = p.grads[i];
        for (int i = 0; i < p.n; i++) assert_int_equal(p.grads[i]->stage, p.params[i]->stage); /* computed where they are used */
        if (stage == STAGES - 1) targets[n++] = p.loss;
        for (size_t e = 0; e < p.edges.n; e++)
            if (p.edges.items[e].from == stage && !clt_tensor_is_leaf(p.edges.items[e].tensor)) targets[n++] = p.edges.items[e].tensor;
    }
    for (int i = 0; i < (stage < 0 ? 1 : MICROS); i++)
        assert_ok(clt_plan_compile(&p.plans[i], &(clt_plan_options){.device = device, .store = store, .graph = p.graph, .targets = targets, .n_targets = stage < 0 ? p.n + 1 : n,
                                                                    .training = true, .resumed = stage >= 0}));
    clt_free(map);
    return p;
}

static void destroy_part(part *p) {
    for (int i = 0; i < MICROS; i++) clt_plan_destroy(p->plans[i]);
    clt_graph_destroy(p->graph);
    clt_free(p->edges.items);
}

/* Of a micro-batch: its data, and all gradients, one behind the other. */
typedef struct micro {
    float x[BATCH * WIDTH], gradients[VALUES];
    int32_t labels[BATCH];
} micro;

static void fill_micro(micro *m, uint64_t number) {
    clt_random random;
    clt_random_init(&random, 5, number);
    for (int i = 0; i < BATCH * WIDTH; i++) m->x[i] = (float)clt_random_normal(&random);
    for (int i = 0; i < BATCH; i++) m->labels[i] = (int32_t)clt_random_below(&random, CLASSES);
}

static void set_random(const part *p, clt_plan *plan, int number) {
    uint32_t words[4] = {9, 0, (uint32_t)number, 0};
    if (p->rng) assert_ok(clt_plan_set(plan, p->rng, words, sizeof words));
}

static void feed(const part *p, clt_plan *plan, const micro *m) {
    assert_ok(clt_plan_feed(plan, p->x, m->x));
    assert_ok(clt_plan_feed(plan, p->labels, m->labels));
}

/* The gradients of the parameters of a stage (-1: all), each at its place among all. */
static void read_gradients(const part *p, clt_plan *plan, int stage, float *gradients) {
    size_t at = 0;
    for (int i = 0; i < p->n; i++) {
        size_t count = (size_t)clt_tensor_elements(p->grads[i]);
        assert_true(at + count <= VALUES);
        if (stage < 0 || p->params[i]->stage == stage) assert_ok(clt_plan_read(plan, p->grads[i], gradients + at, count * sizeof *gradients));
        at += count;
    }
}

static void read_edge(const part *from, clt_plan *plan, clt_state_store *store, const clt_tensor *tensor, float *values) {
    clt_memory *memory;
    size_t bytes = (size_t)clt_tensor_elements(tensor) * sizeof *values;
    (void)from;
    if (tensor->kind != CLT_NODE_VARIABLE) {
        assert_ok(clt_plan_read(plan, tensor, values, bytes));
        return;
    }
    assert_ok(clt_state_store_variable(store, tensor->variable, &memory));
    assert_ok(clt_memory_read(memory, 0, values, bytes));
}

/* A turn of one stage: it is given what it receives, and computes. */
static void turn(part *parts, clt_state_store *store, int stage, int slot, int number, bool backward, bool apart) {
    float values[BATCH * WIDTH * 2];
    part *own = &parts[stage];
    for (size_t e = 0; e < own->edges.n; e++) {
        const clt_edge *edge = &own->edges.items[e];
        if (edge->to != stage || edge->tensor->backward != backward) continue;
        read_edge(&parts[edge->from], parts[edge->from].plans[slot], store, parts[edge->from].edges.items[e].tensor, values);
        assert_ok(clt_plan_feed(own->plans[slot], edge->received, values));
    }
    set_random(own, own->plans[slot], number);
    const int forward = clt_segment_of(CLT_TURN_FORWARD, 0, 1), back[2] = {clt_segment_of(CLT_TURN_BACKWARD, 0, 1), clt_segment_of(CLT_TURN_WEIGHTS, 0, 1)};
    assert_ok(clt_plan_run_segments(own->plans[slot], backward ? back : &forward, backward && apart ? 2 : 1));
}

static void try_stages(bool apart) {
    model m = make_model();
    clt_state_store *store;
    part whole, parts[STAGES];
    micro *micros = calloc(2 * MICROS, sizeof *micros), *found = micros + MICROS;
    assert_non_null(micros);
    assert_ok(clt_state_store_create(device, &store));
    for (size_t i = 0; i < m.graph->n_variables; i++) { /* any values that differ */
        clt_memory *memory;
        float values[WIDTH * WIDTH];
        clt_random random;
        clt_random_init(&random, 1, i);
        for (int k = 0; k < WIDTH * WIDTH; k++) values[k] = (float)clt_random_normal(&random) * 0.5f;
        assert_ok(clt_state_store_variable(store, m.graph->variables[i], &memory));
        assert_ok(clt_memory_write(memory, 0, values, clt_variable_bytes(m.graph->variables[i])));
    }
    whole = make_part(&m, store, -1, false);
    for (int s = 0; s < STAGES; s++) parts[s] = make_part(&m, store, s, apart);
    assert_true(parts[0].edges.n >= 5); /* forward to the next, over it, the weight, and gradients back */
    for (int k = 0; k < MICROS; k++) {
        fill_micro(&micros[k], (uint64_t)k);
        feed(&whole, whole.plans[0], &micros[k]);
        set_random(&whole, whole.plans[0], k);
        assert_ok(clt_plan_run(whole.plans[0]));
        read_gradients(&whole, whole.plans[0], -1, micros[k].gradients);
    }
    for (int k = 0; k < MICROS; k++)
        for (int s = 0; s < STAGES; s++) {
            feed(&parts[s], parts[s].plans[k], &micros[k]);
            turn(parts, store, s, k, k, false, apart);
        }
    for (int k = MICROS - 1; k >= 0; k--)
        for (int s = STAGES - 1; s >= 0; s--) turn(parts, store, s, k, k, true, apart);
    for (int k = 0; k < MICROS; k++) {
        for (int s = 0; s < STAGES; s++) read_gradients(&parts[s], parts[s].plans[k], s, found[k].gradients);
        assert_memory_equal(found[k].gradients, micros[k].gradients, sizeof micros[k].gradients);
    }
    destroy_part(&whole);
    for (int s = 0; s < STAGES; s++) destroy_part(&parts[s]);
    free(micros);
    clt_state_store_destroy(store);
    clt_graph_destroy(m.graph);
}

static void stages_come_to_the_gradients_of_the_whole(void **state) {
    try_stages(false);
    (void)state;
}

static void gradients_of_weights_may_be_apart(void **state) {
    try_stages(true);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_come_to_the_gradients_of_the_whole),
        cmocka_unit_test(gradients_of_weights_may_be_apart),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
