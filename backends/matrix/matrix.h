/*
 * Products by matrix units: the contractions of backends/native/gpu, with operands rounded to tf32,
 * f16 or bf16 and fp32 sums. Since that loses bits of f32 tensors, rows serve only if
 * CLTRAIN_MATMUL_PRECISION in the environment names their format, and if a test of the unit on the
 * device (cl/matrix/test.cl) gave the right sums.
 */
#ifndef CLT_BACKENDS_MATRIX_MATRIX_H
#define CLT_BACKENDS_MATRIX_MATRIX_H

#include "backends/native/gpu/gpu.h"

typedef struct clt_matrix_unit {
    const char *name, *format; /* as in cl/matrix/unit.cl: "UNIT_MMA", "UNIT_TF32" */
    const char *precision;     /* in CLTRAIN_MATMUL_PRECISION */
    clt_capability capability;
    int lanes, m, n;           /* of the unit */
    int words_bytes;           /* of an element of its format */
} clt_matrix_unit;

extern const clt_matrix_unit clt_matrix_units[];
extern const int clt_matrix_n_units;

/* CLT_E_INVALID where CLTRAIN_MATMUL_PRECISION is no precision. */
clt_status clt_matrix_check_precision(void);

/* tile_m, tile_n, warps_m, warps_n, vector, splits */
extern const clt_tunable clt_matrix_tunables[];

void clt_matrix_guess(const clt_gpu_contraction *x, const clt_matrix_unit *unit, const clt_device *device,
                      int *parameters);
bool clt_matrix_can(const clt_device *device, const clt_matrix_unit *unit, const int *parameters);
bool clt_matrix_valid(const clt_tensor *node, const clt_device *device, const clt_matrix_unit *unit,
                      const int *parameters);
bool clt_matrix_supports(const clt_tensor *node, const clt_device *device, const clt_matrix_unit *unit);
/* emulated: the unit's instruction in plain OpenCL C, for tests of all else. */
void clt_matrix_lower(clt_lowering *l, const clt_tensor *node, const clt_matrix_unit *unit, bool emulated);

#endif
