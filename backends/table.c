#include <math.h>
#include <string.h>

#include "backends/matrix/matrix.h"
#include "backends/tune/tune.h"

#define TABLE(name) clt_##name##_rows,
static const clt_backend_row *const tables[] = {CLT_BACKEND_TABLES(TABLE)};
const clt_backend_row *clt_backend_more_rows;

static bool all_contiguous(const clt_tensor *node) {
    bool all = clt_tensor_contiguous(node);
    for (int i = 0; i < node->n_inputs; i++) all &= clt_tensor_contiguous(node->inputs[i]);
    return all;
}

bool clt_node_is_large(const clt_tensor *node) {
    bool large = clt_tensor_is_large(node);
    for (int i = 0; i < node->n_inputs; i++) large |= clt_tensor_is_large(node->inputs[i]);
    for (int k = 0; k < node->op->more_outputs; k++) large |= clt_tensor_is_large(node->outputs[k]);
    return large;
}

bool clt_node_has_one_type(const clt_tensor *node) {
    bool one = true;
    clt_dtype own = node->epilogue ? node->inputs[0]->dtype : node->dtype; /* an epilogue may give another */
    for (int i = 0; i < clt_own_inputs(node); i++) one &= node->inputs[i]->dtype == own;
    return one;
}

static bool all_f32(const clt_tensor *node) {
    bool all = node->dtype == CLT_F32;
    for (int i = 0; i < node->n_inputs; i++) all &= node->inputs[i]->dtype == CLT_F32;
    return all;
}

bool clt_backend_allowed(const clt_backend_row *row, const clt_device *device) {
    if (row->on_demand && clt_compiles_nothing(device)) return false;
    return clt_list_allows(clt_device_settings(device)->backends, row->name);
}

static bool has_type(const clt_backend_row *row, clt_dtype dtype) {
    return !clt_dtype_is_float(dtype) || (row->types ? row->types : 1u << CLT_F32) >> dtype & 1;
}

/* Storage types are refused here, for all rows. */
static bool has_types(const clt_backend_row *row, const clt_tensor *node) {
    bool all = has_type(row, node->dtype);
    for (int i = 0; i < node->n_inputs; i++) all &= has_type(row, node->inputs[i]->dtype);
    for (int k = 0; k < node->op->more_outputs; k++) all &= has_type(row, node->outputs[k]->dtype);
    return all;
}

static bool supports(const clt_backend_row *row, const clt_tensor *node, clt_device *device) {
    return !row->supports || row->supports(&(clt_candidate){row, node, device});
}

const char *clt_backend_refusal(const clt_backend_row *row, const clt_tensor *node, clt_device *device) {
    if (row->on_demand && clt_compiles_nothing(device)) return "compiles kernels of its own, and CLTRAIN_COMPILER=never";
    if (!clt_backend_allowed(row, device)) return "masked by CLTRAIN_BACKENDS";
    if (!row->any_layout && !all_contiguous(node)) return "the layout of a tensor";
    if (node->epilogue && !row->epilogue) return "no epilogues";
    if (node->epilogue && !row->any_epilogue && !all_f32(node)) return "no epilogues in 16 bits";
    if (!has_types(row, node)) return "does not serve a storage type of this problem";
    if (!row->large && clt_node_is_large(node)) return "a tensor of this problem has 2^31 elements or more, and its kernels count to less";
    if (!supports(row, node, device)) return "does not support this problem here";
    for (int c = 0; c < CLT_CAP_COUNT_; c++) /* last, for they may take a kernel build */
        if (row->requires >> c & 1 && !clt_device_has(device, (clt_capability)c)) return "a capability is missing";
    return NULL;
}

bool clt_backend_fits(const clt_backend_row *row, const clt_tensor *node, clt_device *device) {
    return !clt_backend_refusal(row, node, device);
}

bool clt_backend_is_named(const clt_device *device, const char *name) {
    return clt_list_names(clt_device_settings(device)->backends, name);
}

double clt_backend_flops(const clt_backend_row *row, double flops) {
    if (isnan(row->arithmetic)) return 0;
    return row->arithmetic > 0 ? row->arithmetic * flops : flops;
}

const clt_backend_row *clt_backend_next(const clt_op *op, const clt_backend_row *row) {
    bool past = !row;
    for (size_t t = 0; t < CLT_COUNT_OF(tables) + (clt_backend_more_rows != NULL); t++)
        for (const clt_backend_row *r = t < CLT_COUNT_OF(tables) ? tables[t] : clt_backend_more_rows; r->op; r++) {
            if (past && (r->op == op || !op)) return r;
            past |= r == row;
        }
    return NULL;
}

const clt_backend_row *clt_backend_oracle(const clt_tensor *node, clt_device *device) {
    for (const clt_backend_row *row = NULL; (row = clt_backend_next(node->op, row));)
        if (has_types(row, node) && (row->large || !clt_node_is_large(node)) && supports(row, node, device)) return row;
    return NULL;
}

static bool is_one_of(const char *name, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

clt_status clt_backend_check_list(const char *setting, const char *list) {
    enum { MOST = 32 };
    const char *names[MOST];
    size_t n = 0;
    for (const clt_backend_row *r = list[0] ? clt_backend_next(NULL, NULL) : NULL; r && n < MOST; r = clt_backend_next(NULL, r))
        if (!is_one_of(r->name, names, n)) names[n++] = r->name;
    return clt_list_check(setting, list, true, names, n);
}

void clt_backend_defaults(const clt_backend_row *row, const clt_tensor *node, clt_device *device, int *parameters) {
    for (int i = 0; row->tunables && row->tunables[i].name; i++) parameters[i] = row->tunables[i].values[0];
    if (row->defaults) row->defaults(&(clt_candidate){row, node, device}, parameters);
}

bool clt_backend_valid(const clt_choice *choice, const clt_tensor *node, clt_device *device) {
    const clt_backend_row *row = choice->row;
    return !row->valid || row->valid(&(clt_candidate){row, node, device}, choice->parameters);
}

clt_choice clt_backend_choose(const clt_tensor *node, clt_device *device) {
    return clt_tune_choose(node, device, NULL);
}

clt_status clt_backend_lower_with(clt_lowering *l, const clt_tensor *node, const clt_choice *choice) {
    l->node = node;
    l->row = choice->row;
    memcpy(l->parameters, choice->parameters, sizeof l->parameters);
    choice->row->lower(l, node);
    return l->status < 0 ? clt_fail_context(l->status, "%s: ", clt_node_name(node)) : CLT_OK;
}

clt_status clt_backend_lower(clt_lowering *l, const clt_tensor *node) {
    clt_choice choice = clt_backend_choose(node, l->device);
    if (choice.row) return clt_backend_lower_with(l, node, &choice);
    const clt_backend_row *first = clt_backend_next(node->op, NULL);
    return clt_fail(CLT_E_UNSUPPORTED, "no backend computes %s on %s%s%s%s%s%s", clt_node_name(node),
                    clt_device_get_info(l->device)->name,
                    clt_device_settings(l->device)->backends[0] ? " with CLTRAIN_BACKENDS as it is set" : "",
                    first ? "; " : "", first ? first->name : "", first ? ": " : "",
                    first ? clt_backend_refusal(first, node, l->device) : "");
}
