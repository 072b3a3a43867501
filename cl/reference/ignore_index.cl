/* kept[i] = indices[i] != ignored; result[i] is the index, or `instead`. An element a work-item. */
kernel void ref_ignore_index(global const int *indices, global int *result, global float *kept, int count, int ignored, int instead) {
    int i = get_global_id(0);
    if (i >= count) return;
    result[i] = indices[i] == ignored ? instead : indices[i];
    kept[i] = indices[i] != ignored;
}
