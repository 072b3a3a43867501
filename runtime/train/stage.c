#include "runtime/train/stage.h"

#include <stdio.h>
#include <string.h>

#include "runtime/exec/storage.h"
#include "runtime/train/parallel.h"

/* ---- which stage has what ---- */

/* Options that need what no stage has, or that nobody has tried with stages. */
static clt_status check_options(const clt_train_options *o) {
    const struct {
        const char *name;
        bool said;
    } others[] = {{"shard", o->shard != CLT_SHARD_NONE},
                  {"compress", o->compress.method != CLT_COMPRESS_NONE},
                  {"recoverable", o->recoverable},
                  {"sync_batch_norm", o->sync_batch_norm},
                  {"shares", o->shares != NULL},
                  {"locate_nonfinite", o->locate_nonfinite},
                  {"accumulate", o->accumulate > 1}};
    for (size_t i = 0; i < CLT_COUNT_OF(others); i++)
        if (others[i].said) return clt_fail(CLT_E_UNSUPPORTED, "options pipeline and %s exclude each other", others[i].name);
    if (!o->comm || clt_comm_size(o->comm) % o->pipeline.stages)
        return clt_fail(CLT_E_INVALID, "option pipeline.stages is %d: expected a communicator of as many ranks, or a multiple, found one of %d", o->pipeline.stages, clt_comm_size(o->comm));
    return CLT_OK;
}

/* Several pipelines have a batch each. */
static clt_status join(clt_stage *p, clt_comm *all, int stages) {
    int rank = clt_comm_rank(all);
    p->all = p->comm = all;
    if (clt_comm_size(all) == stages) return CLT_OK;
    p->comm = NULL;
    CLT_TRY(clt_comm_split(all, rank / stages, &p->comm));
    return clt_comm_split(all, rank % stages, &p->replicas);
}

static int stages_of(const clt_stage *p) {
    return p->cut.ranks * p->cut.chunks;
}

static clt_status make(clt_trainer *t, clt_stage *p) {
    const clt_pipeline_options *o = &t->options.pipeline;
    size_t n = t->n_variables;
    CLT_TRY(join(p, t->options.comm, o->stages));
    p->shape = clt_pipeline_of(o);
    p->cut = (clt_cut){clt_comm_rank(p->comm), o->stages, p->shape.chunks, o->schedule == CLT_PIPELINE_ZB_H1};
    CLT_TRY(clt_pipeline_check(&p->shape));
    p->begins = clt_calloc((size_t)stages_of(p), sizeof *p->begins);
    p->rank_of = clt_calloc(n + 1, sizeof *p->rank_of);
    p->others = clt_calloc(n + 1, sizeof *p->others);
    p->reached = clt_calloc(n + 1, sizeof *p->reached);
    p->turns = clt_calloc(clt_pipeline_length(&p->shape), sizeof *p->turns);
    if (!p->begins || !p->rank_of || !p->others || !p->reached || !p->turns) return clt_fail_memory(n * sizeof *p->rank_of);
    for (size_t i = 0; i < n; i++) p->others[i] = p->cut.own != 0; /* what nobody reads is the first rank's */
    return clt_stage_split(t, p);
}

clt_status clt_stage_create(clt_trainer *t) {
    if (t->options.pipeline.stages <= 1 || !t->loss) return CLT_OK;
    CLT_TRY(check_options(&t->options));
    t->stage = clt_calloc(1, sizeof *t->stage);
    if (!t->stage) return clt_fail_memory(sizeof *t->stage);
    CLT_TRY(make(t, t->stage));
    t->options.comm = t->stage->replicas; /* each stage updates by itself, or with those that have the same */
    t->options.accumulate = t->stage->shape.micros;
    t->options.pipeline.split = NULL; /* the caller's */
    t->options.pipeline.peaks = NULL;
    return CLT_OK;
}

void clt_stage_destroy(clt_stage *p) {
    if (!p) return;
    if (p->comm != p->all) clt_comm_destroy(p->comm);
    clt_comm_destroy(p->replicas);
    clt_free(p->begins);
    clt_free(p->rank_of);
    clt_free(p->others);
    clt_free(p->reached);
    clt_free(p->turns);
    clt_free(p);
}

static bool is_own(const clt_stage *p, int stage) {
    return stage % p->cut.ranks == p->cut.own;
}

