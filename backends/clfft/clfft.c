/*
 * Convolution with large filters by Fourier transforms (clFFT): both operands are transformed, their
 * spectra multiplied and summed, the result transformed back. Stride 1, dilation 1, one group.
 *
 *   forward      Y[n, o]  = sum over c of X[n, c]  conj W[o, c]
 *   grad_input   DX[n, c] = sum over o of DY[n, o] W[o, c]
 *   grad_weight  DW[o, c] = sum over n of X[n, c]  conj DY[n, o]
 *
 * on pictures of at least the size of the padded image, so that nothing comes round its end into what
 * is kept. clFFT compiles kernels for each size, for seconds: these rows serve on demand only.
 */
#include "backends/backend.h"

#ifdef CLT_WITH_CLFFT
#include <clFFT.h>
#include <math.h>

#include "runtime/base/thread.h"

/* ---- sizes ---- */

/* The least 2^a 3^b 5^c that is not below, even: a width is halved in spectra. */
static int64_t smooth(int64_t least) {
    for (int64_t size = least + least % 2;; size += 2) {
        int64_t rest = size;
        for (int prime = 2; prime <= 5; prime += prime == 2 ? 1 : 2)
            while (rest % prime == 0) rest /= prime;
        if (rest == 1) return size;
    }
}

/* A stack of pictures: an operand or the result. */
typedef struct stack {
    const clt_tensor *tensor;
    int64_t count, height, width;
    int64_t before_h, before_w; /* where it begins in the large picture */
} stack;

typedef struct convolution {
    stack a, b, c;
    int64_t height, width; /* of the large pictures */
    int64_t i, j, k;       /* see clfft_multiply in cl/clfft/conv2d.cl */
    int64_t a_step[2], b_step[2], c_step[2];
    float sign;
} convolution;

static stack stack_of(const clt_tensor *tensor, int64_t before_h, int64_t before_w) {
    const int64_t *d = tensor->shape.dims;
    return (stack){tensor, d[0] * d[1], d[2], d[3], before_h, before_w};
}

static convolution convolution_of(const clt_tensor *node) {
    const clt_conv2d_attributes *at = node->attributes;
    const clt_tensor *first = node->inputs[0], *second = node->inputs[1];
    convolution v = {.sign = -1};
    int64_t n, o, c; /* images, channels of the result, of the image */
    const clt_shape *image;
    if (node->op == &clt_op_conv2d) {
        image = &first->shape, n = image->dims[0], o = node->shape.dims[1], c = image->dims[1];
        v.a = stack_of(first, at->padding_h, at->padding_w);
        v.b = stack_of(second, 0, 0);
        v.c = stack_of(node, 0, 0);
        v.i = n, v.j = o, v.k = c;
        v.a_step[0] = c, v.a_step[1] = 1, v.b_step[0] = c, v.b_step[1] = 1, v.c_step[0] = o, v.c_step[1] = 1;
    } else if (node->op == &clt_op_conv2d_grad_input) {
        image = &node->shape, n = image->dims[0], o = second->shape.dims[1], c = image->dims[1];
        v.a = stack_of(second, 0, 0);
        v.b = stack_of(first, 0, 0);
        v.c = stack_of(node, at->padding_h, at->padding_w);
        v.i = n, v.j = c, v.k = o, v.sign = 1;
        v.a_step[0] = o, v.a_step[1] = 1, v.b_step[0] = 1, v.b_step[1] = c, v.c_step[0] = c, v.c_step[1] = 1;
    } else {
        image = &first->shape, n = image->dims[0], o = second->shape.dims[1], c = image->dims[1];
        v.a = stack_of(first, at->padding_h, at->padding_w);
        v.b = stack_of(second, 0, 0);
        v.c = stack_of(node, 0, 0);
        v.i = c, v.j = o, v.k = n;
        v.a_step[0] = 1, v.a_step[1] = c, v.b_step[0] = 1, v.b_step[1] = o, v.c_step[0] = 1, v.c_step[1] = c;
    }
    v.height = smooth(image->dims[2] + 2 * at->padding_h);
    v.width = smooth(image->dims[3] + 2 * at->padding_w);
    return v;
}

static int64_t frequencies(const convolution *v) {
    return v->height * (v->width / 2 + 1);
}

