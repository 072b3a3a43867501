#include "runtime/exec/keep.h"

#include <math.h>

/* Of a stage, besides what later ones read and what cannot be computed again. */
typedef enum mode { KEEP_ALL, KEEP_DEAR, KEEP_NONE, MODES } mode;

enum {
    MOST_CUTS = 128,
    BUCKETS = 256 /* of bytes that are kept: the cheapest way to each is remembered */
};

/* How far a way has come: up to a cut, with so many bytes kept. */
typedef struct way {
    double cost; /* INFINITY: there is none */
    uint64_t bytes;
    int from, bucket; /* the way that it goes on from */
    mode mode;
} way;

typedef struct search {
    const clt_keep_node *nodes;
    int cuts[MOST_CUTS + 1], n; /* n stages: of the nodes [cuts[i], cuts[i + 1]) */
    way (*ways)[BUCKETS + 1];   /* by cut */
} search;

/* What a stage takes. */
typedef struct stage {
    uint64_t kept, again; /* bytes through all of backward, and while it is in the stage */
    double cost;
} stage;

/* Whether a node of a stage that ends before `end` is kept. */
static bool keeps(const clt_keep_node *node, int end, mode m) {
    if (node->fixed || node->last >= end) return true;
    return m == KEEP_ALL ? node->saved : m == KEEP_DEAR && node->wanted && !node->cheap;
}

/* What is computed again with all of its stage is there at once; what is cheap comes and goes. */
static void add_node(stage *s, const clt_keep_node *nodes, int i, int end, mode m) {
    const clt_keep_node *node = &nodes[i];
    if (keeps(node, end, m)) {
        if (node->saved || node->wanted || node->last > i) s->kept += node->bytes;
        return;
    }
    if (m == KEEP_ALL || (m == KEEP_DEAR && !node->wanted)) return;
    s->cost += node->cost;
    if (!node->saved) return;
    s->again = m == KEEP_DEAR ? CLT_MAX(s->again, node->bytes) : s->again + node->bytes;
}

/* ---- cuts ---- */

/* Bytes that lead over each cut, by the node before it. */
static clt_status find_crossings(const clt_keep_node *nodes, int n, uint64_t **crossing) {
    uint64_t *bytes = clt_calloc((size_t)n + 1, sizeof *bytes), *ending = clt_calloc((size_t)n + 1, sizeof *ending), now = 0;
    if (!bytes || !ending) {
        clt_free(bytes);
        clt_free(ending);
        return clt_fail_memory(((size_t)n + 1) * sizeof *bytes);
    }
    for (int i = 0; i < n; i++) {
        now += nodes[i].bytes;
        ending[nodes[i].last] += nodes[i].bytes;
        bytes[i] = now -= ending[i];
    }
    clt_free(ending);
    *crossing = bytes;
    return CLT_OK;
}

/* Behind the nodes over which least leads, one of each of so many parts of forward. */
static clt_status place_cuts(search *s, int n) {
    uint64_t *crossing = NULL;
    CLT_TRY(find_crossings(s->nodes, n, &crossing));
    s->n = CLT_MIN(n, MOST_CUTS);
    for (int c = 0; c < s->n; c++) {
        int begin = (int)((int64_t)n * c / s->n), end = (int)((int64_t)n * (c + 1) / s->n), best = begin;
        for (int i = begin; i < end; i++)
            if (crossing[i] < crossing[best]) best = i;
        s->cuts[c + 1] = c + 1 == s->n ? n : best + 1;
    }
    clt_free(crossing);
    return CLT_OK;
}

/* ---- the search ---- */

static void clear_ways(search *s) {
    for (int c = 0; c <= s->n; c++)
        for (int b = 0; b <= BUCKETS; b++) s->ways[c][b] = (way){.cost = INFINITY};
    s->ways[0][0].cost = 0;
}

/* All ways to cut `to` that end with this stage. */
static void extend(search *s, int from, int to, mode m, const stage *last, uint64_t budget) {
    for (int b = 0; b <= BUCKETS; b++) {
        const way *before = &s->ways[from][b];
        uint64_t bytes = before->bytes + last->kept;
        if (before->cost == INFINITY || bytes > budget || last->again > budget - bytes) continue;
        way *w = &s->ways[to][budget ? (int)((double)bytes / (double)budget * BUCKETS) : 0];
        double cost = before->cost + last->cost;
        if (cost > w->cost || (cost == w->cost && bytes >= w->bytes)) continue;
        *w = (way){cost, bytes, from, b, m};
    }
}