bool clt_stage_has(const clt_trainer *t, const clt_tensor *tensor) {
    return tensor->stage == CLT_STAGE_ANY || is_own(t->stage, tensor->stage);
}

bool clt_stage_is_last(const clt_trainer *t) {
    return t->stage->cut.own == t->stage->cut.ranks - 1;
}

int clt_trainer_stage(const clt_trainer *t) {
    return t && t->stage ? t->stage->cut.own : 0;
}

int64_t clt_trainer_stage_parameters(const clt_trainer *t) {
    int64_t count = 0;
    for (size_t i = 0; t && i < t->n_variables; i++)
        if (t->trained[i] && !(t->stage && t->stage->others[i])) count += clt_shape_elements(&t->graph->variables[i]->shape);
    return count;
}

int clt_trainer_in_flight(const clt_trainer *t) {
    return t && t->stage ? t->stage->in_flight : 1;
}

static void note_stage(clt_stage *p, const clt_tensor *node) {
    if (node->kind != CLT_NODE_VARIABLE || node->stage == CLT_STAGE_ANY) return;
    p->rank_of[node->variable->index] = node->stage % p->cut.ranks;
    p->others[node->variable->index] = !is_own(p, node->stage);
}

clt_status clt_stage_assign(clt_trainer *t, clt_step *step, clt_tensor *const *map) {
    clt_stage *p = t->stage;
    int stages = stages_of(p);
    clt_tensor **begins = clt_calloc((size_t)stages, sizeof *begins);
    clt_status status = begins ? CLT_OK : clt_fail_memory((size_t)stages * sizeof *begins);
    for (int s = 0; begins && s < stages - 1; s++) {
        int at = p->begins[s]->index, n = (int)t->graph->n_nodes;
        while (at < n && !(map[at] && map[at]->kind == CLT_NODE_OP)) at++; /* a prediction may end before it */
        begins[s] = at < n ? map[at] : step->graph->nodes[step->graph->n_nodes - 1];
    }
    if (status == CLT_OK) status = clt_stages_assign(step->graph, begins, stages);
    clt_free(begins);
    for (size_t i = 0; status == CLT_OK && i < step->graph->n_nodes && step->purpose == CLT_PURPOSE_TRAIN; i++) note_stage(p, step->graph->nodes[i]);
    step->graph->stage = stages - 1;
    return status;
}

/* ---- what goes from stage to stage ---- */

/* Of an edge and a micro-batch. */
typedef struct message {
    size_t edge;
    int micro;
    bool received;
    void *data;
    clt_work *work;
} message;

/* A step under way. slots: by micro-batch, the plan that has its activations; -1: none. */
typedef struct flow {
    clt_trainer *t;
    clt_step *first;
    const clt_batch *batch;
    int micros;
    double begin; /* of the step, by clt_seconds */
    int *slots;
    bool *taken; /* by slot */
    int in_flight;
    message *messages;
    size_t n, capacity;
} flow;

static const clt_edge *edge_of(const flow *f, size_t edge) {
    return &f->first->edges.items[edge];
}

/* The same on both sides: edges are found in the same order, and the most micro-batches are agreed on. */
static uint32_t tag_of(const flow *f, size_t edge, int micro) {
    return (uint32_t)edge * (uint32_t)f->t->stage->shape.micros + (uint32_t)micro;
}

static clt_status add_message(flow *f, size_t edge, int micro, bool received, message **added) {
    size_t bytes = clt_tensor_bytes(edge_of(f, edge)->tensor);
    CLT_TRY(clt_grow(&f->messages, &f->capacity, f->n, sizeof *f->messages));
    message *m = &f->messages[f->n];
    *m = (message){.edge = edge, .micro = micro, .received = received, .data = clt_alloc(bytes)};
    if (!m->data) return clt_fail_memory(bytes);
    f->n++;
    *added = m;
    return CLT_OK;
}

static clt_status remove_message(flow *f, size_t i) {
    message m = f->messages[i];
    f->messages[i] = f->messages[--f->n];
    clt_status status = m.work ? clt_work_wait(m.work) : CLT_OK;
    clt_free(m.data);
    return status;
}

