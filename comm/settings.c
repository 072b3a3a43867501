#include "comm/settings.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "comm/algorithms/algorithms.h"
#include "comm/plugins/plugins.h"
#include "comm/rendezvous/rendezvous.h"
#include "runtime/base/file.h"
#include "runtime/base/number.h"

enum { MOST_CHANNELS = 16, TOKEN_FILE_BYTES = 65536 };

/* ---- texts: the option, else the variable ---- */

#define TEXT(name, field) "CLTRAIN_COMM_" name, offsetof(clt_comm_settings, field), offsetof(clt_comm_options, field)
static const struct {
    const char *variable;
    size_t into, option;
} texts[] = {
    {TEXT("STORE", store)},   {TEXT("JOB", job)},     {TEXT("TOKEN", token)},         {TEXT("CERTIFICATE", certificate)},
    {TEXT("KEY", key)},       {TEXT("PORTS", ports)}, {TEXT("AUTHORITY", authority)}, {TEXT("INTERFACE", network)},
    {TEXT("ALGORITHMS", algorithms)}, {TEXT("ENGINE", engine)},
};

static char **text_in(clt_comm_settings *s, size_t i) {
    return (void *)((char *)s + texts[i].into);
}

static clt_status keep(char **into, const char *text) {
    *into = clt_strdup(text);
    return *into ? CLT_OK : clt_fail_memory(strlen(text) + 1);
}

static clt_status take_texts(clt_comm_settings *s, const clt_comm_options *o) {
    for (size_t i = 0; i < CLT_COUNT_OF(texts); i++) {
        const char *option = *(const char *const *)((const char *)o + texts[i].option);
        const char *text = option && option[0] ? option : clt_environment_text(texts[i].variable);
        if (text) CLT_TRY(keep(text_in(s, i), text));
    }
    return CLT_OK;
}

/* ---- one matter each ---- */

static clt_status take_generation(clt_comm_settings *s, const clt_comm_options *o) {
    CLT_TRY(clt_environment_number("CLTRAIN_COMM_GENERATION", 0, INT32_MAX, &s->generation));
    if (o->generation) s->generation = o->generation;
    if (s->generation < 0 || s->generation > INT32_MAX)
        return clt_fail(CLT_E_INVALID, "generation is %lld: expected 0 to %d", (long long)s->generation, INT32_MAX);
    return CLT_OK;
}

/* Whether a text is in the environment, and another one than that. */
static bool asks_for_other(const char *variable, const char *than) {
    const char *text = clt_environment_text(variable);
    return text && strcmp(text, than);
}

/* The first option that was given and that the own engine alone has, or also Gloo where `of_gloo`; NULL: none. */
static const char *own_option(const clt_comm_settings *s, const clt_comm_options *o, bool of_gloo) {
    bool secure = o->security ? o->security != CLT_SECURITY_NONE : asks_for_other("CLTRAIN_COMM_SECURITY", "none");
    bool channels = o->channels ? o->channels > 1 : asks_for_other("CLTRAIN_COMM_CHANNELS", "1");
    const struct {
        const char *name;
        bool given, has_gloo;
    } own[] = {{"store", s->store, true},
               {"token", s->token || clt_environment_text("CLTRAIN_COMM_TOKEN_FILE"), true}, /* which nobody asks for without security */
               {"certificate", s->certificate, false},
               {"key", s->key, false},
               {"authority", s->authority, false},
               {"ports", s->ports, false},
               {"network", s->network, true},
               {"algorithms", s->algorithms, false},
               {"security", secure, false},
               {"channels", channels, false}};
    for (size_t i = 0; i < CLT_COUNT_OF(own); i++)
        if (own[i].given && !(of_gloo && own[i].has_gloo)) return own[i].name;
    return NULL;
}

/* A launcher of MPI's jobs, and nothing that only the own engine has, which without a token could not begin. */
static bool is_for_mpi(const clt_comm_settings *s, const clt_comm_options *o) {
    static const char *const launchers[] = {"Open MPI", "PMI", "Slurm"};
    clt_launch_environment launch = {.size = 1};
    const clt_mover *ignored;
    bool known = false;
    if (o->size || o->security || clt_environment_text("CLTRAIN_COMM_SECURITY") || own_option(s, o, false)) return false;
    if (clt_launch_environment_read(&launch) < 0 || launch.size < 2 || !launch.launcher) return false;
    for (size_t i = 0; i < CLT_COUNT_OF(launchers); i++) known |= !strcmp(launch.launcher, launchers[i]);
    bool is_for = known && clt_plugin_mover(&ignored, "mpi") == CLT_OK;
    if (known && !is_for) clt_log_message(CLT_LOG_WARNING, "the launcher is %s, but MPI does not carry the job: %s", launch.launcher, clt_error_detail());
    return is_for;
}

