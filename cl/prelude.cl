/*
 * In front of every program: what the kernels share.
 *
 * Loops stay short: all loops of a work-item together make well under 65535 rounds, for there
 * llvmpipe leaves them without a word, and a watchdog may stop a kernel that runs for
 * seconds. Longer sums are split over work-items or launches. Kernels of native/cpu may make more: they
 * serve CPUs that tell of vectors (clt_cpu_fits), and for llvmpipe rusticl tells of none.
 */

/* Most work-items in a group of a kernel that uses the helpers below. The device may give fewer. */
#define CLT_GROUP 64

/* What is done to a result before it is stored; the host defines something else where a node has an epilogue, in front of a
 * program of its own (backends/codegen.h). */
#define CLT_EPILOGUE_PARAMETERS
#define CLT_EPILOGUE_ARGUMENTS
#define CLT_EPILOGUE(value, index, ch) (value)

/*
 * Storage types. A tensor of floats is stored as f32, f16 or bf16; what is computed with its elements is float. The type is a token in the
 * names of the accessors, which work in any address space; `p` need only be aligned to an element:
 *
 *     clt_f16                          the type that a kernel's parameter points to
 *     clt_load_f16(p, i)               element i of p
 *     clt_store_f16(p, i, x)           the same = x, rounded to the nearest, ties to even; NaN stays NaN
 *     clt_load_vector_f16(8, p, i)     elements i to i + 7, a float8; so for 2, 4 and 16
 *     clt_store_vector_f16(8, p, i, x)
 *     clt_round_f16(x)                 what a load gives after a store
 *
 * A kernel that serves all storage types uses the accessors without a token, of the type CLT_STORAGE; where its result may be of another type than its
 * operands, those of CLT_RESULT for that. What counts elements of tensors is a CLT_INDEX, and a CLT_INDEX_VECTOR(4). The host defines another type than f32, and long for tensors of 2^31 elements and more, in front of
 * a program of its own (clt_launch_begin_typed). Halves are read and written by built-in functions, which need no cl_khr_fp16.
 *
 * Where all that a kernel does with floats it does with each element alone, they are CLT_FLOATS: a float, or four of them in the rows for GPU-class devices,
 * or eight in those for CPUs (clt_launch_begin_floats); CLT_STORE_FLOATS stores what lies at the same place as CLT_STORAGE.
 */
#ifndef CLT_STORAGE
#define CLT_STORAGE f32
#endif
#ifndef CLT_RESULT
#define CLT_RESULT CLT_STORAGE
#endif
#ifndef CLT_INDEX
#define CLT_INDEX int
#endif
#ifndef CLT_FLOATS
#define CLT_FLOATS float
#define CLT_STORE_FLOATS(p, i, x) CLT_STORE(p, i, x)
#endif
#define CLT_INDEX_VECTOR(n) CLT_JOIN(CLT_INDEX, n)
#define CLT_JOIN(a, b) CLT_JOIN_(a, b)
#define CLT_JOIN_(a, b) a##b
#define CLT_REAL CLT_JOIN(clt_, CLT_STORAGE)
#define CLT_LOAD(p, i) CLT_JOIN(clt_load_, CLT_STORAGE)(p, i)
#define CLT_STORE(p, i, x) CLT_JOIN(clt_store_, CLT_STORAGE)(p, i, x)
#define CLT_LOAD_VECTOR(n, p, i) CLT_JOIN(clt_load_vector_, CLT_STORAGE)(n, p, i)
#define CLT_STORE_VECTOR(n, p, i, x) CLT_JOIN(clt_store_vector_, CLT_STORAGE)(n, p, i, x)

#define CLT_RESULT_REAL CLT_JOIN(clt_, CLT_RESULT)
#define CLT_STORE_RESULT(p, i, x) CLT_JOIN(clt_store_, CLT_RESULT)(p, i, x)
#define CLT_STORE_RESULT_VECTOR(n, p, i, x) CLT_JOIN(clt_store_vector_, CLT_RESULT)(n, p, i, x)

#define clt_f32 float
#define clt_load_f32(p, i) (p)[i]
#define clt_store_f32(p, i, x) ((p)[i] = (x))
#define clt_load_vector_f32(n, p, i) vload##n(0, (p) + (i))
#define clt_store_vector_f32(n, p, i, x) vstore##n(x, 0, (p) + (i))
#define clt_round_f32(x) (x)

#define clt_f16 half
#define clt_load_f16(p, i) vload_half(i, p)
#define clt_store_f16(p, i, x) vstore_half_rte(x, i, p)
#define clt_load_vector_f16(n, p, i) vload_half##n(0, (p) + (i))
#define clt_store_vector_f16(n, p, i, x) vstore_half##n##_rte(x, 0, (p) + (i))

