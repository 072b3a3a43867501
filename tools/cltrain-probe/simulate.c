/*
 * cltrain-probe simulate: a step of a pipeline by given times, without a device.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "tools/common/files.h"
#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/common/numbers.h"
#include "tools/survey/document.h"

typedef struct simulate_options {
    shared_options shared;
    int64_t stages, microbatches, chunks;
    int schedule;
    double milliseconds[CLT_TURN_KINDS], send;
    const char *factors, *svg;
} simulate_options;

static const char *const schedules[] = {"1f1b", "gpipe", "zb-h1", "interleaved", NULL}; /* by clt_pipeline_schedule */
enum { SCHEDULES = sizeof schedules / sizeof schedules[0] - 1, MOST_STAGES = 4096, MOST_TURNS = 1 << 25, MOST_DRAWN = 20000 };

#define AT(field) offsetof(simulate_options, field)
static const option_row rows[] = {
    {OPTION_HEADING, .help = "Pipeline:"},
    {OPTION_WHOLE, 0, "stages", "N", AT(stages), .low = 1, .help = "devices, each of which has a stage of the model (default 4)"},
    {OPTION_WHOLE, 0, "microbatches", "N", AT(microbatches), .low = 1, .help = "into which a batch is cut (default: twice the stages)"},
    {OPTION_CHOICE, 0, "schedule", "NAME", AT(schedule), .choices = schedules, .help = "1f1b, gpipe, zb-h1 or interleaved (default: each of them)"},
    {OPTION_WHOLE, 0, "chunks", "N", AT(chunks), .low = 1, .help = "of each device, with interleaved (default 2)"},
    {OPTION_HEADING, .help = "Times of a micro-batch:"},
    {OPTION_POSITIVE, 0, "forward", "MS", AT(milliseconds[CLT_TURN_FORWARD]), .help = "through a stage, in milliseconds (default 10)"},
    {OPTION_NOT_NEGATIVE, 0, "backward", "MS", AT(milliseconds[CLT_TURN_BACKWARD]), .help = "gradients of activations (default: as long as forward)"},
    {OPTION_NOT_NEGATIVE, 0, "weights", "MS", AT(milliseconds[CLT_TURN_WEIGHTS]), .help = "gradients of weights (default: as long as forward)"},
    {OPTION_NOT_NEGATIVE, 0, "send", "MS", AT(send), .help = "from a stage to the next, and back (default 0)"},
    {OPTION_TEXT, 0, "factors", "X,X,...", AT(factors), .help = "how many times as long each stage takes (default: 1 for all)"},
    {OPTION_HEADING, .help = "Output:"},
    {OPTION_TEXT, 0, "svg", "FILE", AT(svg), .help = "a picture of the step, time by device; of one schedule"},
    {OPTION_OPTIONAL, 0, "json", "FILE", SHARED_AT(json), .standard = "-", .help = "one JSON object on stdout, or in FILE"},
    {OPTION_FLAG, 'h', "help", NULL, SHARED_AT(help), .help = "this text"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_help(void) {
    help_print(stdout, "Usage: " PROGRAM " simulate [options]\n"
                       "\n"
                       "Replays a training step of a pipeline (cltrain-train --pipeline) by given times: how long it takes, which part of\n"
                       "that the devices wait, and how many micro-batches' activations one of them keeps at most. A chunk takes its part\n"
                       "of a stage's time; sends take none of a device's. Nothing is run.\n");
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nExit status: 0 done; 1 it failed; 2 usage error.\n");
}

/* A schedule, simulated. */
typedef struct outcome {
    clt_pipeline_options options;
    clt_turn *turns; /* [stages, n] */
    size_t n;
    clt_simulation result;
} outcome;

static int parse_factors(const simulate_options *o, double *factors) {
    int64_t n = 0;
    for (int64_t i = 0; i < o->stages; i++) factors[i] = 1;
    for (const char *at = o->factors; at && *at;) {
        char part[64];
        size_t length = strcspn(at, ",");
        snprintf(part, sizeof part, "%.*s", (int)(length < sizeof part ? length : sizeof part - 1), at);
        if (n == o->stages || !number_real(part, &factors[n]) || !(factors[n] > 0) || factors[n] > 1e6) {
            n = -1;
            break;
        }
        n++;
        at += length + (at[length] == ',');
    }
    if (!o->factors || n == o->stages) return 0;
    return usage_error("--factors '%s': expected a number above 0 for each of the %lld stages, with commas between them", o->factors, (long long)o->stages);
}

/* A chunk's part of its stage. */
static void fill_times(const simulate_options *o, const double *factors, int chunks, clt_stage_times *times) {
    for (int64_t i = 0; i < o->stages * chunks; i++) {
        double part = factors[i % o->stages] / chunks / 1000;
        times[i].send = o->send / 1000;
        for (int k = 0; k < CLT_TURN_KINDS; k++) times[i].seconds[k] = o->milliseconds[k] * part;
    }
}

static int simulate(const simulate_options *o, const double *factors, outcome *made) {
    int chunks = made->options.schedule == CLT_PIPELINE_INTERLEAVED ? made->options.chunks : 1;
    clt_stage_times *times = calloc((size_t)(o->stages * chunks), sizeof *times);
    made->n = clt_simulate_turns(&made->options);
    if (made->n && o->svg) made->turns = calloc((size_t)o->stages * made->n, sizeof *made->turns);
    if (!times || (made->n && o->svg && !made->turns)) {
        free(times);
        return run_error("no memory for %lld stages", (long long)o->stages);
    }
    fill_times(o, factors, chunks, times);
    clt_status status = clt_simulate_pipeline(&made->options, times, made->turns, &made->result);
    free(times);
    return status < 0 ? library_error(status, "simulate") : 0;
}

/* ---- telling ---- */

static void print_text(const simulate_options *o, const outcome *made, int n) {
    printf("%lld stages, %lld micro-batches: forward %g ms, backward %g + %g ms, sending %g ms\n\n", (long long)o->stages, (long long)o->microbatches,
           o->milliseconds[CLT_TURN_FORWARD], o->milliseconds[CLT_TURN_BACKWARD], o->milliseconds[CLT_TURN_WEIGHTS], o->send);
    printf("%-12s %12s %9s %10s\n", "schedule", "step ms", "waiting", "in flight");
    for (int i = 0; i < n; i++)
        printf("%-12s %12.3f %7.1f %% %10d\n", clt_pipeline_schedule_name(made[i].options.schedule), 1000 * made[i].result.seconds, 100 * made[i].result.bubble, made[i].result.in_flight);
}

static int write_json(const simulate_options *o, const outcome *made, int n) {
    json_t *document = document_new("simulate"), *list = json_array();
    if (!document || !list) return run_error("no memory for a document");
    json_object_set_new(document, "stages", json_integer(o->stages));
    json_object_set_new(document, "microbatches", json_integer(o->microbatches));
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:i, s:f, s:f, s:i}", "schedule", clt_pipeline_schedule_name(made[i].options.schedule), "chunks", made[i].options.chunks, "step_seconds",
                                              made[i].result.seconds, "bubble", made[i].result.bubble, "in_flight", made[i].result.in_flight));
    json_object_set_new(document, "simulated", list);
    int code = document_write_at(document, o->shared.json);
    json_decref(document);
    return code;
}

