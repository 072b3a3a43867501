/* Images in other sizes: resizing, transposed convolutions, pixels as channels. */
#include <math.h>
#include <string.h>

#include "runtime/exchange/onnx/onnx.h"
#include "runtime/ops/ops.h"

/* ---- resizing ---- */

typedef struct resizing {
    const char *mode, *place, *nearest; /* how values, coordinates, and the nearest pixel are found */
    float cubic;                        /* a of Keys' cubic convolution (1981) */
    bool antialias, exclude_outside;
} resizing;

/* The place in the input of a place of the output; `exact` is its size before it became a whole number, as ONNX's own implementation has it. For
 * corners that are aligned PyTorch takes the whole one, also where it has exported a scale. In float, whose rounding decides which pixel is nearest. */
static double place_of(const resizing *r, double at, double scale, double in, double out, double exact) {
    if (!strcmp(r->place, "asymmetric")) return (double)((float)at / (float)scale);
    if (!strcmp(r->place, "align_corners")) return exact != 1 ? at * (in - 1) / (exact - 1) : 0;
    if (!strcmp(r->place, "pytorch_half_pixel") && exact == 1) return 0;
    double half = (double)(((float)at + 0.5f) / (float)scale - 0.5f);
    return strcmp(r->place, "half_pixel_symmetric") ? half : in / 2 * (1 - out / exact) + half;
}

