/* How alike two problems are, by their texts. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "backends/tune/tune.h"

static bool is_digit(char c) {
    return isdigit((unsigned char)c) != 0;
}

/* Goes over both texts at once: words that begin with a digit are shapes, whose numbers may differ. */
double clt_tune_distance(const char *a, const char *b) {
    double sum = 0;
    bool shape = false, begins = true;
    while (*a && *b) {
        if (begins) shape = is_digit(*a) && is_digit(*b);
        if (shape && is_digit(*a) && is_digit(*b)) {
            char *end_a, *end_b;
            long long x = strtoll(a, &end_a, 10), y = strtoll(b, &end_b, 10);
            if (x < 1 || y < 1) return INFINITY;
            double ratio = log2((double)x / (double)y);
            sum += ratio * ratio;
            a = end_a, b = end_b;
            begins = false;
            continue;
        }
        if (*a != *b) return INFINITY;
        if (*a == '^' || *a == ':') shape = false; /* digits behind are no dimensions */
        begins = *a == ' ';
        a++, b++;
    }
    return *a == *b ? sqrt(sum) : INFINITY;
}

bool clt_tune_ratio(const char *a, const char *b, double *ratio, uint64_t *which) {
    bool shape = false, begins = true;
    uint64_t bit = 1;
    *ratio = 1;
    *which = 0;
    while (*a && *b) {
        if (begins) shape = is_digit(*a) && is_digit(*b);
        if (shape && is_digit(*a) && is_digit(*b)) {
            char *end_a, *end_b;
            long long x = strtoll(a, &end_a, 10), y = strtoll(b, &end_b, 10);
            double here = x > 0 ? (double)y / (double)x : 0;
            if (x < 1 || y < 1 || (x != y && *ratio != 1 && fabs(here / *ratio - 1) > 1e-9)) return false;
            if (x != y) *ratio = here, *which |= bit;
            bit = bit << 1 | bit >> 63;
            a = end_a, b = end_b;
            begins = false;
            continue;
        }
        if (*a != *b) return false;
        if (*a == '^' || *a == ':') shape = false; /* digits behind are no dimensions */
        begins = *a == ' ';
        a++, b++;
    }
    return *a == *b;
}
