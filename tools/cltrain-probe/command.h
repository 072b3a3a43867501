/*
 * The commands of cltrain-probe: one file each, and what several of them need.
 */
#ifndef CLTRAIN_PROBE_COMMAND_H
#define CLTRAIN_PROBE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include <cltrain/cltrain.h>

#include "tools/common/option_parser.h"
#include "tools/common/recipes.h"

#define PROGRAM "cltrain-probe"

/* Each gets the arguments behind its name and returns the exit code. */
typedef struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} command;

int run_list(int argc, char **argv);
int run_bench(int argc, char **argv);
int run_shapes(int argc, char **argv);
int run_compare(int argc, char **argv);
int run_report(int argc, char **argv);
int run_verify(int argc, char **argv);
int run_model(int argc, char **argv);
int run_recommend(int argc, char **argv);
int run_tune(int argc, char **argv);
int run_backends(int argc, char **argv);
int run_simulate(int argc, char **argv);
int run_comm(int argc, char **argv);

/* Options that several commands have; the first member of theirs. */
typedef struct shared_options {
    const char *device, *model, *sample;
    int64_t batch, classes;
    int optimizer; /* clt_optimizer; OPTION_UNSET: the model's */
    int precision, recompute, offload, shard; /* clt_precision, clt_recompute, clt_offload, clt_shard */
    int64_t ranks;
    const char *json; /* a path, "-": stdout; NULL: text */
    bool help;
    int verbose;
} shared_options;

#define SHARED_AT(field) offsetof(shared_options, field)
/* Rows of an option table. */
#define DEVICE_ROWS                                                                                          \
    {OPTION_HEADING, .help = "Device:"},                                                                     \
    {OPTION_TEXT, 0, "device", "NAME", SHARED_AT(device),                                                    \
     .help = "index, cpu, gpu, accelerator, pci:..., uuid:..., or a part of\n"                               \
             "its name, vendor or platform (default: $CLTRAIN_DEVICE, else\n"                                \
             "the fastest class present)"}
#define MODEL_ROWS                                                                                           \
    {OPTION_HEADING, .help = "Model:"},                                                                      \
    {OPTION_TEXT, 'm', "model", "MODEL", SHARED_AT(model),                                                   \
     .help = "the same as the word MODEL"},                                                                  \
    {OPTION_TEXT, 0, "sample", "SIZES", SHARED_AT(sample), .help = "of a sample (default 3x32x32)"},         \
    {OPTION_WHOLE, 'b', "batch", "N", SHARED_AT(batch), .low = 1,                                            \
     .help = "samples a step (default 128; resnet18 64)"},                                                   \
    {OPTION_WHOLE, 0, "classes", "N", SHARED_AT(classes), .low = 1, .help = "outputs (default 10)"}
#define OUTPUT_ROWS                                                                                          \
    {OPTION_HEADING, .help = "Output:"},                                                                     \
    {OPTION_OPTIONAL, 0, "json", "FILE", SHARED_AT(json), .standard = "-", .help = "one JSON object on stdout, or in FILE"},                    \
    {OPTION_COUNTER, 'v', "verbose", NULL, SHARED_AT(verbose),                                               \
     .help = "what the library does, on stderr; twice: all of it"},                                          \
    {OPTION_FLAG, 'h', "help", NULL, SHARED_AT(help), .help = "this text"}

#define TRAINING_ROWS                                                                                        \
    {OPTION_CHOICE, 'o', "optimizer", "NAME", SHARED_AT(optimizer), .choices = optimizer_names,               \
     .help = "sgd, adam or adamw (default: the model's, as for\ncltrain-train)"},                              \
    {OPTION_CHOICE, 0, "precision", "NAME", SHARED_AT(precision), .choices = precision_names,                 \
     .help = "f32, bf16 or f16"},                                                                            \
    {OPTION_CHOICE, 0, "recompute", "WHAT", SHARED_AT(recompute), .choices = recompute_names,                 \
     .help = "of forward, in backward: none, blocks or all"},                                                \
    {OPTION_CHOICE, 0, "offload", "WHAT", SHARED_AT(offload), .choices = offload_names,                       \
     .help = "to the host's memory: none, optimizer, activations, parameters or all"}

/* Nothing given. */
shared_options shared_options_unset(void);
/* Refuses a word that is not an option. */
int refuse_word(void *into, const char *text);
/* Takes the word for the model of shared_options. */
int take_model(void *into, const char *text);

/* ---- a model to look at ---- */

typedef struct probe_model {
    char text[128]; /* "convnet 128x3x32x32" */
    char sample[128]; /* "3x32x32" */
    int64_t classes;  /* the outputs of a sample, or of a token */
    clt_graph *graph;
    clt_onnx *onnx;  /* of FILE.onnx; else NULL */
    clt_shape shape; /* of the input, with the batch */
    bool tokens;     /* the input is of them, i32, and each has a label */
    clt_tensor *inputs[CLT_MAX_FIELDS]; /* a batch's fields */
    int n_inputs;
    clt_tensor *loss, *output;
    clt_train_options training; /* as cltrain-train trains it */
} probe_model;

/* Builds `name` with a classifier's loss. Returns 0; EXIT_USAGE after saying what was expected; EXIT_FAILED. */
int probe_model_build(probe_model *model, const shared_options *options, const char *name);
void probe_model_free(probe_model *model);

#endif
