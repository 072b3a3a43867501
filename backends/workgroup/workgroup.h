/*
 * The workgroup backend: sums along long rows by work-groups, for any device: one for each row, or for each chunk of a row
 * that is too long for the loops of one (cl/prelude.cl). The plain rows of backends/reference have a work-item a row.
 */
#ifndef CLT_BACKENDS_WORKGROUP_H
#define CLT_BACKENDS_WORKGROUP_H

#include "backends/backend.h"

/* Work-items in a group. */
enum { CLT_WORKGROUP_ITEMS = 64 };

/* How a row of this backend begins. */
#define CLT_WORKGROUP(op_suffix) .op = &clt_op_##op_suffix, .name = "workgroup"

#endif
