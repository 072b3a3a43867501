/*
 * Prediction alone: a network's forward pass, with the weights of a file.
 *
 * There is no loss, no optimizer, and nothing is kept for gradients: a predictor takes the memory of the weights and of what one batch
 * computes. A plan is made for each number of samples, and for each length of sequences, on its first use; of 16 the one that was not run for longest
 * makes room for the next. Normalization uses running statistics, and dropout does nothing.
 *
 * A predictor is used by one thread at a time, as its device is; several threads open a device each.
 */
#ifndef CLTRAIN_PREDICTOR_H
#define CLTRAIN_PREDICTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cltrain/data.h>
#include <cltrain/device.h>
#include <cltrain/export.h>
#include <cltrain/graph.h>
#include <cltrain/status.h>
#include <cltrain/text.h>

CLT_BEGIN_DECLS

typedef struct clt_predictor clt_predictor;

typedef struct clt_predictor_options {
    const char *weights;   /* what clt_weights_save or clt_checkpoint_save wrote, or another program under the same names; NULL: first values
                              are drawn as a trainer draws them */
    uint64_t seed;         /* of the first values */
    const char *backends;  /* as in clt_train_options */
    const char *passes;
} clt_predictor_options;

/* Predicts `output`, an f32 tensor, whose graph must outlive the predictor. `options` may be NULL. The file has all parameters and buffers of the
 * graph; nothing of an optimizer is read. CLT_E_MISMATCH names the first tensor that is missing, left over or of another shape; CLT_E_IO and
 * CLT_E_FORMAT name the file. */
CLT_API clt_status clt_predictor_create(clt_predictor **predictor, clt_device *device, clt_tensor *output, const clt_predictor_options *options);

/* NULL is fine. */
CLT_API void clt_predictor_destroy(clt_predictor *predictor);

/* Computes the output for a batch of any number of samples, and waits for it. `values` receives its elements, row-major; `count` is their number,
 * CLT_E_SHAPE if it is another. Fields of the batch that the output does not depend on, such as labels, may be missing or without data. CLT_E_RANGE:
 * an index outside of what it is used for. */
CLT_API clt_status clt_predictor_run(clt_predictor *predictor, const clt_batch *batch, float *values, size_t count);

/* Takes other weights; nothing is changed on an error. */
CLT_API clt_status clt_predictor_load(clt_predictor *predictor, const char *path);

/* A parameter's or buffer's values, and those of a fixed input, as clt_trainer_get, clt_trainer_set and clt_trainer_set_input have them. */
CLT_API clt_status clt_predictor_get(clt_predictor *predictor, const char *name, float *values, size_t count);
CLT_API clt_status clt_predictor_set(clt_predictor *predictor, const char *name, const float *values, size_t count);
CLT_API clt_status clt_predictor_set_input(clt_predictor *predictor, const char *name, const clt_array *values);

/* ---- text ---------------------------------------------------------------------- */

typedef struct clt_generate_options {
    int64_t tokens;                /* how many, at most; default 64 */
    const int32_t *end;            /* the token that ends a text; NULL: none does */
    clt_sampling_options sampling; /* zeros: the likeliest token each time */
} clt_generate_options;

/* Told each token as it is made; false ends the text. */
typedef bool (*clt_token_visitor)(int32_t token, void *user);

/* Goes on behind `n` tokens, one after the other. The predictor's graph has the inputs tokens i32 [1, T], of clt_sequence_input where T may be less,
 * and rows i32 [1], and its output is the logits of that row, [1, vocabulary]: clt_language_model_build makes it. A third input, position_ids i32
 * [1, T], tells the places of the tokens to a model that remembers those before (clt_cache): then each new token is computed alone. An end token is
 * told, too. With T = 1, no sequence, it is given all tokens one by one, without end: a recurrent model, whose state stays (clt_recurrent_options).
 * CLT_E_RANGE where n + tokens is more than T, or a token is none; CLT_E_SHAPE for another graph. */
CLT_API clt_status clt_generate(clt_predictor *predictor, const int32_t *prompt, int64_t n, const clt_generate_options *options, clt_token_visitor visit,
                                void *user);

CLT_END_DECLS

#endif
