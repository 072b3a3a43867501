/*
 * f16 and bf16 to f32 and back, many at a time: to the nearest, ties to even; NaNs stay NaNs and become quiet.
 */
#ifndef CLT_BASE_HALVES_H
#define CLT_BASE_HALVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cltrain/tensor.h>

void clt_f16_to_f32(float *to, const uint16_t *from, size_t count);
void clt_f32_to_f16(uint16_t *to, const float *from, size_t count);
void clt_bf16_to_f32(float *to, const uint16_t *from, size_t count);
void clt_f32_to_bf16(uint16_t *to, const float *from, size_t count);

/* The same from and to any floating-point type; f32 is copied. */
void clt_float_widen(float *to, const void *from, clt_dtype dtype, size_t count);
void clt_float_narrow(void *to, const float *from, clt_dtype dtype, size_t count);

/* What serves f16 where the processor has no instructions for it; for tests. */
void clt_f16_to_f32_portable(float *to, const uint16_t *from, size_t count);
void clt_f32_to_f16_portable(uint16_t *to, const float *from, size_t count);

#endif
