#include "runtime/pipeline/schedule.h"

#include <math.h>

/* Of all parts of the model, times micro-batches: when forward and backward end; NAN: not yet. */
typedef struct simulation {
    const clt_pipeline *pipeline;
    const clt_stage_times *times;
    clt_turn *turns; /* by rank */
    size_t length;
    size_t *next; /* by rank: the turn that is due */
    double *free; /* by rank: when its last turn ends */
    double *ends[2];
    int *kept; /* by rank: micro-batches in flight */
} simulation;

static int parts_of(const clt_pipeline *s) {
    return s->ranks * s->chunks;
}

static double *end_of(const simulation *m, clt_turn_kind kind, int part, int micro) {
    return &m->ends[kind][(size_t)part * (size_t)m->pipeline->micros + (size_t)micro];
}

static double later(double a, double b) {
    return isnan(a) || isnan(b) ? NAN : fmax(a, b);
}

/* When what a turn needs is there; NAN: nobody knows yet. */
static double ready(const simulation *m, int part, const clt_turn *turn) {
    if (turn->kind == CLT_TURN_FORWARD) return part ? *end_of(m, CLT_TURN_FORWARD, part - 1, turn->micro) + m->times[part - 1].send : 0;
    if (turn->kind == CLT_TURN_WEIGHTS) return *end_of(m, CLT_TURN_BACKWARD, part, turn->micro);
    double own = *end_of(m, CLT_TURN_FORWARD, part, turn->micro);
    if (part + 1 == parts_of(m->pipeline)) return own;
    return later(own, *end_of(m, CLT_TURN_BACKWARD, part + 1, turn->micro) + m->times[part].send);
}

static double length_of(const simulation *m, int part, const clt_turn *turn) {
    const double *seconds = m->times[part].seconds;
    bool whole = turn->kind == CLT_TURN_BACKWARD && m->pipeline->kind != CLT_PIPELINE_ZB_H1;
    return seconds[turn->kind] + (whole ? seconds[CLT_TURN_WEIGHTS] : 0);
}

/* A micro-batch's activations are kept until the last of its gradients. */
static void count_kept(simulation *m, int rank, clt_turn_kind kind, clt_simulation *result) {
    clt_turn_kind last = m->pipeline->kind == CLT_PIPELINE_ZB_H1 ? CLT_TURN_WEIGHTS : CLT_TURN_BACKWARD;
    m->kept[rank] += (kind == CLT_TURN_FORWARD) - (kind == last);
    result->in_flight = CLT_MAX(result->in_flight, m->kept[rank]);
}

/* The rank's turns, as far as they can be told. */
static bool advance(simulation *m, int rank, double *starts, clt_simulation *result) {
    bool any = false;
    for (; m->next[rank] < m->length; m->next[rank]++, any = true) {
        const clt_turn *turn = &m->turns[(size_t)rank * m->length + m->next[rank]];
        int part = turn->chunk * m->pipeline->ranks + rank;
        double start = later(ready(m, part, turn), m->free[rank]), length = length_of(m, part, turn);
        if (isnan(start)) return any;
        m->free[rank] = start + length;
        if (turn->kind != CLT_TURN_WEIGHTS) *end_of(m, turn->kind, part, turn->micro) = start + length;
        if (starts) starts[(size_t)rank * m->length + m->next[rank]] = start;
        count_kept(m, rank, turn->kind, result);
        result->seconds = fmax(result->seconds, start + length);
        result->bubble -= length;
    }
    return any;
}

static clt_status run(simulation *m, double *starts, clt_simulation *result) {
    const clt_pipeline *s = m->pipeline;
    bool any = true;
    for (int r = 0; r < s->ranks; r++) clt_pipeline_turns(s, r, m->turns + (size_t)r * m->length);
    for (size_t i = 0; i < (size_t)parts_of(s) * (size_t)s->micros; i++) m->ends[0][i] = m->ends[1][i] = NAN;
    while (any) {
        any = false;
        for (int r = 0; r < s->ranks; r++) any |= advance(m, r, starts, result);
    }
    for (int r = 0; r < s->ranks; r++)
        if (m->next[r] < m->length) return clt_fail(CLT_E_STATE, "schedule %s waits for itself on stage %d, turn %zu", clt_pipeline_names[s->kind], r, m->next[r]);
    double all = result->seconds * s->ranks;
    result->bubble = all > 0 ? (all + result->bubble) / all : 0;
    return CLT_OK;
}

clt_status clt_pipeline_simulate(const clt_pipeline *s, const clt_stage_times *times, double *starts, clt_simulation *result) {
    CLT_TRY(clt_pipeline_check(s));
    simulation m = {.pipeline = s, .times = times, .length = clt_pipeline_length(s)};
    size_t ranks = (size_t)s->ranks, ends = (size_t)parts_of(s) * (size_t)s->micros;
    *result = (clt_simulation){0};
    m.turns = clt_calloc(ranks * m.length, sizeof *m.turns);
    m.next = clt_calloc(ranks, sizeof *m.next);
    m.free = clt_calloc(ranks, sizeof *m.free);
    m.kept = clt_calloc(ranks, sizeof *m.kept);
    for (int i = 0; i < 2; i++) m.ends[i] = clt_calloc(ends, sizeof *m.ends[i]);
    clt_status status = m.turns && m.next && m.free && m.kept && m.ends[0] && m.ends[1] ? run(&m, starts, result) : clt_fail_memory(ranks * m.length * sizeof *m.turns);
    clt_free(m.turns);
    clt_free(m.next);
    clt_free(m.free);
    clt_free(m.kept);
    for (int i = 0; i < 2; i++) clt_free(m.ends[i]);
    return status;
}
