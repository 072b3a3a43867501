/* What a bench found: placed on the measured peaks; as JSON, CSV and text. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "tools/survey/document.h"
#include "statistics.h"
#include "tools/common/message.h"

enum { MOST = BENCH_MOST_PASSES * BENCH_SAMPLES };

void bench_key(const bench_row *row, char key[400]) {
    if (row->is_limit) snprintf(key, 400, "limit %s", clt_limit_name(row->limit));
    else snprintf(key, 400, "op %s%s%s", row->shape.problem, row->asked[0] ? " by " : "", row->asked);
}

/* All samples, sorted. */
static int samples_of(const bench_row *row, double us[MOST]) {
    int n = 0;
    for (int p = 0; p < BENCH_MOST_PASSES; p++)
        for (int i = 0; i < row->n[p]; i++) us[n++] = row->us[p][i];
    statistics_sort(us, n);
    return n;
}

static bool is_ok(const bench_row *row) {
    return strcmp(row->status, "ok") == 0;
}

/* Of the roofline; what is suspect has none that may be told. */
static bool has_fraction(const bench_row *row) {
    return is_ok(row) && row->bound && row->fraction > 0;
}

/* ---- the roofline ---- */

/* The best sample of a row: its amount a second, or the microseconds of what is a time; 0: there is none. */
static double best_sample(const bench_row *row) {
    double us[MOST];
    if (samples_of(row, us) == 0) return 0;
    return row->amount > 0 ? 1e6 * row->amount / us[0] : us[0];
}

