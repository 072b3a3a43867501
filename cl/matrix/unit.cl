/*
 * Matrix units: c[M, N] += a[M, K] b[K, N] by the lanes of one sub-group, fp32 sums. In front:
 *
 *   UNIT          UNIT_MMA     NVIDIA, mma.sync through inline PTX        tf32 f16 bf16
 *                 UNIT_DPAS8   Intel, sub-groups of 8 (Arc, Alchemist)         f16 bf16
 *                 UNIT_DPAS16  Intel, sub-groups of 16 (Max, Arc Battlemage) tf32 f16 bf16
 *                 UNIT_WMMA    AMD RDNA 3, waves of 32                         f16 bf16
 *                 UNIT_MFMA    AMD CDNA, waves of 64                           f16 bf16
 *   UNIT_FORMAT   UNIT_TF32, UNIT_F16, UNIT_BF16
 *   UNIT_EMULATED 1: the instruction in plain OpenCL C, by its definition, through local memory
 *
 * All of them take 8 words of a row of a and of a column of b at a time: a word is a tf32 or two
 * neighbours along k in 16 bits. Tiles in local memory are [row][word], b's by columns.
 *
 * Which lane holds what was taken from the vendors' documents: the PTX ISA (fragments of mma.m16n8k8
 * with tf32 and m16n8k16), the OpenCL extensions cl_intel_subgroup_matrix_multiply_accumulate and
 * …_tf32, AMD's guides to WMMA and to matrix cores. Run so far: the emulations alone. On hardware the
 * capability test (test.cl) runs this very text against plain sums before a row may use it.
 */
#define UNIT_MMA    1
#define UNIT_DPAS8  2
#define UNIT_DPAS16 3
#define UNIT_WMMA   4
#define UNIT_MFMA   5
#define UNIT_TF32   1
#define UNIT_F16    2
#define UNIT_BF16   3

#define UNIT_WORDS 8
#define UNIT_K     (UNIT_FORMAT == UNIT_TF32 ? 8 : 16)

/* Lanes, rows, columns; words of a and b, sums, that a lane holds. */
#if UNIT == UNIT_MMA
#define UNIT_LANES 32
#define UNIT_M     16
#define UNIT_N     8
#define UNIT_A     4
#define UNIT_B     2
#define UNIT_C     4
#elif UNIT == UNIT_DPAS8
#define UNIT_LANES 8
#define UNIT_M     8
#define UNIT_N     8
#define UNIT_A     8
#define UNIT_B     8
#define UNIT_C     8
#elif UNIT == UNIT_DPAS16
#define UNIT_LANES 16
#define UNIT_M     8
#define UNIT_N     16
#define UNIT_A     (UNIT_FORMAT == UNIT_TF32 ? 4 : 8)
#define UNIT_B     8
#define UNIT_C     8
#elif UNIT == UNIT_WMMA
#define UNIT_LANES 32
#define UNIT_M     16
#define UNIT_N     16
#define UNIT_A     8
#define UNIT_B     8
#define UNIT_C     8
#else
#define UNIT_LANES 64
#define UNIT_M     16
#define UNIT_N     16
#define UNIT_A     2
#define UNIT_B     2
#define UNIT_C     4
#endif

#if !UNIT_EMULATED && (UNIT == UNIT_DPAS8 || UNIT == UNIT_DPAS16)
#define UNIT_ATTRIBUTE __attribute__((intel_reqd_sub_group_size(UNIT_LANES)))
#else
#define UNIT_ATTRIBUTE
#endif

/* ---- rounding to the format, to nearest, ties to even; what is not a number stays so ---- */

#if UNIT_FORMAT != UNIT_F16
static uint unit_round(float x, int bits) {
    uint value = as_uint(x), kept = value >> bits & 1;
    if (x != x) return value | 0x400000;
    return (value + (1u << (bits - 1)) - 1 + kept) & ~((1u << bits) - 1);
}
#endif

/* Four neighbours along k into words. */
static void unit_pack(local uint *to, float4 x) {
#if UNIT_FORMAT == UNIT_TF32
    *(local uint4 *)to = (uint4)(unit_round(x.s0, 13), unit_round(x.s1, 13), unit_round(x.s2, 13),
                                 unit_round(x.s3, 13));
#elif UNIT_FORMAT == UNIT_BF16
    *(local uint2 *)to = (uint2)(unit_round(x.s0, 16) >> 16 | unit_round(x.s1, 16),
                                 unit_round(x.s2, 16) >> 16 | unit_round(x.s3, 16));
#else
    vstorea_half4_rte(x, 0, (local half *)to);
#endif
}

/* ---- what a lane holds ---- */