static bool supports(const clt_candidate *c) {
    enum { LEAST_FILTER = 49, MOST_SUM = 32768 /* rounds of a loop: cl/prelude.cl */ };
    const clt_conv2d_attributes *at = c->node->attributes;
    if (clt_device_get_class(c->device) != CLT_CLASS_GPU && !clt_backend_is_named(c->device, "clfft")) return false;
    if (at->kernel_h * at->kernel_w < LEAST_FILTER || at->stride_h > 1 || at->stride_w > 1 || at->dilation_h > 1 ||
        at->dilation_w > 1 || at->groups > 1)
        return false;
    convolution v = convolution_of(c->node);
    double most = (double)CLT_MAX(CLT_MAX(v.a.count, v.b.count), v.c.count) * (double)frequencies(&v) * 2;
    return v.k <= MOST_SUM && most < INT32_MAX &&
           most * sizeof(float) <= (double)clt_device_get_info(c->device)->max_buffer_bytes;
}

/* ---- transforms ---- */

/* clFFT keeps its plans in one place for the whole program. It is set up while there are any: a
 * program that ends without clfftTeardown is told so on its streams. */
static clt_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static int users;

typedef struct transform {
    clfftPlanHandle plan;
    clfftDirection direction;
} transform;

/* Some drivers do not build some of the kernels that clFFT writes; it notices when it wants to run them. */
static clt_status fail(const char *what, clfftStatus code) {
    if (code == CLFFT_INVALID_PROGRAM || code == CLFFT_INVALID_PROGRAM_EXECUTABLE || code == CLFFT_BUILD_PROGRAM_FAILURE)
        return clt_fail(CLT_E_UNSUPPORTED, "clFFT's kernels for these lengths do not build on this device (error %d)", (int)code);
    return clt_fail(CLT_E_DEVICE, "clFFT's error %d in %s", (int)code, what);
}

/* As clfftInitSetupData does, which is an inline function that compilers need not have where they do not inline. */
static clfftStatus enter(void) {
    const clfftSetupData data = {.major = clfftVersionMajor, .minor = clfftVersionMinor, .patch = clfftVersionPatch};
    clfftStatus code = CLFFT_SUCCESS;
    if (users == 0) code = clfftSetup(&data);
    if (code == CLFFT_SUCCESS) users++;
    return code;
}

static void leave(void) {
    if (--users == 0) clfftTeardown();
}

/* Pictures to spectra, or back, one behind the other. */
static clfftStatus make_plan(clfftPlanHandle *plan, cl_context context, cl_command_queue queue, const convolution *v,
                             int64_t count, bool back) {
    size_t lengths[] = {(size_t)v->width, (size_t)v->height};
    size_t real[] = {1, lengths[0]}, complex[] = {1, lengths[0] / 2 + 1};
    size_t real_step = lengths[0] * lengths[1], complex_step = complex[1] * lengths[1];
    clfftStatus code = clfftCreateDefaultPlan(plan, context, CLFFT_2D, lengths);
    if (code != CLFFT_SUCCESS) return code;
    code = clfftSetPlanPrecision(*plan, CLFFT_SINGLE);
    if (code == CLFFT_SUCCESS)
        code = back ? clfftSetLayout(*plan, CLFFT_HERMITIAN_INTERLEAVED, CLFFT_REAL)
                    : clfftSetLayout(*plan, CLFFT_REAL, CLFFT_HERMITIAN_INTERLEAVED);
    if (code == CLFFT_SUCCESS) code = clfftSetResultLocation(*plan, CLFFT_OUTOFPLACE);
    if (code == CLFFT_SUCCESS) code = clfftSetPlanInStride(*plan, CLFFT_2D, back ? complex : real);
    if (code == CLFFT_SUCCESS) code = clfftSetPlanOutStride(*plan, CLFFT_2D, back ? real : complex);
    if (code == CLFFT_SUCCESS)
        code = clfftSetPlanDistance(*plan, back ? complex_step : real_step, back ? real_step : complex_step);
    if (code == CLFFT_SUCCESS) code = clfftSetPlanBatchSize(*plan, (size_t)count);
    if (code == CLFFT_SUCCESS) code = clfftBakePlan(*plan, 1, &queue, NULL, NULL);
    if (code != CLFFT_SUCCESS) clfftDestroyPlan(plan);
    return code;
}

static void release(void *state) {
    transform *t = state;
    clt_mutex_lock(&lock);
    clfftDestroyPlan(&t->plan);
    leave();
    clt_mutex_unlock(&lock);
    clt_free(t);
}

