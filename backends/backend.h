/*
 * The backend table: for each op, the implementations that exist (rows), what
 * each needs, and how it is lowered to kernel launches.
 *
 * Reference rows come first: portable, plain, right on any OpenCL 1.2 device. Beside them
 * workgroup rows serve long rows, also on drivers whose loops are short. A row further down
 * overrides those above it where the device has what it requires and it supports the node.
 */
#ifndef CLT_BACKENDS_BACKEND_H
#define CLT_BACKENDS_BACKEND_H

#include "runtime/device/device.h"
#include "runtime/ops/ops.h"

/* ---- lowering: what a row writes ---- */

typedef enum clt_argument_kind {
    CLT_ARGUMENT_TENSOR,
    CLT_ARGUMENT_SCRATCH,
    CLT_ARGUMENT_VALUE
} clt_argument_kind;

typedef struct clt_argument {
    clt_argument_kind kind;
    const clt_tensor *tensor;
    int scratch; /* index in clt_lowering.scratch_bytes */
    unsigned char value[64];
    size_t value_bytes;
} clt_argument;

enum { CLT_LAUNCH_MAX_ARGUMENTS = 40 };

/* One kernel launch, or one call of a library. Arguments are in the kernel's order. */
typedef struct clt_launch {
    const clt_tensor *node; /* for whom */
    const char *row;        /* name of the row that appended it; static */
    int module;             /* index in clt_lowering.modules */
    char kernel[64];
    int dims;
    size_t global[3], local[3];
    clt_call call;    /* if it has `run`, in the kernel's place; owned until a plan takes it */
    bool wide;        /* its indices are long: CLT_INDEX of cl/prelude.cl */
    bool fixed_group; /* the kernel needs work-groups of just `local` */
    clt_argument arguments[CLT_LAUNCH_MAX_ARGUMENTS];
    int n_arguments;
} clt_launch;

/* Memory that a node needs while it runs. */
typedef struct clt_scratch {
    const clt_tensor *node;
    size_t bytes;
} clt_scratch;

enum { CLT_MAX_TUNABLES = 8 };

/* All floating-point types, as a row's `types`. */
enum { CLT_ANY_FLOAT = 1 << CLT_F32 | 1 << CLT_F16 | 1 << CLT_BF16 };

typedef struct clt_backend_row clt_backend_row;

typedef struct clt_lowering {
    clt_device *device;
    bool training; /* else evaluation: batch norm and dropout differ */
    const clt_tensor *node; /* being lowered */
    const clt_backend_row *row; /* by this row */
    int parameters[CLT_MAX_TUNABLES]; /* of the row that lowers it, in the order of its tunables */
    clt_status status;      /* the first error; later calls do nothing */

    clt_launch *launches;
    size_t n_launches, launches_capacity;
    clt_module *modules; /* unique by text; texts of generated ones are owned here */
    char **owned_texts;  /* NULL where the text is embedded */
    size_t n_modules, modules_capacity, owned_capacity;
    clt_scratch *scratch;
    size_t n_scratch, scratch_capacity;
} clt_lowering;

/* Begins a launch of a kernel of an embedded module: "reference/matmul.cl". One-dimensional,
 * `count` work-items rounded up to work-groups of `group`; kernels check their bound. */
void clt_launch_begin(clt_lowering *l, const char *path, const char *kernel, int64_t count, int group);
/* The same for tensors of a floating-point type and the node's size: CLT_STORAGE and CLT_INDEX of cl/prelude.cl. */
void clt_launch_begin_typed(clt_lowering *l, const char *path, clt_dtype storage, const char *kernel, int64_t count, int group);
/* The same for CLT_FLOATS of cl/prelude.cl, `width` elements each, 1, 4 or 8, and CLT_STORAGE. */
void clt_launch_begin_floats(clt_lowering *l, const char *path, int width, clt_dtype storage, const char *kernel, int64_t count, int group);
/* The same with a module whose text was generated; `text` is copied. */
void clt_launch_begin_text(clt_lowering *l, const char *label, const char *text, bool isolated,
                           const char *kernel, int64_t count, int group);

/* The same with any module; its text is copied. */
void clt_launch_begin_module(clt_lowering *l, const clt_module *module, const char *kernel, int64_t count, int group);

