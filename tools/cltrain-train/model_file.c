#include "model_file.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"
#include "system.h"

clt_status model_file_find(const options *given, const ranks *group, const char **path) {
    double started = group->restarted;
    int32_t own = given->save && started > 0 && ranks_lead(group) && file_written_since(given->save, started);
    clt_status status = ranks_max(group, &own, 1);
    *path = own ? given->save : given->resume;
    return status;
}

/* The JSON, *text, to be freed; NULL where there is none. */
static clt_status read_own(const char *path, char **text) {
    clt_preprocessing *p;
    clt_status status = clt_preprocessing_load(&p, path);
    if (status < 0) return status == CLT_E_NOT_FOUND ? CLT_OK : status;
    size_t bytes = clt_preprocessing_json(p, NULL, 0) + 1;
    *text = malloc(bytes);
    if (*text) clt_preprocessing_json(p, *text, bytes);
    clt_preprocessing_destroy(p);
    return *text ? CLT_OK : CLT_E_NO_MEMORY;
}

/* Rank 0's text becomes everyone's. `own`: how rank 0 came by it; *failed where it did not. */
static clt_status share(const ranks *group, clt_status own, char **text, bool *failed) {
    int32_t facts[2] = {*text ? (int32_t)strlen(*text) + 1 : 0, own < 0};
    clt_status status = ranks_max(group, facts, 2);
    *failed = facts[1] != 0;
    if (status < 0 || *failed || !facts[0] || !group->comm) return status;
    if (!*text) *text = calloc(1, (size_t)facts[0]);
    if (!*text) return CLT_E_NO_MEMORY;
    status = clt_comm_broadcast(group->comm, *text, (size_t)facts[0], CLT_U8, 0, NULL);
    (*text)[facts[0] - 1] = 0;
    return status;
}

static int read_once(clt_preprocessing **preprocessing, const options *given, ranks *group, clt_status *status) {
    const char *path = NULL;
    char *text = NULL;
    bool failed = false;
    *status = model_file_find(given, group, &path);
    if (*status < 0) return 0;
    clt_status own = path && ranks_lead(group) ? read_own(path, &text) : CLT_OK;
    int code = own < 0 ? library_error(own, "--resume") : 0;
    *status = share(group, own, &text, &failed);
    if (*status >= 0 && failed && !code) code = EXIT_FAILED;
    if (*status >= 0 && !failed && text && clt_preprocessing_parse(preprocessing, text) < 0) code = library_error(CLT_E_FORMAT, "--resume");
    free(text);
    return code;
}

int model_file_read(clt_preprocessing **preprocessing, const options *given, ranks *group) {
    clt_status status;
    *preprocessing = NULL;
    int code = read_once(preprocessing, given, group, &status);
    while (!code && status < 0) {
        if (!ranks_may_go_on(group, given, status)) return library_error(status, "meeting the other ranks");
        code = read_once(preprocessing, given, group, &status);
    }
    return code;
}
