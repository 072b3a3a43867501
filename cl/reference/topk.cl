/*
 * The k of largest magnitude of a gradient and its residual: an exact radix select on the bits of |v|, 9, 11 and 11
 * of them in three passes. Nothing is atomic: each of `chunks` work-items counts its part of the values into a histogram
 * of its own, and what is counted is added up in a fixed order. Of equal values the first are taken. The first pass
 * reads gradient and residual and writes the residual; the others, and the last that gathers what was chosen, read the
 * residual, 16 values at a time, and look closer only where there is something: bound by bytes where k is small.
 *
 *     histograms int [3][chunks][TOPK_BINS], totals int [TOPK_BINS]
 *     chosen     the bin of each pass, and how many equal to the threshold are still to be taken
 *     places     of each chunk: where its first value goes, and how many it takes of those that equal the threshold
 *
 * On the wire indices are coded as by Elias and Fano: the differences of what is above the low `low_bits` bits in unary, that is
 * a one at place (index >> low_bits) + i for the i-th, and the low bits as they are. That is a Rice code of
 * differences whose length is known beforehand, within half a bit an index of the entropy; any part of it can be written and
 * read without the others.
 *
 *     wire       int: [high_words], [low_words], then k values, f32 or bf16 (two an int, filled up with zeros)
 */

#define TOPK_BINS 2048
#define TOPK_FIRST_BINS 512

static float16 topk_load(global const float *x, int i, int end) {
    if (i + 16 <= end) return vload16(0, x + i);
    float part[16];
    for (int k = 0; k < 16; k++) part[k] = i + k < end ? x[i + k] : 0.0f;
    return vload16(0, part);
}

static void topk_clear(global int *histogram) {
    for (int b = 0; b < TOPK_BINS; b += 16) vstore16((int16)0, 0, histogram + b);
}

/* Four histograms in turn, for most values are in few bins, and an increment waits for the one before it. */
static void topk_count(uint16 bin, global int *histogram) {
    global int *a = histogram, *b = a + TOPK_FIRST_BINS, *c = b + TOPK_FIRST_BINS, *d = c + TOPK_FIRST_BINS;
    a[bin.s0]++, b[bin.s1]++, c[bin.s2]++, d[bin.s3]++;
    a[bin.s4]++, b[bin.s5]++, c[bin.s6]++, d[bin.s7]++;
    a[bin.s8]++, b[bin.s9]++, c[bin.sa]++, d[bin.sb]++;
    a[bin.sc]++, b[bin.sd]++, c[bin.se]++, d[bin.sf]++;
}

static void topk_join(global int *histogram) {
    for (int b = 0; b < TOPK_FIRST_BINS; b += 16) {
        int16 sum = 0;
        for (int copy = 0; copy < 4; copy++) sum += vload16(0, histogram + copy * TOPK_FIRST_BINS + b);
        vstore16(sum, 0, histogram + b);
    }
}

/* The first pass: residual += x / samples, and the upper bits are counted. */
kernel void ref_topk_add(global const float *x, global float *residual, global const float *samples,
                         global int *histograms, int n, int chunks, int length) {
    int chunk = get_global_id(0);
    if (chunk >= chunks) return;
    int i = chunk * length, end = min(i + length, n);
    global int *histogram = histograms + (long)chunk * TOPK_BINS;
    float share = clt_share(samples);
    topk_clear(histogram);
    for (; i + 16 <= end; i += 16) {
        float16 v = vload16(0, x + i) * share + vload16(0, residual + i);
        vstore16(v, 0, residual + i);
        topk_count((as_uint16(v) & 0x7fffffff) >> 22, histogram);
    }
    for (; i < end; i++) {
        float v = x[i] * share + residual[i];
        residual[i] = v;
        histogram[(as_uint(v) & 0x7fffffff) >> 22]++;
    }
    topk_join(histogram);
}

