#include "progress.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/clock.h"
#include "tools/common/message.h"
#include "scores.h"
#include "system.h"

#define BAR_SECONDS 0.4
#define LOG_SECONDS 2.0
#define LINE_SECONDS 10.0
#define LINE_COLUMNS 80
#define PERCENT 6 /* " 100% " */
#define BAR_MIN 8
#define BAR_MAX 30

void progress_start(progress *p, int64_t first_step, int64_t total_steps, int64_t epochs,
                    bool logged) {
    double now = now_seconds();
    *p = (progress){.terminal = terminal_present(),
                    .first_step = first_step,
                    .total_steps = total_steps,
                    .epochs = epochs,
                    .start = now};
    p->wanted = logged || !message_quiet();
    p->interval = p->terminal && !message_quiet() ? BAR_SECONDS : logged ? LOG_SECONDS : LINE_SECONDS;
    p->next_look = now + p->interval;
    p->next_line = now + LINE_SECONDS;
}

void progress_settle(progress *p, int64_t step) {
    p->start = now_seconds();
    p->first_step = step;
    p->next_look = p->start + p->interval;
}

bool progress_due(const progress *p) {
    return p->wanted && now_seconds() >= p->next_look;
}

void progress_time_text(double seconds, char *text, int bytes) {
    if (!(seconds >= 0 && seconds < 1e9)) {
        snprintf(text, (size_t)bytes, "?");
        return;
    }
    long long whole = llround(seconds), hours = whole / 3600, minutes = whole / 60 % 60;
    if (hours) snprintf(text, (size_t)bytes, "%lld:%02lld:%02lld", hours, minutes, whole % 60);
    else snprintf(text, (size_t)bytes, "%lld:%02lld", minutes, whole % 60);
}

/* "epoch 3/30", or "step 120/1000" where steps are what counts. */
static int place_text(const progress *p, int64_t epoch, int64_t step, char *text, size_t bytes) {
    if (p->epochs)
        return snprintf(text, bytes, "epoch %lld/%lld", (long long)epoch, (long long)p->epochs);
    return snprintf(text, bytes, "step %lld/%lld", (long long)step, (long long)p->total_steps);
}

static double fraction_done(const progress *p, int64_t step) {
    double done = p->total_steps > 0 ? (double)step / (double)p->total_steps : 0;
    return done < 0 ? 0 : done > 1 ? 1 : done;
}

static double seconds_left(const progress *p, int64_t step, double now) {
    int64_t done = step - p->first_step;
    return done > 0 ? (now - p->start) / (double)done * (double)(p->total_steps - step) : NAN;
}

static void draw_bar(char *text, int width, double fraction) {
    int filled = (int)(fraction * width);
    memset(text, ' ', (size_t)width);
    memset(text, '=', (size_t)filled);
    if (filled < width) text[filled] = '>';
    text[width] = '\0';
}

/* The bar takes what the figures leave of the line; on a narrow terminal there is none. */
static void show_bar(const char *place, const char *figures, double fraction) {
    char line[512], bar[BAR_MAX + 1];
    int room = message_columns() - 1 - (int)strlen(place) - (int)strlen(figures) - 9;
    int width = room > BAR_MAX ? BAR_MAX : room;
    if (width >= BAR_MIN) {
        draw_bar(bar, width, fraction);
        snprintf(line, sizeof line, "%s [%s] %3.0f%% %s", place, bar, floor(100 * fraction), figures);
    } else {
        snprintf(line, sizeof line, "%s %3.0f%% %s", place, floor(100 * fraction), figures);
    }
    message_transient(line);
}

/* Four places behind the point, but for a loss that has run away. */
static void loss_text(double loss, char text[32]) {
    snprintf(text, 32, fabs(loss) < 1e6 ? "%.4f" : "%.4g", loss);
}

/* "loss" and "test" stand for the loss of the one and the other part. Whole lines are to fit 80 columns. */
static void metrics_text(const char *part, const clt_metrics *metrics, bool classification,
                         char *text, size_t bytes) {
    char told[32];
    text[0] = '\0';
    if (metrics->samples == 0) return;
    loss_text(metrics->loss, told);
    /* A regression's loss is its mean squared error. */
    if (classification) snprintf(text, bytes, "  %s %s acc %.4f", part, told, metrics->accuracy);
    else snprintf(text, bytes, "  %s %.6g", part, metrics->loss);
}

/* ", scale 65536, 3 skipped" of f16. */
static void steps_text(const report *r, char *text, size_t bytes) {
    bool scaled = r->options->precision == CLT_PRECISION_F16;
    size_t used = scaled ? (size_t)snprintf(text, bytes, ", scale %g", (double)r->loss_scale) : 0;
    text[used] = 0;
    if (r->skipped) snprintf(text + used, bytes - used, ", %lld skipped", (long long)r->skipped);
}

