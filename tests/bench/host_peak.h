/*
 * What the host's processors do at most, by loops of the host's own: what the kernels that measure a CPU device's peaks are
 * held against. The multiply-add peak by the processor's own vector instructions; a copy as STREAM's (McCalpin 1995).
 */
#ifndef CLT_TESTS_BENCH_HOST_PEAK_H
#define CLT_TESTS_BENCH_HOST_PEAK_H

#include <stddef.h>

/* Single precision operations a second on so many threads, of each of n tries; 0: no loop for this
 * processor, or its result was wrong. */
void host_peak_tries(int threads, double *rates, int n);
/* The best of several. */
double host_peak(int threads);

/* Bytes a second that c[i] = a[i] reads and writes together, on so many threads and `bytes` of each array, of each of n tries;
 * 0: no memory. */
void host_copy_tries(int threads, size_t bytes, double *rates, int n);

#endif
