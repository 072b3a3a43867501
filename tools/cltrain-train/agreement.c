/* Ranks compare what they have as text, which is also what is said of it. */
#include "agreement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/hash.h"
#include "tools/common/message.h"
#include "fingerprint.h"
#include "option_table.h"

enum { VALUE_BYTES = 120 };

/* ---- values ---- */

/* What is too long is shown in part. */
static void put_text(char value[VALUE_BYTES], const char *text) {
    size_t length = strlen(text);
    if (length < VALUE_BYTES) strcpy(value, text);
    else snprintf(value, VALUE_BYTES, "%.80s... (%016llx)", text, (unsigned long long)hash_bytes(text, length));
}

static void put_whole(char value[VALUE_BYTES], int64_t number) {
    snprintf(value, VALUE_BYTES, "%lld", (long long)number);
}

/* ---- what is gathered: one row a value, and `all` has those of every rank ---- */

typedef struct gathered {
    int n; /* values of a rank */
    char (*all)[VALUE_BYTES];
} gathered;

static clt_status gather(const ranks *group, char (*own)[VALUE_BYTES], int n, gathered *result) {
    size_t bytes = (size_t)n * VALUE_BYTES;
    *result = (gathered){.n = n, .all = calloc((size_t)group->size, bytes)};
    if (!result->all) return CLT_E_NO_MEMORY;
    memcpy(result->all + (size_t)group->rank * (size_t)n, own, bytes);
    return ranks_gather(group, result->all, bytes);
}

/* Whatever came, it ends. */
static const char *value_of(const gathered *g, int rank, int i) {
    char *value = g->all[(size_t)rank * (size_t)g->n + (size_t)i];
    value[VALUE_BYTES - 1] = '\0';
    return value;
}

/* Says the first of n values that another rank has otherwise than rank 0. */
static int compare(const gathered *g, const ranks *group, const char *const *words, int n) {
    for (int r = 1; r < group->size; r++)
        for (int i = 0; i < n; i++)
            if (strcmp(value_of(g, r, i), value_of(g, 0, i)))
                return usage_error("rank %d and rank 0 differ in %s: %s and %s", r, words[i], value_of(g, r, i), value_of(g, 0, i));
    return 0;
}

/* ---- data ---- */

enum {
    TRAINING_SAMPLES, TEST_SAMPLES, CLASSES, SAMPLE, TRUTH, LABELS, SHARES, FACTS, /* are the same */
    BATCH = FACTS, LEVEL, SPREAD, ALL_FACTS
};

static const char *const fact_words[FACTS] = {
    "--data: training samples", "--data: test samples",  "--data: classes", "--data: a sample",
    "--data: the truth",        "--data: labels (a hash)", "--shares",
};

static void put_field(char value[VALUE_BYTES], const clt_dataset *data, int field) {
    clt_shape shape = clt_dataset_shape(data, field);
    int used = snprintf(value, VALUE_BYTES, "%s [", clt_dtype_name(clt_dataset_dtype(data, field)));
    for (int i = 0; i < shape.rank && used < VALUE_BYTES - 24; i++)
        used += snprintf(value + used, (size_t)(VALUE_BYTES - used), "%s%lld", i ? ", " : "", (long long)shape.dims[i]);
    snprintf(value + used, (size_t)(VALUE_BYTES - used), "]");
}

/* Numbers of hosts may differ in what their mathematics round: so some values are added up, each with a sign of its own. */
static void weigh_values(const clt_array *x, double *level, double *spread) {
    enum { MOST_VALUES = 4096 };
    int64_t n = clt_shape_elements(&x->shape), stride = n / MOST_VALUES + 1;
    for (int64_t i = 0; (x->dtype == CLT_F32 || x->dtype == CLT_U8) && i < n; i += stride) {
        double value = x->dtype == CLT_U8 ? ((const uint8_t *)x->data)[i] : (double)((const float *)x->data)[i];
        bool negative = hash_bytes(&i, sizeof i) >> 40 & 1;
        *level += negative ? -value : value;
        *spread += fabs(value);
    }
}

/* Of what is not in memory, one batch; what cannot be read is told of when it is trained on. */
static void weigh_some(const clt_dataset *data, double *level, double *spread) {
    clt_loader *loader;
    clt_batch batch;
    if (clt_loader_create(&loader, data, &(clt_loader_options){.batch = 16, .shuffle = true}) < 0) return;
    if (clt_loader_next(loader, &batch) == CLT_OK) weigh_values(&batch.fields[0], level, spread);
    clt_loader_destroy(loader);
}

static void describe_data(char (*facts)[VALUE_BYTES], const data_parts *data) {
    double level = 0, spread = 0;
    clt_array x = clt_dataset_array(data->train, 0);
    put_whole(facts[TRAINING_SAMPLES], clt_dataset_samples(data->train));
    put_whole(facts[TEST_SAMPLES], clt_dataset_samples(data->test));
    put_whole(facts[CLASSES], clt_dataset_classes(data->train));
    put_field(facts[SAMPLE], data->train, 0);
    put_field(facts[TRUTH], data->train, clt_dataset_fields(data->train) - 1);
    snprintf(facts[LABELS], VALUE_BYTES, "%016llx", (unsigned long long)fingerprint_labels(data->train));
    if (x.data) weigh_values(&x, &level, &spread);
    else weigh_some(data->train, &level, &spread);
    memcpy(facts[LEVEL], &level, sizeof level);
    memcpy(facts[SPREAD], &spread, sizeof spread);
}

