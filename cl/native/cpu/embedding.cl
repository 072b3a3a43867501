/*
 * The gradient of a table by rows on CPU-class devices. indices [positions], dy [positions, width], dweight [rows, width]. A work-item owns `share`
 * rows: it empties them, and goes over all positions in order, so that a row's sum has the bits of the reference. Bound: memory of the table.
 */
CLT_ITEM void cpu_embedding_grad_item(int item, global const int *indices, global const float *dy, global float *dweight, int positions, int width,
                                      int rows, int share) {
    int first = item * share, end = min(first + share, rows);
    if (first >= end) return;
    for (int i = first * width; i < end * width; i++) dweight[i] = 0;
    for (int p = 0; p < positions; p++) {
        int row = indices[p];
        if (row < first || row >= end) continue;
        global const float *from = dy + p * width;
        global float *to = dweight + row * width;
        for (int d = 0; d < width; d++) to[d] += from[d];
    }
}
kernel void cpu_embedding_grad(global const int *indices, global const float *dy, global float *dweight, int positions, int width, int rows,
                               int share) {
    cpu_embedding_grad_item(get_global_id(0), indices, dy, dweight, positions, width, rows, share);
}
