#include "runtime/device/settings.h"

#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/number.h"
#include "runtime/device/cl.h"
#include "runtime/device/kernel_source.h"

enum { MOST_CHOICES = 4 };

typedef struct setting {
    const char *variable, *field; /* variable: NULL if there is none of the text as it is */
    size_t at;
    const char *choices[MOST_CHOICES + 1]; /* none: any text */
    clt_status (*check)(const char *name, const char *text); /* NULL: there is nothing more to check here */
} setting;

#define SETTING(variable, field) "CLTRAIN_" variable, "settings." #field, offsetof(clt_settings, field)
static clt_status check_folder(const char *name, const char *path);
static clt_status check_bytes(const char *name, const char *text);
static const setting settings[] = {
    {SETTING("DEVICE", device), {0}, NULL},
    {SETTING("CLASS", device_class), {"cpu", "gpu", "intel-gpu"}, NULL},
    {SETTING("PROGRAM_CACHE", program_cache), {"on", "off"}, NULL},
    {SETTING("KERNEL_FOLDER", kernel_folder), {0}, clt_kernel_folder_check},
    {SETTING("CAPS_OFF", capabilities_off), {0}, clt_capability_list_check},
    {SETTING("BACKENDS", backends), {0}, NULL},
    {SETTING("PASSES", passes), {0}, NULL},
    {SETTING("TUNE", tune), {"off", "quick", "full"}, NULL},
    {SETTING("MATMUL_PRECISION", matmul_precision), {"f32", "tf32", "bf16", "f16"}, NULL},
    {SETTING("MEMORY_LIMIT", memory_limit), {0}, check_bytes},
    {SETTING("BUNDLE", bundle), {0}, NULL},
    {SETTING("COMPILER", compiler), {"auto", "alone", "never"}, NULL},
    {NULL, "settings.cache_folder", offsetof(clt_settings, cache_folder), {0}, check_folder},
};

static clt_status check_folder(const char *name, const char *path) {
    return path[0] == '/' ? CLT_OK : clt_fail(CLT_E_INVALID, "%s is '%.64s': expected an absolute path", name, path);
}

uint64_t clt_settings_bytes(const char *text) {
    static const char units[] = "KMGT";
    char number[32];
    double value;
    size_t length = strspn(text, "0123456789.");
    const char *rest = text + length, *unit = *rest ? strchr(units, *rest) : NULL;
    if (length >= sizeof number) return 0;
    memcpy(number, text, length);
    number[length] = 0;
    rest += unit ? 1 : 0;
    if (strcmp(rest, "") != 0 && strcmp(rest, "B") != 0 && !(unit && strcmp(rest, "iB") == 0)) return 0;
    if (!clt_number_parse(number, &value)) return 0;
    value = ldexp(value, unit ? 10 * (int)(unit - units + 1) : 0);
    return value >= 1 && value < 0x1p63 ? (uint64_t)value : 0;
}

static clt_status check_bytes(const char *name, const char *text) {
    return clt_settings_bytes(text) ? CLT_OK : clt_fail(CLT_E_INVALID, "%s is '%.64s': expected a size, such as 512M or 2G", name, text);
}

static const char **text_in(clt_settings *s, const setting *row) {
    return (void *)((char *)s + row->at);
}

static clt_status check_text(const setting *row, const char *name, const char *text) {
    size_t n = 0;
    while (row->choices[n]) n++;
    if (n > 0) CLT_TRY(clt_choice_check(name, text, row->choices, n));
    return row->check && text[0] ? row->check(name, text) : CLT_OK;
}

static clt_status take_text(const setting *row, clt_settings *s) {
    const char **text = text_in(s, row), *name = row->field;
    if (!*text && row->variable) {
        *text = getenv(row->variable);
        name = row->variable;
    }
    if (!*text) *text = "";
    return check_text(row, name, *text);
}

static clt_status take_timeout(clt_settings *s) {
    const char *text = s->timeout_seconds == 0 ? getenv("CLTRAIN_DEVICE_TIMEOUT") : NULL;
    if (text && *text) {
        if (!clt_number_parse(text, &s->timeout_seconds) || !(s->timeout_seconds >= 0 && s->timeout_seconds < INFINITY))
            return clt_fail(CLT_E_INVALID, "CLTRAIN_DEVICE_TIMEOUT=%s is not a number of seconds", text);
    } else if (!(s->timeout_seconds >= 0)) {
        return clt_fail(CLT_E_INVALID, "settings.timeout_seconds is %g: expected a number of seconds, INFINITY for no timeout, "
                                       "or 0 for what CLTRAIN_DEVICE_TIMEOUT says", s->timeout_seconds);
    }
    if (s->timeout_seconds == 0) s->timeout_seconds = INFINITY;
    return CLT_OK;
}

/* ---- variables that nothing reads, as after a slip of the pen ---- */

extern char **environ;

char **clt_settings_environment(void) {
    return environ;
}