/* ---- the picture ---- */

enum { LEFT = 70, WIDTH = 1000, ROW = 30, TOP = 30 };

static void draw_turn(FILE *file, const outcome *made, int stage, const clt_turn *turn) {
    static const char *const classes[CLT_TURN_KINDS] = {"f", "b", "w"};
    double scale = WIDTH / made->result.seconds, x = LEFT + turn->begin * scale, width = turn->seconds * scale;
    int y = TOP + stage * ROW;
    fprintf(file, "<rect class=\"%s%s\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"><title>micro-batch %d, chunk %d: %.3f to %.3f ms</title></rect>\n", classes[turn->kind],
            turn->chunk % 2 ? " odd" : "", x, y, width, ROW - 6, turn->micro, turn->chunk, 1000 * turn->begin, 1000 * (turn->begin + turn->seconds));
    if (width >= 18) fprintf(file, "<text x=\"%.2f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x + width / 2, y + 17, turn->micro);
}

static void draw(FILE *file, const simulate_options *o, const outcome *made) {
    int height = TOP + (int)o->stages * ROW;
    fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", LEFT + WIDTH + 10, height + 10);
    fprintf(file, "<style>.f{fill:#8ab4e8}.b{fill:#f2b36b}.w{fill:#9fd19a}.odd{fill-opacity:.6}rect{stroke:#fff;stroke-width:.5}.ground{fill:#fff}</style>\n"
                  "<rect class=\"ground\" width=\"100%%\" height=\"100%%\"/>\n");
    fprintf(file, "<text x=\"%d\" y=\"18\">%s: %.3f ms, of which the devices wait %.1f %% (blue: forward, orange: backward%s)</text>\n", LEFT, clt_pipeline_schedule_name(made->options.schedule),
            1000 * made->result.seconds, 100 * made->result.bubble, made->options.schedule == CLT_PIPELINE_ZB_H1 ? ", green: gradients of weights" : "");
    for (int s = 0; s < o->stages; s++) {
        fprintf(file, "<text x=\"10\" y=\"%d\">stage %d</text>\n", TOP + s * ROW + 17, s);
        for (size_t i = 0; i < made->n; i++) draw_turn(file, made, s, &made->turns[(size_t)s * made->n + i]);
    }
    fprintf(file, "</svg>\n");
}

static int write_picture(const simulate_options *o, const outcome *made) {
    output picture = {.file = NULL};
    int code = file_refuse_another("--svg", o->svg, FILE_MARKUP);
    if (!code) code = output_open(&picture, o->svg);
    if (!code) draw(picture.file, o, made);
    if (!code) code = output_commit(&picture);
    output_abort(&picture);
    return code;
}

/* ---- running ---- */

/* What a schedule does not go with is left out, where all are asked for. */
static bool suits(const simulate_options *o, clt_pipeline_schedule schedule) {
    if (o->schedule != OPTION_UNSET) return (int)schedule == o->schedule;
    return schedule != CLT_PIPELINE_INTERLEAVED || o->microbatches % o->stages == 0;
}

static int run(const simulate_options *o, const double *factors) {
    outcome made[SCHEDULES] = {{.turns = NULL}};
    int n = 0, code = 0;
    for (int i = 0; i < SCHEDULES && !code; i++) {
        if (!suits(o, (clt_pipeline_schedule)i)) continue;
        made[n].options = (clt_pipeline_options){.stages = (int)o->stages, .microbatches = (int)o->microbatches, .schedule = (clt_pipeline_schedule)i,
                                                 .chunks = i == CLT_PIPELINE_INTERLEAVED ? (int)o->chunks : 1};
        code = simulate(o, factors, &made[n++]);
    }
    if (!code && o->svg) code = write_picture(o, &made[0]);
    if (!code && o->shared.json) code = write_json(o, made, n);
    else if (!code) print_text(o, made, n);
    for (int i = 0; i < n; i++) free(made[i].turns);
    if (!code && (fflush(stdout) || ferror(stdout))) code = run_error("stdout cannot be written");
    return code;
}

static int check(simulate_options *o) {
    if (o->stages == OPTION_UNSET) o->stages = 4;
    if (o->stages > MOST_STAGES) return usage_error("--stages %lld: expected 1 to %d", (long long)o->stages, MOST_STAGES);
    if (o->microbatches == OPTION_UNSET) o->microbatches = 2 * o->stages;
    if (o->chunks != OPTION_UNSET && o->schedule != OPTION_UNSET && o->schedule != CLT_PIPELINE_INTERLEAVED) return usage_error("--chunks: expected --schedule interleaved");
    if (o->chunks == OPTION_UNSET) o->chunks = o->schedule == OPTION_UNSET || o->schedule == CLT_PIPELINE_INTERLEAVED ? 2 : 1;
    if ((double)o->stages * (double)o->microbatches * (double)o->chunks > MOST_TURNS)
        return usage_error("%lld stages with %lld micro-batches: expected a product up to %d", (long long)o->stages, (long long)o->microbatches, MOST_TURNS / (int)o->chunks);
    for (int k = CLT_TURN_BACKWARD; k < CLT_TURN_KINDS; k++)
        if (o->milliseconds[k] < 0) o->milliseconds[k] = o->milliseconds[CLT_TURN_FORWARD];
    if (!o->svg) return 0;
    if (o->schedule == OPTION_UNSET) return usage_error("--svg: a picture is of one --schedule");
    if (o->stages * o->microbatches * 3 * o->chunks > MOST_DRAWN) return usage_error("--svg: %lld stages with %lld micro-batches are too many to be seen", (long long)o->stages, (long long)o->microbatches);
    return 0;
}

int run_simulate(int argc, char **argv) {
    simulate_options o = {.shared = shared_options_unset(), .stages = OPTION_UNSET, .microbatches = OPTION_UNSET, .chunks = OPTION_UNSET, .schedule = OPTION_UNSET, .milliseconds = {10, -1, -1}};
    int code = option_parse(rows, ROWS, argc, argv, &o, refuse_word);
    if (code) return code;
    if (o.shared.help) {
        print_help();
        return fflush(stdout) ? run_error("stdout cannot be written") : 0;
    }
    code = check(&o);
    if (code) return code;
    double *factors = calloc((size_t)o.stages, sizeof *factors);
    if (!factors) return run_error("no memory for %lld stages", (long long)o.stages);
    code = parse_factors(&o, factors);
    if (!code) code = run(&o, factors);
    free(factors);
    return code;
}
