/*
 * Products by matrix units: the contractions of backends/native/gpu, with operands rounded to tf32,
 * f16 or bf16 and fp32 sums. Since that loses bits of f32 tensors, rows serve only if
 * the setting matmul_precision names their format, and if a test of the unit on the
 * device (cl/matrix/test.cl) gave the right sums.
 */
#ifndef CLT_BACKENDS_MATRIX_MATRIX_H
#define CLT_BACKENDS_MATRIX_MATRIX_H

#include "backends/native/gpu/gpu.h"

typedef struct clt_matrix_unit {
    const char *name, *format; /* as in cl/matrix/unit.cl: "UNIT_MMA", "UNIT_TF32" */
    const char *precision;     /* in the setting matmul_precision */
    clt_capability capability;
    int lanes, m, n;           /* of the unit */
    int words_bytes;           /* of an element of its format */
    bool emulated;             /* its instruction in plain OpenCL C, for tests of all else */
} clt_matrix_unit;

extern const clt_matrix_unit clt_matrix_units[];
extern const int clt_matrix_n_units;

/* tile_m, tile_n, warps_m, warps_n, vector, splits */
extern const clt_tunable clt_matrix_tunables[];

void clt_matrix_guess(const clt_gpu_contraction *x, const clt_matrix_unit *unit, const clt_device *device,
                      int *parameters);
bool clt_matrix_can(const clt_device *device, const clt_matrix_unit *unit, const int *parameters);

/* The rows' functions, for all four ops; a row's data is its unit. */
bool clt_matrix_supports(const clt_candidate *c);
void clt_matrix_defaults(const clt_candidate *c, int *parameters);
bool clt_matrix_valid(const clt_candidate *c, const int *parameters);
void clt_matrix_lower(clt_lowering *l, const clt_tensor *node);

#endif
