/*
 * cltrain's side of the benchmark: reads a request a line on stdin, answers each with a line of JSON
 * on stdout, and waits for the next without using the processor.
 *
 *     {"do": "prepare", "kind": "gemm" …}   makes the case ready, in place of the last one
 *     {"do": "time", "seconds": 0.05}       runs it for at least about so long; seconds a repetition
 *     {"do": "peaks"}, {"do": "host_peak", "threads": 2}, {"do": "memory"}, {"do": "close"}
 *
 * An answer with "error" says what went wrong.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/bench/bench.h"
#include "tests/bench/host_peak.h"

typedef struct worker {
    clt_device *device;
    bench_case *current;
    double estimate; /* seconds a repetition */
} worker;

/* ---- what is asked for ---- */

int64_t bench_whole(const json_t *asked, const char *key, int64_t standard) {
    const json_t *value = json_object_get(asked, key);
    return json_is_integer(value) ? json_integer_value(value) : json_is_boolean(value) ? json_is_true(value) : standard;
}

double bench_real(const json_t *asked, const char *key, double standard) {
    const json_t *value = json_object_get(asked, key);
    return json_is_number(value) ? json_number_value(value) : standard;
}

const char *bench_text(const json_t *asked, const char *key, const char *standard) {
    const char *value = json_string_value(json_object_get(asked, key));
    return value ? value : standard;
}

void bench_values(float *values, size_t count, uint32_t stream) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)i * 2654435761u + stream * 0x9e3779b9u;
        bits = (bits ^ bits >> 16) * 0x85ebca6bu;
        bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
        bits ^= bits >> 16;
        values[i] = (float)(bits >> 8) * 0x1p-23f - 1;
    }
}

/* ---- requests ---- */

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void drop_case(worker *w) {
    if (w->current) w->current->close(w->current);
    w->current = NULL;
}

static clt_status measure(worker *w, int repetitions, double *seconds, double *cpu) {
    CLT_TRY(clt_device_finish(w->device));
    double cpu_start = cpu_seconds(), start = clt_seconds();
    CLT_TRY(w->current->run(w->current, repetitions));
    CLT_TRY(clt_device_finish(w->device));
    *seconds = (clt_seconds() - start) / repetitions;
    *cpu = (cpu_seconds() - cpu_start) / repetitions;
    return CLT_OK;
}

static clt_status prepare(worker *w, const json_t *asked, json_t *answer) {
    static const struct {
        const char *kind;
        clt_status (*make)(clt_device *device, const json_t *asked, bench_case **made);
    } kinds[] = {{"gemm", bench_gemm}, {"conv", bench_conv}, {"rows", bench_rows}, {"adamw", bench_adamw}, {"train", bench_train}};
    const char *kind = bench_text(asked, "kind", "");
    double cpu;
    drop_case(w);
    w->estimate = 0;
    for (size_t i = 0; i < CLT_COUNT_OF(kinds); i++)
        if (!strcmp(kinds[i].kind, kind)) CLT_TRY(kinds[i].make(w->device, asked, &w->current));
    if (!w->current) return clt_fail(CLT_E_INVALID, "no such kind of case: \"%s\"", kind);
    CLT_TRY(w->current->facts(w->current, answer));
    if (bench_whole(asked, "first", 0)) return CLT_OK;
    /* Drivers compile in the first launches, and the library saves after the third. */
    for (int i = 0; i < 3; i++) {
        double seconds;
        CLT_TRY(measure(w, 1, &seconds, &cpu));
        w->estimate = i ? CLT_MIN(w->estimate, seconds) : seconds;
    }
    return CLT_OK;
}

