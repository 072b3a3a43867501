#include "runtime/data/csv_labels.h"

#include <string.h>

void clt_csv_labels_free(clt_csv_labels *labels) {
    clt_names_free(&labels->names);
    clt_free(labels->sorted);
    *labels = (clt_csv_labels){0};
}

/* Where the text stands in the sorted order, or would; *found if it is there. */
static size_t place_of(const clt_csv_labels *l, const char *text, bool *found) {
    size_t low = 0, high = (size_t)l->names.n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(l->names.items[l->sorted[middle]], text);
        if (order == 0) return *found = true, middle;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    *found = false;
    return low;
}

static clt_status make_room(clt_csv_labels *l) {
    size_t n = (size_t)l->names.n, capacity = l->capacity;
    CLT_TRY(clt_grow(&l->names.items, &capacity, n, sizeof *l->names.items));
    return clt_grow(&l->sorted, &l->capacity, n, sizeof *l->sorted);
}

static clt_status insert(clt_csv_labels *l, const char *text, size_t place) {
    size_t n = (size_t)l->names.n;
    CLT_TRY(make_room(l));
    l->names.items[n] = clt_strdup(text);
    if (!l->names.items[n]) return clt_fail_memory(strlen(text) + 1);
    memmove(l->sorted + place + 1, l->sorted + place, (n - place) * sizeof *l->sorted);
    l->sorted[place] = (int32_t)n;
    l->names.n++;
    return CLT_OK;
}

clt_status clt_csv_labels_begin(clt_csv_labels *labels, const clt_names *names) {
    bool found;
    *labels = (clt_csv_labels){0};
    for (int64_t i = 0; i < names->n; i++) {
        size_t place = place_of(labels, names->items[i], &found);
        if (found) return clt_fail(CLT_E_INVALID, "the model has two classes \"%.80s\"", names->items[i]);
        CLT_TRY(insert(labels, names->items[i], place));
    }
    labels->fixed = names->n > 0;
    return CLT_OK;
}

clt_status clt_csv_labels_find(clt_csv_labels *labels, const char *text, int32_t *class_index) {
    bool found;
    size_t place = place_of(labels, text, &found);
    if (!found && (labels->fixed || labels->names.n == CLT_CSV_MOST_TEXTS)) return CLT_E_RANGE;
    *class_index = found ? labels->sorted[place] : (int32_t)labels->names.n;
    return found ? CLT_OK : insert(labels, text, place);
}

void clt_csv_labels_ranks(const clt_csv_labels *labels, int32_t *ranks) {
    for (int32_t i = 0; i < (int32_t)labels->names.n; i++) ranks[labels->sorted[i]] = i;
}

clt_status clt_csv_labels_sort(clt_csv_labels *labels, int32_t *values, size_t n) {
    size_t classes = (size_t)labels->names.n;
    if (labels->fixed || !classes) return CLT_OK;
    int32_t *ranks = clt_calloc(classes, sizeof *ranks);
    char **items = clt_alloc(classes * sizeof *items);
    if (!ranks || !items) {
        clt_free(ranks);
        clt_free(items);
        return clt_fail_memory(classes * sizeof *items);
    }
    clt_csv_labels_ranks(labels, ranks);
    for (size_t i = 0; i < n; i++) values[i] = ranks[values[i]];
    for (size_t i = 0; i < classes; i++) {
        items[i] = labels->names.items[labels->sorted[i]];
        labels->sorted[i] = (int32_t)i;
    }
    clt_free(ranks);
    clt_free(labels->names.items);
    labels->names.items = items;
    labels->capacity = classes;
    return CLT_OK;
}
