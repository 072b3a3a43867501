/*
 * ONNX files (https://onnx.ai): networks that other frameworks export, as graphs to train or to predict with.
 *
 *     clt_onnx *onnx;
 *     if (clt_onnx_open(&onnx, "model.onnx") < 0 || clt_onnx_build(onnx, graph, NULL) < 0) puts(clt_error_detail());
 *     clt_tensor *label = clt_input(graph, "label", CLT_I32, CLT_SHAPE(32));
 *     clt_tensor *loss = clt_cross_entropy(clt_onnx_output(onnx, NULL), label);
 *
 * The graph's inputs become inputs under their names, its weights parameters. A file is never trusted: every error names it and the
 * node, and memory is bounded by the file's size.
 */
#ifndef CLTRAIN_ONNX_H
#define CLTRAIN_ONNX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cltrain/export.h>
#include <cltrain/graph.h>
#include <cltrain/preprocessing.h>
#include <cltrain/status.h>
#include <cltrain/train.h>

CLT_BEGIN_DECLS

/* A file that was read. It outlives the trainers and predictors of graphs that were built from it, which read their first weights through
 * it. One thread at a time. */
typedef struct clt_onnx clt_onnx;

/* Reads the graph, and of the weights nothing. CLT_E_IO, CLT_E_FORMAT (malformed, or a graph in which a name is made twice or read before it is
 * made), CLT_E_UNSUPPORTED (an opset that is not known, or more than 131072 nodes), CLT_E_RANGE, CLT_E_NO_MEMORY. */
CLT_API clt_status clt_onnx_open(clt_onnx **onnx, const char *path);
CLT_API void clt_onnx_close(clt_onnx *onnx); /* NULL is fine */

/* The inputs that are no weights, and the outputs, in the file's order; NULL: no more. */
CLT_API const char *clt_onnx_input_name(const clt_onnx *onnx, size_t index);
CLT_API const char *clt_onnx_output_name(const clt_onnx *onnx, size_t index);
/* The name of a dimension of input `index`, "" where it has none; NULL: it is a number, or there is no such dimension. */
CLT_API const char *clt_onnx_input_symbol(const clt_onnx *onnx, size_t index, int dimension);

/* What the samples were that a network of clt_onnx_export was trained on (its metadata "cltrain.preprocessing"); the caller's to destroy. CLT_E_NOT_FOUND: the
 * file does not tell. CLT_E_FORMAT. */
CLT_API clt_status clt_onnx_preprocessing(const clt_onnx *onnx, clt_preprocessing **preprocessing);

/* The size of a dimension that has a name in the file. */
typedef struct clt_onnx_size {
    const char *symbol;
    int64_t size;
} clt_onnx_size;

/* An input that is a constant from here on: axes or sizes that the file leaves open. The values are not copied before clt_onnx_build returns. */
typedef struct clt_onnx_fixed {
    const char *input;
    clt_array value; /* f32, i32, i64 or u8 */
} clt_onnx_fixed;

typedef struct clt_onnx_options {
    int64_t batch;               /* samples to build for; batches may have others later. Default: what the file says, else 1 */
    const char *batch_symbol;    /* the name of that dimension. Default: of dimension 0 of the first input */
    const char *length_symbol;   /* the name of the dimension that is the length of sequences, which batches may have shorter ones of. Default: none */
    int64_t length;              /* the longest of them; needed where that has a name */
    bool no_batch;               /* no dimension is the batch: all inputs are fixed ones (clt_fixed_input) */
    const clt_onnx_size *sizes;  /* of the other dimensions that have names */
    int n_sizes;
    const clt_onnx_fixed *fixed;
    int n_fixed;
} clt_onnx_options;

