/*
 * Graphs and tensors.
 *
 * A graph is a description: nothing runs while it is built. The same graph
 * serves training (the trainer adds gradients and the update) and evaluation.
 *
 * Errors stick. A builder that fails returns the graph's invalid tensor, which
 * every builder accepts and hands on; the first error is kept with the name of
 * the op and the shapes, and is returned when the graph is used
 * (clt_trainer_create) or asked for (clt_graph_status). So user code needs no
 * check on every line. Builders given NULL return NULL.
 *
 * A graph and its tensors belong to one thread at a time. Tensors are owned by
 * their graph and live as long as it does.
 */
#ifndef CLTRAIN_GRAPH_H
#define CLTRAIN_GRAPH_H

#include <stdbool.h>

#include <cltrain/export.h>
#include <cltrain/status.h>
#include <cltrain/tensor.h>

CLT_BEGIN_DECLS

typedef struct clt_graph clt_graph;
typedef struct clt_tensor clt_tensor;

CLT_API clt_status clt_graph_create(clt_graph **graph);

/* Frees the graph and its tensors. Destroy trainers made from it first. NULL is fine. */
CLT_API void clt_graph_destroy(clt_graph *graph);

/* CLT_OK, or the first error of the graph; its text is then (again) in clt_error_detail(). */
CLT_API clt_status clt_graph_status(const clt_graph *graph);

/* Data given anew for each step. By convention dimension 0 is the batch. Inputs
 * are matched with the fields of a batch in the order of their making, at most
 * CLT_MAX_FIELDS. The name must be unique among inputs. */
CLT_API clt_tensor *clt_input(clt_graph *graph, const char *name, clt_dtype dtype, clt_shape shape);

/* The same of sequences, such as tokens [N, T]: dimension `axis`, not 0, is the length. `shape` has the longest; all
 * sequence inputs of a graph have the same. A batch may have any length up to it, one for all its sequence inputs: a
 * trainer compiles a plan for each size and length of batches, and keeps those of the last 16. What an op is told about
 * the length must be CLT_LENGTH (CLT_LENGTH - 1 of all tokens but the last), or -1 or 0 in clt_reshape, not the number, of which only clt_reshape
 * may find out what is meant: else other lengths are CLT_E_SHAPE, or what the number says. */
CLT_API clt_tensor *clt_sequence_input(clt_graph *graph, const char *name, clt_dtype dtype, clt_shape shape, int axis);

typedef enum clt_init_kind {
    CLT_INIT_ZEROS = 0,
    CLT_INIT_CONSTANT, /* value */
    CLT_INIT_UNIFORM,  /* [-value, value) */
    CLT_INIT_NORMAL,   /* mean 0, standard deviation value */
    CLT_INIT_KAIMING_UNIFORM, /* bound = gain sqrt(3 / fan_in);   He et al. 2015 */
    CLT_INIT_KAIMING_NORMAL,  /* std   = gain / sqrt(fan_in) */
    CLT_INIT_XAVIER_UNIFORM,  /* bound = gain sqrt(6 / (fan_in + fan_out));   Glorot, Bengio 2010 */
    CLT_INIT_XAVIER_NORMAL,   /* std   = gain sqrt(2 / (fan_in + fan_out)) */
    CLT_INIT_VALUES,          /* values */
    CLT_INIT_READ             /* read, piece by piece */
} clt_init_kind;

/* Gives values `first` to `first + count` of a parameter, row-major. An error is that of who creates a trainer. */
typedef clt_status clt_init_read(void *user, int64_t first, int64_t count, float *values);

/* How a parameter's first values are drawn, from the trainer's seed and the
 * parameter's name: adding a layer does not change the others' values. fan_in
 * and fan_out are read from the shape as PyTorch does: dims[1], dims[0], each
 * times the product of the further ones. */
typedef struct clt_init {
    clt_init_kind kind;
    float value;
    float gain; /* 0 means 1 */
    const float *values; /* as many as the parameter has, row-major. Not copied: they are read when a trainer is created */
    clt_init_read *read; /* called when a trainer is created, with `user` */
    void *user;
} clt_init;

/* A trained f32 tensor. Names are unique in a graph, and are the keys of the checkpoint: UTF-8, not "__metadata__",
 * nothing that begins with "cltrain.optimizer." or ends with ".num_batches_tracked"; else CLT_E_INVALID. Of buffers the same is asked. */
CLT_API clt_tensor *clt_parameter(clt_graph *graph, const char *name, clt_shape shape, clt_init init);

/* Whether training changes the parameter; true unless this says otherwise. A trainer keeps to what was said when it was created.
 * A parameter that is not trained has its values from its initializer, clt_trainer_set or a checkpoint, and gradients are not computed for
 * it. CLT_E_INVALID: it is not a parameter. */
CLT_API clt_status clt_parameter_set_trained(clt_tensor *parameter, bool trained);

