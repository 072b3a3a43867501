/*
 * Shapes of models: text files with a line for each problem that a training step poses.
 *
 *     # what the step is
 *     PHASE COUNT PROBLEM
 *     forward 4 conv2d k3 s1 p1 d1 g1 64x64x32x32 64x64x3x3 -> 64x64x32x32
 *
 * PHASE is forward, data-gradient, weight-gradient, backward (what is neither) or update; COUNT how often the problem is in
 * a step; PROBLEM as clt_measure_problem takes it.
 */
#ifndef CLTRAIN_PROBE_SHAPES_H
#define CLTRAIN_PROBE_SHAPES_H

#include <stddef.h>

typedef struct shape_file {
    const char *name, *text;
} shape_file;
extern const shape_file embedded_shapes[]; /* ended by a name of NULL */

typedef struct shape_line {
    char model[64], phase[24], problem[320];
    int count;
} shape_line;

typedef struct shape_list {
    shape_line *lines;
    int n;
} shape_list;

/* Adds a problem, once for a model. 0 or an exit code after a message. */
int shapes_add_line(shape_list *list, const shape_line *line);
/* Adds the problems of a text, each once for a model. `model` names it; `source` for messages. 0 or EXIT_USAGE. */
int shapes_add(shape_list *list, const char *model, const char *text, const char *source);
/* The same of a file, EXIT_FAILED if it cannot be read. */
int shapes_add_file(shape_list *list, const char *path);
/* The embedded ones of these names ("mlp,convnet"; NULL: all). 0 or EXIT_USAGE. */
int shapes_add_embedded(shape_list *list, const char *names);
void shapes_free(shape_list *list);

#endif