#define clt_bf16 ushort
#define clt_load_bf16(p, i) as_float((uint)(p)[i] << 16)
#define clt_store_bf16(p, i, x) ((p)[i] = clt_to_bf16(x))
#define clt_load_vector_bf16(n, p, i) as_float##n(convert_uint##n(vload##n(0, (p) + (i))) << 16)
#define clt_store_vector_bf16(n, p, i, x) vstore##n(clt_to_bf16_##n(x), 0, (p) + (i))
#define clt_round_bf16(x) as_float((uint)clt_to_bf16(x) << 16)

/* The upper half of the bits, to the nearest, ties to even; that could make infinity of a NaN, which is guarded. */
static ushort clt_to_bf16(float x) {
    uint bits = as_uint(x);
    return isnan(x) ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

#define CLT_TO_BF16(n)                                                          \
    static ushort##n clt_to_bf16_##n(float##n x) {                              \
        uint##n bits = as_uint##n(x);                                           \
        uint##n rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;             \
        return convert_ushort##n(select(rounded, bits >> 16 | 0x40, isnan(x))); \
    }
CLT_TO_BF16(2)
CLT_TO_BF16(4)
CLT_TO_BF16(8)
CLT_TO_BF16(16)

/* To 11 digits, or a multiple of 2^-24, the least that f16 has: its last place is that of numbers from 0.5 to 1. */
static float clt_round_f16(float x) {
    uint bits = as_uint(x), size = bits & 0x7fffffff, rounded = (size + 0xfff + (size >> 13 & 1)) & ~0x1fffu;
    if (isnan(x)) return x;
    if (size < 0x38800000) rounded = as_uint(as_float(size) + 0.5f - 0.5f); /* below 2^-14 */
    if (rounded > 0x477fe000) rounded = 0x7f800000;                        /* above 65504 */
    return as_float(rounded | (bits & 0x80000000));
}

/* 1 / samples: the factor that makes a mean of a sum over so many; 1 for none at all. */
static float clt_share(global const float *samples) {
    return samples[0] > 0 ? 1 / samples[0] : 1.0f;
}

/* What one work-item does, whose kernel only calls it: PoCL compiles a kernel three times over, inlined into all that
 * may start it, and what it calls once. Not for code that asks for its place in the group. */
#define CLT_ITEM __attribute__((noinline)) static

/* What all work-items of a group call together, with barriers. A kernel that calls it twice has it inlined by no
 * compiler of its own accord, and PoCL 3.1 then gives local memory of one name to all threads at once: two devices that
 * are opened in one process write into each other's sums. */
#define CLT_TOGETHER __attribute__((always_inline)) static

/* Philox4x32-10; Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011. */
static uint4 clt_philox(uint4 counter, uint2 key) {
    for (int round = 0; round < 10; round++) {
        uint low0 = 0xD2511F53u * counter.x, high0 = mul_hi(0xD2511F53u, counter.x);
        uint low2 = 0xCD9E8D57u * counter.z, high2 = mul_hi(0xCD9E8D57u, counter.z);
        counter = (uint4)(high2 ^ counter.y ^ key.x, low2, high0 ^ counter.w ^ key.y, low0);
        key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
    }
    return counter;
}

/* The larger of two; NaN if either is, unlike fmax. */
static float clt_max(float a, float b) {
    return a > b || isnan(a) ? a : b;
}

/* 2^x of x up to 0; 0 below 2^-126. A loop of it becomes vectors, which it does not of exp2 and exp on every device. x is a whole number, which is
 * added to the exponent, and a part in [-1/2, 1/2], of which the power is a polynomial (relative error 2e-9). */
#define CLT_EXP2_OF_PART(f) \
    ((((((1.53533630e-4f * (f) + 1.33988756e-3f) * (f) + 9.61843736e-3f) * (f) + 5.55033247e-2f) * (f) + 2.40226479e-1f) * (f) + 6.93147203e-1f) * (f) + 1.0f)
static float clt_exp2_below(float x) {
    float whole = x + 12582912.0f, f = x - (whole - 12582912.0f); /* 3 2^22: no digits are left behind the point */
    float y = CLT_EXP2_OF_PART(f);
    return x < -126.0f ? 0.0f : y * as_float((as_int(whole) << 23) + 0x3f800000);
}

/* exp(-a^2 / 2) */
static float clt_bell(float a) {
    return clt_exp2_below(a * a * -0.72134752f);
}

