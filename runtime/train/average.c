/* The moving average of the parameters: kept beside them, and used in their place. */
#include "runtime/train/trainer.h"

static const char average[] = "average", parameters[] = "parameters";

static clt_status find_both(clt_trainer *t, int g, clt_memory **p, clt_memory **mean, size_t *bytes) {
    char name[64];
    *bytes = (size_t)t->buckets[g].elements * sizeof(float);
    CLT_TRY(clt_state_store_get(t->store, clt_bucket_name(parameters, g, name), *bytes, p));
    return clt_state_store_get(t->store, clt_bucket_name(average, g, name), *bytes, mean);
}

clt_status clt_average_begin(clt_trainer *t) {
    if (!(t->options.average > 0) || t->averaged) return CLT_OK;
    for (int g = 0; g < t->n_buckets; g++) {
        clt_memory *p, *mean;
        size_t bytes;
        CLT_TRY(find_both(t, g, &p, &mean, &bytes));
        CLT_TRY(clt_memory_copy(p, 0, mean, bytes));
    }
    t->averaged = true;
    return CLT_OK;
}

/* Where the device has no room for a third. */
static clt_status exchange_by_host(clt_trainer *t, clt_memory *p, clt_memory *mean, size_t bytes) {
    size_t most = CLT_MIN(bytes, (size_t)4 << 20);
    char *both = clt_alloc(2 * most);
    clt_status status = both ? CLT_OK : clt_fail_memory(2 * most);
    for (size_t at = 0; at < bytes && status == CLT_OK; at += most) {
        size_t n = CLT_MIN(bytes - at, most);
        status = clt_memory_read(p, at, both, n);
        if (status == CLT_OK) status = clt_memory_read(mean, at, both + most, n);
        if (status == CLT_OK) status = clt_memory_write(p, at, both + most, n);
        if (status == CLT_OK) status = clt_memory_write(mean, at, both, n);
        if (status < 0 && status != CLT_E_NO_MEMORY) t->trouble = CLT_TROUBLE_TORN;
    }
    clt_free(both);
    return status;
}

static clt_status exchange(clt_trainer *t, int g) {
    clt_memory *p, *mean, *between;
    size_t bytes;
    CLT_TRY(find_both(t, g, &p, &mean, &bytes));
    clt_status status = clt_memory_create(t->device, bytes, &between);
    if (status == CLT_E_DEVICE_MEMORY) return exchange_by_host(t, p, mean, bytes);
    CLT_TRY(status);
    status = clt_memory_copy(p, 0, between, bytes);
    if (status == CLT_OK) status = clt_memory_copy(mean, 0, p, bytes);
    if (status == CLT_OK && (status = clt_memory_copy(between, 0, mean, bytes)) < 0) t->trouble = CLT_TROUBLE_TORN;
    clt_memory_destroy(between);
    return status;
}

clt_status clt_trainer_use_average(clt_trainer *t, bool use) {
    if (!t) return clt_fail(CLT_E_INVALID, "clt_trainer_use_average: trainer is NULL");
    if (!(t->options.average > 0)) return clt_fail(CLT_E_STATE, "clt_trainer_use_average: the trainer keeps no average (option average)");
    if (t->uses_average == use) return CLT_OK;
    for (int g = 0; t->averaged && g < t->n_buckets; g++) {
        clt_status status = exchange(t, g);
        if (status == CLT_OK) continue;
        if (g > 0 || clt_device_is_lost(t->device)) t->trouble = CLT_TROUBLE_TORN;
        return status;
    }
    t->uses_average = use;
    *clt_state_store_averages(t->store) += use ? 1 : -1;
    return CLT_OK;
}

clt_status clt_average_check_unused(const clt_trainer *t) {
    if (!*clt_state_store_averages(t->store)) return CLT_OK;
    return clt_fail(CLT_E_STATE, "the average%s is in the parameters' place: clt_trainer_use_average(trainer, false) puts them back",
                    t->uses_average ? "" : " of a trainer that shares them");
}
