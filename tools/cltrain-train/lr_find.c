#include "lr_find.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "tools/common/message.h"
#include "tools/survey/document.h"

static const double least = 1e-7, most = 10;

static clt_status next_batch(clt_loader *loader, clt_batch *batch) {
    clt_status status = clt_loader_next(loader, batch);
    return status == CLT_END ? clt_loader_next(loader, batch) : status;
}

/* The loss of the batch before the update. */
static clt_status step(clt_trainer *trainer, clt_loader *loader, double lr, double *loss) {
    clt_batch batch;
    clt_metrics metrics = {.loss = (double)NAN};
    clt_status status = next_batch(loader, &batch);
    if (status >= 0) status = clt_trainer_set_lr(trainer, (float)lr);
    if (status >= 0) status = clt_trainer_step(trainer, &batch);
    if (status >= 0) status = clt_trainer_train_metrics(trainer, &metrics, true);
    *loss = metrics.loss;
    return status;
}

/* By the logarithm of the rate, of the part before the lowest loss. */
static double find_steepest(const lr_find *f) {
    int lowest = 0;
    double best = 0, where = (double)NAN;
    for (int i = 1; i < f->n; i++)
        if (f->loss[i] < f->loss[lowest]) lowest = i;
    for (int i = 5; i <= lowest; i++) {
        double slope = f->loss[i] - f->loss[i - 5];
        if (slope < best) best = slope, where = f->lr[i];
    }
    return where;
}

clt_status lr_find_run(lr_find *f, clt_trainer *trainer, clt_loader *loader) {
    const double keep = 0.9; /* of the mean so far */
    double mean = 0, lowest = INFINITY;
    clt_status status = CLT_OK;
    *f = (lr_find){.suggested = (double)NAN};
    for (int i = 0; status >= 0 && i < LR_FIND_STEPS; i++) {
        double lr = least * pow(most / least, (double)i / (LR_FIND_STEPS - 1)), loss;
        status = step(trainer, loader, lr, &loss);
        if (status < 0 || !isfinite(loss)) break;
        mean = keep * mean + (1 - keep) * loss;
        double smooth = mean / (1 - pow(keep, i + 1));
        f->lr[f->n] = lr;
        f->loss[f->n++] = smooth;
        lowest = fmin(lowest, smooth);
        if (smooth > 4 * lowest) break;
    }
    if (status == CLT_E_NONFINITE) status = CLT_OK; /* the rates were too high by then */
    f->suggested = find_steepest(f);
    return status;
}

static int print_json(const lr_find *f, const char *path) {
    json_t *rates = json_array(), *losses = json_array();
    for (int i = 0; i < f->n; i++) {
        json_array_append_new(rates, json_real(f->lr[i]));
        json_array_append_new(losses, json_real(f->loss[i]));
    }
    json_t *object = json_pack("{s:o, s:o, s:o}", "lr", rates, "loss", losses, "suggested_lr", isfinite(f->suggested) ? json_real(f->suggested) : json_null());
    int code = object ? document_write_at(object, path) : run_error("no memory for the result");
    json_decref(object);
    return code;
}

static void print_bar(double part) {
    for (int i = 0; i < (int)lrint(40 * part); i++) putchar('=');
    putchar('\n');
}

int lr_find_print(const lr_find *f, const char *json) {
    double high = 0;
    if (json) return print_json(f, json);
    for (int i = 0; i < f->n; i++) high = fmax(high, f->loss[i]);
    printf("%12s %12s\n", "lr", "loss");
    for (int i = 0; i < f->n; i += 4) {
        printf("%12.3g %12.5g  ", f->lr[i], f->loss[i]);
        print_bar(high > 0 ? fmin(fmax(f->loss[i] / high, 0), 1) : 0);
    }
    if (isfinite(f->suggested)) printf("The loss falls fastest at --lr %.2g.\n", f->suggested);
    else printf("The loss does not fall at any rate from %g to %g.\n", least, most);
    return fflush(stdout) ? run_error("stdout cannot be written") : 0;
}
