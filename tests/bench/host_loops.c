/* The host's own loops, for what holds a bench's limits against them: medians and bests of tries, as JSON.
 *     host_loops THREADS */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/base.h"
#include "tests/bench/host_peak.h"

enum { TRIES = 15 };

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print(const char *name, double rates[TRIES], const char *end) {
    qsort(rates, TRIES, sizeof *rates, ascending);
    printf("\"%s\": {\"median\": %.6g, \"best\": %.6g}%s", name, rates[TRIES / 2], rates[TRIES - 1], end);
}

int main(int argc, char **argv) {
    double rates[TRIES];
    int threads = argc == 2 ? atoi(argv[1]) : 0;
    if (threads < 1) return fprintf(stderr, "host_loops THREADS\n"), 2;
    printf("{");
    host_peak_tries(threads, rates, TRIES);
    print("fma_f32", rates, ", ");
    host_copy_tries(threads, (size_t)128 << 20, rates, TRIES);
    print("copy", rates, "}\n");
    return fflush(stdout) != 0;
}
