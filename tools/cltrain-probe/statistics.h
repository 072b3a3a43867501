/*
 * Statistics of samples.
 */
#ifndef CLTRAIN_PROBE_STATISTICS_H
#define CLTRAIN_PROBE_STATISTICS_H

/* Sorts in place. */
void statistics_sort(double *values, int n);
/* Of sorted values, between neighbours linearly; share in [0, 1]; NAN for none. */
double statistics_quantile(const double *sorted, int n, double share);
/* Of values in any order; at most 256. */
double statistics_median(const double *values, int n);

/* Mann and Whitney's test, two-sided, by the normal approximation with ties and continuity corrected: the probability that
 * samples of one distribution differ as much. 1 where either has fewer than 4. At most 256 each. */
double statistics_rank_test(const double *a, int n_a, const double *b, int n_b);

/* With two decimals, or, where those would leave nothing of it, two digits. */
const char *statistics_text(double value, char text[32]);

#endif