/* Begins a call of a library, whose arguments are tensors and scratch; takes its state over. */
void clt_launch_begin_call(clt_lowering *l, const char *name, const clt_call *call);
/* A kernel for the launch, whose module is built; a call's state is its from then on. */
clt_status clt_launch_kernel(clt_lowering *l, clt_launch *launch, clt_kernel **kernel);

/* The launch keeps its work-groups as they were asked for, for a kernel that says reqd_work_group_size;
 * fails if the device has none so large. Rows require CLT_CAP_GROUPS and look at the device's limit. What
 * a driver tells of the kernel is not asked: rusticl's limit is 32 where it runs 256. */
void clt_launch_fix_group(clt_lowering *l, int group);

/* The launch's next argument. */
void clt_launch_tensor(clt_lowering *l, const clt_tensor *tensor);
void clt_launch_scratch(clt_lowering *l, int scratch);
void clt_launch_int(clt_lowering *l, int64_t value); /* int; fails past 31 bits */
void clt_launch_ints(clt_lowering *l, const int64_t *values, int n, int width); /* int4 or int8, rest 0 */
/* What the kernel takes as CLT_INDEX, or a vector of it. */
void clt_launch_index(clt_lowering *l, int64_t value);
void clt_launch_indices(clt_lowering *l, const int64_t *values, int n, int width);
void clt_launch_float(clt_lowering *l, float value);

/* Strides, in elements, of x's dimensions but the last `trailing` ones over those of a result that x
 * stretches to: right-aligned in CLT_MAX_RANK, 0 where it is stretched. */
void clt_broadcast_strides(const clt_tensor *x, int trailing, int64_t strides[CLT_MAX_RANK]);

/* Reserves scratch memory for the node; gives its index. */
int clt_lower_scratch(clt_lowering *l, size_t bytes);

/* Keeps an error of the row itself. */
void clt_lower_fail(clt_lowering *l, clt_status status);

/* Builds the kernels of all launches. */
clt_status clt_lowering_build(const clt_lowering *l);

void clt_lowering_free(clt_lowering *l);

/* ---- rows ---- */

/* A parameter of a row that changes how fast it is and never, but for rounding, what it computes: the
 * rows of a tile, the parts of a split sum. */
typedef struct clt_tunable {
    const char *name;
    int n;
    int values[8]; /* what may be tried; the first is the default if the row has no `defaults` */
} clt_tunable;

/* A row, asked whether and how it would serve a node on a device. */
typedef struct clt_candidate {
    const clt_backend_row *row;
    const clt_tensor *node;
    clt_device *device;
} clt_candidate;

struct clt_backend_row {
    const clt_op *op;
    const char *name;  /* of the backend: "reference" */
    const void *data;  /* what sets the row apart from others that share its functions; NULL: nothing */
    unsigned requires; /* bit per clt_capability that must be there */
    unsigned types;    /* bit per clt_dtype: floating-point types of tensors that it reads and writes; 0: f32 alone */
    bool large;        /* serves tensors of 2^31 elements and more */
    /* Looks at the layouts of the node's tensors in `supports`; else all must be contiguous. */
    bool any_layout;
    /* Serves only where a tuning result or the setting `backends` names it, never by default. */
    bool on_demand;
    /* The part of the op's arithmetic, as clt_node_cost counts it, that the algorithm does; 0: all of it; NAN: not known. */
    double arithmetic;
    bool epilogue; /* applies the node's epilogue (backends/codegen.h); else serves none with one */
    bool any_epilogue; /* also one whose operands or result have 16 bits, whatever the node's own operands have */
    /* NULL: any node of the op on any device. No side effects. */
    bool (*supports)(const clt_candidate *c);
    /* Appends launches that compute the node, in order. Errors stick in `l`. May append none. */
    void (*lower)(clt_lowering *l, const clt_tensor *node);

    const clt_tunable *tunables; /* at most CLT_MAX_TUNABLES, ended by one without a name; NULL: none */
    /* The best guess for a node; NULL: the first value of each. */
    void (*defaults)(const clt_candidate *c, int *parameters);
    /* Whether values that are allowed one by one go together; NULL: they do. */
    bool (*valid)(const clt_candidate *c, const int *parameters);
};

/* The row that serves a node, and its parameters. */
typedef struct clt_choice {
    const clt_backend_row *row; /* NULL: there is none */
    int parameters[CLT_MAX_TUNABLES];
} clt_choice;

/* The tables of rows, in order of precedence, least first: X(gpu) is clt_gpu_rows, ended by a row without op. A row is in its
 * own file alone, and the table of a new file a name here. */
