/*
 * What the native kernels share: the register tile, CPU_ROWS x CPU_COLUMNS
 * accumulators in vectors of CPU_WIDTH floats, two a row. In each step of a sum a row's
 * value is broadcast and multiplied by the step's two vectors: 2 CPU_ROWS fused
 * multiply-adds for CPU_ROWS + 2 loads, all in registers.
 *
 * CPU_WIDTH and CPU_ROWS are defined in front of this text.
 */
#ifndef CPU_TILE
#define CPU_TILE

#define CPU_PASTE_(a, b) a##b
#define CPU_PASTE(a, b)  CPU_PASTE_(a, b)
#define cpu_vector       CPU_PASTE(float, CPU_WIDTH)
#define cpu_ints         CPU_PASTE(int, CPU_WIDTH)
#define cpu_as_ints      CPU_PASTE(as_int, CPU_WIDTH)
#define cpu_as_vector    CPU_PASTE(as_float, CPU_WIDTH)
#define cpu_load         CPU_PASTE(vload, CPU_WIDTH)
#define cpu_store        CPU_PASTE(vstore, CPU_WIDTH)
#define CPU_COLUMNS      (2 * CPU_WIDTH)

/* The sum of a vector's lanes. */
static float cpu_lanes(cpu_vector v) {
#if CPU_WIDTH == 16
    float8 eight = v.lo + v.hi;
    float4 four = eight.lo + eight.hi;
#elif CPU_WIDTH == 8
    float4 four = v.lo + v.hi;
#else
    float4 four = v;
#endif
    return (four.s0 + four.s2) + (four.s1 + four.s3);
}

/* The largest of a vector's lanes; of NaNs, the others. */
static float cpu_lanes_max(cpu_vector v) {
#if CPU_WIDTH == 16
    float8 eight = fmax(v.lo, v.hi);
    float4 four = fmax(eight.lo, eight.hi);
#elif CPU_WIDTH == 8
    float4 four = fmax(v.lo, v.hi);
#else
    float4 four = v;
#endif
    return fmax(fmax(four.s0, four.s2), fmax(four.s1, four.s3));
}

/* clt_exp2_below of each lane, of x in units of e: exp(x) of x up to 0. */
static cpu_vector cpu_exp_below(cpu_vector x) {
    x *= 1.44269504f;
    cpu_vector whole = x + 12582912.0f, f = x - (whole - 12582912.0f);
    cpu_vector y = CLT_EXP2_OF_PART(f);
    cpu_ints power = (cpu_as_ints(whole) << 23) + 0x3f800000;
    return select(y * cpu_as_vector(power), (cpu_vector)(0), x < -126.0f);
}

/* clt_round_f16 and clt_round_bf16 of each lane. */
#define cpu_round_f32(x) (x)
static cpu_vector cpu_round_bf16(cpu_vector x) {
    cpu_ints bits = cpu_as_ints(x), rounded = bits + 0x7fff + (bits >> 16 & 1);
    return cpu_as_vector(select(rounded, bits | 0x400000, isnan(x)) & (int)0xffff0000);
}
static cpu_vector cpu_round_f16(cpu_vector x) {
    cpu_ints bits = cpu_as_ints(x), size = bits & 0x7fffffff, rounded = (size + 0xfff + (size >> 13 & 1)) & ~0x1fff;
    rounded = select(rounded, cpu_as_ints(cpu_as_vector(size) + 0.5f - 0.5f), size < 0x38800000);
    rounded = select(rounded, (cpu_ints)(0x7f800000), rounded > 0x477fe000);
    return select(cpu_as_vector(rounded | (bits & (int)0x80000000)), x, isnan(x));
}

/* What is done to results before they are stored, where the host says something (backends/codegen.h): `value` is
 * elements `at` and after of the result, of channels `ch` and after; `there` of them exist. */
#ifdef CLT_EPILOGUE_TYPE
static cpu_vector cpu_epilogue(cpu_vector value, int at, int ch, int there CLT_EPILOGUE_PARAMETERS) {
    float values[CPU_WIDTH];
    cpu_store(CLT_JOIN(cpu_round_, CLT_EPILOGUE_TYPE)(value), 0, values);
    if (there >= CPU_WIDTH)
        for (int j = 0; j < CPU_WIDTH; j++) values[j] = CLT_EPILOGUE_ROUNDED(values[j], at + j, ch + j);
    else
        for (int j = 0; j < there; j++) values[j] = CLT_EPILOGUE_ROUNDED(values[j], at + j, ch + j);
    return cpu_load(0, values);
}
#else
#define cpu_epilogue(value, at, ch, there) (value)
#endif

