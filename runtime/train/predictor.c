/* A trainer without a loss. */
#include "runtime/train/predictor.h"

static clt_status check_output(const clt_device *device, const clt_tensor *output) {
    if (!device || !output) return clt_fail(CLT_E_INVALID, "clt_predictor_create: device or output is NULL");
    CLT_TRY(clt_graph_status(output->graph));
    if (!clt_tensor_valid(output)) return clt_fail(CLT_E_INVALID, "clt_predictor_create: the output is invalid");
    return output->dtype == CLT_F32 ? CLT_OK : clt_fail(CLT_E_DTYPE, "clt_predictor_create: the output is %s, not f32", clt_dtype_name(output->dtype));
}

static clt_status fill(clt_trainer *forward, const clt_predictor_options *options) {
    clt_initialize which = options->weights ? CLT_INITIALIZE_UNSAVED : CLT_INITIALIZE_ALL;
    CLT_TRY(clt_initialize_variables(forward->graph, forward->store, options->seed, which, NULL));
    return options->weights ? clt_weights_load(forward, options->weights) : CLT_OK;
}

clt_status clt_predictor_create(clt_predictor **predictor, clt_device *device, clt_tensor *output, const clt_predictor_options *options) {
    static const clt_predictor_options none;
    const clt_predictor_options *o = options ? options : &none;
    if (!predictor) return clt_fail(CLT_E_INVALID, "clt_predictor_create: predictor is NULL");
    CLT_TRY(check_output(device, output));
    clt_predictor *p = clt_calloc(1, sizeof *p);
    if (!p) return clt_fail_memory(sizeof *p);
    p->output = output;
    const clt_train_options forward = {.seed = o->seed, .backends = o->backends, .passes = o->passes};
    clt_status status = clt_trainer_begin(&p->forward, device, output->graph, NULL, &forward);
    if (status == CLT_OK) status = fill(p->forward, o);
    if (status < 0) clt_predictor_destroy(p);
    else *predictor = p;
    return status;
}

void clt_predictor_destroy(clt_predictor *predictor) {
    if (!predictor) return;
    clt_trainer_destroy(predictor->forward);
    clt_free(predictor);
}

clt_status clt_predictor_run(clt_predictor *predictor, const clt_batch *batch, float *values, size_t count) {
    if (!predictor || !values) return clt_fail(CLT_E_INVALID, "clt_predictor_run: predictor or values is NULL");
    CLT_TRY(clt_trainer_predict(predictor->forward, predictor->output, batch, values, count));
    predictor->forward->run.begun = true; /* the rows of the first plan serve the others */
    return CLT_OK;
}

clt_status clt_predictor_load(clt_predictor *predictor, const char *path) {
    if (!predictor || !path) return clt_fail(CLT_E_INVALID, "clt_predictor_load: predictor or path is NULL");
    return clt_weights_load(predictor->forward, path);
}

clt_status clt_predictor_get(clt_predictor *predictor, const char *name, float *values, size_t count) {
    if (!predictor || !name || !values) return clt_fail(CLT_E_INVALID, "clt_predictor_get: an argument is NULL");
    return clt_trainer_get(predictor->forward, name, values, count);
}

clt_status clt_predictor_set(clt_predictor *predictor, const char *name, const float *values, size_t count) {
    if (!predictor || !name || !values) return clt_fail(CLT_E_INVALID, "clt_predictor_set: an argument is NULL");
    return clt_trainer_set(predictor->forward, name, values, count);
}

clt_status clt_predictor_set_input(clt_predictor *predictor, const char *name, const clt_array *values) {
    if (!predictor || !name || !values) return clt_fail(CLT_E_INVALID, "clt_predictor_set_input: an argument is NULL");
    return clt_trainer_set_input(predictor->forward, name, values);
}
