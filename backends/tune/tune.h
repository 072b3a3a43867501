/*
 * What was found out about speed: for a problem, that is an op with its
 * attributes, shapes and layouts, which row served it best on a device, and with
 * which parameters.
 *
 * Tuning results live in one readable file a device and library version, below
 * $XDG_CACHE_HOME/cltrain/tune: JSON Lines, a header first (file.c). What a file
 * holds that does not fit is skipped in silence. Tuning results for some devices are part of
 * the library (shipped/), in the same form.
 *
 * Nothing is measured here: runtime/trial/tune.c does that.
 */
#ifndef CLT_BACKENDS_TUNE_H
#define CLT_BACKENDS_TUNE_H

#include "backends/backend.h"

/* ---- problems (key.c) ---- */

enum { CLT_TUNE_KEY = 320 };

/* The problem that a node is: "matmul 128x3072 1024x3072^T -> 128x1024",
 * "conv2d k3 s1 p1 d1 g1 64x64x32x32:nhwc 64x64x3x3 -> 64x64x32x32:nhwc".
 * False for an op that is never tuned. */
bool clt_tune_key(const clt_tensor *node, char key[CLT_TUNE_KEY]);

/* The same for any op, cut off where it is too long: for people. */
void clt_tune_words(const clt_tensor *node, char text[CLT_TUNE_KEY]);

/* Makes the node that a text describes in an empty graph, whose inputs are the node's: f32, or i32 where the text says so, and
 * states where the op writes them. *marked: some tensor says how it lies. Any op does whose attributes all have words.
 * CLT_E_FORMAT, CLT_E_SHAPE, CLT_E_INVALID. */
clt_status clt_problem_parse(const char *text, clt_graph *graph, clt_tensor **node, bool *marked);

/* True if the text could be a key: short enough, and of printable letters. */
bool clt_tune_key_valid(const char *text);

/* ---- distances (distance.c) ---- */

/* How far two problems are from each other: the Euclidean norm of the logarithms, base 2, of the ratios of
 * their dimensions. INFINITY if anything but those differs. */
double clt_tune_distance(const char *a, const char *b);

/* True if two problems are the same but for dimensions that all differ by one factor, as those of two batch sizes do; *ratio:
 * b's to a's, 1 if they are equal. *which: a bit for each number of the text that differs. */
bool clt_tune_ratio(const char *a, const char *b, double *ratio, uint64_t *which);

/* ---- tuning results (result.c) ---- */

/* How hard it was tried: a tuning result gives way to one with more effort. */
typedef enum clt_tune_effort { CLT_TUNE_KEPT, CLT_TUNE_QUICK, CLT_TUNE_FULL } clt_tune_effort;

enum { CLT_TUNE_NAME = 32, CLT_TUNE_WHY = 96 };

typedef struct clt_tuning_result {
    char problem[CLT_TUNE_KEY];
    char row[CLT_TUNE_NAME]; /* as clt_backend_row_id has it */
    int n_parameters;
    struct {
        char name[CLT_TUNE_NAME];
        int value;
    } parameters[CLT_MAX_TUNABLES];
    char failed[CLT_TUNE_WHY]; /* not empty: no tuning result, but a candidate never to be tried again, and why */

    clt_tune_effort effort;
    int tried;              /* candidates that were timed */
    double us, default_us;  /* 0: not timed */
    double nmse;            /* against the reference */
} clt_tuning_result;

enum { CLT_TUNING_RESULTS_MOST = 4096 }; /* a list is gone over for each one that is put into it */
typedef struct clt_tuning_results {
    clt_tuning_result *items;
    size_t n, capacity;
} clt_tuning_results;

void clt_tuning_results_free(clt_tuning_results *list);
/* The tuning result on a problem, or NULL. */
const clt_tuning_result *clt_tuning_results_find(const clt_tuning_results *list, const char *problem);
/* True if this candidate is known to fail; a `choice` of the problem. */
bool clt_tuning_results_failed(const clt_tuning_results *list, const char *problem, const clt_choice *choice);
/* Adds it, in the place of one on the same thing that was made with no more effort. A list that is full forgets a quarter, those
 * that have been in it for longest. */
clt_status clt_tuning_results_put(clt_tuning_results *list, const clt_tuning_result *result);

/* A tuning result that names this choice, without figures. */
void clt_tuning_result_of(const char *problem, const clt_choice *choice, clt_tuning_result *result);
/* The choice that a tuning result names. False if there is no such row, it does not fit the node, or the
 * parameters are not what it may have. */
bool clt_tuning_result_apply(const clt_tuning_result *result, const clt_tensor *node, clt_device *device,
                             clt_choice *choice);
/* The choice of the nearest result that applies, within a sensible distance; *from: it. */
bool clt_tuning_results_nearest(const clt_tuning_results *list, const char *problem, const clt_tensor *node,
                                clt_device *device, clt_choice *choice, const clt_tuning_result **from);