/* What an engine cannot do is refused by its name, and not later. */
static clt_status take_engine(clt_comm_settings *s, const clt_comm_options *o) {
    bool chosen = s->engine && strcmp(s->engine, "auto");
    if (!chosen) {
        const char *best = is_for_mpi(s, o) ? "mpi" : CLT_COMM_OWN_ENGINE;
        clt_free(s->engine);
        return keep(&s->engine, best);
    }
    if (!strcmp(s->engine, CLT_COMM_OWN_ENGINE)) return CLT_OK;
    bool gloo = !strcmp(s->engine, "gloo");
    if (!strcmp(s->engine, "local")) return clt_fail(CLT_E_INVALID, "engine is 'local', which is for ranks that are threads of one process: clt_comm_create_local makes those, and cltrain-train --devices A,B");
    if (!gloo && strcmp(s->engine, "mpi")) return clt_fail(CLT_E_INVALID, "engine is '%.64s': expected auto, " CLT_COMM_OWN_ENGINE ", gloo or mpi", s->engine);
    const char *name = own_option(s, o, gloo);
    const clt_mover *ignored;
    if (!name) return clt_plugin_mover(&ignored, s->engine);
    return clt_fail(CLT_E_INVALID, "engine %s takes no %s: %s carries the job %s, in the clear. Leave it out, or choose " CLT_COMM_OWN_ENGINE, s->engine, name, gloo ? "Gloo" : "MPI",
                    gloo ? "by its own connections" : "over its own network");
}

static clt_status take_place(clt_comm_settings *s, const clt_comm_options *o, clt_launch_environment *launch) {
    if (o->size == 0) {
        CLT_TRY(clt_launch_environment_read(launch));
        s->rank = launch->rank;
        s->size = launch->size;
        s->generation = launch->generation;
    } else {
        s->rank = o->rank;
        s->size = o->size;
    }
    if (s->size < 1 || s->size > CLT_MOST_RANKS)
        return clt_fail(CLT_E_INVALID, "size is %d: expected 1 to %d ranks", s->size, CLT_MOST_RANKS);
    if (s->rank < 0 || s->rank >= s->size)
        return clt_fail(CLT_E_INVALID, "rank is %d: expected 0 to %d", s->rank, s->size - 1);
    return take_generation(s, o);
}

static clt_status take_store(clt_comm_settings *s, const clt_comm_options *o, const clt_launch_environment *launch) {
    char url[320];
    if (!s->store && s->size > 1) {
        if (!launch->master[0])
            return clt_fail(CLT_E_INVALID, "no store is known where %d ranks find each other: give one, or set "
                                           "CLTRAIN_COMM_STORE, or MASTER_ADDR and MASTER_PORT",
                            s->size);
        snprintf(url, sizeof url, "tcp://%s", launch->master);
        CLT_TRY(keep(&s->store, url));
    }
    /* cltrain-run serves the store that it names, and says so. */
    int64_t served = 0;
    CLT_TRY(clt_environment_number("CLTRAIN_COMM_STORE_SERVED", 0, 1, &served));
    bool named_here = o->store && o->store[0];
    s->rank_serves = s->store && strncmp(s->store, "tcp://", 6) == 0 && (named_here || !served);
    s->serve = s->rank == 0 && s->rank_serves;
    return s->job || !launch->job[0] ? CLT_OK : keep(&s->job, launch->job);
}

/* The store's host, or the master. A folder is nowhere. */
static clt_status take_towards(clt_comm_settings *s, const clt_launch_environment *launch) {
    const char *host = s->store ? strstr(s->store, "://") : NULL;
    const char *end = host ? host + 3 + strcspn(host + 3, "/") : NULL;
    if (host && strncmp(s->store, "file:", 5) != 0) {
        for (const char *c = host += 3; c < end; c++)
            if (*c == '@') host = c + 1;
    } else {
        host = launch->master;
        end = host + strlen(host);
    }
    if (host == end) return CLT_OK;
    CLT_TRY(keep(&s->towards, host));
    s->towards[end - host] = 0;
    return CLT_OK;
}

static clt_status read_token_file(clt_comm_settings *s, const char *path) {
    void *bytes;
    size_t length;
    clt_status status = clt_file_read(path, TOKEN_FILE_BYTES, &bytes, &length);
    if (status < 0) return clt_fail_context(status, "CLTRAIN_COMM_TOKEN_FILE: ");
    char *text = bytes;
    while (length > 0 && isspace((unsigned char)text[length - 1])) text[--length] = 0;
    if (memchr(text, 0, length)) {
        clt_free(bytes);
        return clt_fail(CLT_E_INVALID, "CLTRAIN_COMM_TOKEN_FILE: %.200s holds a zero byte", path);
    }
    s->token = text;
    return CLT_OK;
}

