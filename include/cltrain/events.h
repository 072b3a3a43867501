/*
 * Event files of TensorBoard: scalars, texts, histograms, images, precision-recall curves, hyperparameters and graphs, which
 * `tensorboard --logdir FOLDER` shows.
 *
 * Each call that adds something appends one record by one write(2), and keeps nothing back: a program that is killed
 * leaves all of its records but the one it was writing, and TensorBoard reads those. A record that cannot be written
 * whole, as on a disk that is full, is taken off again, so that later ones can be read. Limits of file sizes
 * (setrlimit) send SIGXFSZ, which ends a program that does not ignore it.
 *
 * Names of what is added, tags, are UTF-8 and not empty; where they have slashes, as in "loss/train", TensorBoard
 * groups them. Records of one tag are of one kind; steps may be any number. What is given is borrowed for the call.
 *
 * All functions give CLT_E_INVALID for an argument that is NULL where none may be, and for a tag or a text that is
 * not UTF-8; CLT_E_IO, with the file's name, where it cannot be made or written; CLT_E_NO_MEMORY. After an error the
 * events may be used further, and nothing of the failed call is in the file; only where what was written in part
 * could not be taken off again do all later calls fail, with CLT_E_IO.
 *
 * A clt_events is for one thread at a time, and one process; different ones may be used at once.
 */
#ifndef CLTRAIN_EVENTS_H
#define CLTRAIN_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cltrain/export.h>
#include <cltrain/graph.h>
#include <cltrain/status.h>

CLT_BEGIN_DECLS

typedef struct clt_events clt_events;

/* A new file events.out.tfevents.SECONDS.HOST.PID.NUMBER in the folder, which is made, with its parents, where it is
 * missing. A file that is there is never replaced or continued: a run that goes on after a break has a file more, and
 * TensorBoard shows them as one. */
CLT_API clt_status clt_events_open(clt_events **events, const char *folder);

/* Kept as f32, as TensorBoard does: a number beyond its range becomes infinite. NaN and infinity are written, too. */
CLT_API clt_status clt_events_scalar(clt_events *events, const char *tag, int64_t step, double value);

/* Shown as Markdown. */
CLT_API clt_status clt_events_text(clt_events *events, const char *tag, int64_t step, const char *text);

/* The distribution of `n` values, 1 or more, in TensorFlow's buckets: their limits are 0 and, of both signs, 1e-12 x
 * 1.1^k up to 1e20. Runs of empty ones are joined, as there, and those before the first value and after the last left
 * out. NaN and infinite values are in no bucket and in no sum; where there are any, their number is a scalar
 * `tag`/nonfinite in the same record. */
CLT_API clt_status clt_events_histogram(clt_events *events, const char *tag, int64_t step, const float *values, size_t n);

/* Rows of pixels from the top: u8 [height, width, channels], with 1 channel (gray) or 3 (red, green, blue), kept as
 * PNG. CLT_E_INVALID for another number of channels, CLT_E_RANGE for an image without pixels or of more than 2^30
 * bytes. */
CLT_API clt_status clt_events_image(clt_events *events, const char *tag, int64_t step, const uint8_t *pixels, int height, int width, int channels);

/* Precision and recall of a classifier of two classes over `n` samples, 1 or more. labels[i] is 0 for what is not of
 * the class, else it is; scores[i] says how probable the class is. Threshold k is k / (thresholds - 1), rounded to
 * f32; a sample is predicted to be of the class where its score is not below it: one whose score is negative or NaN
 * nowhere. Where nothing is predicted precision is 0, and where nothing is of the class recall. CLT_E_RANGE unless
 * there are 2 to 65536 thresholds; TensorBoard's own default is 201. */
CLT_API clt_status clt_events_pr_curve(clt_events *events, const char *tag, int64_t step, const uint8_t *labels, const float *scores, size_t n,
                                       int thresholds);

/* A hyperparameter: a text, or, where that is NULL, a number. */
typedef struct clt_hparam {
    const char *name; /* UTF-8, not empty */
    const char *text;
    double number;
} clt_hparam;

/* The run's hyperparameters, for TensorBoard's table of runs, and the tags of the scalars that are shown beside them;
 * either may be none (NULL and 0). To be called once, before clt_events_session_end. CLT_E_RANGE for a number that is
 * not finite, which TensorBoard cannot read: give it as a text; CLT_E_INVALID for two hyperparameters of one name. */
CLT_API clt_status clt_events_hparams(clt_events *events, const clt_hparam *hparams, size_t n, const char *const *metrics, size_t n_metrics);

/* The ops that the result depends on, and its inputs and variables, for the page of graphs: in the boxes of their layers, whose names parameters have. To be called
 * once; the graph's first error is this call's, too. */
CLT_API clt_status clt_events_graph(clt_events *events, const clt_tensor *result);

/* The run is over, and whether it went well, for the same table. Where it never says so, its end is unknown there. */
CLT_API clt_status clt_events_session_end(clt_events *events, bool success);

/* Waits until all is on the disk (fsync), so that it outlives a crash of the machine as well; no call is needed for
 * TensorBoard to see it. */
CLT_API clt_status clt_events_flush(clt_events *events);

/* Closes the file and frees the events, also on error; NULL is fine. */
CLT_API clt_status clt_events_close(clt_events *events);

CLT_END_DECLS

#endif
