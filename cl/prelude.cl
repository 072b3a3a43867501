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

/* The larger of two; NaN if either is, unlike fmax. */
static float clt_max(float a, float b) {
    return a > b || isnan(a) ? a : b;
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
static int clt_batch_offset(int batch, int8 size, int8 stride) {
    if (batch == 0) return 0;
    int offset = batch % size.s7 * stride.s7;
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
