#include "option_table.h"

#include "options.h"
#include "scores.h"
#include "tools/common/recipes.h"

#define AT(field) offsetof(options, field)

/* In the order of clt_schedule. */
static const char *const schedules[] = {"constant", "step", "cosine", NULL};

/* In the order of clt_nonfinite. */
static const char *const nonfinite[] = {"ignore", "skip", "stop", NULL};

static const char *const failures[] = {"stop", "shrink", NULL}; /* in the order of ON_FAILURE_… */

const char *const broken_names[] = {"stop", "skip", NULL}; /* in the order of BROKEN_… */

static const char *const loss_names[] = {"cross_entropy", "mse", NULL};

const option_row option_rows[] = {
    {OPTION_HEADING, .help = "Model and data:"},
    {OPTION_TEXT, 'm', "model", "MODEL", AT(model), .help = "the same as the word MODEL"},
    {OPTION_TEXT, 0, "config", "FILE", AT(config),
     .help = "options in a JSON object, by their long names: {\"lr\": 0.01,\n"
             "\"nesterov\": true}, or the --log of a run that is to be repeated;\n"
             "those of the command line go over them"},
    {OPTION_TEXT, 'd', "data", "SPEC", AT(data), .help = "what to train on; required, see below"},
    {OPTION_FLAG, 0, "no-standardize", NULL, AT(no_standardize),
     .help = "csv, npy: leave features, and numbers to predict, as they are\n"
             "(default: mean 0 and standard deviation 1 on the training part;\n"
             "of FILE.onnx as they are)"},

    {OPTION_WHOLE, 0, "data-threads", "N", AT(data_threads), .low = 1, .aliases = "workers num-workers",
     .help = "that decode images (default: processors, 8 at most)"},
    {OPTION_CHOICE, 0, "broken-samples", "NAME", AT(broken_samples), .choices = broken_names,
     .help = "images that cannot be read: stop, or skip: in training the next one\n"
             "takes the place of each, tests are without them, and both are\n"
             "counted (default stop)"},

    {OPTION_FLAG, 0, "stratify", NULL, AT(stratify),
     .help = "what is held out has of each class as large a share as the whole"},
    {OPTION_TEXT, 0, "fold", "I/K", AT(fold),
     .help = "hold out the I-th of K parts, in the place of a fifth: for\ncross-validation"},
    {OPTION_FRACTION, 0, "validation", "X", AT(validation), .aliases = "validation-split val-split",
     .help = "hold out the fraction X of what is left for training, too: each\nepoch and --patience look at it, and the test is for the end"},
    {OPTION_FLAG, 0, "balanced-sampling", NULL, AT(balanced_sampling),
     .help = "draw samples, some of them several times, so that each class\ncomes as often as any other"},
    {OPTION_NOT_NEGATIVE, 0, "mixup", "A", AT(mixup),
     .help = "blend each training sample with another, in shares of\nBeta(A, A); 0.2 is usual"},
    {OPTION_NOT_NEGATIVE, 0, "cutmix", "A", AT(cutmix),
     .help = "put a box of another image into each, of an area so drawn; 1 is\nusual; with --mixup one of both at random"},

    {OPTION_HEADING, .help = "Length:"},
    {OPTION_WHOLE, 'e', "epochs", "N", AT(epochs), .low = 0, .aliases = "num-epochs num-train-epochs",
     .help = "passes over the training part, those before --resume among\n"
             "them (default 10; 0 evaluates only)"},
    {OPTION_WHOLE, 0, "steps", "N", AT(steps), .low = 1, .aliases = "max-steps",
     .help = "stop after N updates, those before --resume among them,\n"
             "whatever --epochs says"},
    {OPTION_WHOLE, 0, "stop-after", "N", AT(stop_after), .low = 1,
     .help = "stop when N epochs are done, while the schedule is one of\n"
             "--epochs; --resume goes on from there"},
    {OPTION_WHOLE, 0, "patience", "N", AT(patience), .low = 1,
     .help = "stop when the test was not better than its best for N epochs;\n"
             "--export then has the weights of the best"},
    {OPTION_WHOLE, 0, "test-every", "N", AT(test_every), .low = 1, .aliases = "eval-every eval-steps",
     .help = "test after every N updates, besides the end of an epoch"},
    {OPTION_CHOICE, 0, "monitor", "NAME", AT(monitor), .choices = scores_monitored,
     .help = "what is better: loss, accuracy, perplexity, precision, recall, f1,\n"
             "auc, average_precision, top5, calibration_error, mse, mae or r2\n"
             "(default: loss)"},
    {OPTION_WHOLE, 'b', "batch", "N", AT(batch), .low = 1, .aliases = "batch-size",
     .help = "samples a step; of several ranks, each one's (default: see\n"
             "below)"},
    {OPTION_WHOLE, 0, "accumulate", "N", AT(accumulate), .low = 1, .aliases = "gradient-accumulation-steps",
     .help = "batches whose gradients are averaged for one update (default 1)"},
    {OPTION_SEED, 's', "seed", "N", AT(seed), .aliases = "manual-seed",
     .help = "RNG seed: initialization, shuffling, test split (default 0)"},

    {OPTION_HEADING, .help = "Several ranks (of --devices, or processes that a launcher started):"},
    {OPTION_TEXT, 0, "shares", "N,N,...", AT(shares),
     .help = "samples of each rank a step (default: --batch each; without\n"
             "that its usual value in equal parts, of 16 or more)"},
    {OPTION_FLAG, 0, "balance", NULL, AT(balance),
     .help = "measure the first steps, and give faster ranks more samples"},
    {OPTION_FLAG, 0, "sync-batch-norm", NULL, AT(sync_batch_norm),
     .help = "batch norm over the samples of all ranks (default: each its own)"},
    {OPTION_WHOLE, 0, "drift-steps", "N", AT(drift_steps), .low = 0,
     .help = "updates after which ranks compare their parameters, and take over\nrank 0's where they differ (default 100; 0: never)"},
    {OPTION_CHOICE, 0, "shard", "WHAT", AT(shard), .choices = shard_names,
     .help = "of what each rank keeps a part: optimizer (its state), gradients\n"
             "(them, too) or parameters (them, too: all of them lie in the\n"
             "host's memory alone); default none; the same bits with 2 ranks"},
    {OPTION_POSITIVE, 0, "bucket-mb", "X", AT(bucket_mb),
     .help = "MiB of gradients that are exchanged at a time (default 4)"},
    {OPTION_TEXT, 0, "compress", "METHOD", AT(compress),
     .help = "how gradients go to other ranks: f16, bf16, int8, onebit,\n"
             "topk[,ratio=X][,values=f32] or powersgd[,rank=N] (default: as\n"
             "they are; -v tells what it saves or loses); refused where it\n"
             "sends more bytes than none, but for METHOD,force=1"},
    {OPTION_TEXT, 0, "pipeline", "SPEC", AT(pipeline),
     .help = "each rank has a stage of the model, through which parts of each\n"
             "batch go: stages=N,microbatches=N,\n"
             "schedule=1f1b|gpipe|zb-h1|interleaved,chunks=N,\n"
             "split=LAYER:LAYER..., where stages but the first begin (defaults:\n"
             "as many as ranks; twice as many; 1f1b; by arithmetic and bytes).\n"
             "Fewer stages than ranks make several pipelines, each with batches\n"
             "of its own"},
    {OPTION_CHOICE, 0, "on-failure", "NAME", AT(on_failure), .choices = failures,
     .help = "of another rank: stop, or shrink: go on with those who are left\n"
             "(default: as the launcher was told, else stop)"},

    {OPTION_HEADING, .help = "Optimizer:"},
    {OPTION_CHOICE, 0, "precision", "NAME", AT(precision), .choices = precision_names,
     .help = "f32, bf16 or f16: products, convolutions and attention take and\n"
             "give 16 bits, as PyTorch's autocast has it; parameters stay f32;\n"
             "f16 scales the loss, and leaves out updates that overflow"},
    {OPTION_CHOICE, 0, "recompute", "WHAT", AT(recompute), .choices = recompute_names,
     .help = "of forward, in backward, instead of keeping it: auto (default: what\n"
             "costs least so that the step fits into memory), none, blocks (all\n"
             "within a network's blocks) or all; the same bits"},
    {OPTION_CHOICE, 0, "offload", "WHAT", AT(offload), .choices = offload_names,
     .help = "to the host's memory: optimizer (its state), activations (what\n"
             "backward reads), parameters, all, none; or auto (default: what\n"
             "does not fit into the device's); the same bits"},
    {OPTION_TEXT, 0, "offload-dir", "DIR", AT(offload_folder),
     .help = "what is offloaded lies in files of this folder, for states larger\n"
             "than the machine's memory"},
    {OPTION_TEXT, 0, "memory-limit", "SIZE", AT(memory_limit),
     .help = "of the device, such as 2G or 512M: no more is taken"},
    {OPTION_TEXT, 0, "class-weights", "W,W,...", AT(class_weights),
     .help = "by which the loss of each class is multiplied, in training and in\n"
             "tests; their mean over the training samples is made 1; balanced:\n"
             "by how rare each class is"},
    {OPTION_CHOICE, 0, "loss", "NAME", AT(loss), .choices = loss_names,
     .help = "cross_entropy of labels, mse of numbers; the data tell which, and\nanother one is refused"},
    {OPTION_CHOICE, 'o', "optimizer", "NAME", AT(optimizer), .choices = optimizer_names, .aliases = "optim opt",
     .help = "sgd, adam or adamw (default: see below)"},
    {OPTION_POSITIVE, 0, "lr", "X", AT(lr), .aliases = "learning-rate",
     .help = "learning rate (default: see below; with --optimizer sgd 0.01,\n"
             "with adam and adamw 0.001)"},
    {OPTION_FLAG, 0, "lr-find", NULL, AT(lr_find),
     .help = "a step at each of 100 rates from 1e-7 to 10, in the place of\n"
             "training: prints the loss at each, and where it falls fastest"},
    {OPTION_FRACTION, 0, "momentum", "X", AT(momentum), .help = "of sgd"},
    {OPTION_FLAG, 0, "nesterov", NULL, AT(nesterov), .help = "Nesterov's momentum"},
    {OPTION_NOT_NEGATIVE, 0, "weight-decay", "X", AT(weight_decay), .aliases = "wd",
     .help = "decoupled with adamw (default 0, adamw 0.01)"},
    {OPTION_CHOICE, 0, "schedule", "NAME", AT(schedule), .choices = schedules, .aliases = "lr-scheduler lr-schedule",
     .help = "of the learning rate: constant, step, or cosine over the whole\n"
             "run (default: see below, else constant)"},
    {OPTION_WHOLE, 0, "warmup", "N", AT(warmup), .low = 0, .aliases = "warmup-steps",
     .help = "updates over which the learning rate rises to --lr"},
    {OPTION_WHOLE, 0, "decay-steps", "N", AT(decay_steps), .low = 1,
     .help = "step: updates between decays (default: a third of the run)"},
    {OPTION_POSITIVE, 0, "decay-factor", "X", AT(decay_factor),
     .help = "step: what --lr is multiplied by (default 0.1)"},
    {OPTION_NOT_NEGATIVE, 0, "min-lr", "X", AT(min_lr),
     .help = "cosine: where it ends (default 0)"},
    {OPTION_NOT_NEGATIVE, 0, "clip-norm", "X", AT(clip_norm), .aliases = "max-grad-norm grad-clip",
     .help = "largest 2-norm of all gradients together (default, and 0: any)"},
    {OPTION_NOT_NEGATIVE, 0, "clip-value", "X", AT(clip_value),
     .help = "largest gradient of a value (default, and 0: any)"},
    {OPTION_FRACTION, 0, "ema", "X", AT(ema),
     .help = "keep a moving average of the parameters, that decays by X an\n"
             "update, such as 0.999: tests and --export use it"},
    {OPTION_CHOICE, 0, "on-nonfinite", "NAME", AT(on_nonfinite), .choices = nonfinite,
     .help = "when gradients are NaN or infinite: stop before the update, skip\n"
             "it and go on, or ignore that (default stop; with f16 skip)"},
    {OPTION_FLAG, 0, "locate-nan", NULL, AT(locate_nan),
     .help = "name the op that made the first value that is not finite; slow,\n"
             "for each step is waited for"},

    {OPTION_HEADING, .help = "Device:"},
    {OPTION_TEXT, 0, "device", "NAME", AT(device),
     .help = "index, cpu, gpu, accelerator, pci:..., uuid:..., or a part of\n"
             "its name, vendor or platform (default: $CLTRAIN_DEVICE, else\n"
             "the fastest class present)"},
    {OPTION_TEXT, 0, "devices", "A,B,...", AT(devices),
     .help = "several, each with its part of the batch: ranks that are threads\n"
             "of this process, and exchange gradients through its memory"},
    {OPTION_FLAG, 0, "list-devices", NULL, AT(list_devices),
     .help = "list what --device can choose from, and exit"},

    {OPTION_HEADING, .help = "Files:"},
    {OPTION_TEXT, 0, "save", "FILE", AT(save),
     .help = "checkpoint (safetensors), replaced after each epoch, at the\n"
             "end, and on Ctrl-C"},
    {OPTION_WHOLE, 0, "save-every", "N", AT(save_every), .low = 1,
     .help = "save after every N updates instead of each epoch"},
    {OPTION_TEXT, 0, "evaluate", "FILE", AT(evaluate),
     .help = "a checkpoint or a file of weights is measured on the held-out part,\n"
             "and nothing is trained"},
    {OPTION_TEXT, 0, "resume", "FILE", AT(resume),
     .help = "go on from a checkpoint; a file of weights alone gives the\n"
             "first values; auto: --save's file, if it is there. A launcher's\n"
             "restart goes on from --save's file by itself"},
    {OPTION_TEXT, 0, "init", "FILE", AT(init),
     .help = "a file of weights, of this or another program, as the first\n"
             "values of a training of its own; of several files the\n"
             ".safetensors.index.json"},
    {OPTION_FLAG, 0, "init-matching", NULL, AT(init_matching),
     .help = "of --init those tensors alone whose name and shape are the\n"
             "model's: another head keeps its first values"},
    {OPTION_TEXT, 0, "freeze", "NAMES", AT(freeze),
     .help = "parameters that are not trained, by patterns of their names\n"
             "with commas between: 'conv1.*,layer?.*'; running means of\n"
             "batch norm move nevertheless"},
    {OPTION_TEXT, 0, "lora", "SPEC", AT(lora),
     .help = "low-rank adapters, which alone are trained: rank=N[,alpha=X]\n"
             "[,dropout=X],targets=LAYER,..., by names or their last parts; or\n"
             "a FOLDER of PEFT's, to go on with. Running means of batch norm\n"
             "move nevertheless"},
    {OPTION_TEXT, 0, "export", "FILE", AT(export_to),
     .help = "the weights alone, at the end: what PyTorch's load_state_dict\n"
             "takes; with --lora the adapters are merged into them. To\n"
             "FILE.onnx: the network with its weights, for ONNX Runtime; of a\n"
             "MODEL that is FILE.onnx the same file with new weights"},
    {OPTION_TEXT, 0, "export-lora", "DIR", AT(export_lora),
     .help = "the adapters alone, at the end: what PEFT's from_pretrained takes"},
    {OPTION_TEXT, 0, "log", "FILE", AT(log),
     .help = "one JSON object a line, as training goes on; --resume appends"},
    {OPTION_TEXT, 0, "tensorboard", "DIR", AT(tensorboard), .aliases = "tb logdir",
     .help = "event files for TensorBoard: metrics, histograms of weights and\n"
             "gradients, the network, samples and mistakes, precision-recall\ncurves"},

    {OPTION_HEADING, .help = "A trained model on other data (without MODEL and --data):"},
    {OPTION_TEXT, 0, "from", "FILE", AT(from),
     .help = "a file that --save or --export has written"},
    {OPTION_TEXT, 0, "predict", "DATA", AT(predict),
     .help = "X.csv: its lines, with the class and the probabilities, or the\n"
             "number, after each; columns are found by name; X.npy: an array\n"
             "of probabilities or numbers; csv: and npy: as of SPEC;\n"
             "folder:DIR: a line for each image, anywhere in it"},
    {OPTION_TEXT, 0, "output", "FILE", AT(output),
     .help = "where predictions go (default: stdout); FILE.npy is an array,\n"
             "FILE.csv a table, whatever DATA is"},
    {OPTION_TEXT, 0, "test", "DATA", AT(test),
     .help = "loss and accuracy on labelled data: X.csv, csv:FILE,...,\n"
             "npy:X.npy,Y.npy or folder:DIR"},

    {OPTION_HEADING, .help = "Output:"},
    {OPTION_FLAG, 0, "summary", NULL, AT(summary),
     .help = "print the layers of the model and the memory that a step takes,\nand exit"},
    {OPTION_OPTIONAL, 0, "json", "FILE", AT(json), .standard = "-", .low = 1, .help = "one JSON object at the end, on stdout or in FILE"},
    {OPTION_OPTIONAL, 0, "profile", "FILE", AT(profile), .standard = "cltrain-profile.json", .low = 1,
     .help = "time by op of some steps, on stdout (with --json on stderr);\n"
             "each launch as a Chrome trace in FILE (cltrain-profile.json).\n"
             "With --pipeline: the turns of the last step"},
    {OPTION_FLAG, 'q', "quiet", NULL, AT(quiet), .help = "no progress and no warnings on stderr"},
    {OPTION_COUNTER, 'v', "verbose", NULL, AT(verbose),
     .help = "what the library does, on stderr; twice: all of it"},
    {OPTION_FLAG, 'h', "help", NULL, AT(help), .help = "this text"},
    {OPTION_FLAG, 'V', "version", NULL, AT(version), .help = "the version"},
};

const int option_row_count = sizeof option_rows / sizeof option_rows[0];
