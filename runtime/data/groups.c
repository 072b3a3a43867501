/* Samples that belong together, as those of one patient do, and are in one part of a split. */
#include "runtime/base/table.h"
#include "runtime/data/data.h"

typedef struct dealing {
    clt_table numbers;  /* of groups, from 0, in the order in which they are drawn */
    int32_t *group_of;  /* a sample */
    int32_t *part;      /* of a group */
    int64_t *sizes;     /* of a group */
    double *lacks;      /* samples that each part is to get yet */
    bool *has;          /* a part: any */
    int64_t n;
} dealing;

clt_status clt_dataset_set_groups(clt_dataset *dataset, const int64_t *groups) {
    if (!dataset) return clt_fail(CLT_E_INVALID, "clt_dataset_set_groups: dataset is NULL");
    int64_t *copy = NULL;
    if (groups) CLT_TRY(clt_groups_take(&copy, groups, NULL, dataset->samples));
    clt_free(dataset->groups);
    dataset->groups = copy;
    return CLT_OK;
}

clt_status clt_groups_take(int64_t **part, const int64_t *groups, const int64_t *order, int64_t count) {
    size_t bytes = (size_t)count * sizeof *groups; /* as many are in memory */
    *part = clt_alloc(bytes);
    if (!*part) return clt_fail_memory(bytes);
    for (int64_t i = 0; i < count; i++) (*part)[i] = groups[order ? order[i] : i];
    return CLT_OK;
}

static clt_status number_groups(dealing *g, const clt_dataset *d, const int64_t *order) {
    CLT_TRY(clt_table_reserve(&g->numbers, (size_t)d->samples));
    for (int64_t i = 0; i < d->samples; i++) {
        uint64_t key = (uint64_t)d->groups[order[i]];
        const clt_table_entry *known = clt_table_find(&g->numbers, key);
        int32_t number = known ? known->value : (int32_t)g->n;
        if (!known) {
            if (g->n == INT32_MAX) return clt_fail(CLT_E_RANGE, "more than %d groups", INT32_MAX);
            clt_table_put(&g->numbers, key, number, 0);
            g->n++;
        }
        g->group_of[order[i]] = number;
        g->sizes[number]++;
    }
    return CLT_OK;
}

/* A part that has none comes first where there are no more groups than such parts. */
static int neediest(const dealing *g, int n, bool only_empty) {
    int best = -1;
    for (int p = 0; p < n; p++)
        if (!(only_empty && g->has[p]) && (best < 0 || g->lacks[p] > g->lacks[best])) best = p;
    return best;
}

static void deal_groups(dealing *g, int n) {
    int empty = n;
    for (int64_t i = 0; i < g->n; i++) {
        int p = neediest(g, n, g->n - i <= empty);
        empty -= !g->has[p];
        g->has[p] = true;
        g->lacks[p] -= (double)g->sizes[i];
        g->part[i] = p;
    }
}

static clt_status deal(dealing *g, const clt_dataset *d, const int64_t *order, int n, int32_t *part_of) {
    CLT_TRY(number_groups(g, d, order));
    if (g->n < n) return clt_fail(CLT_E_RANGE, "%lld groups of samples are too few for %d parts", (long long)g->n, n);
    deal_groups(g, n);
    for (int64_t i = 0; i < d->samples; i++) part_of[i] = g->part[g->group_of[i]];
    return CLT_OK;
}

clt_status clt_groups_deal(const clt_dataset *d, const int64_t *order, const double *fractions, int n, int32_t *part_of) {
    size_t samples = (size_t)d->samples;
    dealing g = {.group_of = clt_alloc(samples * sizeof *g.group_of), .part = clt_alloc(samples * sizeof *g.part), .sizes = clt_calloc(samples, sizeof *g.sizes),
                 .lacks = clt_alloc((size_t)n * sizeof *g.lacks), .has = clt_calloc((size_t)n, sizeof *g.has)};
    bool room = g.group_of && g.part && g.sizes && g.lacks && g.has;
    for (int p = 0; room && p < n; p++) g.lacks[p] = fractions[p] * (double)samples;
    clt_status status = room ? deal(&g, d, order, n, part_of) : clt_fail_memory(samples * sizeof *g.sizes);
    clt_table_free(&g.numbers);
    clt_free(g.group_of);
    clt_free(g.part);
    clt_free(g.sizes);
    clt_free(g.lacks);
    clt_free(g.has);
    return status;
}