/* Pass 1 or 2: the next 11 bits of those whose upper bits are the chosen ones. */
kernel void ref_topk_refine(global const float *residual, global int *histograms, global const int *chosen, int n,
                            int chunks, int length, int pass) {
    int chunk = get_global_id(0);
    if (chunk >= chunks) return;
    int start = chunk * length, end = min(start + length, n);
    uint prefix = pass == 1 ? chosen[0] : chosen[0] << 11 | chosen[1], shift = pass == 1 ? 11 : 0;
    global int *histogram = histograms + ((long)pass * chunks + chunk) * TOPK_BINS;
    topk_clear(histogram);
    for (int i = start; i < end; i += 16) {
        uint16 bits = (as_uint16(topk_load(residual, i, end)) & 0x7fffffff) >> shift;
        if (!any(bits >> 11 == prefix)) continue;
        uint part[16];
        vstore16(bits, 0, part);
        for (int k = 0; k < 16 && i + k < end; k++)
            if (part[k] >> 11 == prefix) histogram[part[k] & (TOPK_BINS - 1)]++;
    }
}

static int topk_bins(int pass) {
    return pass == 0 ? TOPK_FIRST_BINS : TOPK_BINS;
}

/* totals[bin] = the sum over the chunks of a pass. One work-item for 16 bins. */
kernel void ref_topk_total(global const int *histograms, global int *totals, int chunks, int pass) {
    int bin = get_global_id(0) * 16;
    if (bin >= topk_bins(pass)) return;
    int16 total = 0;
    for (int c = 0; c < chunks; c++) total += vload16(0, histograms + ((long)pass * chunks + c) * TOPK_BINS + bin);
    vstore16(total, 0, totals + bin);
}