/* From the stage's end back, so that each longer stage adds to the shorter one. */
static void extend_to(search *s, int to, uint64_t budget) {
    stage stages[MODES] = {{0, 0, 0}};
    int end = s->cuts[to];
    for (int from = to - 1; from >= 0; from--)
        for (mode m = 0; m < MODES; m++) {
            for (int i = s->cuts[from + 1] - 1; i >= s->cuts[from]; i--) add_node(&stages[m], s->nodes, i, end, m);
            extend(s, from, to, m, &stages[m], budget);
        }
}

static void take(const search *s, int bucket, clt_keep_node *nodes) {
    for (int c = s->n; c > 0;) {
        const way *w = &s->ways[c][bucket];
        for (int i = s->cuts[w->from]; i < s->cuts[c]; i++) nodes[i].keep = keeps(&nodes[i], s->cuts[c], w->mode);
        c = w->from;
        bucket = w->bucket;
    }
}

/* The cheapest; -1: none. */
static int find_way(search *s, uint64_t budget) {
    int best = 0;
    clear_ways(s);
    for (int to = 1; to <= s->n; to++) extend_to(s, to, budget);
    for (int b = 1; b <= BUCKETS; b++)
        if (s->ways[s->n][b].cost < s->ways[s->n][best].cost) best = b;
    return s->ways[s->n][best].cost < INFINITY ? best : -1;
}

static clt_status begin(search *s, const clt_keep_node *nodes, int n) {
    *s = (search){.nodes = nodes};
    CLT_TRY(place_cuts(s, n));
    s->ways = clt_calloc((size_t)s->n + 1, sizeof *s->ways);
    return s->ways ? CLT_OK : clt_fail_memory(((size_t)s->n + 1) * sizeof *s->ways);
}

clt_status clt_keep_within(clt_keep_node *nodes, int n, uint64_t budget, bool *fits) {
    search s;
    CLT_TRY(begin(&s, nodes, n));
    int bucket = find_way(&s, budget);
    *fits = bucket >= 0;
    if (*fits) take(&s, bucket, nodes);
    clt_free(s.ways);
    return CLT_OK;
}

clt_status clt_keep_least(clt_keep_node *nodes, int n) {
    enum { HALVINGS = 12 };
    search s;
    uint64_t all = 0, step;
    CLT_TRY(begin(&s, nodes, n));
    for (int i = 0; i < n; i++) all += nodes[i].bytes;
    step = all / 2;
    for (int k = 0; k < HALVINGS; k++, step /= 2)
        if (step > 0 && find_way(&s, all - step) >= 0) all -= step;
    take(&s, find_way(&s, all), nodes);
    clt_free(s.ways);
    return CLT_OK;
}

/* The end of the block that begins at `begin`: before the next one's first node that reads parameters, where least leads over it. */
static int block_end(const clt_keep_node *nodes, int n, const uint64_t *crossing, int begin) {
    int block = 0, last = begin, next = begin;
    for (; next < n && !(block && nodes[next].block && nodes[next].block != block); next++)
        if (nodes[next].block) {
            block = nodes[next].block;
            last = next;
        }
    if (next == n) return n;
    int best = last;
    for (int i = last; i < next; i++)
        if (crossing[i] < crossing[best]) best = i;
    return best + 1;
}

/* Behind the next mark, of which there is one. */
static int marked_end(const clt_keep_node *nodes, int n, int begin) {
    while (begin < n && !nodes[begin].ends) begin++;
    return CLT_MIN(begin + 1, n);
}

clt_status clt_keep_blocks(clt_keep_node *nodes, int n) {
    uint64_t *crossing = NULL;
    bool marked = false;
    CLT_TRY(find_crossings(nodes, n, &crossing));
    for (int i = 0; i < n; i++) marked |= nodes[i].ends;
    for (int begin = 0, end; begin < n; begin = end) {
        end = marked ? marked_end(nodes, n, begin) : block_end(nodes, n, crossing, begin);
        for (int i = begin; i < end; i++) nodes[i].keep = keeps(&nodes[i], end, end == n ? KEEP_ALL : KEEP_NONE);
    }
    clt_free(crossing);
    return CLT_OK;
}
