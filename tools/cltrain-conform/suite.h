/*
 * The one list of cases, and what becomes of a case on a device.
 *
 * A case is an op with operands and attributes, or something larger: an optimizer, a network, a run. Each is run
 * once a row: with the reference kernels alone, with what serves by default, and with each other backend.
 */
#ifndef CONFORM_SUITE_H
#define CONFORM_SUITE_H

#include <jansson.h>
#include <stdbool.h>

#include <cltrain/cltrain.h>

#include "tools/cltrain-conform/array.h"

enum { MOST_OPERANDS = 9, CASE_ID = 128, CASE_REASON = 400 };

/* ---- ops ---- */

typedef struct operand {
    const char *variable; /* a parameter or buffer that the builder makes; NULL: an input of the graph */
    clt_dtype dtype;
    clt_shape shape;
    double low, high; /* uniform in [low, high); both 0: [-2, 2). Whole numbers for integers. */
    double kinks[3];  /* no value comes near the first n_kinks of these, where there is no derivative */
    int n_kinks;
    bool distinct;    /* a shuffled ramp from low to high: no two are near each other */
    bool whole;       /* whole numbers: many are equal */
    double special[4]; /* the first n_special of these, such as NaN, each take the place of one value */
    int n_special;
    const double *values; /* these n_values, again and again, in the place of any that are drawn; NULL: none */
    int n_values;
    bool constant;    /* no gradient is asked for; so for integers */
} operand;

typedef struct attributes {
    float s[2];
    clt_dtype dtype;
    clt_conv2d_options conv;
    clt_pool2d_options pool;
    clt_matmul_options matmul;
    clt_reduce_options reduce;
    clt_norm_options norm;
    clt_shape shape;
    int axis, order[CLT_MAX_RANK];
    int64_t first, last, step;
    int64_t before[CLT_MAX_RANK], after[CLT_MAX_RANK];
    bool flag;
} attributes;

typedef struct operation {
    const char *name;
    const char *builders; /* of <cltrain/ops.h>, with spaces between */
    clt_tensor *(*build)(clt_graph *graph, clt_tensor *const *x, int n, const attributes *at);
    /* Gives y its shape and values; returns about how many operations that took. `evaluation`: not in training. */
    double (*reference)(const array *x, int n, array *y, const attributes *at, bool evaluation);
    /* What a buffer (operand i) is after a step in training; NULL: buffers stay as they are. */
    void (*buffer_after)(const array *x, int i, array *after, const attributes *at);
    /* All of the gradient by operand i, where the result has no derivative but what is to come out is told, or differences would
     * take too long to look at more than some elements; NULL: differences. */
    void (*gradient)(const array *x, int i, const array *dy, array *dx, const attributes *at);
    bool no_gradient;
    bool exact;       /* 16-bit results are rounded by the definition itself */
    double roundings; /* of 16-bit results: the sum, and with a bias again; 0: one */
    double ulp;       /* largest error allowed in units of the last place; 0: that is not the measure */
    double tolerance; /* largest error relative to the largest value; 0: 2e-5 */
    double floor;     /* gradients are judged as if the largest value were this at least; 0: 1e-3 */
} operation;

/* ---- cases ---- */

struct case_result;
struct bench;

typedef struct test_case {
    char id[CASE_ID]; /* "conv2d/k3-p1/2x3x9x7" */
    const char *op;   /* "conv2d": what --ops is compared with, beside the id */
    clt_dtype dtype;
    bool full;        /* with --full alone */
    bool large;       /* too much for a simulator */

    const operation *operation; /* NULL: `run` does it all */
    operand x[MOST_OPERANDS];
    int n;
    attributes at;
    bool evaluation;
    double seed_special; /* such as NaN, takes the place of one value of the result's gradient; 0: none */

    void (*run)(const struct test_case *c, struct bench *b, struct case_result *r);
    const void *context;
    int number;
    bool classes;  /* CPUs and GPUs have kernels of their own for it; with --full all cases are run as both */
    bool compared; /* its series of losses is held against other devices' */
    bool handed;   /* it takes up what other devices left */
} test_case;

typedef struct case_list {
    test_case *items;
    int n, capacity;
} case_list;

