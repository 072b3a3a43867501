#include "comm/reduce.h"

#include <stdint.h>
#include <string.h>

#include "runtime/base/halves.h"
#include "runtime/base/base.h"

/* One loop a type and reduction: what compilers make vectors of. */
#define LOOP(name, type, expression)                                              \
    static void name(void *into, const void *left, const void *right, size_t n) { \
        type *to = into;                                                          \
        const type *as = left, *bs = right;                                       \
        for (size_t i = 0; i < n; i++) {                                          \
            type a = as[i], b = bs[i];                                            \
            to[i] = (expression);                                                 \
        }                                                                         \
    }
#define LARGER(a, b) ((a) < (b) || (b) != (b) ? (b) : (a)) /* also if one is a NaN: then that */
#define SMALLER(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))

LOOP(sum_f32, float, a + b)
LOOP(max_f32, float, LARGER(a, b))
LOOP(min_f32, float, SMALLER(a, b))
LOOP(sum_i32, uint32_t, a + b)
LOOP(max_i32, int32_t, a < b ? b : a)
LOOP(min_i32, int32_t, b < a ? b : a)
LOOP(sum_i64, uint64_t, a + b)
LOOP(max_i64, int64_t, a < b ? b : a)
LOOP(min_i64, int64_t, b < a ? b : a)
LOOP(sum_u8, uint8_t, (uint8_t)(a + b))
LOOP(max_u8, uint8_t, a < b ? b : a)
LOOP(min_u8, uint8_t, b < a ? b : a)

typedef void loop(void *into, const void *left, const void *right, size_t n);

static loop *loop_of(clt_dtype dtype, clt_reduction reduction) {
    static loop *const loops[][3] = {
        [CLT_F32] = {sum_f32, max_f32, min_f32},  [CLT_I32] = {sum_i32, max_i32, min_i32},
        [CLT_U8] = {sum_u8, max_u8, min_u8},      [CLT_F16] = {sum_f32, max_f32, min_f32},
        [CLT_BF16] = {sum_f32, max_f32, min_f32}, [CLT_I64] = {sum_i64, max_i64, min_i64},
    };
    return loops[dtype][reduction];
}

/* Halves are reduced by blocks that stay in the nearest cache. */
enum { BLOCK = 1024 };

static void reduce_halves(void *into, const void *const *pieces, int n, size_t count, clt_dtype dtype, loop *f) {
    float result[BLOCK], other[BLOCK];
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t here = CLT_MIN(count - at, (size_t)BLOCK);
        clt_float_widen(result, (const uint16_t *)pieces[0] + at, dtype, here);
        for (int i = 1; i < n; i++) {
            clt_float_widen(other, (const uint16_t *)pieces[i] + at, dtype, here);
            f(result, result, other, here);
        }
        clt_float_narrow((uint16_t *)into + at, result, dtype, here);
    }
}

static bool is_half(clt_dtype dtype) {
    return dtype == CLT_F16 || dtype == CLT_BF16;
}

void clt_reduce(void *into, const void *from, size_t count, clt_dtype dtype, clt_reduction reduction) {
    if (is_half(dtype)) clt_reduce_many(into, (const void *[]){into, from}, 2, count, dtype, reduction);
    else loop_of(dtype, reduction)(into, into, from, count);
}

/* By blocks too, so that `into` may be any of the pieces: each block is read whole before it is written. */
void clt_reduce_many(void *into, const void *const *pieces, int n, size_t count, clt_dtype dtype,
                     clt_reduction reduction) {
    loop *f = loop_of(dtype, reduction);
    if (is_half(dtype)) {
        reduce_halves(into, pieces, n, count, dtype, f);
        return;
    }
    _Alignas(8) float block[BLOCK];
    size_t element = clt_dtype_bytes(dtype), most = sizeof block / element;
    for (size_t at = 0; at < count; at += most) {
        size_t here = CLT_MIN(count - at, most), offset = at * element;
        if (n == 1) memcpy(block, (const char *)pieces[0] + offset, here * element);
        else f(block, (const char *)pieces[0] + offset, (const char *)pieces[1] + offset, here);
        for (int i = 2; i < n; i++) f(block, block, (const char *)pieces[i] + offset, here);
        memcpy((char *)into + offset, block, here * element);
    }
}