/* The same of all parameters whose names match: "*" stands for any characters, "?" for one, as in "layer?.*.weight".
 * CLT_E_NOT_FOUND: none does. */
CLT_API clt_status clt_graph_set_trained(clt_graph *graph, const char *pattern, bool trained);

/* Names what an op makes, "encoder.scores", for errors and for clt_graph_find. CLT_E_INVALID: an input or variable, which
 * has a name, or another tensor of the graph has this one. */
CLT_API clt_status clt_tensor_set_name(clt_tensor *tensor, const char *name);

/* The tensor of that name; NULL if the graph has none. */
CLT_API clt_tensor *clt_graph_find(const clt_graph *graph, const char *name);

/* An f32 tensor that is kept and saved with the parameters but not trained by
 * gradient (running statistics). */
CLT_API clt_tensor *clt_buffer(clt_graph *graph, const char *name, clt_shape shape, clt_init init);

typedef struct clt_buffer_options {
    bool unsaved; /* it is in no file: a run that goes on begins with its first values */
} clt_buffer_options;
CLT_API clt_tensor *clt_buffer_with(clt_graph *graph, const char *name, clt_shape shape, clt_init init, clt_buffer_options options);

/* Values that never change, such as a mask or positions: f32, f16, bf16, i32 or u8, copied. They are in no file, no gradient
 * is computed for them, and what depends on constants alone is computed once, before the first step (unless it is larger than they
 * are). Ranks must have the same ones. The name as of a parameter. A constant of i32 that holds classes or rows of a table is checked
 * when a trainer is created: CLT_E_RANGE. */
CLT_API clt_tensor *clt_constant(clt_graph *graph, const char *name, const clt_array *values);

/* Data that are the same for all samples, and may change between steps: a mask, a temperature. None of its dimensions is the batch; batches do
 * not bring it, and it is in no file. clt_trainer_set_input gives its values. f32, f16, bf16, i32 or u8; the name as of a parameter. */
CLT_API clt_tensor *clt_fixed_input(clt_graph *graph, const char *name, clt_dtype dtype, clt_shape shape);

/* Facts of a tensor. The shape of NULL or of an invalid tensor has rank -1. */
CLT_API clt_shape clt_tensor_shape(const clt_tensor *tensor);
CLT_API clt_dtype clt_tensor_dtype(const clt_tensor *tensor);
CLT_API const char *clt_tensor_name(const clt_tensor *tensor);

/* The name of the graph's trained parameter number `index`, from 0, and its shape; NULL behind the last. Borrowed from the graph. */
CLT_API const char *clt_graph_parameter(const clt_graph *graph, int64_t index, clt_shape *shape);

/* Number of trained values in the graph: the sum of its parameters' elements. */
CLT_API int64_t clt_graph_parameter_count(const clt_graph *graph);

/* A layer: the ops that read parameters whose names differ in their last part alone, such as fc1.weight and fc1.bias. */
typedef struct clt_layer {
    const char *name;   /* what the names have in common, as PyTorch names modules: "layer1.0.conv1". Valid during the call */
    const char *op;     /* of its ops the one with the most arithmetic: "conv2d" */
    clt_shape shape;    /* of its result */
    int64_t parameters; /* values, in training or not; 0 where an earlier layer has the same ones */
    int64_t trained;    /* of these */
    double flops;       /* of one forward pass of a whole batch; a multiplication and an addition are two */
} clt_layer;

/* Calls `visit` (may be NULL) for each layer that the result depends on, in the order of the network, until it returns false. *total (may be NULL) is all that
 * the result depends on, with ops that read no parameters. Errors are those of the graph. */
CLT_API clt_status clt_graph_layers(const clt_tensor *result, bool (*visit)(const clt_layer *layer, void *user), void *user, clt_layer *total);

/* What of forward is computed again in backward, instead of being kept for it ("activation checkpointing"; Chen et al. 2016). Values are the same, bit by
 * bit; only time and memory differ. */
typedef enum clt_recompute {
    CLT_RECOMPUTE_AUTO = 0, /* nothing where the step fits into the device's memory (settings.memory_limit); else what costs least of what makes it fit */
    CLT_RECOMPUTE_NONE,
    CLT_RECOMPUTE_BLOCKS, /* all but what leads from one block of the network to the next, and the last block: blocks end at the tensors that
                             clt_checkpoint_boundary marks; where it marks none, they are told by the numbers in the parameters' names, as "layer1.0"
                             and "transformer.h.3" */
    CLT_RECOMPUTE_ALL     /* as much as makes memory least */
} clt_recompute;

/* A block of CLT_RECOMPUTE_BLOCKS ends with this tensor, which is kept for backward, and the next begins behind it. Gives the tensor itself, for use within an
 * expression; NULL for NULL. */
CLT_API clt_tensor *clt_checkpoint_boundary(clt_tensor *tensor);

CLT_END_DECLS

#endif
