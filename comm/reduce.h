/*
 * Reductions of arrays. A maximum or minimum with a NaN is a NaN. Sums of i32 and u8 wrap around.
 */
#ifndef CLT_COMM_REDUCE_H
#define CLT_COMM_REDUCE_H

#include <cltrain/comm.h>

/* into[i] = into[i] op from[i]; f16 and bf16 are rounded each time. */
void clt_reduce(void *into, const void *from, size_t count, clt_dtype dtype, clt_reduction reduction);

/* into[i] = pieces[0][i] op pieces[1][i] …, in this order; f16 and bf16 are added in f32 and rounded once. `into` may be one of
 * the pieces. */
void clt_reduce_many(void *into, const void *const *pieces, int n, size_t count, clt_dtype dtype,
                     clt_reduction reduction);

#endif