static clt_status run(clt_device *device, clt_memory *const *arguments, void *state) {
    transform *t = state;
    cl_command_queue queue = clt_device_handles(device).queue;
    cl_mem from = clt_memory_handle(arguments[0]), to = clt_memory_handle(arguments[1]);
    clfftStatus code = clfftEnqueueTransform(t->plan, t->direction, 1, &queue, 0, NULL, NULL, &from, &to, NULL);
    return code == CLFFT_SUCCESS ? CLT_OK : fail("a transform", code);
}

static void launch_transform(clt_lowering *l, const convolution *v, int64_t count, int from, int to, bool back) {
    clt_handles handles = clt_device_handles(l->device);
    transform *t = l->status == CLT_OK ? clt_alloc(sizeof *t) : NULL;
    if (!t) {
        clt_lower_fail(l, clt_fail_memory(sizeof *t));
        return;
    }
    t->direction = back ? CLFFT_BACKWARD : CLFFT_FORWARD;
    clt_mutex_lock(&lock);
    clfftStatus code = enter();
    if (code == CLFFT_SUCCESS) {
        code = make_plan(&t->plan, handles.context, handles.queue, v, count, back);
        if (code != CLFFT_SUCCESS) leave();
    }
    clt_mutex_unlock(&lock);
    if (code != CLFFT_SUCCESS) {
        clt_free(t);
        clt_lower_fail(l, fail("making a plan", code));
        return;
    }
    clt_launch_begin_call(l, "clfftEnqueueTransform", &(clt_call){.run = run, .state = t, .release = release});
    clt_launch_scratch(l, from);
    clt_launch_scratch(l, to);
}

/* ---- rows ---- */

enum { GROUP = 64 };

static void launch_sizes(clt_lowering *l, const convolution *v, const stack *s) {
    clt_launch_ints(l, (int64_t[]){s->count, s->height, s->width}, 3, 4);
    clt_launch_ints(l, (int64_t[]){v->height, v->width, s->before_h, s->before_w}, 4, 4);
}

static int scratch(clt_lowering *l, int64_t floats) {
    return clt_lower_scratch(l, (size_t)floats * sizeof(float));
}

/* The stack's spectra, in scratch that is returned; `real` is memory for pictures. */
static int launch_forward(clt_lowering *l, const convolution *v, const stack *s, int real) {
    int spectra = scratch(l, 2 * s->count * frequencies(v));
    clt_launch_begin(l, "clfft/conv2d.cl", "clfft_pad", s->count * v->height * v->width, GROUP);
    clt_launch_tensor(l, s->tensor);
    clt_launch_scratch(l, real);
    launch_sizes(l, v, s);
    launch_transform(l, v, s->count, real, spectra, false);
    return spectra;
}

static void launch_multiply(clt_lowering *l, const convolution *v, int a, int b, int c) {
    int64_t tiles = ((v->i + 3) / 4) * ((v->j + 3) / 4);
    clt_launch_begin(l, "clfft/conv2d.cl", "clfft_multiply", tiles * frequencies(v), GROUP);
    clt_launch_scratch(l, a);
    clt_launch_scratch(l, b);
    clt_launch_scratch(l, c);
    clt_launch_ints(l, (int64_t[]){v->i, v->j, v->k, frequencies(v)}, 4, 4);
    clt_launch_ints(l, (int64_t[]){v->a_step[0], v->a_step[1], v->b_step[0], v->b_step[1]}, 4, 4);
    clt_launch_ints(l, v->c_step, 2, 2);
    clt_launch_float(l, v->sign);
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    convolution v = convolution_of(node);
    int64_t most = CLT_MAX(CLT_MAX(v.a.count, v.b.count), v.c.count);
    int real = scratch(l, most * v.height * v.width), c = scratch(l, 2 * v.c.count * frequencies(&v));
    int a = launch_forward(l, &v, &v.a, real), b = launch_forward(l, &v, &v.b, real);
    launch_multiply(l, &v, a, b, c);
    launch_transform(l, &v, v.c.count, c, real, true);
    clt_launch_begin(l, "clfft/conv2d.cl", "clfft_crop", v.c.count * v.c.height * v.c.width, GROUP);
    clt_launch_scratch(l, real);
    clt_launch_tensor(l, node);
    launch_sizes(l, &v, &v.c);
}

#define ROW(suffix) \
    {.op = &clt_op_##suffix, .name = "clfft", .on_demand = true, .arithmetic = NAN, .supports = supports, .lower = lower}

const clt_backend_row clt_clfft_rows[] = {ROW(conv2d), ROW(conv2d_grad_input), ROW(conv2d_grad_weight), {0}};
#else
const clt_backend_row clt_clfft_rows[] = {{0}};
#endif