static double kernel_at(const resizing *r, double x) {
    double a = (double)r->cubic;
    x = fabs(x);
    if (!strcmp(r->mode, "linear")) return x < 1 ? 1 - x : 0;
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static int64_t nearest_to(const resizing *r, double x) {
    if (!strcmp(r->nearest, "floor")) return (int64_t)floor(x);
    if (!strcmp(r->nearest, "ceil")) return (int64_t)ceil(x);
    return (int64_t)(strcmp(r->nearest, "round_prefer_ceil") ? ceil(x - 0.5) : floor(x + 0.5));
}

/* Row `to` of the matrix: what each of `in` places gives to one of the output. Places outside are the edge's. */
static void fill_row(const resizing *r, double x, double scale, int64_t in, float *row) {
    if (!strcmp(r->mode, "nearest")) {
        row[CLT_MAX(CLT_MIN(nearest_to(r, x), in - 1), 0)] = 1;
        return;
    }
    double width = r->antialias && scale < 1 ? scale : 1, sum = 0, reach = (strcmp(r->mode, "linear") ? 2 : 1) / width, whole = floor(x);
    for (int64_t i = (int64_t)(whole - reach) - 1; i <= (int64_t)(whole + reach) + 1; i++) {
        double weight = kernel_at(r, ((double)i - x) * width);
        bool outside = i < 0 || i >= in;
        if (weight == 0 || (outside && r->exclude_outside)) continue;
        sum += weight;
        row[CLT_MAX(CLT_MIN(i, in - 1), 0)] += (float)weight;
    }
    for (int64_t i = 0; sum != 0 && (r->antialias || r->exclude_outside) && i < in; i++) row[i] = (float)((double)row[i] / sum);
}

/* Along one axis, by a product with the matrix [in, out]; *elements counts those of all matrices. */
static clt_status resize_axis(clt_onnx_call *c, const resizing *r, clt_tensor **x, int axis, int64_t out, double scale, int64_t *elements) {
    enum { MOST_ELEMENTS = 1 << 22 };
    int64_t in = (*x)->shape.dims[axis];
    float *matrix, *row;
    CLT_TRY(clt_onnx_check_numbers(*x, axis, axis + 1));
    if (!(scale > 0) || 1 / scale > 4 * (double)in) return clt_fail(CLT_E_UNSUPPORTED, "a scale of %g for %lld places", scale, (long long)in);
    if (out < 1 || in > (MOST_ELEMENTS - *elements) / out) return clt_fail(CLT_E_UNSUPPORTED, "from %lld places to %lld", (long long)in, (long long)out);
    *elements += in * out;
    CLT_TRY(clt_arena_take(&c->onnx->build, (size_t)(in * out), sizeof *matrix, &matrix));
    CLT_TRY(clt_arena_take(&c->onnx->build, (size_t)in, sizeof *row, &row));
    bool whole = !strcmp(c->onnx->file.model.producer, "pytorch") && !strcmp(r->place, "align_corners");
    for (int64_t o = 0; o < out; o++) {
        memset(row, 0, (size_t)in * sizeof *row);
        fill_row(r, place_of(r, (double)o, scale, (double)in, (double)out, whole ? (double)out : scale * (double)in), scale, in, row);
        for (int64_t i = 0; i < in; i++) matrix[i * out + o] = row[i];
    }
    clt_tensor *weights;
    int last = (*x)->shape.rank - 1;
    CLT_TRY(clt_onnx_constant_array(c, &(clt_array){CLT_F32, CLT_SHAPE(in, out), matrix}, &weights));
    clt_tensor *turned = axis == last ? *x : clt_transpose(*x, axis, last);
    turned = turned->shape.rank == 1 ? clt_squeeze(clt_matmul(clt_unsqueeze(turned, 0), weights), 0) : clt_matmul(turned, weights);
    *x = axis == last ? turned : clt_transpose(turned, axis, last);
    return clt_graph_status(c->graph);
}

/* The ops that do the same without a matrix; NULL: none does. */
static clt_tensor *resize_image(const resizing *r, clt_tensor *x, const int64_t out[CLT_MAX_RANK], const double scales[CLT_MAX_RANK]) {
    if (x->shape.rank != 4 || out[0] != x->shape.dims[0] || out[1] != x->shape.dims[1]) return NULL;
    bool half = !strcmp(r->place, "half_pixel") || !strcmp(r->place, "pytorch_half_pixel"), plain = !strcmp(r->place, "asymmetric");
    bool whole = scales[2] == scales[3] && scales[2] == floor(scales[2]) && scales[2] >= 1 && scales[2] <= CLT_MAX_WINDOW;
    if (!strcmp(r->mode, "nearest"))
        return whole && ((plain && !strcmp(r->nearest, "floor")) || (half && !strncmp(r->nearest, "round", 5))) ? clt_upsample_nearest2d(x, (int)scales[2]) : NULL;
    if (strcmp(r->mode, "linear") || !half || r->antialias || r->exclude_outside || out[2] < 2 || out[3] < 2) return NULL;
    bool exact = scales[2] * (double)x->shape.dims[2] == (double)out[2] && scales[3] * (double)x->shape.dims[3] == (double)out[3];
    return exact ? clt_upsample_bilinear2d(x, out[2], out[3]) : NULL;
}

/* Sizes and scales of all dimensions, of scales or of sizes that the node has for some. */
static clt_status read_sizes(clt_onnx_call *c, const clt_tensor *x, size_t scales_at, size_t sizes_at, int64_t out[CLT_MAX_RANK], double scales[CLT_MAX_RANK]) {
    const clt_literal *known = NULL;
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, "axes", CLT_ONNX_A_INTS), *given = clt_onnx_attribute_of(c->node, "scales", CLT_ONNX_A_FLOATS);
    const char *policy = clt_onnx_text(c, "keep_aspect_ratio_policy", "stretch");
    int axes[CLT_MAX_RANK], n = x->shape.rank;
    if (a && a->n > (size_t)n) return clt_fail(CLT_E_SHAPE, "%zu axes of %d dimensions", a->n, n);
    CLT_TRY(clt_onnx_known(c, scales_at, &known));
    if (known && known->elements == 0) known = NULL;
    clt_onnx_list asked = {.n = 0};
    if (!known && !given && clt_onnx_has(c, sizes_at)) CLT_TRY(clt_onnx_list_of(c, sizes_at, &asked));
    else if (!known && !given) return clt_fail(CLT_E_FORMAT, "it has neither scales nor sizes");
    for (int d = 0; d < n; d++) out[d] = x->shape.dims[d], scales[d] = 1, axes[d] = d;
    if (a) n = (int)a->n;
    for (int i = 0; a && i < n; i++) CLT_TRY(clt_fold_axis(a->ints[i], x->shape.rank, &axes[i]));
    int64_t count = known ? known->elements : given ? (int64_t)given->n : asked.n;
    if (count != n || (known && known->type != CLT_ONNX_FLOAT)) return clt_fail(CLT_E_SHAPE, "%lld sizes of %d dimensions", (long long)count, n);
    clt_shape extent = clt_tensor_extent(x);
    double ratio = 0;
    for (int i = 0; i < n; i++) {
        int d = axes[i];
        if (asked.n && asked.at[i] == extent.dims[d] && (asked.kinds[i] == CLT_ONNX_NUMBER ? asked.at[i] > 0 : asked.kinds[i] == CLT_ONNX_FOLLOWS)) continue; /* also where both are the batch */
        if (asked.n && (asked.kinds[i] != CLT_ONNX_NUMBER || asked.at[i] < 1)) return clt_fail(CLT_E_UNSUPPORTED, "a size that follows the batch, or none");
        scales[d] = known ? (double)known->floats[i] : given ? (double)given->floats[i] : (double)asked.at[i] / (double)x->shape.dims[d];
        if (!(scales[d] > 0) || !(scales[d] * (double)x->shape.dims[d] < 0x1p31)) return clt_fail(CLT_E_SHAPE, "a scale of %g", scales[d]);
        out[d] = asked.n ? asked.at[i] : (int64_t)floorf((float)scales[d] * (float)x->shape.dims[d]);
        if (out[d] < 1) return clt_fail(CLT_E_SHAPE, "a size of %lld", (long long)out[d]);
        bool larger = !strcmp(policy, "not_smaller");
        if (ratio == 0 || (larger ? scales[d] > ratio : scales[d] < ratio)) ratio = scales[d];
    }
    for (int i = 0; asked.n && strcmp(policy, "stretch") && ratio > 0 && i < n; i++) {
        scales[axes[i]] = ratio;
        out[axes[i]] = (int64_t)floor(ratio * (double)x->shape.dims[axes[i]] + 0.5);
        if (out[axes[i]] < 1) return clt_fail(CLT_E_SHAPE, "a size of %lld", (long long)out[axes[i]]);
    }
    return CLT_OK;
}

