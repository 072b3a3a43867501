/*
 * The reference backend's lowerings, a file an op or family of ops.
 */
#ifndef CLT_BACKENDS_REFERENCE_H
#define CLT_BACKENDS_REFERENCE_H

#include "backends/backend.h"
#include "backends/copies.h"

/* Work-items in a group of the reference kernels. Those with local memory size it by this. */
enum { CLT_REFERENCE_GROUP = 64 };

/* How a row of this backend begins. */
#define CLT_REFERENCE(op_suffix) .op = &clt_op_##op_suffix, .name = "reference"

/* Whether the loops of a work-item may make so many rounds on the device; more are for backends/workgroup. */
bool clt_reference_may_loop(const clt_candidate *c, int64_t rounds);

/* Of kernels that compute element `i_` of a chain (pointwise.c): parameters, with commas in front; the values of its
 * reads; and the arguments. */
struct clt_code;
void clt_reference_element_parameters(clt_text *text, const struct clt_code *code);
void clt_reference_element_loads(clt_text *text, const struct clt_code *code, const clt_tensor *node);
void clt_reference_element_arguments(clt_lowering *l, const struct clt_code *code);

/* Kernels of CLT_FLOATS (cl/prelude.cl), `width` elements each: 1, or 4, by which what is flat, or a row of the table, can be divided. */
void clt_reference_lower_flat(clt_lowering *l, const clt_tensor *node, int width); /* accumulate, clear_if_skipped, average, sgd and adam */
void clt_reference_lower_embedding(clt_lowering *l, const clt_tensor *node, int width);

/* Adds to a metric_correct's state how many of the rows have a zero in the scratch memory `wrong`, of i32. */
void clt_reference_metric_count(clt_lowering *l, const clt_tensor *node, int wrong, int64_t rows);

/* Statistics of batch normalization in evaluation: those that training left. */
void clt_reference_running_stats(clt_lowering *l, const clt_tensor *node);

void clt_reference_copy(clt_lowering *l, const clt_tensor *x, const clt_tensor *y, const clt_copy *copy);
/* Sets all elements of y, of floats. */
void clt_reference_fill(clt_lowering *l, const clt_tensor *y, float value);

#endif
