#include "patience.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "scores.h"

/* The key of the value: "best_loss", "best_f1". */
static const char *key_of(const options *given, char key[48]) {
    snprintf(key, 48, "best_%s", scores_monitored[options_monitor(given)]);
    return key;
}

clt_status patience_keep(clt_trainer *trainer, const report *r) {
    if (!r->best_epoch) return CLT_OK;
    char key[48];
    json_t *object = json_pack("{s:I, s:f}", "best_epoch", (json_int_t)r->best_epoch, key_of(r->options, key), r->best_loss);
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    clt_status status = text ? clt_trainer_set_note(trainer, text) : CLT_E_NO_MEMORY;
    free(text);
    json_decref(object);
    return status;
}

typedef struct lowest {
    int64_t epoch;
    double loss;
} lowest;

/* No epoch where the file tells none, or nonsense. */
static lowest read_file(const char *path, const char *key, int64_t epochs) {
    char text[256];
    if (clt_weights_metadata(path, "cltrain.note", text, sizeof text) < 0) return (lowest){0};
    json_t *object = json_loads(text, 0, NULL);
    lowest found = {json_integer_value(json_object_get(object, "best_epoch")), json_number_value(json_object_get(object, key))};
    bool usable = found.epoch > 0 && found.epoch <= epochs && isfinite(found.loss) && json_is_number(json_object_get(object, key));
    json_decref(object);
    return usable ? found : (lowest){0};
}

clt_status patience_recall(const char *path, int64_t epochs, const ranks *group, report *r) {
    lowest found = {0};
    char key[48];
    if (ranks_lead(group)) found = read_file(path, key_of(r->options, key), epochs);
    if (group->comm) {
        clt_status status = clt_comm_broadcast(group->comm, &found, sizeof found, CLT_U8, 0, NULL);
        if (status < 0) return status;
    }
    if (!found.epoch) return CLT_OK;
    r->best_epoch = found.epoch;
    r->best_loss = found.loss;
    return CLT_OK;
}
