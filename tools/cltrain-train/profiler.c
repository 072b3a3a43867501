#include "profiler.h"

#include "tools/common/message.h"

int profiler_before_step(profiler *p, clt_device *device) {
    if (!p->wanted || p->done || p->profile) return 0;
    clt_status status = clt_profile_start(&p->profile, device);
    return status < 0 ? library_error(status, "--profile") : 0;
}

int profiler_after_step(profiler *p) {
    if (!p->profile || p->done) return 0;
    p->steps++;
    return p->steps == PROFILER_STEPS ? profiler_stop(p) : 0;
}

int profiler_stop(profiler *p) {
    if (!p->profile || p->done) return 0;
    p->done = true;
    clt_status status = clt_profile_stop(p->profile);
    return status < 0 ? library_error(status, "--profile") : 0;
}

/* Faster than memory: what it reads and writes is in the device's caches, whose peak is not known. */
static bool is_cached(const clt_profile_row *row) {
    const double margin = 1.1; /* of the peak, as it was measured */
    return !row->bound_by_compute && row->roofline_seconds > margin * row->seconds;
}

static void print_row(FILE *file, const clt_profile_row *row, const profiler *p, double all_seconds) {
    char gflops[16] = "-";
    if (row->flops > 0 && row->seconds > 0) snprintf(gflops, sizeof gflops, "%.1f", 1e-9 * row->flops / row->seconds);
    fprintf(file, "%-24s %-10s %8.1f %8.1f %10.3f %6.1f%% %9s %8.2f ", row->op, row->backend,
            (double)row->calls / (double)p->steps, (double)row->launches / (double)p->steps,
            1e3 * row->seconds / (double)p->steps, 100 * row->seconds / all_seconds, gflops,
            row->seconds > 0 ? 1e-9 * row->bytes / row->seconds : 0.0);
    if (is_cached(row)) fprintf(file, "%6s cache\n", "-");
    else if (row->roofline_seconds > 0 && row->seconds > 0)
        fprintf(file, "%5.0f%% %s\n", 100 * row->roofline_seconds / row->seconds, row->bound_by_compute ? "compute" : "memory");
    else fprintf(file, "%6s\n", "-");
}

static void print_table(const profiler *p, FILE *file) {
    size_t count;
    const clt_profile_row *rows = clt_profile_rows(p->profile, &count);
    clt_profile_totals totals = clt_profile_get_totals(p->profile);
    double steps = (double)p->steps, wall = totals.wall_seconds;
    fprintf(file, "\nProfile of %lld step%s, each on average:\n", (long long)p->steps, PLURAL(p->steps));
    fprintf(file, "%-24s %-10s %8s %8s %10s %7s %9s %8s %6s %s\n", "op", "backend", "calls", "launches", "ms", "share",
            "GFLOP/s", "GB/s", "roof", "bound by");
    for (size_t i = 0; i < count; i++) print_row(file, &rows[i], p, totals.device_seconds);
    fprintf(file, "%-24s %-10s %8s %8.1f %10.3f\n", "all launches", "", "", (double)totals.launches / steps,
            1e3 * totals.device_seconds / steps);
    fprintf(file, "%-24s %-10s %8s %8s %10.3f  %.1f %% of a step: host, transfers, waiting\n", "between launches", "", "",
            "", 1e3 * (wall - totals.device_seconds) / steps, 100 * (1 - totals.device_seconds / wall));
    fprintf(file, "%-24s %-10s %8s %8s %10.3f\n", "step", "", "", "", 1e3 * wall / steps);
    fprintf(file, "Peaks of the device: %.1f GFLOP/s, %.1f GB/s copied; cache: data that stay in the device's caches.\n", 1e-9 * totals.peaks.fma_flops,
            1e-9 * totals.peaks.copy_bytes);
}

int profiler_report(const profiler *p, const char *trace, FILE *file) {
    if (!p->wanted) return 0;
    if (!p->profile) {
        warning("--profile: there was no step after the first to profile");
        return 0;
    }
    print_table(p, file);
    if (fflush(file)) return run_error("the profile cannot be written");
    clt_status status = clt_profile_save_trace(p->profile, trace);
    if (status < 0) return library_error(status, "--profile");
    message_line("The launches are in %s, for chrome://tracing or ui.perfetto.dev.", trace);
    return 0;
}

void profiler_free(profiler *p) {
    clt_profile_destroy(p->profile);
    p->profile = NULL;
}
