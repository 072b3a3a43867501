#include "runtime/ops/ops.h"

const clt_op *const clt_ops[] = {
#define OP(name) &clt_op_##name,
#include "runtime/ops/list.inc"
#undef OP
    NULL,
};
