/*
 * One op of two operands by a row of the backend table against the reference row: random operands,
 * scratch memory and results that held NaN, nothing written past the end, the same bits again.
 */
#ifndef CLT_TESTS_BACKENDS_COMPARE_H
#define CLT_TESTS_BACKENDS_COMPARE_H

#include "tests/support.h"

#include "backends/backend.h"
#include "runtime/base/random.h"

/* The device at hand as one of lanes, whatever it is. *simulated: it is slow. */
clt_device *compare_open_gpu(bool *simulated);

typedef struct compare_test {
    const clt_op *op;
    clt_shape a, b;
    clt_conv2d_attributes conv2d;
    clt_matmul_attributes matmul;
    const float *a_values, *b_values; /* NULL: random, uniform in -1 .. 1 */
    bool integers;                    /* random integers from -4 to 4 instead */
    clt_dtype dtype;                  /* of operands and results; what is compared are floats */
    bool finished;                    /* an epilogue adds a value of its channel and subtracts one of its place */
} compare_test;

/* A row of that name that serves the test on the device; fails if there is none. */
const clt_backend_row *compare_row(clt_device *device, const compare_test *test, const char *name);
/* The name of the row that is chosen for the test. */
const char *compare_chosen(clt_device *device, const compare_test *test);

/* Whether the parameters go together for the test. */
bool compare_valid(clt_device *device, const compare_test *test, const clt_backend_row *row, const int *parameters);
/* What the row gives, from malloc. parameters: NULL for its defaults. */
float *compare_run(clt_device *device, const compare_test *test, const clt_backend_row *row, const int *parameters);
int64_t compare_elements(const compare_test *test);
/* Fails unless the row's result is the reference's within a relative squared error in L2 of `bound`, twice
 * with the same bits. */
void compare_check(clt_device *device, const compare_test *test, const clt_backend_row *row,
                   const int *parameters, double bound);

compare_test compare_matmul(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b);
/* A product with a random batch, of which either operand's dimensions may be stretched or left out. */
compare_test compare_batched(clt_random *random, int64_t m, int64_t n, int64_t k);

/* c and o: of each group. */
typedef struct compare_window {
    int64_t n, c, h, w, o;
    int kh, kw, sh, sw, ph, pw, dh, dw, groups;
} compare_window;
/* direction: 0 forward, 1 gradient of the image, 2 of the weight. */
compare_test compare_convolution(const compare_window *window, int direction);
compare_window compare_random_window(clt_random *random);

int64_t compare_between(clt_random *random, int64_t low, int64_t high);

#endif