#define CLT_BACKEND_TABLES(X) \
    X(reference_pointwise) X(reference_fused_reduce) X(reference_matmul) X(reference_conv2d)   \
    X(reference_pool2d) X(reference_batch_norm) X(reference_layer_norm) X(reference_reduce)    \
    X(reference_copy) X(reference_dropout) X(reference_embedding) X(reference_softmax)         \
    X(reference_cross_entropy) X(reference_user_op) X(reference_optimizer)                     \
    X(reference_compress) X(reference_topk) X(reference_powersgd) X(reference_metric)          \
    X(reference_attention) X(reference_cache) X(reference_ignore_index) X(reference_along)     \
    X(reference_one_hot)                                                                       \
    X(workgroup_softmax) X(workgroup_layer_norm) X(workgroup_batch_norm)                       \
    X(cpu_pointwise) X(cpu_fused_reduce) X(cpu_copy) X(cpu_embedding) X(cpu_columns)           \
    X(cpu_along) X(cpu_pool2d)                                                                 \
    X(cpu_matmul) X(cpu_matmul_few) X(cpu_conv2d)                                              \
    X(cpu_conv2d_last) X(cpu_winograd) X(cpu_winograd_weight) X(gpu)                           \
    X(gpu_pointwise) X(gpu_embedding) X(gpu_columns) X(gpu_copy) X(gpu_along)                  \
    X(gpu_batch_norm) X(gpu_pool2d) X(gpu_reduce) X(gpu_fused_reduce) X(cpu_attention)         \
    X(gpu_attention) X(matrix) X(native_optimizer) X(clblast) X(clfft)

#define CLT_DECLARE_TABLE(name) extern const clt_backend_row clt_##name##_rows[];
CLT_BACKEND_TABLES(CLT_DECLARE_TABLE)
#undef CLT_DECLARE_TABLE

/* What is left of a node's arithmetic with this row; 0: not known. */
double clt_backend_flops(const clt_backend_row *row, double flops);

/* True if the row can serve the node on this device and the setting `backends` does not mask it (names to use, or "-name" not to
 * use). */
bool clt_backend_fits(const clt_backend_row *row, const clt_tensor *node, clt_device *device);

/* Whether that setting names the backend, rather than just letting it be. */
bool clt_backend_is_named(const clt_device *device, const char *name);

/* The next row after `row` (NULL: the first) that serves the op (NULL: any), in order of precedence, least first. */
const clt_backend_row *clt_backend_next(const clt_op *op, const clt_backend_row *row);

/* Why the row cannot serve the node there, in words; NULL if it can. */
const char *clt_backend_refusal(const clt_backend_row *row, const clt_tensor *node, clt_device *device);
/* True if that setting leaves the row in use. */
bool clt_backend_allowed(const clt_backend_row *row, const clt_device *device);
/* CLT_E_INVALID where a word of such a list is the name of no backend. `setting`: for the message. */
clt_status clt_backend_check_list(const char *setting, const char *list);
/* The row that others are compared with, on a plain copy of the node: the first that supports it, whatever the layouts, the
 * epilogue, and the setting `backends`. NULL: there is none. */
const clt_backend_row *clt_backend_oracle(const clt_tensor *node, clt_device *device);
/* Whether all operands are of the result's type, for kernels that know one. */
bool clt_node_has_one_type(const clt_tensor *node);
/* Whether places in one of the node's tensors do not fit 31 bits. */
bool clt_node_is_large(const clt_tensor *node);
/* A row's default parameters for a node. */
void clt_backend_defaults(const clt_backend_row *row, const clt_tensor *node, clt_device *device, int *parameters);
/* Whether the choice's parameters go together for a node. */
bool clt_backend_valid(const clt_choice *choice, const clt_tensor *node, clt_device *device);

/* The row that serves a node on a device, and its parameters: what tuning found best (tune/), else the last
 * that fits, with its defaults. */
clt_choice clt_backend_choose(const clt_tensor *node, clt_device *device);

/* One more table, which overrides all others, ended by a row without op; for tests. */
extern const clt_backend_row *clt_backend_more_rows;

/* Lowers one node by its chosen row. */
clt_status clt_backend_lower(clt_lowering *l, const clt_tensor *node);
/* Lowers it by this row with these parameters. */
clt_status clt_backend_lower_with(clt_lowering *l, const clt_tensor *node, const clt_choice *choice);

#endif
