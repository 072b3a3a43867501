/*
 * First values of parameters. Each draws from a stream of the seed that its name
 * selects, so that adding a layer leaves the others' values as they were.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/train/trainer.h"

static void fans(const clt_shape *shape, double *in, double *out) {
    double receptive = 1;
    for (int i = 2; i < shape->rank; i++) receptive *= (double)shape->dims[i];
    *in = (double)(shape->rank > 1 ? shape->dims[1] : shape->rank > 0 ? shape->dims[0] : 1) * receptive;
    *out = (double)(shape->rank > 0 ? shape->dims[0] : 1) * receptive;
}

static void fill(const clt_variable *v, uint64_t seed, float *values, int64_t n) {
    char hash[CLT_HASH_TEXT];
    clt_hash_text(v->name, strlen(v->name), hash);
    hash[12] = 0; /* 48 bits: the width of a stream's index */
    clt_random random;
    clt_random_init(&random, seed, CLT_RANDOM_STREAM(CLT_RANDOM_INITIAL_VALUES, strtoull(hash, NULL, 16)));
    double in, out, value = v->init.value, gain = clt_or_default(v->init.gain, 1);
    bool normal = false;
    fans(&v->shape, &in, &out);
    switch (v->init.kind) {
    case CLT_INIT_ZEROS: value = 0; /* fall through */
    case CLT_INIT_CONSTANT:
        for (int64_t i = 0; i < n; i++) values[i] = (float)value;
        return;
    case CLT_INIT_UNIFORM: break;
    case CLT_INIT_NORMAL: normal = true; break;
    case CLT_INIT_KAIMING_UNIFORM: value = gain * sqrt(3 / in); break;
    case CLT_INIT_KAIMING_NORMAL: value = gain / sqrt(in), normal = true; break;
    case CLT_INIT_XAVIER_UNIFORM: value = gain * sqrt(6 / (in + out)); break;
    case CLT_INIT_VALUES:
    case CLT_INIT_READ: return; /* the caller's own */
    case CLT_INIT_XAVIER_NORMAL: value = gain * sqrt(2 / (in + out)), normal = true; break;
    }
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)(value * (normal ? clt_random_normal(&random) : 2 * clt_random_uniform(&random) - 1));
}

/* A piece at a time, so that a large model is not in memory twice. */
static clt_status read_values(const clt_variable *v, clt_memory *memory, int64_t n) {
    enum { PIECE = 1 << 18 };
    float *values = clt_alloc((size_t)CLT_MIN(n, (int64_t)PIECE) * sizeof *values);
    clt_status status = values ? CLT_OK : clt_fail_memory((size_t)CLT_MIN(n, (int64_t)PIECE) * sizeof *values);
    for (int64_t first = 0; status == CLT_OK && first < n; first += PIECE) {
        int64_t count = CLT_MIN(n - first, (int64_t)PIECE);
        clt_fail(CLT_OK, "a function of the caller's failed"); /* unless that says more */
        status = v->init.read(v->init.user, first, count, values);
        if (status < 0) clt_fail_context(status, "first values of \"%s\": ", v->name);
        else status = clt_memory_write(memory, (size_t)first * sizeof *values, values, (size_t)count * sizeof *values);
    }
    clt_free(values);
    return status;
}

static clt_status initialize(const clt_variable *v, clt_state_store *store, uint64_t seed) {
    int64_t n = clt_shape_elements(&v->shape);
    size_t bytes = (size_t)n * sizeof(float);
    clt_memory *memory;
    CLT_TRY(clt_state_store_variable(store, v, &memory));
    if (v->init.kind == CLT_INIT_READ) return read_values(v, memory, n);
    bool given = v->init.kind == CLT_INIT_VALUES;
    float *values = given ? NULL : clt_alloc(bytes);
    if (!values && !given) return clt_fail_memory(bytes);
    if (values) fill(v, seed, values, n);
    clt_status status = clt_memory_write(memory, 0, given ? v->init.values : values, bytes);
    clt_free(values);
    return status;
}

clt_status clt_initialize_variables(const clt_graph *graph, clt_state_store *store, uint64_t seed, clt_initialize which, const bool *others) {
    for (size_t i = 0; i < graph->n_variables; i++) {
        const clt_variable *v = graph->variables[i];
        if (!clt_variable_is_kept(v) || (others && others[i])) continue; /* constants are in the store, inputs are set */
        if (which != CLT_INITIALIZE_ALL && !v->unsaved) continue;
        bool first = true;
        if (which != CLT_INITIALIZE_UNSAVED_ANEW) CLT_TRY(clt_state_store_begin(store, v, &first));
        if (!first) continue; /* another trainer has */
        clt_status status = initialize(v, store, seed);
        if (status < 0 && which != CLT_INITIALIZE_UNSAVED_ANEW) clt_state_store_forget(store, v);
        CLT_TRY(status);
    }
    return CLT_OK;
}