/* Of a limit; 0: not known. */
static double best_of(const bench *b, clt_limit limit) {
    for (int i = 0; i < b->n_rows; i++) {
        const bench_row *row = &b->rows[i];
        if (row->is_limit && row->limit == limit && is_ok(row) && best_sample(row) > 0) return best_sample(row);
    }
    return 0;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* What no device of today reaches, generously: a limit above that was not measured but imagined. A second, or in
 * microseconds where the limit is a time and has to be longer. Clocks are told without boost, if at all. */
static double theoretical(const bench *b, clt_limit limit) {
    const clt_device_info *info = &b->device->info;
    double clock = 2e6 * larger(info->clock_mhz, 2500), units = larger(info->compute_units, 1);
    /* Two vector units with multiply-adds; 256 lanes of a GPU's unit. */
    double lanes = info->type == CLT_DEVICE_CPU ? 2 * larger(b->vector_width, 4) : 256;
    switch (limit) {
    case CLT_LIMIT_FMA_F16: return 2 * 2 * lanes * clock * units;
    case CLT_LIMIT_FMA_F32:
    case CLT_LIMIT_FMA_F64: return 2 * lanes * clock * units;
    case CLT_LIMIT_COPY:
    case CLT_LIMIT_TRIAD:
    case CLT_LIMIT_READ: return info->type == CLT_DEVICE_CPU ? 4e12 : 4e13;
    case CLT_LIMIT_LOCAL: return 4 * larger(lanes, 16) * clock * units * 2;
    case CLT_LIMIT_UPLOAD_PINNED:
    case CLT_LIMIT_UPLOAD_PAGEABLE:
    case CLT_LIMIT_DOWNLOAD_PINNED:
    case CLT_LIMIT_DOWNLOAD_PAGEABLE: return 4e12;
    case CLT_LIMIT_LAUNCH_PIPELINED:
    case CLT_LIMIT_LAUNCH_WAITED: return 0.01;
    default: return 10; /* a build */
    }
}

/* Peaks and ops are measured at different moments: a roofline is the best of all its samples, an op its median, which is above only
 * where the machine left the roofline less at all of its moments. On a shared processor the best copies of one bench and the next
 * differ by up to a fifth; work that is not done shows by factors of two and more. */
static const double margin = 1.25;

/* What a bench holds an op against. */
typedef struct peaks {
    double flops, bytes, launch_us; /* the best of each; 0: not known */
    double cache;                   /* bytes a second that no cache of the device moves */
} peaks;

static void doubt_op(bench_row *row, double rate, double most, const char *of) {
    snprintf(row->status, sizeof row->status, "suspect");
    snprintf(row->reason, sizeof row->reason, "%.3g %s a second, where such a device has %.3g at the very most", rate, of, most);
}

/* What caches move at most. Local memory is as near to the lanes as the nearest cache, and on CPUs is in it: its rate was measured
 * with reads alone. Of a GPU no cache is quicker (NVIDIA's and Intel's are the same memory, AMD's has half the width: the vendors'
 * tuning guides). A CPU's core moves three vectors a cycle at most, of which two are read (Intel's optimization manual, 2.1, of Skylake's
 * server cores: two loads and a store of 64 bytes; AMD's of Zen 3: three loads or two stores of 32), and where the reads of local
 * memory are no quicker than one vector a cycle, that is three times their rate. */
static double most_of_cache(const bench *b) {
    double local = best_of(b, CLT_LIMIT_LOCAL);
    if (local <= 0) return theoretical(b, CLT_LIMIT_LOCAL);
    return b->device->info.type == CLT_DEVICE_CPU ? 3 * local : local;
}

/* Bytes a second that memory moves for a row at most. A CPU reads what a copy is written to before it writes there, and nobody counts that; what an
 * optimizer writes it has read anyway. */
static double memory_rate(const bench *b, const bench_row *row, const peaks *peak) {
    bool in_place = strncmp(row->problem, "sgd ", 4) == 0 || strncmp(row->problem, "adam ", 5) == 0;
    return in_place && b->device->info.type == CLT_DEVICE_CPU ? 1.5 * peak->bytes : peak->bytes;
}

/* The least that arithmetic and memory take. What works from a cache has no roofline of memory to be held against, but a rate that
 * the caches do not have; of what is larger than the cache a part may still be there from the run before, never more than
 * fits. */
static void place(const bench *b, bench_row *row, const peaks *peak) {
    double us[MOST];
    int n = samples_of(row, us);
    if (!is_ok(row) || n == 0 || row->is_limit || peak->flops <= 0 || peak->bytes <= 0) return;
    double median_us = statistics_quantile(us, n, 0.5);
    double rate = memory_rate(b, row, peak);
    double compute_us = 1e6 * row->done_flops / peak->flops, memory_us = 1e6 * row->bytes / rate;
    double uncached_us = 1e6 * larger(row->bytes - (double)b->cache_bytes, 0) / rate;
    bool cached = uncached_us == 0 || memory_us > margin * median_us;
    row->roofline_us = larger(compute_us, memory_us);
    row->bound = compute_us >= memory_us ? "compute" : "memory";
    /* A launch of it that costs less than empty ones do is bound by something else. */
    if (peak->launch_us > row->roofline_us && peak->launch_us <= margin * median_us) row->bound = "launch", row->roofline_us = peak->launch_us;
    if (cached && strcmp(row->bound, "memory") == 0) row->bound = "cache", row->roofline_us = 0;
    row->fraction = row->roofline_us / median_us;
    double allowed_us = larger(larger(compute_us, uncached_us), 1e6 * row->bytes / peak->cache);
    if (allowed_us > margin * median_us) {
        snprintf(row->status, sizeof row->status, "suspect");
        snprintf(row->reason, sizeof row->reason, "%.2f times as fast as the measured roofline allows", allowed_us / median_us);
    }
}

/* Where peaks are not known, or were measured too high, anything would pass. */
static void doubt_rates(const bench *b, bench_row *row) {
    double us[MOST];
    int n = samples_of(row, us);
    bool timed = is_ok(row) || strcmp(row->status, "suspect") == 0;
    if (!timed || n == 0 || row->is_limit) return;
    double median_us = statistics_quantile(us, n, 0.5), flops = 1e6 * row->done_flops / median_us;
    double bytes = 1e6 * row->bytes / median_us, most_flops = theoretical(b, CLT_LIMIT_FMA_F32);
    double most_bytes = larger(theoretical(b, CLT_LIMIT_READ), row->bytes <= (double)b->cache_bytes ? theoretical(b, CLT_LIMIT_LOCAL) : 0);
    if (flops > most_flops) doubt_op(row, flops, most_flops, "operations");
    else if (bytes > most_bytes) doubt_op(row, bytes, most_bytes, "bytes");
}

static void doubt_limit(const bench *b, bench_row *row) {
    double best = best_sample(row);
    if (!row->is_limit || !is_ok(row) || best <= 0) return;
    double most = theoretical(b, row->limit);
    if (row->amount > 0 ? best <= most : best >= most) return;
    snprintf(row->status, sizeof row->status, "suspect");
    if (row->amount > 0) snprintf(row->reason, sizeof row->reason, "%.3g a second, where such a device has %.3g at the very most", best, most);
    else snprintf(row->reason, sizeof row->reason, "%.3g us, where %.3g are the very least", best, most);
}

/* Of what is known from earlier, too, unless no device can. */
static peaks best_peaks(const bench *b) {
    double flops = b->known.fma_flops, bytes = b->known.copy_bytes;
    if (!(flops <= theoretical(b, CLT_LIMIT_FMA_F32))) flops = 0;
    if (!(bytes <= theoretical(b, CLT_LIMIT_COPY))) bytes = 0;
    bytes = larger(bytes, larger(best_of(b, CLT_LIMIT_COPY), larger(best_of(b, CLT_LIMIT_TRIAD), best_of(b, CLT_LIMIT_READ))));
    return (peaks){larger(best_of(b, CLT_LIMIT_FMA_F32), flops), bytes, best_of(b, CLT_LIMIT_LAUNCH_PIPELINED),
                   larger(most_of_cache(b), bytes)};
}

void bench_place(bench *b) {
    for (int i = 0; i < b->n_rows; i++) doubt_limit(b, &b->rows[i]);
    peaks peak = best_peaks(b);
    for (int i = 0; i < b->n_rows; i++) {
        place(b, &b->rows[i], &peak);
        doubt_rates(b, &b->rows[i]);
    }
}

/* ---- JSON ---- */

static json_t *times_json(const bench_row *row) {
    double us[MOST];
    int n = samples_of(row, us);
    if (n == 0) return json_null();
    return json_pack("{s:f, s:f, s:f, s:i}", "p10", statistics_quantile(us, n, 0.1), "p50",
                     statistics_quantile(us, n, 0.5), "p90", statistics_quantile(us, n, 0.9), "count", n);
}

static json_t *passes_json(const bench_row *row) {
    json_t *passes = json_array();
    for (int p = 0; p < BENCH_MOST_PASSES; p++) {
        if (row->n[p] == 0) continue;
        json_t *samples = json_array();
        for (int i = 0; i < row->n[p]; i++) json_array_append_new(samples, json_real(row->us[p][i]));
        json_array_append_new(passes, samples);
    }
    return passes;
}

/* A second, by the median; 0: there is none. */
static double rate(const bench_row *row, double amount) {
    double us[MOST];
    int n = samples_of(row, us);
    return n && amount > 0 ? 1e6 * amount / statistics_quantile(us, n, 0.5) : 0;
}

static void add_rates(const bench_row *row, json_t *o) {
    if (!is_ok(row)) return;
    bool flops = row->is_limit ? strcmp(clt_limit_unit(row->limit), "flops") == 0 : row->flops > 0;
    bool bytes = row->is_limit ? strcmp(clt_limit_unit(row->limit), "bytes") == 0 : row->bytes > 0;
    double f = rate(row, row->is_limit ? row->amount : row->flops), y = rate(row, row->is_limit ? row->amount : row->bytes);
    if (flops && f > 0) json_object_set_new(o, "flops_per_second", json_real(f));
    if (bytes && y > 0) json_object_set_new(o, "bytes_per_second", json_real(y));
}

static json_t *nmse_json(double nmse) {
    return nmse >= 0 ? json_real(nmse) : json_null();
}

static json_t *roofline_json(const bench_row *row) {
    json_t *placed = json_pack("{s:s}", "bound", row->bound);
    if (row->done_flops > 0) json_object_set_new(placed, "flops", json_real(row->done_flops));
    if (row->roofline_us > 0) json_object_set_new(placed, "least_us", json_real(row->roofline_us));
    if (has_fraction(row)) json_object_set_new(placed, "fraction", json_real(row->fraction));
    return placed;
}

static void add_op(const bench_row *row, json_t *o) {
    json_t *more = json_pack("{s:s, s:s, s:i, s:o, s:o, s:o, s:f, s:f, s:{s:o, s:o, s:f}}", "model", row->shape.model,
                             "phase", row->shape.phase, "count", row->shape.count, "problem",
                             document_text(row->problem[0] ? row->problem : row->shape.problem), "backend",
                             document_text(row->backend), "parameters", document_text(row->parameters), "flops",
                             row->flops, "bytes", row->bytes, "check", "nmse", nmse_json(row->nmse), "nmse_after",
                             nmse_json(row->nmse_after), "limit", 1e-7);
    json_object_update(o, more);
    json_decref(more);
    if (row->bound || is_ok(row)) json_object_set_new(o, "roof", row->bound ? roofline_json(row) : json_null());
}

/* What other backends make of it: [] where they were not measured. */
static json_t *others_json(const bench *b, const bench_row *row) {
    json_t *others = json_array();
    for (int i = 0; i < b->n_rows; i++) {
        const bench_row *other = &b->rows[i];
        if (!other->asked[0] || strcmp(other->shape.problem, row->shape.problem) != 0) continue;
        json_array_append_new(others, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "backend", other->asked, "status", other->status,
                                                "reason", other->reason[0] ? document_text(other->reason) : json_null(),
                                                "row", document_text(other->backend), "parameters",
                                                document_text(other->parameters), "time_us", times_json(other)));
    }
    return others;
}