/* Of what the line of a terminal has no room for, the memory is left out first, then the accuracy. */
static void figures_text(const report *r, const clt_metrics *train, double rate, const char *left, int columns, char *text, size_t bytes) {
    enum { LOSS, ACCURACY, MEMORY };
    char told[96], steps[80], memory[40] = "";
    steps_text(r, steps, sizeof steps);
    for (int most = MEMORY; most >= LOSS; most--) {
        metrics_text("loss", train, r->classification && most >= ACCURACY, told, sizeof told);
        snprintf(memory, sizeof memory, most == MEMORY ? "  %.0f MiB" : "", (double)r->peak_device_bytes / (1024 * 1024));
        int length = snprintf(text, bytes, "%s%s  %.*f samples/s%s  %s left", told, steps, rate < 100, rate, memory, left);
        if (length < columns) return;
    }
}

void progress_show(progress *p, const report *r, const clt_metrics *train, double samples_per_second) {
    char place[64], figures[256], left[32];
    int64_t step = r->steps;
    double now = now_seconds(), fraction = fraction_done(p, step);
    p->next_look = now + p->interval;
    if (message_quiet() || (!p->terminal && now < p->next_line)) return;
    p->next_line = now + LINE_SECONDS;
    place_text(p, r->epochs + 1, step, place, sizeof place);
    progress_time_text(seconds_left(p, step, now), left, sizeof left);
    figures_text(r, train, samples_per_second, left, p->terminal ? message_columns() - PERCENT - (int)strlen(place) : INT_MAX, figures, sizeof figures);
    if (p->terminal) show_bar(place, figures, fraction);
    else message_line("%s %3.0f%% %s", place, floor(100 * fraction), figures);
}

static void test_text(const report *r, char *text, size_t bytes) {
    metrics_text(strcmp(r->held_out, "validation") ? r->held_out : "val", &r->test, r->classification, text, bytes);
}

/* What --monitor names, where the test's line has not told it. */
static void monitored_text(const report *r, char *text, size_t bytes) {
    int sign, monitor = options_monitor(r->options);
    const char *name = strcmp(scores_monitored[monitor], "average_precision") ? scores_monitored[monitor] : "AP";
    if (!scores_monitor_is_counted(monitor) && r->scores.samples)
        snprintf(text, bytes, " %s %.4f", name, scores_monitor(monitor, &r->test, &r->scores, &sign));
}

/* As much of it as there is room for. */
static void rate_text(const report *r, size_t room, char *text, size_t bytes) {
    int n = snprintf(text, bytes, "  %.*f/s", r->samples_per_second < 100, r->samples_per_second);
    snprintf(text + n, bytes - (size_t)n, r->epoch_seconds < 1 ? "  %.2g s" : "  %.1f s", r->epoch_seconds);
    if (strlen(text) > room) text[n] = 0;
    if (strlen(text) > room) text[0] = 0;
}

void progress_epoch(const progress *p, const report *r) {
    char place[64], train[96], test[96], monitored[48] = "", rate[48] = "", scale[24] = "", skipped[48] = "";
    if (p->epochs) place_text(p, r->epochs, r->steps, place, sizeof place);
    else snprintf(place, sizeof place, "epoch %lld, %lld/%lld", (long long)r->epochs,
                  (long long)r->steps, (long long)p->total_steps);
    metrics_text("loss", &r->train, r->classification, train, sizeof train);
    test_text(r, test, sizeof test);
    monitored_text(r, monitored, sizeof monitored);
    if (r->options->precision == CLT_PRECISION_F16) snprintf(scale, sizeof scale, "  scale %g", (double)r->loss_scale);
    if (r->skipped) snprintf(skipped, sizeof skipped, "  %lld steps skipped", (long long)r->skipped);
    size_t used = strlen(place) + strlen(train) + strlen(test) + strlen(monitored) + strlen(scale) + strlen(skipped);
    if (isfinite(r->samples_per_second)) rate_text(r, used < LINE_COLUMNS ? LINE_COLUMNS - used : 0, rate, sizeof rate);
    message_line("%s%s%s%s%s%s%s", place, train, test, monitored, scale, skipped, rate);
}

void progress_test(const progress *p, const report *r, const clt_metrics *train) {
    char told[96], test[96];
    metrics_text("loss", train, r->classification, told, sizeof told);
    test_text(r, test, sizeof test);
    message_line("step %lld/%lld%s%s", (long long)r->steps, (long long)p->total_steps, told, test);
}
