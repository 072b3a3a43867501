/*
 * Labels of a table that are texts: which class each is.
 */
#ifndef CLT_DATA_CSV_LABELS_H
#define CLT_DATA_CSV_LABELS_H

#include "runtime/data/preprocessing.h"

enum { CLT_CSV_MOST_TEXTS = 10000 };

typedef struct clt_csv_labels {
    clt_names names; /* by class, while it is read in the order in which they came */
    int32_t *sorted; /* classes in the order of their names' bytes */
    size_t capacity;
    bool fixed; /* the classes are those of a model: there are no others */
} clt_csv_labels;

/* The classes of a model; `names` without any: those that will come. */
clt_status clt_csv_labels_begin(clt_csv_labels *labels, const clt_names *names);
void clt_csv_labels_free(clt_csv_labels *labels);

/* The class of a text. CLT_E_RANGE, without words, where it is none or there are too many. */
clt_status clt_csv_labels_find(clt_csv_labels *labels, const char *text, int32_t *class_index);

/* ranks[class]: where it stands in the order of the names. */
void clt_csv_labels_ranks(const clt_csv_labels *labels, int32_t *ranks);

/* Numbers the classes in the order of their names, in the n labels too. */
clt_status clt_csv_labels_sort(clt_csv_labels *labels, int32_t *values, size_t n);

#endif
