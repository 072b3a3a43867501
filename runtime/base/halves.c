#include "runtime/base/halves.h"

#include <stdatomic.h>
#include <string.h>

static inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* After F. Giesen, "half_to_float_fast5": the exponent is moved by adding to the bits; what was subnormal is made normal by a
 * float subtraction, which is exact. No branches, so that compilers make vectors of it. */
static inline float widen(uint16_t half) {
    uint32_t bits = (uint32_t)(half & 0x7fff) << 13, exponent = bits & 0x0f800000;
    uint32_t normal = bits + ((127u - 15u) << 23);
    uint32_t special = normal + ((128u - 16u) << 23);
    special |= (uint32_t)(bits > 0x0f800000) << 22; /* a NaN becomes a quiet one */
    uint32_t subnormal = bits_of(float_of(normal + (1u << 23)) - float_of(113u << 23));
    uint32_t result = exponent == 0x0f800000 ? special : exponent == 0 ? subnormal : normal;
    return float_of(result | (uint32_t)(half & 0x8000) << 16);
}

/* After F. Giesen, "float_to_half_fast3_rtne": the float addition rounds what will be subnormal. */
static inline uint16_t narrow(float value) {
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    uint32_t not_finite = bits > 0x7f800000 ? 0x7e00 | (bits >> 13 & 0x3ff) : 0x7c00;
    uint32_t magic = (127u - 15u + 23u - 10u + 1u) << 23;
    uint32_t subnormal = bits_of(float_of(bits) + float_of(magic)) - magic;
    uint32_t normal = (bits + 0xc8000fff + (bits >> 13 & 1)) >> 13; /* the exponent less 112, and half a unit */
    uint32_t result = bits >= 143u << 23 ? not_finite : bits < 113u << 23 ? subnormal : normal;
    return (uint16_t)(result | sign);
}

void clt_f16_to_f32_portable(float *restrict to, const uint16_t *restrict from, size_t count) {
    for (size_t i = 0; i < count; i++) to[i] = widen(from[i]);
}

void clt_f32_to_f16_portable(uint16_t *restrict to, const float *restrict from, size_t count) {
    for (size_t i = 0; i < count; i++) to[i] = narrow(from[i]);
}

#if defined __x86_64__ && defined __GNUC__
#include <cpuid.h>
#include <immintrin.h>

__attribute__((target("avx,f16c"))) static void widen_f16c(float *to, const uint16_t *from, size_t count) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
    for (; i < count; i++) to[i] = _cvtsh_ss(from[i]);
}

__attribute__((target("avx,f16c"))) static void narrow_f16c(uint16_t *to, const float *from, size_t count) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < count; i++) to[i] = (uint16_t)_cvtss_sh(from[i], _MM_FROUND_TO_NEAREST_INT);
}

static bool ask_f16c(void) {
    unsigned a, b, c = 0, d; /* not every compiler's __builtin_cpu_supports knows it */
    return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

/* Asked once: where a hypervisor answers, the instruction takes many microseconds. */
static bool has_f16c(void) {
    static atomic_int known; /* 1: no, 2: yes */
    if (!atomic_load_explicit(&known, memory_order_relaxed))
        atomic_store_explicit(&known, ask_f16c() ? 2 : 1, memory_order_relaxed);
    return atomic_load_explicit(&known, memory_order_relaxed) == 2;
}

void clt_f16_to_f32(float *to, const uint16_t *from, size_t count) {
    if (has_f16c()) widen_f16c(to, from, count);
    else clt_f16_to_f32_portable(to, from, count);
}

void clt_f32_to_f16(uint16_t *to, const float *from, size_t count) {
    if (has_f16c()) narrow_f16c(to, from, count);
    else clt_f32_to_f16_portable(to, from, count);
}
#else
void clt_f16_to_f32(float *to, const uint16_t *from, size_t count) {
    clt_f16_to_f32_portable(to, from, count);
}

void clt_f32_to_f16(uint16_t *to, const float *from, size_t count) {
    clt_f32_to_f16_portable(to, from, count);
}
#endif

void clt_bf16_to_f32(float *restrict to, const uint16_t *restrict from, size_t count) {
    for (size_t i = 0; i < count; i++) to[i] = float_of((uint32_t)from[i] << 16);
}

void clt_f32_to_bf16(uint16_t *restrict to, const float *restrict from, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = bits_of(from[i]);
        uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        to[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
    }
}

void clt_float_widen(float *to, const void *from, clt_dtype dtype, size_t count) {
    if (dtype == CLT_F16) clt_f16_to_f32(to, from, count);
    else if (dtype == CLT_BF16) clt_bf16_to_f32(to, from, count);
    else memcpy(to, from, count * sizeof *to);
}

void clt_float_narrow(void *to, const float *from, clt_dtype dtype, size_t count) {
    if (dtype == CLT_F16) clt_f32_to_f16(to, from, count);
    else if (dtype == CLT_BF16) clt_f32_to_bf16(to, from, count);
    else memcpy(to, from, count * sizeof *from);
}