static json_t *row_json(const bench *b, const bench_row *row) {
    char key[400];
    bench_key(row, key);
    json_t *o = json_pack("{s:o, s:s, s:s, s:s, s:o, s:o, s:o}", "device", document_text(b->device->info.id), "key", key,
                          "kind", row->is_limit ? "limit" : "op", "status", row->status, "reason",
                          row->reason[0] ? document_text(row->reason) : json_null(), "time_us", times_json(row),
                          "samples_us", passes_json(row));
    add_rates(row, o);
    if (!row->is_limit) add_op(row, o);
    if (!row->is_limit && !row->asked[0]) json_object_set_new(o, "other_backends", others_json(b, row));
    return o;
}

json_t *bench_json(const bench *b) {
    json_t *document = document_new("bench"), *results = json_array();
    json_t *device = survey_device_json(b->s, b->device, b->lost[0] ? b->lost : "ok", b->lost[0] ? b->why_lost : "");
    for (int i = 0; i < b->n_rows; i++)
        if (!b->rows[i].asked[0]) json_array_append_new(results, row_json(b, &b->rows[i]));
    json_t *more = json_pack("{s:s, s:b, s:f, s:[o], s:o}", "mode", b->full ? "full" : "quick", "complete", b->complete,
                             "seconds", b->took, "devices", device, "results", results);
    json_object_update(document, more);
    json_decref(more);
    return document;
}

