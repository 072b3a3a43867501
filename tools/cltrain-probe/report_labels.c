#include "report_labels.h"

#include <math.h>
#include <stdlib.h>

bool label_map_make(label_map *map, label_box frame, int capacity, int rings) {
    *map = (label_map){.frame = frame, .capacity = capacity, .rings = rings};
    map->taken = calloc((size_t)capacity + 1, sizeof *map->taken);
    return map->taken != NULL;
}

void label_map_free(label_map *map) {
    free(map->taken);
    map->taken = NULL;
}

void label_take(label_map *map, label_box box) {
    if (map->n < map->capacity) map->taken[map->n++] = box;
}

static bool meet(label_box a, label_box b) {
    return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1;
}

int label_count_hits(const label_map *map, int n, label_box box) {
    int hits = 0;
    for (int i = 0; i < n && i < map->n; i++) hits += meet(map->taken[i], box);
    return hits;
}

static bool is_free(const label_map *map, label_box box) {
    if (box.x0 < map->frame.x0 || box.x1 > map->frame.x1 || box.y0 < map->frame.y0 || box.y1 > map->frame.y1) return false;
    for (int i = 0; i < map->n; i++)
        if (meet(map->taken[i], box)) return false;
    return true;
}

/* Liang and Barsky: the part of the line that is between both pairs of sides. */
static bool crosses(label_box b, double x0, double y0, double x1, double y1) {
    double from = 0, to = 1;
    const double step[4] = {x0 - x1, x1 - x0, y0 - y1, y1 - y0}, room[4] = {x0 - b.x0, b.x1 - x0, y0 - b.y0, b.y1 - y0};
    for (int i = 0; i < 4; i++) {
        if (step[i] == 0 && room[i] < 0) return false;
        if (step[i] < 0) from = fmax(from, room[i] / step[i]);
        if (step[i] > 0) to = fmin(to, room[i] / step[i]);
    }
    return from < to;
}

static bool line_is_free(const label_map *map, int first, double x, double y, label_box to) {
    for (int i = first; i < map->n; i++)
        if (crosses(map->taken[i], x, y, (to.x0 + to.x1) / 2, (to.y0 + to.y1) / 2)) return false;
    return true;
}

bool label_place(label_map *map, double x, double y, double radius, double width, double height, int first, label_box *place,
                 bool *far) {
    enum { DIRECTIONS = 16 };
    for (int ring = 0; ring < map->rings; ring++) {
        for (int k = 0; k < DIRECTIONS; k++) {
            /* The upper right first, then by turns on both sides of it. */
            int turn = k % 2 ? (k + 1) / 2 : -k / 2;
            double angle = (2 * turn - 4) * acos(-1) / DIRECTIONS, c = cos(angle), s = sin(angle);
            double reach = radius + 1 + 9.0 * ring;
            /* So that the nearest side or corner of the label is at that distance. */
            double cx = x + c * (reach + width / 2), cy = y + s * (reach + height / 2);
            label_box box = {cx - width / 2, cy - height / 2, cx + width / 2, cy + height / 2};
            *far = ring > 0;
            if (!is_free(map, box) || (*far && !line_is_free(map, first, x, y, box))) continue;
            *place = box;
            label_take(map, box);
            return true;
        }
    }
    return false;
}
