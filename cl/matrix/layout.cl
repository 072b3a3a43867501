/* Tiles in local memory for matrix units: [row][word], 16 words of k and 4 of nothing. */
#define GPU_WORD     uint
#define MATRIX_WORDS 16
#define MATRIX_PITCH 20
#define GPU_PUT_STEPS(tile, rows, row, k, v) \
    unit_pack(tile + (row) * MATRIX_PITCH + (k) * MATRIX_WORDS / GPU_K, v)
