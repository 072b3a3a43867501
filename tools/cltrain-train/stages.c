#include "stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tools/common/message.h"
#include "tools/survey/document.h"

/* Of a rank. */
typedef struct facts {
    char device[256], driver[128];
    clt_peaks peaks; /* zeros: they cannot be measured */
} facts;

static bool all_alike(const facts *all, int n) {
    bool alike = true;
    for (int i = 1; i < n; i++) alike &= !strcmp(all[i].device, all[0].device) && !strcmp(all[i].driver, all[0].driver);
    return alike;
}

static clt_status gather_peaks(const ranks *group, clt_device *device, facts *all) {
    if (clt_device_peaks(device, &all[group->rank].peaks) < 0) {
        warning("the device cannot be measured, and counts as one like the others: %s", clt_error_detail());
        all[group->rank].peaks = (clt_peaks){0};
    }
    return ranks_gather(group, all, sizeof *all);
}

static clt_peaks *take_peaks(const facts *all, int n) {
    clt_peaks *peaks = calloc((size_t)n, sizeof *peaks);
    for (int i = 0; peaks && i < n; i++) {
        peaks[i] = all[i].peaks;
        if (peaks[i].fma_flops > 0 && peaks[i].copy_bytes > 0) continue;
        free(peaks);
        return NULL;
    }
    return peaks;
}

clt_status stages_measure(const ranks *group, clt_device *device, clt_peaks **peaks) {
    facts *all = calloc((size_t)group->size, sizeof *all);
    *peaks = NULL;
    if (!all) return CLT_E_NO_MEMORY;
    const clt_device_info *info = clt_device_get_info(device);
    facts *own = &all[group->rank];
    snprintf(own->device, sizeof own->device, "%.*s", (int)sizeof own->device - 1, info->name);
    snprintf(own->driver, sizeof own->driver, "%.*s", (int)sizeof own->driver - 1, info->driver);
    clt_status status = ranks_gather(group, all, sizeof *all);
    bool alike = status < 0 || all_alike(all, group->size);
    if (!alike) status = gather_peaks(group, device, all);
    if (!alike && status >= 0) *peaks = take_peaks(all, group->size);
    free(all);
    return status;
}

/* ---- a step, turn by turn ---- */

/* Of several pipelines, of which each may have others: those of the first. */
clt_status stages_gather(const ranks *group, const clt_trainer *trainer, const clt_pipeline_options *pipeline, stage_times *times) {
    size_t n;
    const clt_turn *own = clt_trainer_turns(trainer, &n);
    bool is_first = group->rank < pipeline->stages;
    int64_t of_first = group->rank == 0 ? (int64_t)n : 0;
    clt_status status = ranks_sum(group, &of_first);
    free(times->turns);
    *times = (stage_times){.options = *pipeline, .n = status < 0 ? 0 : (size_t)of_first};
    if (!times->n) return status; /* on all ranks */
    times->turns = calloc((size_t)group->size * times->n, sizeof *times->turns);
    if (!times->turns) return CLT_E_NO_MEMORY;
    if (is_first) memcpy(times->turns + (size_t)group->rank * n, own, n * sizeof *own);
    times->options.microbatches = 0;
    for (size_t i = 0; is_first && i < n; i++)
        if (own[i].micro >= times->options.microbatches) times->options.microbatches = own[i].micro + 1;
    return ranks_gather(group, times->turns, times->n * sizeof *times->turns);
}

