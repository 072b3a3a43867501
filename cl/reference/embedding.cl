/*
 * Rows of a table by their indices. weight [rows, width], indices [positions]. Bound: memory.
 */

/* y[p, d] = weight[indices[p], d], NaN for an index that is no row. y (positions, width), count elements; all counted in CLT_FLOATS. */
kernel void ref_embedding(global const CLT_FLOATS *weight, global const int *indices, global CLT_FLOATS *y, int count, int width,
                          int rows) {
    int i = get_global_id(0);
    if (i >= count) return;
    int row = indices[i / width];
    y[i] = row >= 0 && row < rows ? weight[row * width + i % width] : (CLT_FLOATS)(NAN);
}

/* dweight[v, d] = sum of dy[p, d] over the positions p, from `start` to before `end`, with indices[p] == v, in order; added to
 * what the launches before found if `start` is not 0. count = rows width. */
kernel void ref_embedding_grad(global const int *indices, global const float *dy, global float *dweight, int count,
                               int width, int start, int end) {
    int i = get_global_id(0);
    if (i >= count) return;
    int row = i / width, d = i % width;
    float sum = 0;
    for (int p = start; p < end; p++)
        if (indices[p] == row) sum += dy[p * width + d];
    dweight[i] = start == 0 ? sum : dweight[i] + sum;
}