/* In as many goes as it takes: an estimate from a busy moment is too long. */
static clt_status time_case(worker *w, const json_t *asked, json_t *answer) {
    double seconds = 0, cpu = 0, wanted = bench_real(asked, "seconds", 0.05);
    int repetitions = 0;
    if (!w->current) return clt_fail(CLT_E_STATE, "nothing is prepared");
    do {
        double once, once_cpu, count = w->estimate > 0 ? (wanted - seconds) / w->estimate : 1;
        int n = (int)CLT_MIN(CLT_MAX(count + 0.999, 1), 1e5);
        CLT_TRY(measure(w, n, &once, &once_cpu));
        seconds += n * once, cpu += n * once_cpu, repetitions += n;
        w->estimate = once;
    } while (seconds < 0.8 * wanted);
    json_object_set_new(answer, "seconds", json_real(seconds / repetitions));
    json_object_set_new(answer, "cpu", json_real(cpu / repetitions));
    json_object_set_new(answer, "repetitions", json_integer(repetitions));
    return CLT_OK;
}

static clt_status peaks(worker *w, json_t *answer) {
    clt_peaks measured;
    CLT_TRY(clt_device_measure_peaks(w->device, &measured));
    json_object_set_new(answer, "flops", json_real(measured.fma_flops));
    json_object_set_new(answer, "bytes", json_real(measured.copy_bytes));
    return CLT_OK;
}

/* Bytes resident now and at most. */
static clt_status memory(json_t *answer) {
    static const struct {
        const char *line, *key;
    } facts[] = {{"VmRSS: %lld", "resident"}, {"VmHWM: %lld", "peak"}};
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    if (!file) return clt_fail(CLT_E_IO, "/proc/self/status cannot be read");
    while (fgets(line, sizeof line, file))
        for (size_t i = 0; i < CLT_COUNT_OF(facts); i++) {
            long long kilobytes;
            if (sscanf(line, facts[i].line, &kilobytes) == 1)
                json_object_set_new(answer, facts[i].key, json_integer(kilobytes * 1024));
        }
    fclose(file);
    return CLT_OK;
}

static clt_status host(const json_t *asked, json_t *answer) {
    double flops = host_peak((int)bench_whole(asked, "threads", 1));
    json_object_set_new(answer, "flops", json_real(flops));
    return flops > 0 ? CLT_OK : clt_fail(CLT_E_UNSUPPORTED, "no loop in this processor's instructions");
}

static void describe(const worker *w, json_t *answer) {
    const clt_device_info *info = clt_device_get_info(w->device);
    json_object_set_new(answer, "device", json_string(info->name));
    json_object_set_new(answer, "driver", json_string(info->driver));
    json_object_set_new(answer, "platform", json_string(info->platform));
    json_object_set_new(answer, "type", json_string(info->type == CLT_DEVICE_CPU ? "cpu" : "other"));
    json_object_set_new(answer, "compute_units", json_integer(info->compute_units));
}

static clt_status serve(worker *w, const json_t *asked, json_t *answer) {
    const char *what = bench_text(asked, "do", "");
    if (!strcmp(what, "prepare")) return prepare(w, asked, answer);
    if (!strcmp(what, "time")) return time_case(w, asked, answer);
    if (!strcmp(what, "peaks")) return peaks(w, answer);
    if (!strcmp(what, "host_peak")) return host(asked, answer);
    if (!strcmp(what, "memory")) return memory(answer);
    if (!strcmp(what, "describe")) describe(w, answer);
    else if (!strcmp(what, "close")) drop_case(w);
    else return clt_fail(CLT_E_INVALID, "no such request: \"%s\"", what);
    return CLT_OK;
}

static void answer_line(worker *w, const char *line) {
    json_t *asked = json_loads(line, 0, NULL), *answer = json_object();
    clt_status status = asked ? serve(w, asked, answer) : clt_fail(CLT_E_FORMAT, "the request is not JSON");
    if (status < 0) json_object_set_new(answer, "error", json_sprintf("%s: %s", clt_status_name(status), clt_error_detail()));
    json_dumpf(answer, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(asked);
    json_decref(answer);
}

int main(void) {
    worker w = {0};
    char line[4096];
    if (clt_device_open(&w.device, NULL) < 0) {
        fprintf(stderr, "%s\n", clt_error_detail());
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) answer_line(&w, line);
    drop_case(&w);
    clt_device_close(w.device);
    return 0;
}
