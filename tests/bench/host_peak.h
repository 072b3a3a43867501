/*
 * The multiply-add peak of the host's processors, by a loop written with the processor's own vector
 * instructions: what the kernel that measures a CPU device's roof is held against.
 */
#ifndef CLT_TESTS_BENCH_HOST_PEAK_H
#define CLT_TESTS_BENCH_HOST_PEAK_H

/* Single precision operations a second on so many threads, best of several tries; 0: no loop for this
 * processor, or its result was wrong. */
double host_peak(int threads);

#endif
