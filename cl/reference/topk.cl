/*
 * The k of largest magnitude of a gradient and its residual: an exact radix select on the bits of |v|, 11, 10 and 10
 * of them in three passes. Nothing is atomic: each of `chunks` work-items counts its part of the values into a histogram
 * of its own, and what is counted is added up in a fixed order. Of equal values the first are taken. The first pass
 * reads gradient and residual and writes the residual; the others, and the last that gathers what was chosen, read the
 * residual, 16 values at a time, and look closer only where there is something: bound by bytes where k is small.
 *
 *     histograms int [3][chunks][TOPK_BINS], totals int [TOPK_BINS]
 *     chosen     the bin of each pass, and how many equal to the threshold are still to be taken
 *     places     of each chunk: where its first value goes, and how many it takes of those that equal the threshold
 */

#define TOPK_BINS 2048

static float16 topk_load(global const float *x, int i, int end) {
    if (i + 16 <= end) return vload16(0, x + i);
    float part[16];
    for (int k = 0; k < 16; k++) part[k] = i + k < end ? x[i + k] : 0.0f;
    return vload16(0, part);
}

static void topk_clear(global int *histogram) {
    for (int b = 0; b < TOPK_BINS; b += 16) vstore16((int16)0, 0, histogram + b);
}

static void topk_count(uint16 bin, global int *histogram) {
    histogram[bin.s0]++, histogram[bin.s1]++, histogram[bin.s2]++, histogram[bin.s3]++;
    histogram[bin.s4]++, histogram[bin.s5]++, histogram[bin.s6]++, histogram[bin.s7]++;
    histogram[bin.s8]++, histogram[bin.s9]++, histogram[bin.sa]++, histogram[bin.sb]++;
    histogram[bin.sc]++, histogram[bin.sd]++, histogram[bin.se]++, histogram[bin.sf]++;
}

/* The first pass: residual += x, and the upper bits are counted. */
kernel void ref_topk_add(global const float *x, global float *residual, global int *histograms, int n, int chunks,
                         int length) {
    int chunk = get_global_id(0);
    if (chunk >= chunks) return;
    int i = chunk * length, end = min(i + length, n);
    global int *histogram = histograms + (long)chunk * TOPK_BINS;
    topk_clear(histogram);
    for (; i + 16 <= end; i += 16) {
        float16 v = vload16(0, x + i) + vload16(0, residual + i);
        vstore16(v, 0, residual + i);
        topk_count((as_uint16(v) & 0x7fffffff) >> 20, histogram);
    }
    for (; i < end; i++) {
        float v = x[i] + residual[i];
        residual[i] = v;
        histogram[(as_uint(v) & 0x7fffffff) >> 20]++;
    }
}

/* Pass 1 or 2: the next 10 bits of those whose upper bits are the chosen ones. */
kernel void ref_topk_refine(global const float *residual, global int *histograms, global const int *chosen, int n,
                            int chunks, int length, int pass) {
    int chunk = get_global_id(0);
    if (chunk >= chunks) return;
    int start = chunk * length, end = min(start + length, n);
    uint prefix = pass == 1 ? chosen[0] : chosen[0] << 10 | chosen[1], shift = pass == 1 ? 10 : 0;
    global int *histogram = histograms + ((long)pass * chunks + chunk) * TOPK_BINS;
    topk_clear(histogram);
    for (int i = start; i < end; i += 16) {
        uint16 bits = (as_uint16(topk_load(residual, i, end)) & 0x7fffffff) >> shift;
        if (!any(bits >> 10 == prefix)) continue;
        uint part[16];
        vstore16(bits, 0, part);
        for (int k = 0; k < 16 && i + k < end; k++)
            if (part[k] >> 10 == prefix) histogram[part[k] & 1023]++;
    }
}

/* totals[bin] = the sum over the chunks of a pass. One work-item a bin. */
kernel void ref_topk_total(global const int *histograms, global int *totals, int chunks, int pass) {
    int bin = get_global_id(0), total = 0;
    if (bin >= TOPK_BINS) return;
    for (int c = 0; c < chunks; c++) total += histograms[((long)pass * chunks + c) * TOPK_BINS + bin];
    totals[bin] = total;
}

