#include "backends/attention.h"
#include "backends/reference/reference.h"

static void lower(clt_lowering *l, const clt_tensor *node, const char *kernel, int64_t items) {
    static const char path[] = "reference/attention.cl";
    clt_text text = {0};
    clt_attention_add_text(&text, l->device, path);
    if (text.status < 0) clt_lower_fail(l, text.status);
    else clt_launch_begin_text(l, path, text.data, false, kernel, items, CLT_REFERENCE_GROUP);
    clt_text_free(&text);
    clt_attention_launch_all(l, node);
}

static void lower_forward(clt_lowering *l, const clt_tensor *node) {
    clt_attention_size z = clt_attention_sizes(node);
    lower(l, node, "ref_attention", z.n * z.heads * z.t);
}

static void lower_grad_query(clt_lowering *l, const clt_tensor *node) {
    clt_attention_size z = clt_attention_sizes(node);
    lower(l, node, "ref_attention_grad_query", z.n * z.heads * z.t);
}

static void lower_grad_key_value(clt_lowering *l, const clt_tensor *node) {
    clt_attention_size z = clt_attention_sizes(node);
    lower(l, node, "ref_attention_grad_key_value", z.n * z.key_heads * z.s);
}

static bool supports_rows(const clt_candidate *c) {
    clt_attention_size z = clt_attention_sizes(c->node);
    return clt_reference_may_loop(c, 2 * z.s * z.d);
}

static bool supports_columns(const clt_candidate *c) {
    clt_attention_size z = clt_attention_sizes(c->node);
    return clt_reference_may_loop(c, z.heads / z.key_heads * z.t * z.d);
}

const clt_backend_row clt_reference_attention_rows[] = {
    {CLT_REFERENCE(attention), .supports = supports_rows, .lower = lower_forward},
    {CLT_REFERENCE(attention_grad_query), .supports = supports_rows, .lower = lower_grad_query},
    {CLT_REFERENCE(attention_grad_key_value), .supports = supports_columns, .lower = lower_grad_key_value},
    {0},
};
