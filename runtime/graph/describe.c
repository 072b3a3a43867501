/* A graph in words: what ranks compare, and JSON. */
#include <string.h>

#include "runtime/graph/graph.h"

/* `one`: for one sample, which ranks have alike whatever their batches are. Without it what follows the batch is left open: a size may depend on
 * it in any way, and what inputs, operands and attributes are is told as well. */
static void add_shape(const clt_tensor *t, const clt_shape *one, clt_text *text) {
    bool open = !one && (t->follows || t->kind == CLT_NODE_STATE);
    clt_text_add(text, " [");
    for (int d = 0; d < t->shape.rank; d++) {
        if (d) clt_text_add(text, ", ");
        bool own = t->kind == CLT_NODE_INPUT && d > 0 && d != t->length_axis; /* its caller said so */
        if (open && !own) clt_text_add(text, "*");
        else clt_text_add(text, "%lld", (long long)(one ? one : &t->shape)->dims[d]);
    }
    clt_text_add(text, "]");
}

void clt_tensor_describe(const clt_tensor *t, const clt_shape *shape, clt_text *text) {
    static const char *const kinds[] = {"invalid", "input", "parameter", "state", "op", "result"};
    const char *kind = kinds[t->kind];
    if (t->variable && !clt_variable_is_kept(t->variable)) kind = t->variable->values ? "constant" : "fixed input";
    else if (t->variable) kind = t->variable->is_buffer ? t->variable->unsaved ? "unsaved buffer" : "buffer" : t->variable->trained ? "parameter" : "parameter that is not trained";
    if (t->kind == CLT_NODE_OUTPUT) clt_text_add(text, "further result %s", clt_dtype_name(t->dtype));
    else if (t->kind == CLT_NODE_OP) clt_text_add(text, "%s %s", t->op->name, clt_dtype_name(t->dtype));
    else clt_text_add(text, "%s \"%s\" %s", kind, t->name, clt_dtype_name(t->dtype));
    add_shape(t, shape, text);
    if (t->length_axis) clt_text_add(text, " length_axis=%d", t->length_axis);
    if (t->variable && t->variable->values) { /* which ranks must have alike */
        char hash[CLT_HASH_TEXT];
        clt_hash_text(t->variable->values, clt_variable_bytes(t->variable), hash);
        clt_text_add(text, " values %s", hash);
    }
    if (t->attributes) clt_text_add(text, " ");
    if (t->attributes) clt_attributes_write(t->op->schema, t->attributes, t->shape.rank, text);
    for (int k = 0; k < t->n_inputs; k++) clt_text_add(text, "%s#%d", k ? ", " : " of ", t->inputs[k]->index);
}

static bool begins_input(const char *at) {
    return !strncmp(at, "of #", 4);
}

/* "p=" */
static bool begins_attribute(const char *at) {
    size_t length = strcspn(at, "= ");
    return length > 0 && at[length] == '=';
}

size_t clt_describe_difference(const char *one, const char *other) {
    size_t same = 0, word = 0;
    while (one[same] && one[same] == other[same]) same++;
    for (size_t at = 1; at <= same; at++)
        if (one[at - 1] == ' ' && other[at] && (begins_attribute(other + at) || begins_input(other + at))) word = at;
    return word;
}
