#include "class_weights.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/numbers.h"

typedef struct counted {
    int32_t *labels;
    int64_t *counts; /* of each class */
    int classes, present;
} counted;

static void free_counted(counted *c) {
    free(c->labels);
    free(c->counts);
}

/* Release with free_counted, also after an error. */
static int count(counted *c, const clt_dataset *data, const char *option) {
    int64_t samples = clt_dataset_samples(data);
    *c = (counted){.classes = clt_dataset_classes(data)};
    if (!c->classes) return usage_error("%s is for classes: there are none in these data", option);
    c->labels = calloc((size_t)samples, sizeof *c->labels);
    c->counts = calloc((size_t)c->classes, sizeof *c->counts);
    if (!c->labels || !c->counts) return run_error("%s: no memory for the labels", option);
    clt_status status = clt_dataset_labels(data, c->labels);
    if (status < 0) return library_error(status, option);
    for (int64_t i = 0; i < samples; i++) c->counts[c->labels[i]]++;
    for (int k = 0; k < c->classes; k++) c->present += c->counts[k] > 0;
    return 0;
}

static int balance(float *weights, const clt_dataset *train) {
    counted c;
    int code = count(&c, train, "--class-weights");
    for (int k = 0; !code && k < c.classes; k++) weights[k] = c.counts[k] ? (float)((double)clt_dataset_samples(train) / ((double)c.present * (double)c.counts[k])) : 1;
    free_counted(&c);
    return code;
}

static bool parse(float *weights, const char *text, int64_t classes) {
    char part[64];
    double value;
    for (int64_t k = 0; k < classes; k++) {
        size_t length = strcspn(text, ",");
        if (length >= sizeof part) return false;
        memcpy(part, text, length);
        part[length] = 0;
        if (!number_real(part, &value) || value < 0) return false;
        weights[k] = (float)value;
        text += length;
        if ((*text == ',') != (k + 1 < classes)) return false;
        text += *text == ',';
    }
    return !*text;
}

/* The loss is the mean of weighted losses: of these weights' mean over the training part it is on the scale of a loss without them, however a batch
 * is cut into those of ranks. */
static int normalize(float *weights, int64_t classes, const clt_dataset *train) {
    counted c;
    double sum = 0;
    int code = count(&c, train, "--class-weights");
    for (int64_t k = 0; !code && k < classes && k < c.classes; k++) sum += (double)c.counts[k] * (double)weights[k];
    if (!code && !(sum > 0)) code = usage_error("--class-weights: the classes of all training samples have the weight 0");
    for (int64_t k = 0; !code && k < classes; k++) weights[k] = (float)((double)weights[k] * (double)clt_dataset_samples(train) / sum);
    free_counted(&c);
    return code;
}

int class_weights_find(float **weights, const char *text, const clt_dataset *train, int64_t classes) {
    if (!classes) return usage_error("--class-weights is for classes: there are none in these data");
    *weights = malloc((size_t)classes * sizeof **weights);
    if (!*weights) return run_error("no memory for --class-weights");
    for (int64_t k = 0; k < classes; k++) (*weights)[k] = 1; /* the training part may lack the last ones */
    if (strcmp(text, "balanced") == 0) return balance(*weights, train);
    if (parse(*weights, text, classes)) return normalize(*weights, classes, train);
    return usage_error("--class-weights '%s': expected balanced, or %lld numbers from 0 with commas between", text, (long long)classes);
}

int sample_weights_find(double **weights, const clt_dataset *train) {
    counted c;
    int code = count(&c, train, "--balanced-sampling");
    *weights = code ? NULL : malloc((size_t)clt_dataset_samples(train) * sizeof **weights);
    if (!code && !*weights) code = run_error("no memory for --balanced-sampling");
    for (int64_t i = 0; !code && i < clt_dataset_samples(train); i++) (*weights)[i] = 1 / (double)c.counts[c.labels[i]];
    free_counted(&c);
    return code;
}