/* Memory of what has arrived elsewhere. */
static clt_status reap(flow *f, bool all) {
    for (size_t i = f->n; i-- > 0;)
        if (!f->messages[i].received && (all || clt_work_done(f->messages[i].work))) CLT_TRY(remove_message(f, i));
    return CLT_OK;
}

/* What crosses comes to the turn of one of the own stages, or from it. */
static bool is_of_turn(const flow *f, const clt_edge *edge, int stage, const clt_turn *turn) {
    const clt_cut *cut = &f->t->stage->cut;
    if (turn->kind == CLT_TURN_WEIGHTS || edge->tensor->backward != (turn->kind == CLT_TURN_BACKWARD)) return false;
    return stage == turn->chunk * cut->ranks + cut->own;
}

/* What a turn will need is asked for before the one in front of it is computed. */
static clt_status ask(flow *f, const clt_turn *turn) {
    const clt_stage *p = f->t->stage;
    for (size_t e = 0; e < f->first->edges.n; e++) {
        const clt_edge *edge = edge_of(f, e);
        message *m;
        if (!is_of_turn(f, edge, edge->to, turn)) continue;
        CLT_TRY(add_message(f, e, turn->micro, true, &m));
        CLT_TRY(clt_comm_receive(p->comm, m->data, (size_t)clt_tensor_elements(edge->tensor), edge->tensor->dtype, edge->from % p->cut.ranks, tag_of(f, e, turn->micro), &m->work));
    }
    return CLT_OK;
}

static clt_status take(flow *f, const clt_turn *turn, clt_step *step) {
    for (size_t i = f->n; i-- > 0;) {
        message *m = &f->messages[i];
        if (!m->received || m->micro != turn->micro || !is_of_turn(f, edge_of(f, m->edge), edge_of(f, m->edge)->to, turn)) continue;
        clt_work *work = m->work;
        double before = clt_seconds();
        m->work = NULL;
        CLT_TRY(clt_work_wait(work));
        f->t->waited_seconds += clt_seconds() - before;
        CLT_TRY(clt_plan_feed(step->plan, step->edges.items[m->edge].received, m->data));
        CLT_TRY(remove_message(f, i));
    }
    return CLT_OK;
}

static clt_status read_edge(flow *f, const clt_step *step, const clt_tensor *tensor, void *data) {
    clt_memory *memory;
    if (tensor->kind != CLT_NODE_VARIABLE) return clt_plan_read(step->plan, tensor, data, clt_tensor_bytes(tensor));
    CLT_TRY(clt_state_store_variable(f->t->store, tensor->variable, &memory));
    return clt_memory_read(memory, 0, data, clt_tensor_bytes(tensor));
}

static clt_status give(flow *f, const clt_turn *turn, const clt_step *step) {
    const clt_stage *p = f->t->stage;
    for (size_t e = 0; e < step->edges.n; e++) {
        const clt_edge *edge = &step->edges.items[e];
        message *m;
        if (!is_of_turn(f, edge, edge->from, turn)) continue;
        CLT_TRY(add_message(f, e, turn->micro, false, &m));
        CLT_TRY(read_edge(f, step, edge->tensor, m->data));
        CLT_TRY(clt_comm_send(p->comm, m->data, (size_t)clt_tensor_elements(edge->tensor), edge->tensor->dtype, edge->to % p->cut.ranks, tag_of(f, e, turn->micro), &m->work));
    }
    return reap(f, false);
}

/* After an error the group has ended, and so do all that was begun. */
static void abandon(flow *f) {
    clt_text detail = {0};
    clt_status status = clt_comm_state(f->t->stage->comm);
    clt_text_add(&detail, "%s", clt_error_detail());
    while (f->n) remove_message(f, f->n - 1);
    clt_fail_again(status, clt_text_data(&detail));
    clt_text_free(&detail);
}

/* ---- a step ---- */

int clt_stage_micros(const clt_trainer *t, int64_t samples) {
    int micros = (int)CLT_MIN(t->stage->shape.micros, samples);
    while (samples % micros) micros--;
    return micros;
}

static clt_pipeline shape_of(const clt_stage *p, int micros) {
    clt_pipeline shape = p->shape;
    shape.micros = micros;
    if (clt_pipeline_check(&shape) < 0) shape.kind = CLT_PIPELINE_GPIPE; /* a last batch, whose micro-batches are no multiple of the ranks */
    return shape;
}

