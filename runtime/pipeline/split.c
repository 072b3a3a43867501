#include "runtime/pipeline/split.h"

#include <math.h>

/* Sums over the first pieces, so that those of any stage are differences; and the best that is known of the first stages and pieces. */
typedef struct search {
    const clt_pipeline_split *split;
    double *seconds; /* [stages, pieces + 1] */
    uint64_t *kept, *activations; /* [pieces + 1] */
    double *best; /* [stages + 1, pieces + 1]; infinite: there is none */
    int *from;    /* likewise: where the last stage begins */
} search;

static size_t at(const search *s, int stage, int piece) {
    return (size_t)stage * (size_t)(s->split->pieces + 1) + (size_t)piece;
}

static bool fits(const search *s, int stage, int begin, int end) {
    const clt_pipeline_split *split = s->split;
    if (!split->kept) return true;
    uint64_t activations = (s->activations[end] - s->activations[begin]) * (uint64_t)split->in_flight[stage];
    return s->kept[end] - s->kept[begin] + activations <= split->limits[stage];
}

/* What crosses at the ends of the model is nothing. */
static double sent(const clt_pipeline_split *split, int begin, int end) {
    return (begin > 0 ? split->send[begin] : 0) + (end < split->pieces ? split->send[end] : 0);
}

static double stage_seconds(const search *s, int stage, int begin, int end) {
    return s->seconds[at(s, stage, end)] - s->seconds[at(s, stage, begin)] + sent(s->split, begin, end);
}

/* The least of the slowest stage; or, where that is given, of what is sent in all by stages that are no slower. */
static double find_best(search *s, double slowest) {
    const clt_pipeline_split *split = s->split;
    bool given = slowest < INFINITY;
    for (int i = 0; i <= split->pieces; i++) s->best[at(s, 0, i)] = i ? INFINITY : 0;
    for (int stage = 0; stage < split->stages; stage++)
        for (int end = 0; end <= split->pieces; end++) {
            double *best = &s->best[at(s, stage + 1, end)];
            *best = INFINITY;
            for (int begin = stage; begin < end; begin++) {
                double before = s->best[at(s, stage, begin)], own = stage_seconds(s, stage, begin, end);
                double all = given ? before + sent(split, begin, end) : fmax(before, own);
                if (!(all < *best) || own > slowest || !fits(s, stage, begin, end)) continue;
                *best = all;
                s->from[at(s, stage + 1, end)] = begin;
            }
        }
    return s->best[at(s, split->stages, split->pieces)];
}

static void add_up(search *s) {
    const clt_pipeline_split *split = s->split;
    for (int stage = 0; stage < split->stages; stage++)
        for (int i = 0; i < split->pieces; i++)
            s->seconds[at(s, stage, i + 1)] = s->seconds[at(s, stage, i)] + split->seconds[(size_t)stage * (size_t)split->pieces + (size_t)i];
    for (int i = 0; i < split->pieces && split->kept; i++) {
        s->kept[i + 1] = s->kept[i] + split->kept[i];
        s->activations[i + 1] = s->activations[i] + split->activations[i];
    }
}

static clt_status fail_memory(const search *s) {
    const clt_pipeline_split *split = s->split;
    uint64_t room = 0;
    for (int i = 0; i < split->stages; i++) room += split->limits[i];
    return clt_fail(CLT_E_DEVICE_MEMORY, "no split into %d stages fits into memory: the model keeps %llu bytes and %llu more for each micro-batch in flight, and the devices have %llu",
                    split->stages, (unsigned long long)s->kept[split->pieces], (unsigned long long)s->activations[split->pieces], (unsigned long long)room);
}

static clt_status find(search *s, int *cuts, double *slowest) {
    const clt_pipeline_split *split = s->split;
    add_up(s);
    *slowest = find_best(s, INFINITY);
    if (isinf(*slowest)) return fail_memory(s);
    find_best(s, *slowest);
    cuts[split->stages] = split->pieces;
    for (int stage = split->stages; stage > 0; stage--) cuts[stage - 1] = s->from[at(s, stage, cuts[stage])];
    return CLT_OK;
}

clt_status clt_pipeline_find_split(const clt_pipeline_split *split, int *cuts, double *slowest) {
    if (split->stages < 1 || split->pieces < split->stages)
        return clt_fail(CLT_E_INVALID, "%d stages of a model with %d pieces: expected 1 to %d", split->stages, split->pieces, split->pieces);
    size_t sums = (size_t)(split->pieces + 1), all = sums * (size_t)(split->stages + 1);
    search s = {.split = split, .seconds = clt_calloc(all, sizeof *s.seconds), .kept = clt_calloc(sums, sizeof *s.kept), .activations = clt_calloc(sums, sizeof *s.activations),
                .best = clt_calloc(all, sizeof *s.best), .from = clt_calloc(all, sizeof *s.from)};
    clt_status status = s.seconds && s.kept && s.activations && s.best && s.from ? find(&s, cuts, slowest) : clt_fail_memory(all * sizeof *s.best);
    clt_free(s.seconds);
    clt_free(s.kept);
    clt_free(s.activations);
    clt_free(s.best);
    clt_free(s.from);
    return status;
}