/* Adds the network to a graph. CLT_E_UNSUPPORTED: some of it has no counterpart here: clt_onnx_problem_at tells all of what, and the graph is of no
 * use; CLT_E_INVALID: an option names nothing of the file, or a size is missing; CLT_E_SHAPE, CLT_E_FORMAT, CLT_E_NO_MEMORY. `options` may be
 * NULL. Inputs whose dimension 0 is the batch become inputs (clt_input, or clt_sequence_input where one is the length), in the file's order; all others fixed ones. i64 becomes i32, and
 * booleans u8. Weights are f32 tensors of one dimension or more; scalars and integers become constants, and so
 * do those that clt_onnx_export marks. What PyTorch's newer exporter says to be a buffer is a buffer. */
CLT_API clt_status clt_onnx_build(clt_onnx *onnx, clt_graph *graph, const clt_onnx_options *options);

/* An output of the network that was built last, f32, or i32 where the file has integers; booleans are 0 and 1 in f32. `name` NULL: the first. NULL:
 * there is none of that name. */
CLT_API clt_tensor *clt_onnx_output(const clt_onnx *onnx, const char *name);

typedef struct clt_onnx_problem {
    const char *node;   /* its name, or that of its first output */
    const char *op, *domain;
    int64_t opset;      /* of the domain, in this file */
    const char *reason;
} clt_onnx_problem;

/* What kept the file from being built, in its order; NULL: no more. Valid until the next build. */
CLT_API const clt_onnx_problem *clt_onnx_problem_at(const clt_onnx *onnx, size_t index);

/* Writes the file anew, with the weights and running statistics that a trainer of the last build has by now: all other bytes stay, and so do weights that the
 * network does not use. External data are written beside it under their names. Each file is replaced as a whole, or stays as it was; `path` may be the one
 * that was read. CLT_E_INVALID: its external data would replace those of another model in the same folder;
 * CLT_E_NOT_FOUND: the trainer is of another graph; CLT_E_UNSUPPORTED names a weight whose values cannot be replaced; CLT_E_IO. */
CLT_API clt_status clt_onnx_save(clt_onnx *onnx, clt_trainer *trainer, const char *path);

/* Whether clt_onnx_save would replace another model's external data, to be known before a training. CLT_OK, CLT_E_INVALID, CLT_E_IO. */
CLT_API clt_status clt_onnx_check_path(clt_onnx *onnx, const char *path);

typedef struct clt_onnx_export_options {
    bool external_data; /* weights in a file of their own, PATH.data. Default: where the model would have more than 1 GiB */
} clt_onnx_export_options;

/* Writes what computes n tensors of a trainer's graph as an ONNX file (opset 17), for evaluation: with the weights and running statistics of now, and
 * without dropout. Inputs, weights and results keep their names (clt_tensor_set_name); outputs without one are "output", "output_1" and so on. The batch
 * and the length of sequences stay open, as "batch" and "length". Adapters stay beside their weights. The preprocessing of the trainer's options is metadata,
 * "cltrain.preprocessing", and no part of the network. Constants and buffers are marked as such, and clt_onnx_build does not train them. Files are replaced as a whole, or stay as they were. `options` may be NULL. CLT_E_INVALID;
 * CLT_E_UNSUPPORTED: it depends on an op that ONNX has not, which is named: one of the caller's, clt_cache, f16 and bf16; CLT_E_IO. */
CLT_API clt_status clt_onnx_export(clt_trainer *trainer, clt_tensor *const *outputs, int n, const char *path, const clt_onnx_export_options *options);

/* Reads a file that holds a tensor alone, as the .pb files of ONNX's test cases do: f32, i32, i64, and booleans as u8 of 0 and 1. `array` is then to be
 * released with clt_onnx_tensor_free. CLT_E_IO, CLT_E_FORMAT; CLT_E_UNSUPPORTED: another type, or more than CLT_MAX_RANK dimensions. */
CLT_API clt_status clt_onnx_tensor_load(clt_array *array, const char *path);
CLT_API void clt_onnx_tensor_free(clt_array *array);

CLT_END_DECLS

#endif
