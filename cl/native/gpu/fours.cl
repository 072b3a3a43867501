/*
 * Storage of the kernels for GPU-class devices: operands are of type CLT_STORAGE (cl/prelude.cl), results of type GPU_RESULT: CLT_RESULT, or f32 for parts of a sum. Four
 * elements that lie side by side and aligned are one access.
 */
#ifndef GPU_RESULT
#define GPU_RESULT CLT_RESULT
#endif
#define GPU_REAL                    CLT_JOIN(clt_, GPU_RESULT)
#define GPU_STORE(p, i, x)          CLT_JOIN(clt_store_, GPU_RESULT)(p, i, x)
#define GPU_STORE_FOUR(p, i, x)     CLT_JOIN(gpu_store_four_, GPU_RESULT)(p, i, x)
#define GPU_LOAD_FOUR(p, i)         CLT_JOIN(gpu_load_four_, CLT_STORAGE)(p, i)
#define gpu_load_four_f32(p, i)     (*(global const float4 *)((p) + (i)))
#define gpu_load_four_f16(p, i)     vloada_half4(0, (p) + (i))
#define gpu_load_four_bf16(p, i)    as_float4(convert_uint4(*(global const ushort4 *)((p) + (i))) << 16)
#define gpu_load_four_i32(p, i)     (*(global const int4 *)((p) + (i)))
#define gpu_load_four_u8(p, i)      (*(global const uchar4 *)((p) + (i)))
#define gpu_store_four_i32(p, i, x) (*(global int4 *)((p) + (i)) = (x))
#define gpu_store_four_u8(p, i, x)  (*(global uchar4 *)((p) + (i)) = (x))
#define gpu_store_four_f32(p, i, x) (*(global float4 *)((p) + (i)) = (x))
#define gpu_store_four_f16(p, i, x) vstorea_half4_rte(x, 0, (p) + (i))
#define gpu_store_four_bf16(p, i, x) (*(global ushort4 *)((p) + (i)) = clt_to_bf16_4(x))

/* What a work-item takes at once, where GPU_VECTOR is 4 or 1. */
#if GPU_VECTOR == 4
#define GPU_PART                float4
#define GPU_LOAD_PART(p, i)     GPU_LOAD_FOUR(p, i)
#define GPU_STORE_PART(p, i, x) GPU_STORE_FOUR(p, i, x)
#else
#define GPU_PART                float
#define GPU_LOAD_PART(p, i)     CLT_LOAD(p, i)
#define GPU_STORE_PART(p, i, x) GPU_STORE(p, i, x)
#endif
