/*
 * The harness of the tests of ops. A case names its operands, a builder that puts
 * the op into a graph, and the op's definition in double precision. op_check()
 * runs it on a device (CLTRAIN_DEVICE names which) and compares the values with
 * the definition, and the gradients of sum(y x seed), for a random seed, with
 * the definition's central differences.
 */
#ifndef CLT_TESTS_OPS_HARNESS_H
#define CLT_TESTS_OPS_HARNESS_H

#include "tests/support.h"

#include <cltrain/ops.h>

#include "runtime/exec/plan.h"
#include "tests/ops/reference.h"

enum { OP_MAX_INPUTS = 6, OP_MAX_KINKS = 3 };

/* For initializers of static data: .shape = OP_SHAPE(2, 3). A scalar's is {0}. */
#define OP_SHAPE(...) {(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}}

/* An operand, and how its values are drawn. */
typedef struct op_input {
    const char *variable; /* a parameter or buffer that the builder makes; NULL: an input of the graph */
    clt_dtype dtype;
    clt_shape shape;
    double low, high;           /* uniform in [low, high); both 0: [-2, 2). Whole numbers for integers. */
    double kinks[OP_MAX_KINKS]; /* no value comes near the first n_kinks of these */
    int n_kinks;
    bool distinct;       /* the values are a shuffled ramp from low to high */
    bool constant;       /* no gradient is asked for; so for integers and buffers */
    const float *values; /* these, instead of random ones */
} op_input;

typedef struct op_case {
    const char *name;
    int n_inputs;
    op_input inputs[OP_MAX_INPUTS]; /* inputs of the graph first, then variables */
    /* `inputs` are those of the graph. */
    clt_tensor *(*build)(clt_graph *graph, clt_tensor *const *inputs, const void *context);
    /* Gives y its shape and its values. All operands are there. */
    void (*reference)(const array *inputs, array *y, const void *context);
    const void *context;
    const float *seed; /* these, instead of random ones */
    bool evaluation;   /* else training */
    bool no_gradient;
    double tolerance; /* of the largest error, relative to the largest value; 0: 2e-5 */
    double floor;     /* the least value that counts as the largest; 0: 1e-3 */
    int samples;      /* how many elements of an operand are moved for differences; 0: 200 */
} op_case;

/* ---- a case being run (run.c) ---- */

typedef struct op_run {
    const op_case *spec;
    clt_graph *graph;
    clt_store *store;
    clt_plan *plan;
    clt_tensor *inputs[OP_MAX_INPUTS]; /* variables too */
    clt_tensor *y, *seed;
    clt_tensor *grads[OP_MAX_INPUTS]; /* NULL: not asked for, or zero everywhere */
    array values[OP_MAX_INPUTS], seed_values;
} op_run;

/* Draws, builds, compiles and feeds. Fails the test on any error. */
void op_open(op_run *run, const op_case *spec);
void op_step(op_run *run);
void op_close(op_run *run);
bool op_wants_gradient(const op_case *spec, int input);
/* What a target holds, or NULL's zeros in the shape of `like`. */
void op_read(op_run *run, const clt_tensor *tensor, const clt_tensor *like, array *values);

/* The device of the program's tests, opened by op_main. */
clt_device *op_device(void);

/* Values of variables on the device. */
void op_variable_write(clt_store *store, const clt_tensor *variable, const float *values);
void op_variable_read(clt_store *store, const clt_tensor *variable, float *values);

/* ---- checks (harness.c) ---- */

/* A cmocka test whose state is a const op_case. */
void op_check(void **state);

/* Runs the case and compares with given values; a NULL in grads is not looked at. */
void op_expect(const op_case *spec, const double *y, const double *const *grads);

/* Fails the test unless `got` is `want` within the case's tolerance. NaN is wanted where `want` has it. */
void op_compare(const op_case *spec, const char *what, const array *got, const array *want);

/* A main(): tests of the cases, each under its name, and further tests. */
int op_main(const char *group, const op_case *cases, size_t n_cases, const struct CMUnitTest *tests,
            size_t n_tests);

#endif