static bool is_word(const char *word, const char *const *words) {
    while (*words && strcmp(*words, word)) words++;
    return *words;
}

static clt_status check_resizing(const resizing *r) {
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL}, *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL};
    static const char *const places[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", NULL};
    if (!is_word(r->mode, modes)) return clt_fail(CLT_E_UNSUPPORTED, "mode %.40s", r->mode);
    if (!is_word(r->place, places)) return clt_fail(CLT_E_UNSUPPORTED, "coordinate_transformation_mode %.40s", r->place);
    return is_word(r->nearest, nearest) ? CLT_OK : clt_fail(CLT_E_UNSUPPORTED, "nearest_mode %.40s", r->nearest);
}

/* Before opset 11, and as Upsample, pixels begin at the same edge, and the nearest is the one before. */
static clt_status map_resize(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    int64_t sizes[CLT_MAX_RANK] = {0};
    double scales[CLT_MAX_RANK] = {0};
    bool upsample = !strcmp(c->node->op, "Upsample"), old = upsample || c->opset < 11;
    resizing r = {.mode = clt_onnx_text(c, "mode", "nearest"), .place = old ? "asymmetric" : clt_onnx_text(c, "coordinate_transformation_mode", "half_pixel"),
                  .nearest = old ? "floor" : clt_onnx_text(c, "nearest_mode", "round_prefer_floor"), .cubic = clt_onnx_float_attribute(c, "cubic_coeff_a", -0.75f),
                  .antialias = clt_onnx_int(c, "antialias", 0), .exclude_outside = clt_onnx_int(c, "exclude_outside", 0)};
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(check_resizing(&r));
    CLT_TRY(read_sizes(c, x, old ? 1 : 2, old ? SIZE_MAX : 3, sizes, scales));
    out[0] = resize_image(&r, x, sizes, scales);
    if (out[0]) return CLT_OK;
    int64_t elements = 0;
    clt_shape whole = {.rank = x->shape.rank};
    for (int d = 0; d < whole.rank; d++) whole.dims[d] = sizes[d];
    CLT_TRY(clt_shape_check(&whole, "its result")); /* before matrices are made for it */
    for (int d = 0; d < x->shape.rank; d++)
        if (sizes[d] != x->shape.dims[d] || scales[d] != 1) CLT_TRY(resize_axis(c, &r, &x, d, sizes[d], scales[d], &elements));
    out[0] = x;
    return CLT_OK;
}

