#include "model_file.h"

#include <stdlib.h>
#include <string.h>

#include <cltrain/onnx.h>

#include "tools/common/message.h"
#include "system.h"

clt_status model_file_find(const options *given, const ranks *group, const char **path) {
    double started = group->restarted;
    int32_t own = given->save && started > 0 && ranks_lead(group) && file_written_since(given->save, started);
    clt_status status = ranks_max(group, &own, 1);
    *path = own ? given->save : given->resume;
    return status;
}

static clt_status load(clt_preprocessing **p, const char *path) {
    clt_onnx *onnx;
    if (!model_is_onnx(path)) return clt_preprocessing_load(p, path);
    clt_status status = clt_onnx_open(&onnx, path);
    if (status < 0) return status;
    status = clt_onnx_preprocessing(onnx, p);
    clt_onnx_close(onnx);
    return status;
}

/* The JSON, to be freed; NULL where there is none. A file that cannot be read is told of when it is loaded. */
static char *read_own(const char *path) {
    clt_preprocessing *p;
    if (load(&p, path) < 0) return NULL;
    size_t bytes = clt_preprocessing_json(p, NULL, 0) + 1;
    char *text = malloc(bytes);
    if (text) clt_preprocessing_json(p, text, bytes);
    clt_preprocessing_destroy(p);
    return text;
}

/* Rank 0's text becomes everyone's. */
static clt_status share(const ranks *group, char **text) {
    int32_t bytes = *text ? (int32_t)strlen(*text) + 1 : 0;
    clt_status status = ranks_max(group, &bytes, 1);
    if (status < 0 || !bytes || !group->comm) return status;
    if (!*text) *text = calloc(1, (size_t)bytes);
    if (!*text) return CLT_E_NO_MEMORY;
    status = clt_comm_broadcast(group->comm, *text, (size_t)bytes, CLT_U8, 0, NULL);
    (*text)[bytes - 1] = 0;
    return status;
}

/* --init of a table's model: other data are read as the model's, with its mean and deviation. */
static bool begins_as_a_table(const options *given) {
    data_source source = given->data_spec.source;
    return given->init && !given->init_matching && (source == DATA_CSV || source == DATA_NPY);
}

static clt_status read_shared(clt_preprocessing **preprocessing, const options *given, const ranks *group) {
    const char *path = NULL;
    clt_status status = model_file_find(given, group, &path);
    if (status < 0) return status;
    if (!path && begins_as_a_table(given)) path = given->init;
    if (!path && given->model_spec.id == MODEL_ONNX) path = given->model;
    char *text = path && ranks_lead(group) ? read_own(path) : NULL;
    status = share(group, &text);
    if (status >= 0 && text) status = clt_preprocessing_parse(preprocessing, text);
    free(text);
    return status;
}

int model_file_read(clt_preprocessing **preprocessing, const options *given, ranks *group) {
    *preprocessing = NULL;
    clt_status status = read_shared(preprocessing, given, group);
    return status < 0 ? ranks_meeting_failed(group, given, status) : 0;
}