/* Word r of a that the lane holds, of a tile whose rows are `pitch` words. */
static uint unit_a(local const uint *tile, int pitch, int lane, int r) {
#if UNIT == UNIT_MMA
    return tile[(lane / 4 + r % 2 * 8) * pitch + lane % 4 + r / 2 * 4];
#elif UNIT == UNIT_DPAS8
    return tile[r * pitch + lane];
#elif UNIT == UNIT_DPAS16 && UNIT_FORMAT == UNIT_TF32
    return tile[(2 * r + lane / 8) * pitch + lane % 8];
#elif UNIT == UNIT_DPAS16
    return ((local const ushort *)tile)[r * pitch * 2 + lane];
#elif UNIT == UNIT_WMMA
    return tile[lane % 16 * pitch + r];
#else
    return tile[lane % 16 * pitch + lane / 16 * 2 + r];
#endif
}

/* Word r of b, whose tile is by columns. */
static uint unit_b(local const uint *tile, int pitch, int lane, int r) {
#if UNIT == UNIT_MMA
    return tile[lane / 4 * pitch + lane % 4 + r * 4];
#elif UNIT == UNIT_DPAS8 || UNIT == UNIT_DPAS16
    return tile[lane * pitch + r];
#elif UNIT == UNIT_WMMA
    return tile[lane % 16 * pitch + r];
#else
    return tile[lane % 16 * pitch + lane / 16 * 2 + r];
#endif
}

/* Row and column of the lane's sum r. */
static int2 unit_c(int lane, int r) {
#if UNIT == UNIT_MMA
    return (int2)(lane / 4 + r / 2 * 8, lane % 4 * 2 + r % 2);
#elif UNIT == UNIT_DPAS8 || UNIT == UNIT_DPAS16
    return (int2)(r, lane);
#elif UNIT == UNIT_WMMA
    return (int2)(2 * r + lane / 16, lane % 16);
#else
    return (int2)(lane / 16 * 4 + r, lane % 16);
#endif
}

/* ---- the instruction ---- */

#if UNIT_EMULATED
#define UNIT_EXCHANGE (UNIT_M * UNIT_K + UNIT_K * UNIT_N) /* floats of local memory for each sub-group */

/* Half `i` of a word, or the word. */
static float unit_value(uint word, int i) {
#if UNIT_FORMAT == UNIT_TF32
    return as_float(word & ~0x1fffu);
#elif UNIT_FORMAT == UNIT_BF16
    return as_float((i ? word >> 16 : word & 0xffff) << 16);
#else
    ushort bits = i ? word >> 16 : word & 0xffff;
    return vload_half(0, (const half *)&bits);
#endif
}

/* Where element i of the lane's part of a is in the matrix: row, k. Written from the documents and
 * not from unit_a, which it checks. */
static int2 unit_element_a(int lane, int i) {
#if UNIT == UNIT_MMA && UNIT_FORMAT == UNIT_TF32
    return (int2)(i == 0 || i == 2 ? lane >> 2 : (lane >> 2) + 8, i < 2 ? lane & 3 : (lane & 3) + 4);
#elif UNIT == UNIT_MMA
    return (int2)(i < 2 || (i >= 4 && i < 6) ? lane >> 2 : (lane >> 2) + 8,
                  (lane & 3) * 2 + (i & 1) + (i >= 4 ? 8 : 0));
#elif UNIT == UNIT_DPAS8
    return (int2)(i >> 1, 2 * lane + (i & 1)); /* component: row; each lane two of its 16 elements */
#elif UNIT == UNIT_DPAS16 && UNIT_FORMAT == UNIT_TF32
    return (int2)(lane < 8 ? 2 * i : 2 * i + 1, lane & 7); /* first lanes even rows, last ones odd */
#elif UNIT == UNIT_DPAS16
    return (int2)(i, lane);
#elif UNIT == UNIT_WMMA
    return (int2)(lane & 15, i);
#else
    return (int2)(lane & 15, 4 * (lane >> 4) + i);
#endif
}

/* Of b: k, column. */
static int2 unit_element_b(int lane, int i) {
#if UNIT == UNIT_MMA && UNIT_FORMAT == UNIT_TF32
    return (int2)(i == 0 ? lane & 3 : (lane & 3) + 4, lane >> 2);
#elif UNIT == UNIT_MMA
    return (int2)((lane & 3) * 2 + (i & 1) + (i >= 2 ? 8 : 0), lane >> 2);
#elif UNIT == UNIT_DPAS8 || UNIT == UNIT_DPAS16
    return (int2)(i, lane); /* a lane, a column */
#elif UNIT == UNIT_WMMA
    return (int2)(i, lane & 15);
#else
    return (int2)(4 * (lane >> 4) + i, lane & 15);
#endif
}

/* Of the sums: row, column. */
static int2 unit_element_c(int lane, int i) {
#if UNIT == UNIT_MMA
    return (int2)(i < 2 ? lane >> 2 : (lane >> 2) + 8, (lane & 3) * 2 + (i & 1));
#elif UNIT == UNIT_DPAS8 || UNIT == UNIT_DPAS16
    return (int2)(i, lane);
#elif UNIT == UNIT_WMMA
    return (int2)((i << 1) + (lane > 15), lane & 15);
#else
    return (int2)((lane >> 4 << 2) + i, lane & 15);
#endif
}