/* ---- transposed convolutions ---- */

/* Of both dimensions, of which the op has one number each. */
static clt_status read_pair(const clt_onnx_call *c, const char *name, int dims, int64_t least, int64_t otherwise, int64_t to[2]) {
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, name, CLT_ONNX_A_INTS);
    if (a && a->n != (size_t)dims) return clt_fail(CLT_E_FORMAT, "%s has %zu numbers, not %d", name, a->n, dims);
    for (int d = 0; d < dims; d++) {
        to[d] = a ? a->ints[d] : otherwise;
        if (to[d] < least || to[d] > CLT_MAX_WINDOW) return clt_fail(CLT_E_SHAPE, "%s of %lld", name, (long long)to[d]);
    }
    return CLT_OK;
}

/* All of it, of which padding then takes the edges away. */
static clt_status map_conv_transpose(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x, *weight, *bias = NULL;
    int64_t stride[2], dilation[2], more[2], groups = clt_onnx_int(c, "group", 1);
    const clt_onnx_attribute *pads = clt_onnx_attribute_of(c->node, "pads", CLT_ONNX_A_INTS), *shape = clt_onnx_attribute_of(c->node, "output_shape", CLT_ONNX_A_INTS);
    const char *how = clt_onnx_text(c, "auto_pad", "NOTSET");
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_onnx_float(c, 1, &weight));
    if (clt_onnx_has(c, 2)) CLT_TRY(clt_onnx_float(c, 2, &bias));
    int dims = x->shape.rank - 2;
    if (dims < 1 || dims > 2 || weight->shape.rank != x->shape.rank) return clt_fail(CLT_E_UNSUPPORTED, "a transposed convolution of %d dimensions", dims);
    if (groups < 1 || groups > INT32_MAX) return clt_fail(CLT_E_SHAPE, "%lld groups", (long long)groups);
    CLT_TRY(read_pair(c, "strides", dims, 1, 1, stride));
    CLT_TRY(read_pair(c, "dilations", dims, 1, 1, dilation));
    CLT_TRY(read_pair(c, "output_padding", dims, 0, 0, more));
    if (pads && pads->n != 2 * (size_t)dims) return clt_fail(CLT_E_FORMAT, "pads has %zu numbers, not %d", pads->n, 2 * dims);
    if (shape && shape->n != (size_t)dims) return clt_fail(CLT_E_UNSUPPORTED, "an output_shape of %zu dimensions", shape->n);
    CLT_TRY(clt_onnx_check_numbers(x, 2, x->shape.rank));
    bool same = !strcmp(how, "SAME_UPPER") || !strcmp(how, "SAME_LOWER");
    int64_t before[CLT_MAX_RANK] = {0}, after[CLT_MAX_RANK] = {0}, first[2], last[2];
    bool flat = dims == 1; /* an image of height 1 */
    if (x->shape.dims[1] % groups) return clt_fail(CLT_E_SHAPE, "%lld groups do not divide the channels", (long long)groups);
    const clt_conv2d_attributes at = {.stride_h = flat ? 1 : (int)stride[0], .stride_w = (int)stride[dims - 1], .dilation_h = flat ? 1 : (int)dilation[0],
                                      .dilation_w = (int)dilation[dims - 1], .groups = (int)groups};
    clt_tensor *y = flat ? clt_squeeze(clt_conv_transpose2d_by(clt_unsqueeze(x, 2), clt_unsqueeze(weight, 2), at), 2) : clt_conv_transpose2d_by(x, weight, at);
    if (!clt_tensor_valid(y)) return CLT_OK;
    for (int d = 0; d < dims; d++) {
        int64_t all = y->shape.dims[2 + d] + more[d], wanted = shape ? shape->ints[d] : same ? x->shape.dims[2 + d] * stride[d] : -1;
        int64_t total = wanted < 0 ? 0 : all - wanted;
        bool upper = strcmp(how, "SAME_UPPER") == 0;
        first[d] = wanted < 0 ? (pads ? pads->ints[d] : 0) : upper ? total / 2 : total - total / 2;
        last[d] = wanted < 0 ? (pads ? pads->ints[dims + d] : 0) : total - first[d];
        if (first[d] < 0 || last[d] < -CLT_MAX_WINDOW || last[d] > CLT_MAX_WINDOW) return clt_fail(CLT_E_UNSUPPORTED, "padding of %lld and %lld", (long long)first[d], (long long)last[d]);
        after[2 + d] = more[d];
    }
    y = clt_pad(y, before, after, 0);
    for (int d = 0; d < dims; d++)
        if (clt_tensor_valid(y) && (first[d] || last[d])) y = clt_slice(y, 2 + d, first[d], last[d] > 0 ? y->shape.dims[2 + d] - last[d] : INT64_MAX, 1);
    if (bias) y = clt_add(y, clt_reshape_to(bias, dims == 1 ? CLT_SHAPE(bias->shape.dims[0], 1) : CLT_SHAPE(bias->shape.dims[0], 1, 1)));
    out[0] = y;
    return CLT_OK;
}