/* Read elsewhere: by comm/, by the tools. tests/gates compares this list with the sources. */
static const char *const others[] = {
    "CLTRAIN_DEVICE_TIMEOUT",
    "CLTRAIN_COMM_ALGORITHMS", "CLTRAIN_COMM_AUTHORITY", "CLTRAIN_COMM_CERTIFICATE", "CLTRAIN_COMM_CHANNELS", "CLTRAIN_COMM_CONNECT_SECONDS",
    "CLTRAIN_COMM_ENGINE", "CLTRAIN_COMM_GENERATION", "CLTRAIN_COMM_HEARTBEAT_SECONDS", "CLTRAIN_COMM_INTERFACE", "CLTRAIN_COMM_JOB",
    "CLTRAIN_COMM_KEY", "CLTRAIN_COMM_PORTS", "CLTRAIN_COMM_SECURITY", "CLTRAIN_COMM_STORE", "CLTRAIN_COMM_STORE_SERVED",
    "CLTRAIN_COMM_TIMEOUT_SECONDS", "CLTRAIN_COMM_TOKEN", "CLTRAIN_COMM_TOKEN_FILE",
    "CLTRAIN_COMPLETION", "CLTRAIN_CONFORM_ROW", "CLTRAIN_CONFORM_SMALL", "CLTRAIN_DRIVERS", "CLTRAIN_PROBE_STORE", "CLTRAIN_PROBE_TEST",
    "CLTRAIN_PROBE_TOKEN", "CLTRAIN_RESTART_COUNT", "CLTRAIN_RUN_ON_FAILURE", "CLTRAIN_RUN_STARTED",
};

static bool is_read(const char *name, size_t length) {
    for (size_t i = 0; i < CLT_COUNT_OF(others); i++)
        if (strlen(others[i]) == length && !memcmp(name, others[i], length)) return true;
    for (size_t i = 0; i < CLT_COUNT_OF(settings); i++) {
        const char *variable = settings[i].variable;
        if (variable && strlen(variable) == length && !memcmp(name, variable, length)) return true;
    }
    return false;
}

/* Once a process, with the first device that is opened while somebody reads the log. */
static void tell_unknown(void) {
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!clt_log_enabled(CLT_LOG_WARNING) || atomic_flag_test_and_set(&told)) return;
    for (char **at = environ; at && *at; at++) {
        size_t length = strcspn(*at, "=");
        if (strncmp(*at, "CLTRAIN_", 8) || strncmp(*at, "CLTRAIN_TEST_", 13) == 0 || is_read(*at, length)) continue;
        clt_text names = {0};
        for (size_t i = 0; i < CLT_COUNT_OF(settings); i++)
            if (settings[i].variable) clt_text_add(&names, "%s, ", settings[i].variable);
        if (names.data) clt_log_message(CLT_LOG_WARNING, "%.*s is set, but there is no such setting: there are %sCLTRAIN_DEVICE_TIMEOUT and CLTRAIN_COMM_…",
                                        (int)(length < 64 ? length : 64), *at, names.data);
        clt_text_free(&names);
    }
}

/* By the XDG specification a relative path is to be ignored. Empty: there is no home. */
static clt_status find_cache(clt_text *folder) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/') clt_text_add(folder, "%s/cltrain", cache);
    else if (home && home[0] == '/') clt_text_add(folder, "%s/.cache/cltrain", home);
    return folder->status;
}

/* Puts copies in the place of texts that are the caller's, or the environment's. */
static clt_status own_texts(clt_settings *s, char **texts) {
    size_t bytes = 0;
    for (size_t i = 0; i < CLT_COUNT_OF(settings); i++) bytes += strlen(*text_in(s, &settings[i])) + 1;
    char *at = *texts = clt_alloc(bytes);
    if (!at) return clt_fail_memory(bytes);
    for (size_t i = 0; i < CLT_COUNT_OF(settings); i++) {
        const char **text = text_in(s, &settings[i]);
        size_t length = strlen(*text) + 1;
        *text = memcpy(at, *text, length);
        at += length;
    }
    return CLT_OK;
}

clt_status clt_settings_resolve(const clt_settings *given, clt_settings *resolved, char **texts) {
    clt_text cache = {0};
    tell_unknown();
    *resolved = given ? *given : (clt_settings){0};
    for (size_t i = 0; i < CLT_COUNT_OF(settings); i++) CLT_TRY(take_text(&settings[i], resolved));
    CLT_TRY(take_timeout(resolved));
    clt_status status = resolved->cache_folder[0] ? CLT_OK : find_cache(&cache);
    if (cache.data) resolved->cache_folder = cache.data;
    if (status == CLT_OK) status = own_texts(resolved, texts);
    clt_text_free(&cache);
    return status;
}

bool clt_settings_driver_caches(const char *platform) {
    const char *kept = getenv("POCL_KERNEL_CACHE");
    return clt_text_contains(platform, "Portable Computing Language") && !(kept && !strcmp(kept, "0"));
}

const char *clt_settings_selector(const char *given) {
    const char *text = given && given[0] ? given : getenv(settings[0].variable);
    return text ? text : "";
}

/* ---- of a device ---- */

const clt_settings *clt_device_settings(const clt_device *device) {
    return &device->settings;
}

clt_settings clt_device_override(clt_device *device, const clt_settings *by) {
    clt_settings before = device->settings, with = *by;
    for (size_t i = 0; i < CLT_COUNT_OF(settings); i++) {
        const char **text = text_in(&with, &settings[i]);
        if (*text) *text_in(&device->settings, &settings[i]) = *text;
    }
    return before;
}