/* The bin that the k-th largest is in. One work-group. */
kernel void ref_topk_choose(global const int *totals, global int *chosen, int pass, int k) {
    local int sums[CLT_GROUP];
    int lane = get_local_id(0), lanes = get_local_size(0), bins = topk_bins(pass), each = (bins + lanes - 1) / lanes, sum = 0;
    if (get_group_id(0) > 0) return;
    for (int b = lane * each; b < min((lane + 1) * each, bins); b++) sum += totals[b];
    sums[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane > 0) return;
    int left = pass == 0 ? k : chosen[3], part = lanes - 1;
    while (part > 0 && sums[part] < left) left -= sums[part--];
    int bin = min((part + 1) * each, bins) - 1;
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
        for (int b = chosen[pass] + 1; b < topk_bins(pass); b++) above += histogram[b];
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

/* indices = those of the k chosen, in their order; values go to the wire and leave the residual. What rounding leaves
 * stays there; of a value that is not finite nothing does. */
kernel void ref_topk_gather(global float *residual, global int *indices, global int *wire, global const int *places,
                            global const int *chosen, int n, int chunks, int length, int value_place, int bf16) {
    int chunk = get_global_id(0);
    if (chunk >= chunks) return;
    int start = chunk * length, end = min(start + length, n), place = places[2 * chunk], left = places[2 * chunk + 1];
    uint threshold = chosen[0] << 22 | chosen[1] << 11 | chosen[2];
    for (int i = start; i < end; i += 16) {
        float16 v = topk_load(residual, i, end);
        if (!any((as_uint16(v) & 0x7fffffff) >= threshold)) continue;
        float part[16];
        vstore16(v, 0, part);
        for (int e = 0; e < 16 && i + e < end; e++) {
            uint bits = as_uint(part[e]) & 0x7fffffff;
            if (bits < threshold || (bits == threshold && left-- <= 0)) continue;
            float sent = bf16 ? clt_round_bf16(part[e]) : part[e];
            if (bf16) ((global ushort *)(wire + value_place))[place] = as_uint(sent) >> 16;
            else wire[value_place + place] = as_int(sent);
            indices[place++] = i + e;
            residual[i + e] = isfinite(part[e]) && isfinite(sent) ? part[e] - sent : 0.0f;
        }
    }
}

/* A word of the unary part a work-item: which indices have their one in it is found by halving. */
kernel void ref_topk_high(global const int *indices, global int *wire, int k, int words, int low_bits) {
    int word = get_global_id(0), first = 0, last = k;
    if (word >= words) return;
    while (first < last) {
        int middle = (first + last) / 2;
        if ((indices[middle] >> low_bits) + middle < word * 32) first = middle + 1;
        else last = middle;
    }
    uint bits = 0;
    for (int i = first; i < k && (indices[i] >> low_bits) + i < word * 32 + 32; i++)
        bits |= 1u << ((indices[i] >> low_bits) + i - word * 32);
    wire[word] = as_int(bits);
}

/* A word of the low bits a work-item. */
kernel void ref_topk_low(global const int *indices, global int *wire, int k, int words, int high_words, int low_bits) {
    int word = get_global_id(0);
    if (word >= words) return;
    long begin = (long)word * 32;
    uint bits = 0;
    for (int i = begin / low_bits; i < k && (long)i * low_bits < begin + 32; i++) {
        uint low = indices[i] & ((1u << low_bits) - 1);
        int shift = (long)i * low_bits - begin;
        bits |= shift < 0 ? low >> -shift : low << shift;
    }
    wire[high_words + word] = as_int(bits);
}

/* The last values are padded, and nothing else is. One work-item. */
kernel void ref_topk_fill(global int *wire, int value_place, int k) {
    if (get_global_id(0) == 0) ((global ushort *)(wire + value_place))[k] = 0;
}

/* ---- the way back ---- */

#define TOPK_WORDS 64 /* of a unary part that a work-item reads */

/* counts[rank][part] = how many ones there are. */
kernel void ref_topk_ones(global const int *wires, global int *counts, int parts, int high_words, int wire_words,
                          int ranks) {
    int id = get_global_id(0), rank = id / parts, part = id % parts, ones = 0;
    if (rank >= ranks) return;
    global const int *wire = wires + (long)rank * wire_words;
    for (int w = part * TOPK_WORDS; w < min((part + 1) * TOPK_WORDS, high_words); w++) ones += popcount(wire[w]);
    counts[id] = ones;
}

/* From counts to the number of ones before each part. A work-item a rank. */
kernel void ref_topk_before(global int *counts, int parts, int ranks) {
    int rank = get_global_id(0), before = 0;
    if (rank >= ranks) return;
    for (int p = 0; p < parts; p++) {
        int ones = counts[rank * parts + p];
        counts[rank * parts + p] = before;
        before += ones;
    }
}

static int topk_low_bits(global const int *low, int i, int low_bits) {
    long place = (long)i * low_bits;
    int word = place / 32, shift = place % 32;
    ulong bits = as_uint(low[word]);
    if (shift + low_bits > 32) bits |= (ulong)as_uint(low[word + 1]) << 32;
    return (int)(bits >> shift) & ((1 << low_bits) - 1);
}

/* flat[index] += value, for the k of one rank, whose indices differ. Whatever the wire says, nothing else is touched. */
kernel void ref_topk_scatter(global float *flat, global const int *wires, global const int *before, int n, int k,
                             int rank, int parts, int high_words, int low_words, int wire_words, int low_bits, int bf16) {
    int part = get_global_id(0);
    if (part >= parts) return;
    global const int *wire = wires + (long)rank * wire_words;
    global const int *low = wire + high_words, *values = low + low_words;
    int i = before[rank * parts + part];
    for (int w = part * TOPK_WORDS; w < min((part + 1) * TOPK_WORDS, high_words); w++)
        for (uint bits = as_uint(wire[w]); bits && i < k; bits &= bits - 1, i++) {
            long high = (long)w * 32 + 31 - clz(bits & -bits) - i;
            long index = (high << low_bits) + (low_bits ? topk_low_bits(low, i, low_bits) : 0);
            float value = bf16 ? as_float((uint)((global const ushort *)values)[i] << 16) : as_float(values[i]);
            if (index >= 0 && index < n) flat[index] += value;
        }
}
