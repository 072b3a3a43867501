#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"

/* In order of precedence, least first. A new backend is one folder and one line here. */
static const clt_backend_row *const tables[] = {clt_reference_rows, clt_native_rows};

/* CLTRAIN_BACKENDS: names separated by commas. With a "-" before it, a backend is left out;
 * if any name has none, only those named are used. */
static bool allowed(const char *name) {
    const char *list = getenv("CLTRAIN_BACKENDS");
    size_t length = strlen(name);
    bool listed = false, only = false;
    for (const char *at = list; at && *at;) {
        size_t span = strcspn(at, ",");
        bool minus = at[0] == '-';
        bool same = span - minus == length && !strncmp(at + minus, name, length);
        if (minus && same) return false;
        if (!minus && span > 0) only = true;
        listed |= !minus && same;
        at += span + (at[span] == ',');
    }
    return listed || !only;
}

static bool fits(const clt_backend_row *row, const clt_tensor *node, clt_device *device) {
    for (int c = 0; c < CLT_CAP_COUNT_; c++)
        if (row->requires >> c & 1 && !clt_device_has(device, (clt_capability)c)) return false;
    return !row->supports || row->supports(node, device);
}

const clt_backend_row *clt_backend_choose(const clt_tensor *node, clt_device *device) {
    const clt_backend_row *chosen = NULL;
    for (size_t t = 0; t < CLT_COUNT_OF(tables); t++)
        for (const clt_backend_row *row = tables[t]; row->op; row++)
            if (row->op == node->op && allowed(row->name) && fits(row, node, device)) chosen = row;
    return chosen;
}

clt_status clt_backend_lower(clt_lowering *l, const clt_tensor *node) {
    const clt_backend_row *row = clt_backend_choose(node, l->device);
    if (!row)
        return clt_fail(CLT_E_UNSUPPORTED, "no backend computes %s on %s%s", clt_node_name(node),
                        clt_device_get_info(l->device)->name,
                        getenv("CLTRAIN_BACKENDS") ? " with CLTRAIN_BACKENDS as it is set" : "");
    l->node = node;
    row->lower(l, node);
    return l->status < 0 ? clt_fail_context(l->status, "%s: ", clt_node_name(node)) : CLT_OK;
}
