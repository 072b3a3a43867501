/* What the reader of ONNX files makes of one, a line for each thing: onnx_list FILE. compare_onnx.py holds it against Python's onnx. */
#include <stdio.h>

#include "runtime/exchange/onnx/file.h"

static void print_tensor(const char *what, const clt_onnx_tensor *t) {
    printf("%s %s %s [", what, t->name, clt_onnx_type_name(t->type));
    for (size_t d = 0; d < t->rank; d++) printf("%s%lld", d ? ", " : "", (long long)t->dims[d]);
    printf("] raw %zu%s%s\n", clt_wire_length(t->raw), t->external ? " at " : "", t->external ? t->external->location : "");
}

static void print_info(const char *what, const clt_onnx_info *info) {
    printf("%s %s", what, info->name);
    if (info->is_tensor) printf(" %s", clt_onnx_type_name(info->type));
    if (info->has_shape) printf(" [");
    for (size_t d = 0; d < info->rank; d++) {
        const clt_onnx_dim *dim = &info->dims[d];
        printf("%s", d ? ", " : "");
        if (dim->size >= 0) printf("%lld", (long long)dim->size);
        else printf("%s", dim->symbol[0] ? dim->symbol : "?");
    }
    printf("%s\n", info->has_shape ? "]" : "");
}

static void print_attribute(const clt_onnx_attribute *a) {
    printf("  %s %lld", a->name, (long long)a->type);
    switch (a->type) {
    case CLT_ONNX_A_FLOAT: printf(" %.9g", (double)a->f); break;
    case CLT_ONNX_A_INT: printf(" %lld", (long long)a->i); break;
    case CLT_ONNX_A_STRING:
        printf(" ");
        for (size_t i = 0; i < a->length; i++) printf("%02x", (unsigned char)a->s[i]);
        break;
    default: break;
    }
    for (size_t i = 0; i < a->n; i++) {
        if (a->type == CLT_ONNX_A_FLOATS) printf(" %.9g", (double)a->floats[i]);
        if (a->type == CLT_ONNX_A_INTS) printf(" %lld", (long long)a->ints[i]);
        if (a->type == CLT_ONNX_A_STRINGS) printf(" %s", a->strings[i]);
    }
    printf("\n");
    if (a->tensor) print_tensor("   ", a->tensor);
}

static void print_node(const clt_onnx_node *node) {
    printf("node %s %s \"%s\"", node->name, node->op, node->domain);
    for (size_t i = 0; i < node->n_inputs; i++) printf(" <%s", node->inputs[i]);
    for (size_t i = 0; i < node->n_outputs; i++) printf(" >%s", node->outputs[i]);
    printf("\n");
    for (size_t i = 0; i < node->n_attributes; i++) print_attribute(&node->attributes[i]);
}

int main(int argc, char **argv) {
    clt_onnx_file file;
    if (argc != 2) return fprintf(stderr, "usage: onnx_list FILE\n"), 2;
    clt_status status = clt_onnx_file_open(&file, argv[1]);
    if (status < 0) fprintf(stderr, "%s\n", clt_error_detail());
    const clt_onnx_model *m = &file.model;
    if (status == CLT_OK) {
        printf("model ir %lld by %s %s, %zu functions, %zu sparse\n", (long long)m->ir_version, m->producer, m->producer_version, m->n_functions, m->n_sparse);
        for (size_t i = 0; i < m->n_opsets; i++) printf("opset \"%s\" %lld\n", m->opsets[i].domain, (long long)m->opsets[i].version);
        printf("graph %s\n", m->name);
        for (size_t i = 0; i < m->n_nodes; i++) print_node(&m->nodes[i]);
        for (size_t i = 0; i < m->n_initializers; i++) print_tensor("initializer", &m->initializers[i]);
        for (size_t i = 0; i < m->n_inputs; i++) print_info("input", &m->inputs[i]);
        for (size_t i = 0; i < m->n_outputs; i++) print_info("output", &m->outputs[i]);
    }
    clt_onnx_file_close(&file);
    return status < 0;
}