static clt_status take_slot(flow *f, int micro, clt_step **step) {
    int slot = f->slots[micro];
    if (slot < 0) {
        for (slot = 0; f->taken[slot];) slot++;
        f->slots[micro] = slot;
        f->taken[slot] = true;
        f->in_flight++;
        f->t->stage->in_flight = CLT_MAX(f->t->stage->in_flight, f->in_flight);
    }
    clt_step **at = &f->first;
    for (int i = 0; i < slot; i++) {
        at = &(*at)->more;
        if (!*at) CLT_TRY(clt_trainer_new_step(f->t, CLT_PURPOSE_TRAIN, f->first->sizes, at));
    }
    *step = *at;
    return CLT_OK;
}

/* What compute() counts as taken and left, of the turns of a step with so many micro-batches. */
static int most_in_flight(const clt_stage *p, int micros) {
    clt_pipeline shape = shape_of(p, micros);
    clt_turn_kind last = p->cut.apart ? CLT_TURN_WEIGHTS : CLT_TURN_BACKWARD;
    int now = 0, most = 0;
    clt_pipeline_turns(&shape, p->cut.own, p->turns);
    for (size_t i = 0; i < clt_pipeline_length(&shape); i++) {
        const clt_turn *turn = &p->turns[i];
        if (turn->chunk > 0) continue;
        now += turn->kind == CLT_TURN_FORWARD;
        most = CLT_MAX(most, now);
        now -= turn->kind == last;
    }
    return most;
}

clt_status clt_stage_prepare(clt_trainer *t, clt_step *first, int64_t samples) {
    clt_step **at = &first->more;
    for (int left = most_in_flight(t->stage, clt_stage_micros(t, samples)) - 1; left > 0; left--, at = &(*at)->more)
        if (!*at) CLT_TRY(clt_trainer_new_step(t, CLT_PURPOSE_TRAIN, first->sizes, at));
    return CLT_OK;
}

static void leave_slot(flow *f, int micro) {
    f->taken[f->slots[micro]] = false;
    f->in_flight--;
}

clt_batch clt_stage_part(const clt_batch *batch, int index, int parts) {
    clt_batch part = *batch;
    part.samples = batch->samples / parts;
    for (int i = 0; i < part.n_fields; i++) {
        clt_array *field = &part.fields[i];
        if (!field->data) continue;
        field->shape.dims[0] = part.samples;
        size_t bytes = (size_t)clt_shape_elements(&field->shape) * clt_dtype_bytes(field->dtype);
        field->data = (const char *)field->data + bytes * (size_t)index;
    }
    return part;
}

/* Random numbers are those of the micro-batch, whoever computes with them. */
static clt_status prepare(flow *f, const clt_turn *turn, const clt_step *step) {
    clt_batch part = clt_stage_part(f->batch, turn->micro, f->micros), nothing = {.samples = part.samples};
    f->t->micro = turn->micro;
    return clt_trainer_feed(f->t, step, turn->kind == CLT_TURN_FORWARD && turn->chunk == 0 ? &part : &nothing);
}

/* The device is waited for, so that the turn's time is its own. */
static clt_status end_turn(const flow *f, clt_turn *turn) {
    if (f->t->stage->timed) CLT_TRY(clt_device_finish(f->t->device));
    turn->seconds = clt_seconds() - f->begin - turn->begin;
    return CLT_OK;
}

static clt_status compute(flow *f, clt_turn *turn, clt_step *step) {
    clt_stage *p = f->t->stage;
    clt_turn_kind last = p->cut.apart ? CLT_TURN_WEIGHTS : CLT_TURN_BACKWARD;
    const int segment = clt_segment_of(turn->kind, turn->chunk, p->cut.chunks);
    CLT_TRY(take(f, turn, step));
    turn->begin = clt_seconds() - f->begin;
    CLT_TRY(prepare(f, turn, step));
    CLT_TRY(clt_plan_run_segments(step->plan, &segment, 1));
    CLT_TRY(give(f, turn, step));
    CLT_TRY(end_turn(f, turn));
    if (turn->kind != last || turn->chunk > 0) return CLT_OK;
    p->summed++;
    leave_slot(f, turn->micro);
    return CLT_OK;
}