/* ---- CSV ---- */

static void write_field(FILE *file, const char *text, const char *end) {
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"') fputc('"', file);
        fputc(*text == '\n' || *text == '\r' ? ' ' : *text, file);
    }
    fprintf(file, "\"%s", end);
}

int bench_write_csv(const bench *b, FILE *file) {
    fprintf(file, "key,model,phase,count,status,p10_us,p50_us,p90_us,samples,flops_per_second,bytes_per_second,"
                  "bound,fraction,backend,reason\n");
    for (int i = 0; i < b->n_rows; i++) {
        const bench_row *row = &b->rows[i];
        char key[400];
        json_t *o = row_json(b, row), *times = json_object_get(o, "time_us");
        bench_key(row, key);
        write_field(file, key, ",");
        fprintf(file, "%s,%s,%d,%s,", row->shape.model, row->shape.phase, row->shape.count, row->status);
        static const char *const of[] = {"p10", "p50", "p90"};
        for (int k = 0; k < 3; k++)
            if (json_is_object(times)) fprintf(file, "%.6g,", json_number_value(json_object_get(times, of[k])));
            else fprintf(file, ",");
        fprintf(file, "%d,", (int)json_integer_value(json_object_get(times, "count")));
        static const char *const rates[] = {"flops_per_second", "bytes_per_second"};
        for (int k = 0; k < 2; k++)
            if (json_object_get(o, rates[k])) fprintf(file, "%.6g,", json_number_value(json_object_get(o, rates[k])));
            else fprintf(file, ",");
        fprintf(file, "%s,", is_ok(row) && row->bound ? row->bound : "");
        if (has_fraction(row)) fprintf(file, "%.4f", row->fraction);
        fputc(',', file);
        write_field(file, row->backend, ",");
        write_field(file, row->reason, "\n");
        json_decref(o);
    }
    return fflush(file) || ferror(file) ? output_failed(file) : 0;
}

/* ---- text ---- */

/* Quantiles of one or two samples say nothing of how far more of them would lie apart. */
enum { LEAST_FOR_SPREAD = 3 };

