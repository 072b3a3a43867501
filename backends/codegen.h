/*
 * Code for pointwise values: from forms (runtime/ops/ops.h) to OpenCL C. The same code serves kernels of their
 * own and the epilogues of contractions.
 */
#ifndef CLT_BACKENDS_CODEGEN_H
#define CLT_BACKENDS_CODEGEN_H

#include "backends/backend.h"

enum { CLT_CODE_READS = 16 };

/* One way in which an input is read: element (i0, i1, …) of the loop reads input[offset + sum i_d stride_d]. */
typedef struct clt_code_read {
    int input;
    int64_t offset, stride[CLT_MAX_RANK];
} clt_code_read;

/* A loop over the elements of a result as they lie in memory, dimensions merged as far as all reads allow. */
typedef struct clt_code {
    clt_fused fused;
    int rank;
    int64_t size[CLT_MAX_RANK]; /* outermost first; rank is at least 1 */
    clt_code_read reads[CLT_CODE_READS];
    int n_reads;
    int read_of[CLT_FUSED_STAGES][CLT_FORM_OPERANDS]; /* -1: an earlier stage */
    bool large; /* places take 64 bits: the result or an input has 2^31 elements or more */
} clt_code;

/* False if the node has no form, or one that reads too much. */
bool clt_code_of(const clt_tensor *node, bool training, clt_code *code);

/* The same of a chain alone, with a contiguous result. */
bool clt_code_of_chain(const clt_fused *chain, clt_tensor *const *inputs, clt_code *code);

/* Two types of a value: as it is stored, which the accessors of cl/prelude.cl read and write ("half"), and as it is computed with ("float"). */
const char *clt_code_storage_type(clt_dtype dtype);
const char *clt_code_type(clt_dtype dtype);
/* What counts elements: "int" or "long". Vectors of it have their width behind. */
const char *clt_code_index_type(const clt_code *code);

/* How a read goes through dimension `d` of the loop, counted from the innermost. */
int64_t clt_code_stride(const clt_code *code, int read, int d);
/* True if element e of the result reads element e. */
bool clt_code_is_same(const clt_code *code, int read);

/* ", global const float *x0, global const float *x1 …" without the first comma, and what goes with it. */
void clt_code_input_parameters(clt_text *text, const clt_code *code, const clt_tensor *node);
void clt_launch_code_inputs(clt_lowering *l, const clt_code *code, const clt_tensor *node);
/* ", float c0_0 …": the scalars that the stages use. */
void clt_code_scalar_parameters(clt_text *text, const clt_fused *fused);
void clt_launch_code_scalars(clt_lowering *l, const clt_fused *fused);
/* "float r0_ = x0[`index`];" for each read; `index` writes the place of a read. */
typedef void clt_code_index(clt_text *text, const clt_code *code, int read);
void clt_code_loads(clt_text *text, const clt_code *code, const clt_tensor *node, clt_code_index *index);
/* The stages, over r0_ …; gives the last value. Earlier ones are rounded to their storage types, so that fusing nodes changes no bits; the
 * last is by clt_code_store, or clt_code_round. */
enum { CLT_CODE_VALUE = 40 };
void clt_code_stages(clt_text *text, const clt_code *code, const clt_tensor *node, char value[CLT_CODE_VALUE]);
void clt_code_round(clt_dtype dtype, char value[CLT_CODE_VALUE]);

/* "y_[i_] = v3_;" */
void clt_code_store(clt_text *text, clt_dtype dtype, const char *pointer, const char *index, const char *value);

/* Begins the launch of a kernel whose text after its name, which is made of that, is `body`; `before` stands in front.
 * Frees `body`. False if it failed. */
bool clt_code_begin(clt_lowering *l, const clt_code *code, const char *before, clt_text *body, int64_t count, int group);
/* A vector of 8 of the index type, of the loop's dimensions, the innermost last. */
void clt_launch_code_vector(clt_lowering *l, const clt_code *code, const int64_t *values);

/* ---- epilogues ---- */

/* Whether the fused stages can be the epilogue of `node`, a contraction whose results have a channel: in each
 * element's place, the channel's or the only one. `halves`: for a row that serves any_epilogue. */
bool clt_epilogue_possible(const clt_tensor *node, const clt_fused *fused, clt_tensor *const *inputs, bool halves);

/*
 * Defines, for a kernel that computes `node`, which has an epilogue,
 *   CLT_EPILOGUE_PARAMETERS               parameters to be put after its own, with a comma in front
 *   CLT_EPILOGUE_ARGUMENTS                what hands them on to a function
 *   CLT_EPILOGUE(value, index, channel)   what to store for `value` at element `index`, as it lies in memory; in CLT_RESULT
 *   CLT_EPILOGUE_ROUNDED                  the same of a value that has been rounded to the node's own type
 *   CLT_EPILOGUE_TYPE                     that type: f32, f16 or bf16
 * Kernels define the first two empty and the third as the value where there is none.
 */
void clt_epilogue_define(clt_text *text, const clt_tensor *node);
/* Appends the epilogue's arguments; nothing if the node has none. */
void clt_launch_epilogue(clt_lowering *l, const clt_tensor *node);

#endif
