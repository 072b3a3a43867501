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
static bool advance(simulation *m, int rank, clt_simulation *result) {
    bool any = false;
    for (; m->next[rank] < m->length; m->next[rank]++, any = true) {
        clt_turn *turn = &m->turns[(size_t)rank * m->length + m->next[rank]];
        int part = turn->chunk * m->pipeline->ranks + rank;
        turn->begin = later(ready(m, part, turn), m->free[rank]);
        turn->seconds = length_of(m, part, turn);
        if (isnan(turn->begin)) return any;
        m->free[rank] = turn->begin + turn->seconds;
        if (turn->kind != CLT_TURN_WEIGHTS) *end_of(m, turn->kind, part, turn->micro) = m->free[rank];
        count_kept(m, rank, turn->kind, result);
        result->seconds = fmax(result->seconds, m->free[rank]);
        result->bubble -= turn->seconds;
    }
    return any;
}

static clt_status run(simulation *m, clt_simulation *result) {
    const clt_pipeline *s = m->pipeline;
    bool any = true;
    for (int r = 0; r < s->ranks; r++) clt_pipeline_turns(s, r, m->turns + (size_t)r * m->length);
    for (size_t i = 0; i < (size_t)parts_of(s) * (size_t)s->micros; i++) m->ends[0][i] = m->ends[1][i] = NAN;
    while (any) {
        any = false;
        for (int r = 0; r < s->ranks; r++) any |= advance(m, r, result);
    }
    for (int r = 0; r < s->ranks; r++)
        if (m->next[r] < m->length) return clt_fail(CLT_E_STATE, "schedule %s waits for itself on stage %d, turn %zu", clt_pipeline_schedule_name(s->kind), r, m->next[r]);
    double all = result->seconds * s->ranks;
    result->bubble = all > 0 ? (all + result->bubble) / all : 0;
    return CLT_OK;
}

clt_status clt_pipeline_simulate(const clt_pipeline *s, const clt_stage_times *times, clt_turn *turns, clt_simulation *result) {
    CLT_TRY(clt_pipeline_check(s));
    simulation m = {.pipeline = s, .times = times, .turns = turns, .length = clt_pipeline_length(s)};
    size_t ranks = (size_t)s->ranks, ends = (size_t)parts_of(s) * (size_t)s->micros;
    *result = (clt_simulation){0};
    clt_turn *own = turns ? NULL : clt_calloc(ranks * m.length, sizeof *own);
    if (!turns) m.turns = own;
    m.next = clt_calloc(ranks, sizeof *m.next);
    m.free = clt_calloc(ranks, sizeof *m.free);
    m.kept = clt_calloc(ranks, sizeof *m.kept);
    for (int i = 0; i < 2; i++) m.ends[i] = clt_calloc(ends, sizeof *m.ends[i]);
    clt_status status = m.turns && m.next && m.free && m.kept && m.ends[0] && m.ends[1] ? run(&m, result) : clt_fail_memory(ranks * m.length * sizeof *m.turns);
    clt_free(own);
    clt_free(m.next);
    clt_free(m.free);
    clt_free(m.kept);
    for (int i = 0; i < 2; i++) clt_free(m.ends[i]);
    return status;
}

/* ---- the public functions ---- */

/* More turns than a step has anywhere; so that products of the numbers fit. */
enum { MOST_STAGES = 1 << 16, MOST_TURNS = 1 << 25 };

static clt_status resolve(const clt_pipeline_options *o, clt_pipeline *s) {
    if (!o) return clt_fail(CLT_E_INVALID, "clt_simulate_pipeline: options are NULL");
    if (o->stages < 1 || o->stages > MOST_STAGES) return clt_fail(CLT_E_INVALID, "option stages is %d: expected 1 to %d", o->stages, MOST_STAGES);
    if ((unsigned)o->schedule >= CLT_PIPELINE_KINDS) return clt_fail(CLT_E_INVALID, "option schedule is %d: expected one of clt_pipeline_schedule", (int)o->schedule);
    *s = clt_pipeline_of(o);
    CLT_TRY(clt_pipeline_check(s));
    if ((double)s->ranks * s->micros * s->chunks > MOST_TURNS)
        return clt_fail(CLT_E_INVALID, "%d stages with %d micro-batches and %d chunks: expected products up to %d", s->ranks, s->micros, s->chunks, MOST_TURNS);
    return CLT_OK;
}

static bool is_time(double seconds) {
    return seconds >= 0 && isfinite(seconds);
}

static clt_status check_times(const clt_pipeline *s, const clt_stage_times *times) {
    for (int i = 0; i < parts_of(s); i++) {
        bool all = is_time(times[i].send);
        for (int k = 0; k < CLT_TURN_KINDS; k++) all &= is_time(times[i].seconds[k]);
        if (!all) return clt_fail(CLT_E_INVALID, "times of stage %d: expected seconds from 0", i);
    }
    return CLT_OK;
}

size_t clt_simulate_turns(const clt_pipeline_options *options) {
    clt_pipeline s;
    return resolve(options, &s) == CLT_OK ? clt_pipeline_length(&s) : 0;
}

clt_status clt_simulate_pipeline(const clt_pipeline_options *options, const clt_stage_times *times, clt_turn *turns, clt_simulation *result) {
    clt_pipeline s;
    CLT_TRY(resolve(options, &s));
    if (!times || !result) return clt_fail(CLT_E_INVALID, "clt_simulate_pipeline: times or result is NULL");
    CLT_TRY(check_times(&s, times));
    return clt_pipeline_simulate(&s, times, turns, result);
}
