/* y[i, c] = indices[i] == c: count elements of y, a work-item each. */
kernel void ref_one_hot(global const int *indices, global float *y, int count, int classes) {
    int i = get_global_id(0);
    if (i < count) y[i] = indices[i / classes] == i % classes;
}