/* The middle turn of a stage, of that kind and chunk. */
static int compare_seconds(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_seconds(const stage_times *times, int stage, clt_turn_kind kind, int chunk) {
    double *found = calloc(times->n, sizeof *found), median;
    size_t n = 0;
    for (size_t i = 0; found && i < times->n; i++) {
        const clt_turn *turn = &times->turns[(size_t)stage * times->n + i];
        if (turn->kind == kind && turn->chunk == chunk) found[n++] = turn->seconds;
    }
    if (n) qsort(found, n, sizeof *found, compare_seconds);
    median = n ? found[n / 2] : 0;
    free(found);
    return median;
}

static double end_of(const stage_times *times, int stage) {
    const clt_turn *last = &times->turns[(size_t)stage * times->n + times->n - 1];
    return last->begin + last->seconds;
}

static double busy_seconds(const stage_times *times, int stage) {
    double sum = 0;
    for (size_t i = 0; i < times->n; i++) sum += times->turns[(size_t)stage * times->n + i].seconds;
    return sum;
}

static int chunks_of(const stage_times *times) {
    int chunks = 1;
    for (size_t i = 0; i < times->n; i++)
        if (times->turns[i].chunk >= chunks) chunks = times->turns[i].chunk + 1;
    return chunks;
}

static clt_status simulate(const stage_times *times, clt_simulation *result) {
    int stages = times->options.stages, chunks = chunks_of(times);
    clt_stage_times *given = calloc((size_t)stages * (size_t)chunks, sizeof *given);
    if (!given) return CLT_E_NO_MEMORY;
    for (int i = 0; i < stages * chunks; i++)
        for (int k = 0; k < CLT_TURN_KINDS; k++) given[i].seconds[k] = median_seconds(times, i % stages, (clt_turn_kind)k, i / stages);
    clt_status status = clt_simulate_pipeline(&times->options, given, NULL, result);
    free(given);
    return status;
}

static void print_stages(const stage_times *times, FILE *file) {
    int stages = times->options.stages;
    double last = 0, busy = 0;
    clt_simulation expected;
    for (int s = 0; s < stages; s++) {
        last = end_of(times, s) > last ? end_of(times, s) : last;
        busy += busy_seconds(times, s);
    }
    fprintf(file, "\nTurns of the last step, ms:\n%-8s %10s %10s %10s %10s %10s\n", "stage", "forward", "backward", "weights", "all", "waiting");
    for (int s = 0; s < stages; s++)
        fprintf(file, "%-8d %10.3f %10.3f %10.3f %10.3f %8.1f %%\n", s, 1e3 * median_seconds(times, s, CLT_TURN_FORWARD, 0), 1e3 * median_seconds(times, s, CLT_TURN_BACKWARD, 0),
                1e3 * median_seconds(times, s, CLT_TURN_WEIGHTS, 0), 1e3 * busy_seconds(times, s), 100 * (1 - busy_seconds(times, s) / last));
    fprintf(file, "All turns end after %.3f ms, of which the stages wait %.1f %%", 1e3 * last, 100 * (1 - busy / (stages * last)));
    if (simulate(times, &expected) >= 0) fprintf(file, "; by these times it is %.3f ms and %.1f %%", 1e3 * expected.seconds, 100 * expected.bubble);
    fprintf(file, ".\n");
}

static int write_trace(const stage_times *times, const char *path) {
    static const char *const names[CLT_TURN_KINDS] = {"forward", "backward", "weights"};
    json_t *events = json_array();
    for (int s = 0; s < times->options.stages; s++)
        for (size_t i = 0; i < times->n; i++) {
            const clt_turn *turn = &times->turns[(size_t)s * times->n + i];
            char name[32];
            snprintf(name, sizeof name, "%s %d", names[turn->kind], turn->micro);
            json_array_append_new(events, json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:{s:i}}", "name", name, "cat", names[turn->kind], "ph", "X", "pid", 1, "tid", s, "ts",
                                                    1e6 * turn->begin, "dur", 1e6 * turn->seconds, "args", "chunk", turn->chunk));
        }
    json_t *document = json_pack("{s:o}", "traceEvents", events);
    int code = document ? document_write_at(document, path) : run_error("no memory for the trace");
    json_decref(document);
    return code;
}

int stages_report(const stage_times *times, const char *trace, FILE *file) {
    if (!times->turns) {
        warning("--profile: there was no step after the first to profile");
        return 0;
    }
    print_stages(times, file);
    if (fflush(file)) return run_error("the profile cannot be written");
    int code = write_trace(times, trace);
    if (!code) message_line("The turns are in %s, for chrome://tracing or ui.perfetto.dev.", trace);
    return code;
}
