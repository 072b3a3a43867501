#include "runtime/device/kernel_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/base/thread.h"

/* A file of the folder, kept for good: modules are known by where their text lies. */
typedef struct replacement {
    const clt_kernel_source *source;
    char *text; /* NULL: the folder has no such file */
    struct replacement *next;
} replacement;

static clt_mutex mutex = PTHREAD_MUTEX_INITIALIZER;
static replacement *replacements;

static replacement *read_replacement(const char *folder, const clt_kernel_source *source) {
    const size_t most_bytes = (size_t)1 << 20;
    char path[4096];
    void *bytes = NULL;
    size_t length;
    replacement *r = clt_calloc(1, sizeof *r);
    if (!r) return NULL;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, source->path) < sizeof path &&
        clt_file_read(path, most_bytes, &bytes, &length) == CLT_OK) {
        r->text = bytes;
        clt_log_message(CLT_LOG_WARNING, "CLTRAIN_KERNEL_FOLDER: kernels of %s are those of %s", source->path, path);
    }
    *r = (replacement){.source = source, .text = r->text, .next = replacements};
    return replacements = r;
}

static const char *replaced(const clt_kernel_source *source) {
    const char *folder = getenv("CLTRAIN_KERNEL_FOLDER");
    if (!folder || !folder[0]) return source->text;
    clt_mutex_lock(&mutex);
    const replacement *r = replacements;
    while (r && r->source != source) r = r->next;
    if (!r) r = read_replacement(folder, source);
    clt_mutex_unlock(&mutex);
    return r && r->text ? r->text : source->text;
}

const char *clt_kernel_source_find(const char *path) {
    for (const clt_kernel_source *source = clt_kernel_sources; source->path; source++)
        if (!strcmp(source->path, path)) return replaced(source);
    return NULL;
}