/* Results of a matrix product leave here: c[at], c[at + 1] .. of columns `column` ..; `there` of them exist, at least
 * one. */
static void cpu_finish(global CLT_RESULT_REAL *c, int at, int column, cpu_vector value, int there CLT_EPILOGUE_PARAMETERS) {
    value = cpu_epilogue(value, at, column, there CLT_EPILOGUE_ARGUMENTS);
    if (there >= CPU_WIDTH) {
        CLT_STORE_RESULT_VECTOR(CPU_WIDTH, c, at, value);
        return;
    }
    float values[CPU_WIDTH];
    cpu_store(value, 0, values);
    for (int j = 0; j < there; j++) CLT_STORE_RESULT(c, at + j, values[j]);
}

/* Steps of a sum whose vectors are packed at a time, so that they stay in the first cache: 16 KiB. */
#define CPU_DEPTH (4096 / CPU_COLUMNS)

/* sum[i] += value(i) {left, right} for all rows; an expression that devices with it fuse. */
#define CPU_STEP(sum, value, left, right)                                                            \
    _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {                                           \
        cpu_vector broadcast = (cpu_vector)(value);                                               \
        sum[i][0] = broadcast * (left) + sum[i][0];                                                     \
        sum[i][1] = broadcast * (right) + sum[i][1];                                                    \
    }

#define CPU_CLEAR(sum)                                                                               \
    _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) sum[i][0] = sum[i][1] = (cpu_vector)(0)

/* Transposes 8 x 8 floats. */
#define CPU_PAIRS_LOW(a, b)  (float8)(a.s0, b.s0, a.s1, b.s1, a.s4, b.s4, a.s5, b.s5)
#define CPU_PAIRS_HIGH(a, b) (float8)(a.s2, b.s2, a.s3, b.s3, a.s6, b.s6, a.s7, b.s7)
#define CPU_FOURS_LOW(a, b)  (float8)(a.s01, b.s01, a.s45, b.s45)
#define CPU_FOURS_HIGH(a, b) (float8)(a.s23, b.s23, a.s67, b.s67)
static void cpu_transpose(float8 r[8]) {
    float8 a0 = CPU_PAIRS_LOW(r[0], r[1]), a1 = CPU_PAIRS_HIGH(r[0], r[1]);
    float8 a2 = CPU_PAIRS_LOW(r[2], r[3]), a3 = CPU_PAIRS_HIGH(r[2], r[3]);
    float8 a4 = CPU_PAIRS_LOW(r[4], r[5]), a5 = CPU_PAIRS_HIGH(r[4], r[5]);
    float8 a6 = CPU_PAIRS_LOW(r[6], r[7]), a7 = CPU_PAIRS_HIGH(r[6], r[7]);
    float8 b0 = CPU_FOURS_LOW(a0, a2), b1 = CPU_FOURS_HIGH(a0, a2);
    float8 b2 = CPU_FOURS_LOW(a1, a3), b3 = CPU_FOURS_HIGH(a1, a3);
    float8 b4 = CPU_FOURS_LOW(a4, a6), b5 = CPU_FOURS_HIGH(a4, a6);
    float8 b6 = CPU_FOURS_LOW(a5, a7), b7 = CPU_FOURS_HIGH(a5, a7);
    r[0] = (float8)(b0.lo, b4.lo);
    r[1] = (float8)(b1.lo, b5.lo);
    r[2] = (float8)(b2.lo, b6.lo);
    r[3] = (float8)(b3.lo, b7.lo);
    r[4] = (float8)(b0.hi, b4.hi);
    r[5] = (float8)(b1.hi, b5.hi);
    r[6] = (float8)(b2.hi, b6.hi);
    r[7] = (float8)(b3.hi, b7.hi);
}

/*
 * to[p to_step + c] = from[c plane + p] for channels c and places p, 8 x 8 at a time; those at the
 * end that are fewer than 8 are reached by going over some again.
 */
static void cpu_interleave(global const CLT_REAL *from, int plane, int channels, int places,
                              global float *to, int to_step) {
    int c = 0;
    for (; places >= 8 && c + 8 <= channels; c += 8)
        for (int at = 0; at < places; at += 8) {
            int p = min(at, places - 8);
            float8 r[8];
            _Pragma("unroll") for (int i = 0; i < 8; i++) r[i] = CLT_LOAD_VECTOR(8, from, (c + i) * plane + p);
            cpu_transpose(r);
            _Pragma("unroll") for (int i = 0; i < 8; i++) vstore8(r[i], 0, to + (p + i) * to_step + c);
        }
    for (int p = 0; p < places; p++)
        for (int k = c; k < channels; k++) to[p * to_step + k] = CLT_LOAD(from, k * plane + p);
}

#endif