static void unit_multiply(const uint *a, const uint *b, float *c, int lane, local float *exchange) {
    const int in_word_b = UNIT_K / UNIT_WORDS, in_word = UNIT == UNIT_DPAS16 ? 1 : in_word_b;
    local float *all_a = exchange, *all_b = exchange + UNIT_M * UNIT_K;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < UNIT_A * in_word; i++) {
        int2 at = unit_element_a(lane, i);
        /* RDNA 3 wants all twice, in the lower and the upper lanes: each gives half of it here. */
        if (UNIT == UNIT_WMMA ? i % 2 == lane / 16 : true)
            all_a[at.s0 * UNIT_K + at.s1] = unit_value(a[i / in_word], i % in_word);
    }
    for (int i = 0; i < UNIT_B * in_word_b; i++) {
        int2 at = unit_element_b(lane, i);
        if (UNIT == UNIT_WMMA ? i % 2 == lane / 16 : true)
            all_b[at.s0 * UNIT_N + at.s1] = unit_value(b[i / in_word_b], i % in_word_b);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < UNIT_C; i++) {
        int2 at = unit_element_c(lane, i);
        for (int k = 0; k < UNIT_K; k++) c[i] += all_a[at.s0 * UNIT_K + k] * all_b[k * UNIT_N + at.s1];
    }
}

#else /* the instruction itself */
#define UNIT_EXCHANGE 1

#if UNIT == UNIT_MMA
#if !defined(__NV_CL_C_VERSION) && !defined(__NVPTX__)
#error PTX is for NVIDIA
#endif
#if UNIT_FORMAT == UNIT_TF32
#define UNIT_PTX "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#elif UNIT_FORMAT == UNIT_F16
#define UNIT_PTX "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#else
#define UNIT_PTX "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#endif
#elif UNIT == UNIT_DPAS8 || UNIT == UNIT_DPAS16
#ifndef cl_intel_subgroup_matrix_multiply_accumulate
#error matrix_mad is for Intel
#endif
#if UNIT_FORMAT == UNIT_F16
#define unit_mad intel_sub_group_f16_f16_matrix_mad_k16
#else
#define unit_mad intel_sub_group_bf16_bf16_matrix_mad_k16
#endif
#else
#ifndef __AMDGCN__
#error wmma and mfma are for AMD
#endif
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

#define UNIT_EIGHT(x) (x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7])
#define UNIT_UNPACK8(c, v) \
    c[0] = v.s0, c[1] = v.s1, c[2] = v.s2, c[3] = v.s3, c[4] = v.s4, c[5] = v.s5, c[6] = v.s6, c[7] = v.s7

static void unit_multiply(const uint *a, const uint *b, float *c, int lane, local float *exchange) {
#if UNIT == UNIT_MMA
    __asm__ volatile(UNIT_PTX " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif UNIT == UNIT_DPAS8
    float8 sum = unit_mad(as_int8((uint8)UNIT_EIGHT(a)), as_int8((uint8)UNIT_EIGHT(b)), (float8)UNIT_EIGHT(c));
    UNIT_UNPACK8(c, sum);
#elif UNIT == UNIT_DPAS16 && UNIT_FORMAT == UNIT_TF32
    float8 sum = intel_sub_group_tf32_tf32_matrix_mad_k8(as_float4((uint4)(a[0], a[1], a[2], a[3])),
                                                         as_float8((uint8)UNIT_EIGHT(b)), (float8)UNIT_EIGHT(c));
    UNIT_UNPACK8(c, sum);
#elif UNIT == UNIT_DPAS16
    float8 sum = unit_mad(convert_short8(as_int8((uint8)UNIT_EIGHT(a)) << 16 >> 16), as_int8((uint8)UNIT_EIGHT(b)),
                          (float8)UNIT_EIGHT(c));
    UNIT_UNPACK8(c, sum);
#elif UNIT == UNIT_WMMA && UNIT_FORMAT == UNIT_F16
    float8 sum = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(as_half16((uint8)UNIT_EIGHT(a)),
                                                            as_half16((uint8)UNIT_EIGHT(b)), (float8)UNIT_EIGHT(c));
    UNIT_UNPACK8(c, sum);
#elif UNIT == UNIT_WMMA
    float8 sum = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(as_short16((uint8)UNIT_EIGHT(a)),
                                                             as_short16((uint8)UNIT_EIGHT(b)), (float8)UNIT_EIGHT(c));
    UNIT_UNPACK8(c, sum);
#else
    float4 sum = (float4)(c[0], c[1], c[2], c[3]);
#if UNIT_FORMAT == UNIT_F16
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(as_half4((uint2)(a[0], a[1])), as_half4((uint2)(b[0], b[1])), sum, 0,
                                                0, 0);
#else
    sum = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(as_short4((uint2)(a[0], a[1])), as_short4((uint2)(b[0], b[1])),
                                                    sum, 0, 0, 0);
#endif
    c[0] = sum.s0, c[1] = sum.s1, c[2] = sum.s2, c[3] = sum.s3;
#endif
}
#endif
