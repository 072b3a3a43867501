#include "runtime/pipeline/schedule.h"

const char *clt_pipeline_schedule_name(clt_pipeline_schedule schedule) {
    static const char *const names[CLT_PIPELINE_KINDS] = {"1f1b", "gpipe", "zb-h1", "interleaved"};
    return (unsigned)schedule < CLT_PIPELINE_KINDS ? names[schedule] : NULL;
}

clt_pipeline clt_pipeline_of(const clt_pipeline_options *o) {
    int chunks = o->schedule == CLT_PIPELINE_INTERLEAVED ? 2 : 1;
    return (clt_pipeline){o->schedule, o->stages, o->microbatches ? o->microbatches : 2 * o->stages, o->chunks ? o->chunks : chunks};
}

clt_status clt_pipeline_check(const clt_pipeline *s) {
    if (s->ranks < 1 || s->micros < 1 || s->chunks < 1)
        return clt_fail(CLT_E_INVALID, "a pipeline with %d stages, %d micro-batches and %d chunks: expected at least 1 of each", s->ranks, s->micros, s->chunks);
    if (s->chunks > 1 && s->kind != CLT_PIPELINE_INTERLEAVED && s->kind != CLT_PIPELINE_GPIPE)
        return clt_fail(CLT_E_INVALID, "schedule %s has one chunk a stage, found %d; expected schedule interleaved", clt_pipeline_schedule_name(s->kind), s->chunks);
    if (s->kind == CLT_PIPELINE_INTERLEAVED && s->micros % s->ranks)
        return clt_fail(CLT_E_INVALID, "schedule interleaved has %d micro-batches: expected a multiple of its %d stages", s->micros, s->ranks);
    return CLT_OK;
}

static bool splits_backward(const clt_pipeline *s) {
    return s->kind == CLT_PIPELINE_ZB_H1;
}

size_t clt_pipeline_length(const clt_pipeline *s) {
    return (size_t)s->micros * (size_t)s->chunks * (splits_backward(s) ? 3 : 2);
}

/* The i-th forward or backward of any rank: with several chunks, as many micro-batches as there are ranks go through each in turn, or all of them. */
static clt_turn turn_of(const clt_pipeline *s, clt_turn_kind kind, int i) {
    int group = s->kind == CLT_PIPELINE_GPIPE ? s->micros : s->ranks, round = group * s->chunks, chunk = i / group % s->chunks;
    if (s->chunks == 1) return (clt_turn){.kind = kind, .micro = i};
    return (clt_turn){.kind = kind, .micro = i / round * group + i % group, .chunk = kind == CLT_TURN_FORWARD ? chunk : s->chunks - 1 - chunk};
}

/* Forwards before the first backward, but for the one that goes with that. */
static int warm_up(const clt_pipeline *s, int rank) {
    int after = s->ranks - 1 - rank, all = s->micros * s->chunks;
    if (s->kind == CLT_PIPELINE_GPIPE) return all;
    return CLT_MIN(all, s->chunks == 1 ? after : (s->chunks - 1) * s->ranks + 2 * after);
}

/* Gradients of weights lag behind those of activations by as many micro-batches as the ranks before are late. */
void clt_pipeline_turns(const clt_pipeline *s, int rank, clt_turn *turns) {
    int all = s->micros * s->chunks, forward = 0, backward = 0, weights = splits_backward(s) ? 0 : all;
    while (forward < warm_up(s, rank)) *turns++ = turn_of(s, CLT_TURN_FORWARD, forward++);
    while (backward < all) {
        if (forward < all) *turns++ = turn_of(s, CLT_TURN_FORWARD, forward++);
        *turns++ = turn_of(s, CLT_TURN_BACKWARD, backward++);
        if (backward - weights > rank) *turns++ = turn_of(s, CLT_TURN_WEIGHTS, weights++);
    }
    while (weights < all) *turns++ = turn_of(s, CLT_TURN_WEIGHTS, weights++);
}
