/* Scaled dot-product attention in register tiles (cl/native/cpu/attention.cl). */
#include <stdio.h>

#include "backends/attention.h"
#include "backends/native/cpu/cpu.h"

enum { MOST_D = 256 }; /* rows of a tile stay in the first cache */

/* Begins a kernel, whose text and name have D in them. */
static void begin(clt_lowering *l, const char *kernel, int64_t d, int64_t count) {
    char defines[64], name[64];
    snprintf(defines, sizeof defines, "#undef ATTENTION_D\n#define ATTENTION_D %d\n", (int)d);
    snprintf(name, sizeof name, "%s_%d", kernel, (int)d);
    clt_cpu_begin_as(l, &(clt_cpu_variant){.defines = defines, .storage = l->node->inputs[0]->dtype}, "native/cpu/attention.cl", name, count);
}

static int64_t packed_rows(const clt_device *device, int64_t rows) {
    int columns = clt_cpu_tile_of(device).columns;
    return clt_cpu_divide_up(rows, columns) * columns;
}

/* Packs x [heads, rows, D] in tiles of columns; gives the scratch. */
static int pack(clt_lowering *l, const clt_tensor *x) {
    const int64_t *dims = x->shape.dims;
    int64_t heads = dims[0] * dims[1], padded = packed_rows(l->device, dims[2]);
    int scratch = clt_cpu_scratch(l, heads * padded * dims[3]);
    begin(l, "cpu_attention_pack", dims[3], heads * padded / clt_cpu_tile_of(l->device).columns);
    clt_launch_tensor(l, x);
    clt_launch_scratch(l, scratch);
    clt_launch_int(l, dims[2]);
    return scratch;
}

static void launch_size(clt_lowering *l, const clt_tensor *node) {
    clt_attention_size z = clt_attention_sizes(node);
    clt_launch_ints(l, (int64_t[]){z.n * z.heads, z.key_heads, z.t, z.s, z.heads}, 5, 8);
    clt_attention_launch_scalars(l, node);
}

static int64_t blocks_of(const clt_lowering *l, int64_t heads, int64_t rows) {
    return heads * clt_cpu_divide_up(rows, clt_cpu_tile_of(l->device).rows);
}

static void lower_forward(clt_lowering *l, const clt_tensor *node) {
    clt_attention_size z = clt_attention_sizes(node);
    int panels = pack(l, node->inputs[1]);
    begin(l, "cpu_attention", z.d, blocks_of(l, z.n * z.heads, z.t));
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node->inputs[2]);
    clt_launch_scratch(l, panels);
    clt_attention_launch_options(l, node);
    clt_launch_tensor(l, node);
    clt_launch_tensor(l, node->outputs[0]);
    launch_size(l, node);
}

static void lower_few(clt_lowering *l, const clt_tensor *node) {
    clt_attention_size z = clt_attention_sizes(node);
    begin(l, "cpu_attention_few", z.d, z.n * z.heads * z.t);
    for (int i = 0; i < 3; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_attention_launch_options(l, node);
    clt_launch_tensor(l, node);
    clt_launch_tensor(l, node->outputs[0]);
    launch_size(l, node);
}

static void lower_grad_query(clt_lowering *l, const clt_tensor *node) {
    enum { Q, K, V, TOPS, DELTAS, DY };
    clt_attention_size z = clt_attention_sizes(node);
    int keys = pack(l, node->inputs[K]), values = pack(l, node->inputs[V]);
    begin(l, "cpu_attention_grad_query", z.d, blocks_of(l, z.n * z.heads, z.t));
    const int inputs[] = {Q, K, DY, TOPS, DELTAS};
    for (size_t i = 0; i < CLT_COUNT_OF(inputs); i++) clt_launch_tensor(l, node->inputs[inputs[i]]);
    clt_launch_scratch(l, keys);
    clt_launch_scratch(l, values);
    clt_attention_launch_options(l, node);
    clt_launch_tensor(l, node);
    launch_size(l, node);
}

static void lower_grad_key_value(clt_lowering *l, const clt_tensor *node) {
    enum { Q, DY = 5 };
    clt_attention_size z = clt_attention_sizes(node);
    int queries = pack(l, node->inputs[Q]), gradients = pack(l, node->inputs[DY]);
    begin(l, "cpu_attention_grad_key_value", z.d, blocks_of(l, z.n * z.key_heads, z.s));
    for (int i = 0; i <= DY; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_scratch(l, queries);
    clt_launch_scratch(l, gradients);
    clt_attention_launch_options(l, node);
    clt_launch_tensor(l, node);
    clt_launch_tensor(l, node->outputs[0]);
    launch_size(l, node);
}

static bool supports(const clt_candidate *c) {
    enum { MOST_TILES = 32768 };
    clt_attention_size z = clt_attention_sizes(c->node);
    if (!clt_cpu_fits(c->device) || !clt_attention_is_of_one_type(c->node)) return false;
    int columns = clt_cpu_tile_of(c->device).columns;
    int64_t longest = packed_rows(c->device, CLT_MAX(z.t, z.s));
    return z.d % columns == 0 && z.d <= MOST_D && z.heads / z.key_heads * longest / columns <= MOST_TILES &&
           clt_cpu_holds(c->device, (double)z.n * (double)z.heads * (double)longest * (double)z.d);
}

static bool supports_few(const clt_candidate *c) {
    enum { MOST_QUERIES = 4, MOST_KEYS = 1 << 20 };
    clt_attention_size z = clt_attention_sizes(c->node);
    return supports(c) && z.t <= MOST_QUERIES && z.s <= MOST_KEYS;
}

const clt_backend_row clt_cpu_attention_rows[] = {
    {CLT_NATIVE(attention), .supports = supports, .lower = lower_forward, .types = CLT_ANY_FLOAT},
    {CLT_NATIVE(attention), .supports = supports_few, .lower = lower_few, .types = CLT_ANY_FLOAT},
    {CLT_NATIVE(attention_grad_query), .supports = supports, .lower = lower_grad_query, .types = CLT_ANY_FLOAT},
    {CLT_NATIVE(attention_grad_key_value), .supports = supports, .lower = lower_grad_key_value, .types = CLT_ANY_FLOAT},
    {0},
};
