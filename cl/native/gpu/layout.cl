/* Tiles in local memory for products of vectors: [k][row], so that a work-item reads four rows at
 * once. */
#define GPU_WORD        float
#define GPU_PITCH(rows) ((rows) + 4)
#define GPU_PUT_ROWS(tile, rows, row, k, v) \
    *(local float4 *)(tile + (k) * GPU_PITCH(rows) + (row)) = (v)
#define GPU_PUT_APART(tile, rows, row, k, v)                                  \
    do {                                                                      \
        local float *put_ = tile + (k) * GPU_PITCH(rows) + (row);             \
        put_[0] = (v).s0, put_[(rows) / 4] = (v).s1;                          \
        put_[(rows) / 2] = (v).s2, put_[(rows) / 4 * 3] = (v).s3;             \
    } while (0)
#define GPU_PUT_STEPS(tile, rows, row, k, v)                                  \
    do {                                                                      \
        local float *put_ = tile + (k) * GPU_PITCH(rows) + (row);             \
        put_[0] = (v).s0, put_[GPU_PITCH(rows)] = (v).s1;                     \
        put_[2 * GPU_PITCH(rows)] = (v).s2, put_[3 * GPU_PITCH(rows)] = (v).s3; \
    } while (0)
