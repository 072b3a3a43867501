/*
 * Places for labels beside points, so that none covers another.
 */
#ifndef CLTRAIN_PROBE_REPORT_LABELS_H
#define CLTRAIN_PROBE_REPORT_LABELS_H

#include <stdbool.h>

typedef struct label_box {
    double x0, y0, x1, y1;
} label_box;

typedef struct label_map {
    label_box frame;  /* labels stay in it */
    label_box *taken; /* by points and labels */
    int n, capacity;
    int rings; /* how far from its point a label may be */
} label_map;

/* Room for `capacity` boxes; false without memory. */
bool label_map_make(label_map *map, label_box frame, int capacity, int rings);
void label_map_free(label_map *map);

/* What is past the capacity is not kept. */
void label_take(label_map *map, label_box box);
/* With the first `n` boxes. */
int label_count_hits(const label_map *map, int n, label_box box);

/* The free place nearest to a point of some radius for a label of that size, which is taken then. False where none is near
 * enough. *far: it is so far that a line should lead to it, which crosses no label that lies from `first` on. */
bool label_place(label_map *map, double x, double y, double radius, double width, double height, int first, label_box *place,
                 bool *far);

#endif