/* "block=12 splits=2", or "". */
enum { CLT_TUNE_PARAMETERS = 256 };
const char *clt_choice_text(const clt_choice *choice, char text[CLT_TUNE_PARAMETERS]);
/* "native", or "native#2" for the second row of that name and op. */
const char *clt_backend_row_id(const clt_backend_row *row, char text[CLT_TUNE_NAME]);

/* ---- text (file.c) ---- */

/* One JSON object a line. Reading skips lines that are none. */
clt_status clt_tuning_results_write(const clt_tuning_results *list, clt_text *text);
clt_status clt_tuning_results_read(clt_tuning_results *list, const char *text, size_t length);
/* One line of an object, which is taken over. */
struct json_t;
clt_status clt_tune_write_line(struct json_t *object, clt_text *text);

/* ---- the device's tuning results (database.c) ---- */

typedef struct clt_tune_database {
    clt_tuning_results measured; /* on this device */
    clt_tuning_results shipped;  /* with the library, for devices like it */
    char *path;                  /* of the file; NULL: there is no place for one */
} clt_tune_database;

/* The device's, read at first use and kept with it. NULL if there is no memory. */
clt_tune_database *clt_tune_database_of(clt_device *device);
/* Reads it, so that from then on it is there: without memory for what is known other rows would be chosen, in silence. */
clt_status clt_tune_ready(clt_device *device);
/* Those of embedded files (shipped.h) whose header names the device's class. */
struct clt_shipped_tuning;
clt_status clt_tune_read_shipped(const clt_device *device, const struct clt_shipped_tuning *files, clt_tuning_results *list);
/* Writes the file anew: what is on the disk meanwhile, and what is measured here. A tuning result on the disk wins over
 * one that was made with no more effort, so that programs that tune at once agree. */
clt_status clt_tune_store(clt_device *device);

/* Where a file of things measured on a device by this version of the library lies, in a folder of the cache (*path: to be freed); its first
 * line, which begins with the kind of the file; whether a text begins with a line of that kind; and with one of this device, and this library where that is
 * asked. */
clt_status clt_tune_find_path(const clt_device *device, const char *folder, char **path);
clt_status clt_tune_write_header(const clt_device *device, const char *kind, clt_text *text);
bool clt_tune_has_header(const char *kind, const char *text, size_t length);
bool clt_tune_header_fits(const clt_device *device, const char *kind, const char *text, size_t length, bool any_library);

/* The setting. */
typedef enum clt_tune_mode { CLT_TUNE_MODE_OFF, CLT_TUNE_MODE_QUICK, CLT_TUNE_MODE_FULL } clt_tune_mode;
clt_tune_mode clt_tune_get_mode(const clt_device *device);

/* ---- choosing (choose.c) ---- */

/* Why a row serves a node. */
typedef enum clt_why {
    CLT_WHY_NONE,             /* no row does */
    CLT_WHY_ONLY,             /* there is one candidate */
    CLT_WHY_DEFAULT,          /* the last row, as it comes */
    CLT_WHY_MEASURED,         /* a tuning result on this problem */
    CLT_WHY_SHIPPED,          /* the same, made elsewhere on such a device */
    CLT_WHY_NEAREST,          /* a tuning result on a problem like it */
    CLT_WHY_SHIPPED_NEAREST
} clt_why;

typedef struct clt_reason {
    clt_why why;
    char from[CLT_TUNE_KEY]; /* of the nearest: its problem; else "" */
} clt_reason;

/* What clt_backend_choose gives, and why (may be NULL). */
clt_choice clt_tune_choose(const clt_tensor *node, clt_device *device, clt_reason *reason);
/* The same without what was measured here: what is part of the library. */
clt_choice clt_tune_choose_untuned(const clt_tensor *node, clt_device *device);
/* True if there is a choice: more than one row, or parameters, for a node whose problem has a key. */
bool clt_tune_matters(const clt_tensor *node, clt_device *device);

/* The choices of a training run. Made with its first plan; from then on they alone, with what is part of the library,
 * decide: what is tuned meanwhile changes no run that has begun. */
typedef struct clt_tune_run {
    clt_tuning_results choices;
    bool begun;
} clt_tune_run;

/* CLT_E_NO_MEMORY: a choice that a run does not know could not be resumed from its checkpoint. */
clt_status clt_tune_run_choose(clt_tune_run *run, const clt_tensor *node, clt_device *device, clt_choice *choice);
/* As text for a checkpoint, with the device's identity; and back. What was written on another device, or is no such text,
 * changes nothing: *taken is false then. */
clt_status clt_tune_run_write(const clt_tune_run *run, const clt_device *device, clt_text *text);
clt_status clt_tune_run_read(clt_tune_run *run, const clt_device *device, const char *text, bool *taken);
void clt_tune_run_free(clt_tune_run *run);

#endif