/* ---- pixels as channels ---- */

/* [N, C b b, H, W] -> [N, C, H b, W b], or back. */
static clt_status map_depth_space(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    int64_t block = clt_onnx_int(c, "blocksize", 0);
    bool to_space = !strcmp(c->node->op, "DepthToSpace"), crd = !strcmp(clt_onnx_text(c, "mode", "DCR"), "CRD");
    CLT_TRY(clt_onnx_float(c, 0, &x));
    if (x->shape.rank != 4 || block < 1 || block > CLT_MAX_WINDOW) return clt_fail(CLT_E_SHAPE, "%d dimensions, blocks of %lld", x->shape.rank, (long long)block);
    CLT_TRY(clt_onnx_check_numbers(x, 1, 4));
    int64_t n = clt_tensor_extent(x).dims[0], channels = x->shape.dims[1], h = x->shape.dims[2], w = x->shape.dims[3];
    if (to_space ? channels % (block * block) : h % block || w % block) return clt_fail(CLT_E_SHAPE, "blocks of %lld do not divide it", (long long)block);
    if (to_space) {
        int64_t depth = channels / (block * block);
        static const int dcr[] = {0, 3, 4, 1, 5, 2}, columns[] = {0, 1, 4, 2, 5, 3};
        x = clt_reshape_to(x, crd ? CLT_SHAPE(n, depth, block, block, h, w) : CLT_SHAPE(n, block, block, depth, h, w));
        out[0] = clt_reshape_to(clt_permute(x, crd ? columns : dcr), CLT_SHAPE(n, depth, h * block, w * block));
        return CLT_OK;
    }
    x = clt_reshape_to(x, CLT_SHAPE(n, channels, h / block, block, w / block, block));
    out[0] = clt_reshape_to(clt_permute(x, (const int[]){0, 3, 5, 1, 2, 4}), CLT_SHAPE(n, channels * block * block, h / block, w / block));
    return CLT_OK;
}

const clt_onnx_rule clt_onnx_image_rules[] = {
    {"Resize", map_resize}, {"Upsample", map_resize}, {"ConvTranspose", map_conv_transpose}, {"DepthToSpace", map_depth_space}, {"SpaceToDepth", map_depth_space}, {0},
};
