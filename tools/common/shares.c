#include "tools/common/shares.h"

#include <stdbool.h>

/* How many samples a rank's share is below its part. */
static double wanting(int64_t whole, const double *weights, double sum, int i, const int64_t *shares) {
    return (double)whole * weights[i] / sum - (double)shares[i];
}

/* The rank whose share is most below its part, or most above it and more than one sample. */
static int most_wrong(int64_t whole, const double *weights, double sum, int n, const int64_t *shares, bool below) {
    int most = -1;
    for (int i = 0; i < n; i++) {
        if (!below && shares[i] <= 1) continue;
        double here = wanting(whole, weights, sum, i, shares), there = most < 0 ? 0 : wanting(whole, weights, sum, most, shares);
        if (most < 0 || (below ? here > there : here < there)) most = i;
    }
    return most;
}

void share_out(int64_t whole, const double *weights, int n, int64_t *shares) {
    double sum = 0;
    int64_t given = 0;
    for (int i = 0; i < n; i++) sum += weights[i];
    for (int i = 0; i < n; i++) {
        shares[i] = (int64_t)((double)whole * weights[i] / sum);
        if (shares[i] < 1) shares[i] = 1;
        given += shares[i];
    }
    for (; given < whole; given++) shares[most_wrong(whole, weights, sum, n, shares, true)]++;
    for (; given > whole; given--) shares[most_wrong(whole, weights, sum, n, shares, false)]--;
}