/* All cases, in the order in which they are run. Returns false without memory. */
bool cases_make(case_list *list);
/* Adds one whose id is made of name, variant ("" for none) and the operands' shapes. */
test_case *case_add(case_list *list, const operation *op, const char *variant, const operand *x, int n);
/* Adds one that has a function of its own. */
test_case *case_add_run(case_list *list, const char *op, const char *variant,
                        void (*run)(const test_case *, struct bench *, struct case_result *));

void cases_pointwise(case_list *list);
void cases_matmul(case_list *list);
void cases_conv2d(case_list *list);
void cases_blocks(case_list *list);
void cases_pool(case_list *list);
void cases_norm(case_list *list);
void cases_reduce(case_list *list);
void cases_shape(case_list *list);
void cases_attention(case_list *list);
void cases_embedding(case_list *list);
void cases_select(case_list *list);
void cases_recurrent(case_list *list);
void cases_dropout(case_list *list);
void cases_user(case_list *list);
void cases_several(case_list *list);
void cases_update(case_list *list);
void cases_ranks(case_list *list);
void cases_metrics(case_list *list);
void cases_network(case_list *list);
void cases_train(case_list *list);

/* ONNX's own test cases, in place of all of these: a folder of folders, each with model.onnx and test_data_set_0/input_N.pb, output_N.pb. Returns false
 * without memory; a folder without cases adds none. */
bool cases_onnx(case_list *list, const char *folder);
void cases_onnx_free(case_list *list);

/* Ops of the library for which there is no case, each with the reason; ended by a NULL. */
typedef struct exemption {
    const char *op, *reason;
    const char *skipped; /* only on devices that skip all cases of that name; NULL: on all */
} exemption;
extern const exemption exemptions[];

/* ---- running, in a child ---- */

typedef struct bench {
    clt_device *device; /* with red zones */
    clt_settings settings; /* that it was opened with */
    const char *row;    /* "reference", "default" or a backend */
    const char *backend; /* that has to serve some of a case; NULL: whichever does */
    bool full;
    bool rounding;      /* operands of contractions may be rounded to half precision */
    char log[4096];     /* where Oclgrind writes what it finds; and how much of it was read */
    long log_read;
    const char *folder; /* for files */
    const char *who;    /* the device in file names */
    const char *const *others; /* devices whose files are there too; ended by NULL */
} bench;

/* Each question is answered by one of these words. */
typedef enum verdict { NOT_ASKED, PASSED, FAILED, SKIPPED } verdict;

typedef struct case_result {
    verdict supported, value, gradient, repeat, memory;
    char reason[CASE_REASON]; /* of the first that is not passed */
    double nmse, ulp;         /* the worst of all; -1: not measured */
    json_t *served;           /* ["conv2d:native", …] */
    json_t *series;           /* numbers to be compared with other devices'; NULL: none */
} case_result;

/* Status of all: failed if one is, skipped if it is not supported. */
const char *verdict_name(verdict v);
verdict result_verdict(const case_result *r);
/* Keeps the first reason. */
void result_say(case_result *r, verdict *which, verdict v, const char *format, ...) CLT_PRINTF(4, 5);
/* The library's error: not supported is a reason to skip, all else a failure. */
void result_error(case_result *r, verdict *which, clt_status status, const char *doing);

void case_run(const test_case *c, bench *b, case_result *r);

/* ---- comparing (judge.c) ---- */

typedef struct bounds {
    double tolerance, floor, nmse, ulp; /* 0: the usual ones; ulp 0: not looked at */
} bounds;
/* Notes what was measured; says what is wrong. places: those that are compared, NULL: all n. */
void judge(case_result *r, verdict *which, const char *what, const array *got, const array *want,
           const int64_t *places, int64_t n, const bounds *bounds);
/* Says so if something was written outside of buffers since, or if Oclgrind found a race or an access that is none. */
void judge_redzones(bench *b, case_result *r);
/* Adds what serves the trial, or the training step, to r->served. */
void note_rows(const clt_trial *trial, case_result *r);
void note_step(bench *b, clt_tensor *loss, const clt_train_options *options, case_result *r);

#endif