static void print_limit(const bench_row *row, FILE *file) {
    double us[MOST];
    int n = samples_of(row, us);
    fprintf(file, "%-20s %-12s ", clt_limit_name(row->limit), row->status);
    if (!is_ok(row) || n == 0) {
        fprintf(file, "%s\n", row->reason);
        return;
    }
    double p10 = statistics_quantile(us, n, 0.1), p50 = statistics_quantile(us, n, 0.5), p90 = statistics_quantile(us, n, 0.9);
    const char *unit = clt_limit_unit(row->limit);
    char middle[32], low[32], high[32];
    bool time = unit[0] == 's';
    fprintf(file, "%10s %-7s ", statistics_text(time ? p50 : 1e-3 * row->amount / p50, middle),
            time ? "us" : unit[0] == 'f' ? "GFLOP/s" : "GB/s");
    if (n < LEAST_FOR_SPREAD) fprintf(file, "(%d sample%s)\n", n, PLURAL(n));
    else fprintf(file, "(%s to %s)\n", statistics_text(time ? p10 : 1e-3 * row->amount / p90, low),
                 statistics_text(time ? p90 : 1e-3 * row->amount / p10, high));
}

static void print_times(const double *us, int n, FILE *file) {
    double p50 = statistics_quantile(us, n, 0.5);
    char samples[32];
    snprintf(samples, sizeof samples, "%d sample%s", n, PLURAL(n));
    fprintf(file, " %11.1f ", p50);
    if (n < LEAST_FOR_SPREAD) fprintf(file, "%9s", samples);
    else fprintf(file, "%8.0f%%", 100 * (statistics_quantile(us, n, 0.9) - statistics_quantile(us, n, 0.1)) / p50);
}

/* GFLOP/s, GB/s, and what part of the roofline that is. */
static void print_rates(const bench_row *row, FILE *file) {
    char flops[32], bytes[32];
    if (!is_ok(row)) {
        fprintf(file, " %9s %8s", "-", "-");
        return;
    }
    fprintf(file, " %9s %8s", statistics_text(1e-9 * rate(row, row->flops), flops), statistics_text(1e-9 * rate(row, row->bytes), bytes));
    if (has_fraction(row)) fprintf(file, " %5.0f%% of %-8s", 100 * row->fraction, row->bound);
    else if (row->bound) fprintf(file, " %6s    %-8s", "-", row->bound);
}

static void print_op(const bench_row *row, FILE *file) {
    double us[MOST];
    int n = samples_of(row, us);
    const char *problem = row->problem[0] ? row->problem : row->shape.problem;
    fprintf(file, "%-76s %-12s", problem, row->status);
    if (n) {
        print_times(us, n, file);
        print_rates(row, file);
        fprintf(file, " %s", row->backend);
    }
    if (row->reason[0]) fprintf(file, "  %s", row->reason);
    fprintf(file, "\n");
}

/* "    clblast 3021.5 us, reference 15890.2 us, clfft unsupported" */
static void print_others(const bench *b, const bench_row *row, FILE *file) {
    int n_printed = 0;
    for (int i = 0; i < b->n_rows; i++) {
        const bench_row *other = &b->rows[i];
        double us[MOST];
        if (!other->asked[0] || strcmp(other->shape.problem, row->shape.problem) != 0) continue;
        int n = samples_of(other, us);
        fprintf(file, "%s%s ", n_printed++ ? ", " : "    ", other->asked);
        if (n && is_ok(other)) fprintf(file, "%.1f us", statistics_quantile(us, n, 0.5));
        else fprintf(file, "%s", other->status);
    }
    if (n_printed) fprintf(file, "\n");
}

void bench_print(const bench *b, FILE *file) {
    const clt_device_info *i = &b->device->info;
    const char *model = "";
    fprintf(file, "%s (%s, driver %s) [%s]\n\n", i->name, i->platform, i->driver, i->id);
    for (int k = 0; k < b->n_rows; k++)
        if (b->rows[k].is_limit) print_limit(&b->rows[k], file);
    for (int k = 0; k < b->n_rows; k++) {
        const bench_row *row = &b->rows[k];
        if (row->is_limit || row->asked[0]) continue;
        if (strcmp(model, row->shape.model) != 0)
            fprintf(file, "\n%-76s %-12s %11s %9s %9s %8s %s\n", row->shape.model, "status", "median us", "spread", "GFLOP/s",
                    "GB/s", "roof");
        model = row->shape.model;
        print_op(row, file);
        print_others(b, row, file);
    }
}
