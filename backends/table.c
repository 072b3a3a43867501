#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/matrix/matrix.h"
#include "backends/tune/tune.h"

/* In order of precedence, least first. A new backend is one folder and one line here. */
static const clt_backend_row *const tables[] = {clt_reference_rows, clt_native_rows, clt_matrix_rows,
                                                clt_clblast_rows,   clt_clfft_rows};
const clt_backend_row *clt_backend_more_rows;

static bool all_contiguous(const clt_tensor *node) {
    bool all = clt_tensor_contiguous(node);
    for (int i = 0; i < node->n_inputs; i++) all &= clt_tensor_contiguous(node->inputs[i]);
    return all;
}

bool clt_backend_allowed(const clt_backend_row *row) {
    return clt_list_allows(getenv("CLTRAIN_BACKENDS"), row->name);
}

const char *clt_backend_refusal(const clt_backend_row *row, const clt_tensor *node, clt_device *device) {
    if (!clt_backend_allowed(row)) return "masked by CLTRAIN_BACKENDS";
    if (!row->any_layout && !all_contiguous(node)) return "the layout of a tensor";
    if (!row->epilogue && node->epilogue) return "no epilogues";
    if (row->supports && !row->supports(node, device)) return "does not support this problem here";
    for (int c = 0; c < CLT_CAP_COUNT_; c++) /* last, for they may take a kernel build */
        if (row->requires >> c & 1 && !clt_device_has(device, (clt_capability)c)) return "a capability is missing";
    return NULL;
}

bool clt_backend_fits(const clt_backend_row *row, const clt_tensor *node, clt_device *device) {
    return !clt_backend_refusal(row, node, device);
}

bool clt_backend_is_named(const char *name) {
    return clt_list_names(getenv("CLTRAIN_BACKENDS"), name);
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

static bool is_one_of(const char *name, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

clt_status clt_backend_check_environment(void) {
    enum { MOST = 32 };
    const char *names[MOST], *list = getenv("CLTRAIN_BACKENDS");
    size_t n = 0;
    for (const clt_backend_row *r = list ? clt_backend_next(NULL, NULL) : NULL; r && n < MOST; r = clt_backend_next(NULL, r))
        if (!is_one_of(r->name, names, n)) names[n++] = r->name;
    CLT_TRY(clt_list_check("CLTRAIN_BACKENDS", list, true, names, n));
    CLT_TRY(clt_tune_check_mode());
    return clt_matrix_check_precision();
}

void clt_backend_defaults(const clt_backend_row *row, const clt_tensor *node, const clt_device *device,
                          int *parameters) {
    for (int i = 0; row->tunables && row->tunables[i].name; i++) parameters[i] = row->tunables[i].values[0];
    if (row->defaults) row->defaults(node, device, parameters);
}

clt_choice clt_backend_choose(const clt_tensor *node, clt_device *device) {
    return clt_tune_choose(node, device, NULL);
}

clt_status clt_backend_lower_with(clt_lowering *l, const clt_tensor *node, const clt_choice *choice) {
    l->node = node;
    l->row = choice->row->name;
    memcpy(l->parameters, choice->parameters, sizeof l->parameters);
    choice->row->lower(l, node);
    return l->status < 0 ? clt_fail_context(l->status, "%s: ", clt_node_name(node)) : CLT_OK;
}

clt_status clt_backend_lower(clt_lowering *l, const clt_tensor *node) {
    clt_choice choice = clt_backend_choose(node, l->device);
    if (choice.row) return clt_backend_lower_with(l, node, &choice);
    return clt_fail(CLT_E_UNSUPPORTED, "no backend computes %s on %s%s", clt_node_name(node),
                    clt_device_get_info(l->device)->name,
                    getenv("CLTRAIN_BACKENDS") ? " with CLTRAIN_BACKENDS as it is set" : "");
}
