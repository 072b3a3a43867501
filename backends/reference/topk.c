#include "backends/reference/reference.h"

static const char path[] = "reference/topk.cl";

enum { BINS = 2048, PASSES = 3, WORDS_OF_PART = 64 }; /* as in the kernels */

/* A selection being lowered. */
typedef struct topk {
    clt_lowering *l;
    const clt_tensor *x, *residual, *samples, *wire;
    int64_t n, k, chunks, length;
    int group; /* of the kernels that do a chunk a work-item */
    int histograms, totals, chosen, places; /* scratch */
} topk;

/* Chunks long enough that their histograms are small beside them, and few enough for the loops over them. */
static topk plan_of(clt_lowering *l, const clt_tensor *node) {
    const clt_compress_attributes *at = node->attributes;
    topk s = {.l = l, .x = node->inputs[0], .residual = node->inputs[1], .samples = node->inputs[2],
              .wire = node, .k = at->k};
    s.n = clt_tensor_elements(s.x);
    int64_t most = CLT_MAX(1024, (s.n + 262143) / 262144);
    s.chunks = CLT_MIN((s.n + 16383) / 16384, most);
    s.length = ((s.n + s.chunks - 1) / s.chunks + 15) / 16 * 16;
    s.chunks = (s.n + s.length - 1) / s.length;
    s.group = clt_device_get_class(l->device) == CLT_CLASS_CPU ? 1 : CLT_REFERENCE_GROUP;
    s.histograms = clt_lower_scratch(l, (size_t)(PASSES * s.chunks) * BINS * sizeof(int32_t));
    s.totals = clt_lower_scratch(l, BINS * sizeof(int32_t));
    s.chosen = clt_lower_scratch(l, 4 * sizeof(int32_t));
    s.places = clt_lower_scratch(l, (size_t)s.chunks * 2 * sizeof(int32_t));
    return s;
}

static void launch_chunks(const topk *s) {
    clt_launch_int(s->l, s->n);
    clt_launch_int(s->l, s->chunks);
    clt_launch_int(s->l, s->length);
}

static void count_pass(const topk *s, int pass) {
    clt_launch_begin(s->l, path, pass ? "ref_topk_refine" : "ref_topk_add", s->chunks, s->group);
    if (!pass) clt_launch_tensor(s->l, s->x);
    clt_launch_tensor(s->l, s->residual);
    if (!pass) clt_launch_tensor(s->l, s->samples);
    clt_launch_scratch(s->l, s->histograms);
    if (pass) clt_launch_scratch(s->l, s->chosen);
    launch_chunks(s);
    if (pass) clt_launch_int(s->l, pass);
}

static void choose_bin(const topk *s, int pass) {
    clt_launch_begin(s->l, path, "ref_topk_total", BINS / 16, CLT_REFERENCE_GROUP / 4);
    clt_launch_scratch(s->l, s->histograms);
    clt_launch_scratch(s->l, s->totals);
    clt_launch_int(s->l, s->chunks);
    clt_launch_int(s->l, pass);

    clt_launch_begin(s->l, path, "ref_topk_choose", CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP);
    clt_launch_scratch(s->l, s->totals);
    clt_launch_scratch(s->l, s->chosen);
    clt_launch_int(s->l, pass);
    clt_launch_int(s->l, s->k);
}

static void find_places(const topk *s) {
    clt_launch_begin(s->l, path, "ref_topk_found", s->chunks, s->group);
    clt_launch_scratch(s->l, s->histograms);
    clt_launch_scratch(s->l, s->chosen);
    clt_launch_scratch(s->l, s->places);
    clt_launch_int(s->l, s->chunks);

    clt_launch_begin(s->l, path, "ref_topk_place", 1, 1);
    clt_launch_scratch(s->l, s->places);
    clt_launch_scratch(s->l, s->chosen);
    clt_launch_int(s->l, s->chunks);
}