static double real_of(const gathered *g, int rank, int i) {
    double value;
    memcpy(&value, value_of(g, rank, i), sizeof value);
    return value;
}

/* Both NaN is no difference. */
static int compare_values(const gathered *g, const ranks *group) {
    const double tolerance = 1e-4; /* other data are hundreds of times further apart */
    for (int r = 1; r < group->size; r++)
        if (fabs(real_of(g, r, LEVEL) - real_of(g, 0, LEVEL)) > tolerance * real_of(g, 0, SPREAD))
            return usage_error("rank %d and rank 0 differ in --data: the samples have other values, or another order", r);
    return 0;
}

/* ---- before anything depends on them ---- */

static int take_batches(options *given, const ranks *group, const gathered *g) {
    free(given->each_batch);
    given->each_batch = calloc((size_t)group->size, sizeof *given->each_batch);
    if (!given->each_batch) return run_error("no memory for the batches of %d ranks", group->size);
    for (int r = 0; r < group->size; r++) memcpy(&given->each_batch[r], value_of(g, r, BATCH), sizeof *given->each_batch);
    return 0;
}

static clt_status gather_facts(const options *given, const data_parts *data, const ranks *group, gathered *g) {
    char facts[ALL_FACTS][VALUE_BYTES] = {""};
    if (group->size > 1) describe_data(facts, data); /* one agrees with itself: nothing is decoded or hashed for that */
    put_text(facts[SHARES], given->shares ? given->shares : "none");
    memcpy(facts[BATCH], &given->batch, sizeof given->batch);
    return gather(group, facts, ALL_FACTS, g);
}

int agreement_begin(options *given, const data_parts *data, ranks *group) {
    gathered g;
    clt_status status = gather_facts(given, data, group, &g);
    if (status < 0) {
        free(g.all);
        return ranks_meeting_failed(group, given, status);
    }
    int code = compare(&g, group, fact_words, FACTS);
    if (!code) code = compare_values(&g, group);
    if (!code) code = take_batches(given, group, &g);
    free(g.all);
    return code;
}

/* ---- options ---- */

typedef enum sameness { NEED_NOT_BE, IN_BEING_GIVEN, SAME } sameness;

/* What a row of the table is to all: most options decide what is computed, or when all exchange something. */
static sameness sameness_of(const option_row *row) {
    static const char *const own[] = {"data", "batch", "shares", "device", "list-devices", "export", "log", "json", "profile",
                                      "recompute", "offload", "offload-dir", "memory-limit", "quiet", "verbose", "help", "version", NULL};
    static const char *const files[] = {"save", "resume", "evaluate", NULL}; /* which one is rank 0's to know */
    if (row->kind == OPTION_HEADING) return NEED_NOT_BE;
    for (int i = 0; own[i]; i++)
        if (strcmp(row->name, own[i]) == 0) return NEED_NOT_BE;
    for (int i = 0; files[i]; i++)
        if (strcmp(row->name, files[i]) == 0) return IN_BEING_GIVEN;
    return SAME;
}

static void put_real(char value[VALUE_BYTES], double number) {
    if (isnan(number)) strcpy(value, "none");
    else snprintf(value, VALUE_BYTES, "%.9g", number);
}

static void put_option(char value[VALUE_BYTES], const option_row *row, const options *given) {
    const void *at = (const char *)given + row->offset;
    switch (row->kind) {
    case OPTION_FLAG: strcpy(value, *(const bool *)at ? "given" : "not given"); break;
    case OPTION_COUNTER: put_whole(value, *(const int *)at); break;
    case OPTION_CHOICE:
        if (*(const int *)at == OPTION_UNSET) strcpy(value, "none");
        else put_text(value, row->choices[*(const int *)at]);
        break;
    case OPTION_WHOLE:
    case OPTION_SEED:
        if (*(const int64_t *)at == OPTION_UNSET) strcpy(value, "none");
        else put_whole(value, *(const int64_t *)at);
        break;
    case OPTION_TEXT:
    case OPTION_OPTIONAL: {
        const char *text = *(const char *const *)at;
        if (sameness_of(row) == IN_BEING_GIVEN) strcpy(value, text ? "given" : "not given");
        else put_text(value, text ? text : "none");
        break;
    }
    default: put_real(value, *(const double *)at);
    }
}

enum { MOST_OPTIONS = 100 };

typedef struct option_list {
    int n;
    char names[MOST_OPTIONS][40], values[MOST_OPTIONS][VALUE_BYTES];
    const char *words[MOST_OPTIONS]; /* the names */
} option_list;

static char *add_option(option_list *list, const char *dashes, const char *name) {
    snprintf(list->names[list->n], sizeof list->names[0], "%s%s", dashes, name);
    list->words[list->n] = list->names[list->n];
    return list->values[list->n++];
}

static void collect_options(option_list *list, const options *given) {
    put_text(add_option(list, "", "MODEL"), given->model);
    for (int i = 0; i < option_row_count && list->n < MOST_OPTIONS; i++)
        if (sameness_of(&option_rows[i]) != NEED_NOT_BE)
            put_option(add_option(list, "--", option_rows[i].name), &option_rows[i], given);
}

clt_status agreement_check(const options *given, const ranks *group) {
    option_list list = {0};
    gathered g;
    collect_options(&list, given);
    clt_status status = gather(group, list.values, list.n, &g);
    if (status >= 0 && compare(&g, group, list.words, list.n)) status = CLT_E_MISMATCH;
    free(g.all);
    return status;
}
