#include "finetune.h"

#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"

/* The next of names with commas between; false behind the last. An empty or too long one is "". */
static bool next_name(const char **at, char *name, size_t bytes) {
    if (!*at || !**at) return false;
    size_t length = strcspn(*at, ",");
    snprintf(name, bytes, "%.*s", length < bytes ? (int)length : 0, *at);
    *at += length + ((*at)[length] == ',');
    return true;
}

int finetune_freeze(clt_graph *graph, const char *patterns) {
    char pattern[256];
    for (const char *at = patterns; next_name(&at, pattern, sizeof pattern);) {
        if (!pattern[0]) return usage_error("--freeze '%s': expected patterns of names with commas between, such as layer1.*,conv1.*", patterns);
        clt_status status = clt_graph_set_trained(graph, pattern, false);
        if (status == CLT_E_NOT_FOUND) return usage_error("--freeze: %s; --export FILE of a run with --epochs 0 has the names", clt_error_detail());
        if (status < 0) return library_error(status, "--freeze");
    }
    if (!patterns || clt_graph_parameter_count(graph) > 0) return 0;
    return usage_error("--freeze '%s': no parameter is left to train", patterns);
}

/* ---- adapters ---- */

/* A layer's name, or its end. */
static int adapt_target(clt_graph *graph, const char *target, const clt_lora_options *adapters) {
    char whole[300], end[300];
    snprintf(whole, sizeof whole, "%s.weight", target);
    snprintf(end, sizeof end, "*.%s.weight", target);
    clt_status exact = clt_graph_add_lora(graph, whole, adapters), status = exact;
    if (exact >= 0 || exact == CLT_E_NOT_FOUND) status = clt_graph_add_lora(graph, end, adapters);
    if (status == CLT_E_NOT_FOUND && exact >= 0) status = CLT_OK;
    if (status == CLT_E_NOT_FOUND)
        return usage_error("--lora: no linear layer is \"%s\", or ends with \".%s\"; --export FILE of a run with --epochs 0 has the names", target, target);
    return status < 0 ? library_error(status, "--lora") : 0;
}

int finetune_adapt(clt_graph *graph, const options *given) {
    char target[256];
    const lora_spec *spec = &given->lora_spec;
    int code = 0;
    if (!given->lora) return 0;
    clt_status status = clt_graph_set_trained(graph, "*", false);
    if (status >= 0 && !spec->targets) status = clt_graph_add_lora_of(graph, given->lora);
    if (status < 0) return library_error(status, "--lora");
    if (spec->targets && !spec->targets[0]) return usage_error("--lora '%s': targets= names no layer", given->lora);
    for (const char *at = spec->targets; !code && next_name(&at, target, sizeof target);)
        code = target[0] ? adapt_target(graph, target, &spec->options) : usage_error("--lora '%s': expected names of layers with commas between", given->lora);
    return code;
}

/* ---- first values ---- */

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

static clt_status read_init(clt_trainer *trainer, const options *given, const clt_preprocessing *own, bool tells) {
    left_out l = {.tells = tells};
    if (!given->init_matching) return clt_weights_load(trainer, given->init);
    clt_status status = clt_weights_load_matching(trainer, given->init, tell_left_out, &l);
    if (status >= 0 && tells) compare_use(given, own);
    if (tells && l.n > NAMED) message_line("--init: and %d tensors more", l.n - NAMED);
    return status;
}

clt_status finetune_init(clt_trainer *trainer, const options *given, const clt_preprocessing *own, bool tells) {
    clt_status status = given->init ? read_init(trainer, given, own, tells) : CLT_OK;
    return status >= 0 && given->lora && !given->lora_spec.targets ? clt_lora_load(trainer, given->lora) : status;
}