static void gather(const topk *s, const clt_topk_wire *wire, int indices, bool bf16) {
    clt_launch_begin(s->l, path, "ref_topk_gather", s->chunks, s->group);
    clt_launch_tensor(s->l, s->residual);
    clt_launch_scratch(s->l, indices);
    clt_launch_tensor(s->l, s->wire);
    clt_launch_scratch(s->l, s->places);
    clt_launch_scratch(s->l, s->chosen);
    launch_chunks(s);
    clt_launch_int(s->l, wire->high_words + wire->low_words);
    clt_launch_int(s->l, bf16);
    if (!bf16 || s->k % 2 == 0) return;
    clt_launch_begin(s->l, path, "ref_topk_fill", 1, 1);
    clt_launch_tensor(s->l, s->wire);
    clt_launch_int(s->l, wire->high_words + wire->low_words);
    clt_launch_int(s->l, s->k);
}

static void code_indices(const topk *s, const clt_topk_wire *wire, int indices) {
    clt_launch_begin(s->l, path, "ref_topk_high", wire->high_words, CLT_REFERENCE_GROUP);
    clt_launch_scratch(s->l, indices);
    clt_launch_tensor(s->l, s->wire);
    clt_launch_int(s->l, s->k);
    clt_launch_int(s->l, wire->high_words);
    clt_launch_int(s->l, wire->low_bits);
    if (!wire->low_words) return;
    clt_launch_begin(s->l, path, "ref_topk_low", wire->low_words, CLT_REFERENCE_GROUP);
    clt_launch_scratch(s->l, indices);
    clt_launch_tensor(s->l, s->wire);
    clt_launch_int(s->l, s->k);
    clt_launch_int(s->l, wire->low_words);
    clt_launch_int(s->l, wire->high_words);
    clt_launch_int(s->l, wire->low_bits);
}

static void lower_topk_encode(clt_lowering *l, const clt_tensor *node) {
    const clt_compress_attributes *at = node->attributes;
    topk s = plan_of(l, node);
    clt_topk_wire wire = clt_topk_layout(s.n, s.k, at->bf16);
    int indices = clt_lower_scratch(l, (size_t)s.k * sizeof(int32_t));
    for (int pass = 0; pass < PASSES; pass++) {
        count_pass(&s, pass);
        choose_bin(&s, pass);
    }
    find_places(&s);
    gather(&s, &wire, indices, at->bf16);
    code_indices(&s, &wire, indices);
}

/* ---- the way back ---- */

static void scatter(clt_lowering *l, const clt_tensor *node, const clt_topk_wire *wire, int64_t parts, int before,
                    int rank) {
    const clt_compress_attributes *at = node->attributes;
    clt_launch_begin(l, path, "ref_topk_scatter", parts, 1);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_scratch(l, before);
    clt_launch_int(l, clt_tensor_elements(node));
    clt_launch_int(l, at->k);
    clt_launch_int(l, rank);
    clt_launch_int(l, parts);
    clt_launch_int(l, wire->high_words);
    clt_launch_int(l, wire->low_words);
    clt_launch_int(l, wire->words);
    clt_launch_int(l, wire->low_bits);
    clt_launch_int(l, at->bf16);
}

/* Rank after rank: each one's indices differ, so that a rank is one launch. */
static void lower_topk_decode(clt_lowering *l, const clt_tensor *node) {
    const clt_compress_attributes *at = node->attributes;
    clt_topk_wire wire = clt_topk_layout(clt_tensor_elements(node), at->k, at->bf16);
    int64_t parts = (wire.high_words + WORDS_OF_PART - 1) / WORDS_OF_PART;
    int before = clt_lower_scratch(l, (size_t)(parts * at->ranks) * sizeof(int32_t));
    clt_launch_begin(l, path, "ref_topk_ones", parts * at->ranks, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_scratch(l, before);
    clt_launch_int(l, parts);
    clt_launch_int(l, wire.high_words);
    clt_launch_int(l, wire.words);
    clt_launch_int(l, at->ranks);

    clt_launch_begin(l, path, "ref_topk_before", at->ranks, 1);
    clt_launch_scratch(l, before);
    clt_launch_int(l, parts);
    clt_launch_int(l, at->ranks);

    clt_reference_fill(l, node->inputs[0], 0.0f);
    for (int rank = 0; rank < at->ranks; rank++) scatter(l, node, &wire, parts, before, rank);
}

const clt_backend_row clt_reference_topk_rows[] = {
    {CLT_REFERENCE(topk_encode), .lower = lower_topk_encode},
    {CLT_REFERENCE(topk_decode), .lower = lower_topk_decode},
    {0},
};
