#include "finetune.h"

#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"

int finetune_freeze(clt_graph *graph, const char *patterns) {
    char pattern[256];
    for (const char *at = patterns; at && *at;) {
        size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof pattern) return usage_error("--freeze '%s': expected patterns of names with commas between, such as layer1.*,conv1.*", patterns);
        memcpy(pattern, at, length);
        pattern[length] = '\0';
        clt_status status = clt_graph_set_trained(graph, pattern, false);
        if (status == CLT_E_NOT_FOUND) return usage_error("--freeze: %s; --export FILE of a run with --epochs 0 has the names", clt_error_detail());
        if (status < 0) return library_error(status, "--freeze");
        at += length + (at[length] == ',');
    }
    if (!patterns || clt_graph_parameter_count(graph) > 0) return 0;
    return usage_error("--freeze '%s': no parameter is left to train", patterns);
}

/* The first few are named. */
typedef struct left_out {
    bool tells;
    int n;
} left_out;
enum { NAMED = 8 };

static void tell_left_out(clt_left_out what, const char *name, const char *words, void *user) {
    static const char *const kinds[] = {
        [CLT_LEFT_MISSING] = "keeps its first values: the file has none", [CLT_LEFT_OVER] = "is left over: the model has none", [CLT_LEFT_MISFIT] = "keeps its first values"};
    left_out *l = user;
    if (l->tells && l->n < NAMED) message_line("--init: %s %s%s%s", name, kinds[what], what == CLT_LEFT_MISFIT ? ": " : "", what == CLT_LEFT_MISFIT ? words : "");
    l->n++;
}

static void tell_other_name(const options *given, const char *what, const char *file, const char *own, int64_t at) {
    warning("--init-matching: %s %lld is %s, and in the training of %s it was %s: weights that fit are taken as they are", what, (long long)at, own, given->init, file);
}

/* Tensors may fit where what they are of does not. */
static void compare_use(const options *given, const clt_preprocessing *own) {
    clt_preprocessing *p;
    const char *a, *b;
    if (clt_preprocessing_load(&p, given->init) < 0) return; /* it tells nothing of its data */
    bool same = true;
    for (int64_t i = 0; same && (a = clt_preprocessing_feature(p, i)) && (b = clt_preprocessing_feature(own, i)); i++)
        if (strcmp(a, b) != 0) tell_other_name(given, "feature", a, b, i), same = false;
    same = clt_preprocessing_classes(p) == clt_preprocessing_classes(own); /* else the head does not fit */
    for (int i = 0; same && (a = clt_preprocessing_class(p, i)) && (b = clt_preprocessing_class(own, i)); i++)
        if (strcmp(a, b) != 0) tell_other_name(given, "class", a, b, i), same = false;
    clt_preprocessing_destroy(p);
}

clt_status finetune_init(clt_trainer *trainer, const options *given, const clt_preprocessing *own, bool tells) {
    left_out l = {.tells = tells};
    if (!given->init_matching) return clt_weights_load(trainer, given->init);
    clt_status status = clt_weights_load_matching(trainer, given->init, tell_left_out, &l);
    if (status >= 0 && tells) compare_use(given, own);
    if (tells && l.n > NAMED) message_line("--init: and %d tensors more", l.n - NAMED);
    return status;
}