static clt_status take_security(clt_comm_settings *s, const clt_comm_options *o) {
    static const char *const names[] = {[CLT_SECURITY_TLS] = "tls", [CLT_SECURITY_AUTH] = "auth", [CLT_SECURITY_NONE] = "none"};
    const char *wish = clt_environment_text("CLTRAIN_COMM_SECURITY"), *file = clt_environment_text("CLTRAIN_COMM_TOKEN_FILE");
    s->security = o->security;
    if (o->security < CLT_SECURITY_DEFAULT || o->security > CLT_SECURITY_NONE)
        return clt_fail(CLT_E_INVALID, "security is %d, which is not one of its values", (int)o->security);
    if (s->security == CLT_SECURITY_DEFAULT) {
        s->security = wish ? CLT_SECURITY_DEFAULT : CLT_SECURITY_TLS;
        for (int i = CLT_SECURITY_TLS; wish && i <= CLT_SECURITY_NONE; i++)
            if (strcmp(wish, names[i]) == 0) s->security = (clt_comm_security)i;
        if (s->security == CLT_SECURITY_DEFAULT)
            return clt_fail(CLT_E_INVALID, "CLTRAIN_COMM_SECURITY is '%.64s': expected tls, auth or none", wish);
    }
    return !s->token && file ? read_token_file(s, file) : CLT_OK;
}

/* "2" or "0.5": digits, and a point before others of them; else -1. */
static double decimal(const char *text) {
    double value;
    size_t length = strspn(text, "0123456789.");
    bool plain = length > 0 && !text[length] && text[length - 1] != '.' && strcspn(text, ".") <= 9;
    return plain && clt_number_parse(text, &value) ? value : -1;
}

static clt_status take_seconds(double *into, const char *name, const char *in_environment, double option, double standard,
                               double least) {
    const char *text = option == 0 ? clt_environment_text(in_environment) : NULL;
    *into = text ? decimal(text) : option == 0 ? standard : option;
    if (isfinite(*into) && *into >= least && *into <= 1e8) return CLT_OK;
    if (text) return clt_fail(CLT_E_INVALID, "%s is '%.64s': expected %g seconds or more", in_environment, text, least);
    return clt_fail(CLT_E_INVALID, "%s is %g: expected %g or more", name, option, least);
}

static clt_status take_rest(clt_comm_settings *s, const clt_comm_options *o) {
    int64_t channels = 1;
    CLT_TRY(clt_algorithm_check_list(s->algorithms));
    CLT_TRY(clt_environment_number("CLTRAIN_COMM_CHANNELS", 1, MOST_CHANNELS, &channels));
    s->channels = o->channels ? o->channels : (int)channels;
    if (s->channels < 1 || s->channels > MOST_CHANNELS)
        return clt_fail(CLT_E_INVALID, "channels is %d: expected 1 to %d", s->channels, MOST_CHANNELS);
    CLT_TRY(take_seconds(&s->connect_seconds, "connect_seconds", "CLTRAIN_COMM_CONNECT_SECONDS", o->connect_seconds, 120, 1e-3));
    CLT_TRY(take_seconds(&s->timeout_seconds, "timeout_seconds", "CLTRAIN_COMM_TIMEOUT_SECONDS", o->timeout_seconds, 300, 1e-3));
    return take_seconds(&s->heartbeat_seconds, "heartbeat_seconds", "CLTRAIN_COMM_HEARTBEAT_SECONDS", o->heartbeat_seconds, 5, 0.2);
}

static clt_status resolve(clt_comm_settings *s, const clt_comm_options *o) {
    clt_launch_environment launch = {.size = 1};
    CLT_TRY(take_texts(s, o));
    CLT_TRY(take_engine(s, o));
    if (!strcmp(s->engine, "mpi")) { /* it knows its ranks by itself */
        CLT_TRY(take_generation(s, o));
        return take_rest(s, o);
    }
    CLT_TRY(take_place(s, o, &launch));
    CLT_TRY(take_store(s, o, &launch));
    CLT_TRY(take_towards(s, &launch));
    CLT_TRY(take_security(s, o));
    if (!strcmp(s->engine, "gloo") && s->security != CLT_SECURITY_NONE)
        return clt_fail(CLT_E_INVALID, "engine gloo neither authenticates nor encrypts: ask for that by security none (CLTRAIN_COMM_SECURITY=none), or choose " CLT_COMM_OWN_ENGINE);
    return take_rest(s, o);
}

clt_status clt_comm_settings_resolve(clt_comm_settings *settings, const clt_comm_options *options) {
    *settings = (clt_comm_settings){0};
    clt_status status = resolve(settings, options ? options : &(clt_comm_options){0});
    if (status < 0) clt_comm_settings_free(settings);
    return status;
}

void clt_comm_settings_free(clt_comm_settings *s) {
    if (s->token) { /* no secret stays in memory that is given back */
        volatile char *secret = s->token;
        while (*secret) *secret++ = 0;
    }
    for (size_t i = 0; i < CLT_COUNT_OF(texts); i++) clt_free(*text_in(s, i));
    clt_free(s->towards);
    *s = (clt_comm_settings){0};
}