/* The part of a normal distribution below -|a|, of clt_bell(a): a polynomial of 1 / (1 + |a| / 4) (relative error 8e-9), so that no digits are lost to a
 * difference from 1, as with erf. 0 from 13 on. */
static float clt_tail(float a, float bell) {
    float z = fabs(a), t = 1.0f / (1.0f + 0.25f * z);
    float p = 1.62358680e-2f;
    p = p * t - 6.08651545e-2f;
    p = p * t + 4.69599820e-2f;
    p = p * t + 3.49400276e-2f;
    p = p * t + 7.06577389e-3f;
    p = p * t + 8.98345139e-2f;
    p = p * t + 7.08418532e-2f;
    p = p * t + 9.57785188e-2f;
    p = p * t + 9.94588599e-2f;
    p = p * t + 9.97497610e-2f;
    return z < 13.0f ? bell * t * p : 0.0f;
}

/* Of numbers that are subnormal, and so zero (-cl-denorms-are-zero): there is a driver whose pow takes their bits apart all the same. */
static float clt_pow(float a, float b) {
    return pow(fabs(a) < FLT_MIN ? 0.0f * a : a, fabs(b) < FLT_MIN ? 0.0f : b);
}

/* a times the part of a normal distribution below a; Hendrycks, Gimpel 2016. */
static float clt_gelu(float a) {
    float tail = clt_tail(a, clt_bell(a));
    return a * (a < 0.0f ? tail : 1.0f - tail);
}

static float clt_gelu_slope(float a) {
    float bell = clt_bell(a), tail = clt_tail(a, bell);
    return (a < 0.0f ? tail : 1.0f - tail) + a * bell * 0.39894228f;
}

/* Its approximation by tanh: a / (1 + exp(-u)), u = sqrt(8 / pi) (a + 0.044715 a^3). Of exp(-|u|), so that nothing overflows, and no digits are lost to a
 * difference from 1. */
static float clt_gelu_tanh_exp(float a) {
    return clt_exp2_below(fabs(a * (1.0f + 0.044715f * a * a)) * -2.3022082f);
}

static float clt_gelu_tanh(float a) {
    float e = clt_gelu_tanh_exp(a);
    return a * (a < 0.0f ? e : 1.0f) / (1.0f + e);
}

static float clt_gelu_tanh_slope(float a) {
    float e = clt_gelu_tanh_exp(a), factor = (a < 0.0f ? e : 1.0f) / (1.0f + e), rest = (a < 0.0f ? 1.0f : e) / (1.0f + e);
    float slope = factor * (1.0f + a * rest * 1.5957691f * (1.0f + 0.134145f * a * a));
    return e == 0.0f ? factor : slope; /* of what is large the parts are infinite */
}

/*
 * The sum of `value` over the work-group, in every work-item. A tree whose order
 * depends on the group's size alone, so results are the same in each run; any size from
 * 1 to CLT_GROUP will do. All work-items of the group must call it together.
 *
 *     local float scratch[CLT_GROUP];   // in the kernel's outermost scope
 *     float total = clt_group_sum(partial, scratch);
 */
CLT_TOGETHER float clt_group_sum(float value, local float *scratch) {
    int lane = get_local_id(0), lanes = get_local_size(0);
    barrier(CLK_LOCAL_MEM_FENCE); /* the last call's result may still be being read */
    scratch[lane] = value;
    for (int half_way = CLT_GROUP / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < half_way && lane + half_way < lanes) scratch[lane] += scratch[lane + half_way];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return scratch[0];
}

/* The largest over the work-group, in every work-item; NaN if any is. As above. */
CLT_TOGETHER float clt_group_max(float value, local float *scratch) {
    int lane = get_local_id(0), lanes = get_local_size(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[lane] = value;
    for (int half_way = CLT_GROUP / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < half_way && lane + half_way < lanes)
            scratch[lane] = clt_max(scratch[lane], scratch[lane + half_way]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return scratch[0];
}

/* Where matrix number `batch` begins; size and stride over the batch's dimensions, s0 outermost. */
static CLT_INDEX clt_batch_offset(CLT_INDEX batch, CLT_INDEX_VECTOR(8) size, CLT_INDEX_VECTOR(8) stride) {
    if (batch == 0) return 0;
    CLT_INDEX offset = batch % size.s7 * stride.s7;
    batch /= size.s7;
    offset += batch % size.s6 * stride.s6;
    batch /= size.s6;
    offset += batch % size.s5 * stride.s5;
    batch /= size.s5;
    offset += batch % size.s4 * stride.s4;
    batch /= size.s4;
    offset += batch % size.s3 * stride.s3;
    batch /= size.s3;
    return offset + batch % size.s2 * stride.s2;
}