static clt_status update(flow *f) {
    const int segment = clt_segment_of_update(f->t->stage->cut.chunks);
    CLT_TRY(clt_trainer_feed(f->t, f->first, &(clt_batch){.samples = f->batch->samples}));
    CLT_TRY(clt_plan_run_segments(f->first->plan, &segment, 1));
    return reap(f, true);
}

static clt_status run(flow *f) {
    clt_stage *p = f->t->stage;
    clt_pipeline shape = shape_of(p, f->micros);
    size_t n = clt_pipeline_length(&shape);
    clt_pipeline_turns(&shape, p->cut.own, p->turns);
    p->summed = 0;
    p->n_turns = 0;
    if (p->timed) CLT_TRY(clt_comm_barrier(p->comm, NULL)); /* so that all count from the same time */
    f->begin = clt_seconds();
    p->scale = (float)f->t->options.accumulate / (float)f->micros; /* gradients are divided by the most */
    CLT_TRY(ask(f, &p->turns[0]));
    for (size_t i = 0; i < n; i++) {
        clt_step *step;
        if (i + 1 < n) CLT_TRY(ask(f, &p->turns[i + 1]));
        CLT_TRY(take_slot(f, p->turns[i].micro, &step));
        CLT_TRY(compute(f, &p->turns[i], step));
    }
    CLT_TRY(update(f));
    if (p->timed) p->n_turns = n;
    return CLT_OK;
}

clt_status clt_stage_run(clt_trainer *t, clt_step *step, const clt_batch *batch) {
    flow f = {.t = t, .first = step, .batch = batch, .micros = clt_stage_micros(t, batch->samples)};
    f.slots = clt_calloc((size_t)f.micros, sizeof *f.slots);
    f.taken = clt_calloc((size_t)f.micros + 1, sizeof *f.taken);
    clt_status status = f.slots && f.taken ? CLT_OK : clt_fail_memory((size_t)f.micros * sizeof *f.slots);
    for (int i = 0; f.slots && i < f.micros; i++) f.slots[i] = -1;
    if (status == CLT_OK) status = run(&f);
    t->micro = 0;
    if (status < 0) clt_trainer_tell_all(t, status);
    if (status < 0) abandon(&f);
    clt_free(f.slots);
    clt_free(f.taken);
    clt_free(f.messages);
    return status;
}

clt_status clt_trainer_time_turns(clt_trainer *t, bool timed) {
    if (!t || !t->stage) return clt_fail(CLT_E_INVALID, "clt_trainer_time_turns: expected a trainer with options.pipeline");
    t->stage->timed = timed;
    return CLT_OK;
}

const clt_turn *clt_trainer_turns(const clt_trainer *t, size_t *count) {
    *count = t && t->stage ? t->stage->n_turns : 0;
    return *count ? t->stage->turns : NULL;
}

/* ---- forward alone ---- */

static clt_status forward(flow *f, int chunk) {
    const clt_turn turn = {.kind = CLT_TURN_FORWARD, .chunk = chunk};
    const int segment = clt_segment_of(CLT_TURN_FORWARD, chunk, f->t->stage->cut.chunks);
    CLT_TRY(ask(f, &turn));
    CLT_TRY(take(f, &turn, f->first));
    CLT_TRY(clt_plan_run_segments(f->first->plan, &segment, 1));
    return give(f, &turn, f->first);
}

clt_status clt_stage_forward(clt_trainer *t, clt_step *step) {
    flow f = {.t = t, .first = step, .micros = 1};
    clt_status status = CLT_OK;
    for (int chunk = 0; status == CLT_OK && chunk < t->stage->cut.chunks; chunk++) status = forward(&f, chunk);
    if (status == CLT_OK) status = reap(&f, true);
    if (status < 0) clt_trainer_tell_all(t, status);
    if (status < 0) abandon(&f);
    clt_free(f.messages);
    return status;
}

clt_status clt_stage_read_result(clt_trainer *t, clt_step *step, float *result, size_t count) {
    const clt_stage *p = t->stage;
    int rank = CLT_MAX(step->result->stage, 0) % p->cut.ranks;
    clt_status status = p->cut.own == rank ? clt_plan_read(step->plan, step->result, result, count * sizeof *result) : CLT_OK;
    if (status < 0) return clt_trainer_tell_all(t, status);
    return clt_comm_broadcast(p->comm, result, count, CLT_F32, rank, NULL);
}