/* The bin that the k-th largest is in. One work-group. */
kernel void ref_topk_choose(global const int *totals, global int *chosen, int pass, int k) {
    local int sums[CLT_GROUP];
    int lane = get_local_id(0), lanes = get_local_size(0), each = (TOPK_BINS + lanes - 1) / lanes, sum = 0;
    if (get_group_id(0) > 0) return;
    for (int b = lane * each; b < min((lane + 1) * each, TOPK_BINS); b++) sum += totals[b];
    sums[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane > 0) return;
    int left = pass == 0 ? k : chosen[3], part = lanes - 1;
    while (part > 0 && sums[part] < left) left -= sums[part--];
    int bin = min((part + 1) * each, TOPK_BINS) - 1;
    while (bin > part * each && totals[bin] < left) left -= totals[bin--];
    chosen[pass] = bin;
    chosen[3] = left;
}

/* How many of a chunk are above the threshold, and how many equal it. One work-item a chunk. */
kernel void ref_topk_found(global const int *histograms, global const int *chosen, global int *places, int chunks) {
    int chunk = get_global_id(0), above = 0;
    if (chunk >= chunks) return;
    for (int pass = 0; pass < 3; pass++) {
        global const int *histogram = histograms + ((long)pass * chunks + chunk) * TOPK_BINS;
        for (int b = chosen[pass] + 1; b < (pass == 0 ? TOPK_BINS : 1024); b++) above += histogram[b];
    }
    places[2 * chunk] = above;
    places[2 * chunk + 1] = histograms[((long)2 * chunks + chunk) * TOPK_BINS + chosen[2]];
}

/* From these counts to places. One work-item. */
kernel void ref_topk_place(global int *places, global const int *chosen, int chunks) {
    int place = 0, left = chosen[3];
    if (get_global_id(0) > 0) return;
    for (int c = 0; c < chunks; c++) {
        int above = places[2 * c], equal = min(places[2 * c + 1], left);
        places[2 * c] = place;
        places[2 * c + 1] = equal;
        place += above + equal;
        left -= equal;
    }
}

static float topk_round_bf16(float x) {
    uint bits = as_uint(x);
    return isnan(x) || isinf(x) ? x : as_float((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

/* wire = k indices, in their order, then their values, which leave the residual. What rounding leaves stays there;
 * of a value that is not finite nothing does. */
kernel void ref_topk_gather(global float *residual, global int *wire, global const int *places, global const int *chosen,
                            int n, int chunks, int length, int k, int bf16) {
    int chunk = get_global_id(0);
    if (chunk >= chunks) return;
    int start = chunk * length, end = min(start + length, n), place = places[2 * chunk], left = places[2 * chunk + 1];
    uint threshold = chosen[0] << 20 | chosen[1] << 10 | chosen[2];
    for (int i = start; i < end; i += 16) {
        float16 v = topk_load(residual, i, end);
        if (!any((as_uint16(v) & 0x7fffffff) >= threshold)) continue;
        float part[16];
        vstore16(v, 0, part);
        for (int e = 0; e < 16 && i + e < end; e++) {
            uint bits = as_uint(part[e]) & 0x7fffffff;
            if (bits < threshold || (bits == threshold && left-- <= 0)) continue;
            float sent = bf16 ? topk_round_bf16(part[e]) : part[e];
            wire[place] = i + e;
            wire[k + place++] = as_int(sent);
            residual[i + e] = isfinite(part[e]) && isfinite(sent) ? part[e] - sent : 0.0f;
        }
    }
}

/* flat[index] += value, for the k of one rank, whose indices differ. */
kernel void ref_topk_scatter(global float *flat, global const int *wires, int n, int k, int rank) {
    int i = get_global_id(0);
    if (i >= k) return;
    global const int *wire = wires + (long)rank * 2 * k;
    int index = wire[i];
    if (index >= 0 && index < n) flat[index] += as_float(wire[k + i]);
}
