/* What the backend table refuses for all rows. */
#include "tests/support.h"

#include <string.h>

#include "backends/backend.h"

SUPPORT_DEVICE

/* Of each row: one tensor of the node has the type. */
static void storage_types(void **state) {
    (void)state;
    clt_graph *g;
    assert_ok(clt_graph_create(&g));
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(1, 4, 16, 16)), *y = clt_cumsum(clt_relu(x), 3); /* of which no row has another type */
    assert_ok(clt_graph_status(g));
    for (int which = 0; which < 2; which++) {
        clt_tensor *changed = which ? y : y->inputs[0];
        assert_non_null(clt_backend_choose(y, device).row);
        changed->dtype = CLT_BF16;
        assert_null(clt_backend_choose(y, device).row);
        for (const clt_backend_row *row = NULL; (row = clt_backend_next(y->op, row));) {
            const char *refusal = clt_backend_refusal(row, y, device);
            if (!refusal || !strstr(refusal, "storage type")) fail_msg("%s: %s", row->name, refusal ? refusal : "not refused");
        }
        changed->dtype = CLT_F32;
    }
    /* Rows that say so serve them. */
    clt_tensor *flat = clt_input(g, "flat", CLT_F32, CLT_SHAPE(CLT_PACK_ALIGN));
    clt_tensor *narrow = clt_narrow(flat, clt_input(g, "samples", CLT_F32, CLT_SHAPE(1)), CLT_BF16);
    assert_ok(clt_graph_status(g));
    assert_int_equal(narrow->dtype, CLT_BF16);
    assert_non_null(clt_backend_choose(narrow, device).row);
    clt_tensor *half = clt_softmax(clt_input(g, "half", CLT_F16, CLT_SHAPE(3, 5)), 1);
    assert_int_equal(half->dtype, CLT_F16);
    assert_non_null(clt_backend_choose(half, device).row);
    clt_graph_destroy(g);
}

/* So that tests over clt_ops are tests over the ops of all rows; and what must be compiled has a row. */
static void rows_are_of_listed_ops(void **state) {
    (void)state;
    int rows = 0;
    for (const clt_backend_row *row = NULL; (row = clt_backend_next(NULL, row)); rows++) {
        bool listed = false;
        for (int i = 0; clt_ops[i]; i++) listed |= clt_ops[i] == row->op;
        if (!listed) fail_msg("%s is of %s, which is not in clt_ops", row->name, row->op->name);
    }
    assert_true(rows > 50);
    for (int i = 0; clt_ops[i]; i++) {
        bool computes = !clt_ops[i]->is_collective && !clt_ops[i]->view_offset && clt_ops[i] != &clt_op_reshape;
        if (computes && !clt_backend_next(clt_ops[i], NULL)) fail_msg("no row computes %s", clt_ops[i]->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(storage_types), cmocka_unit_test(rows_are_of_listed_ops)};
    return cmocka_run_group_tests_name("table", tests, open_device, close_device);
}
