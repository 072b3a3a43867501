#include "job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/cltrain.h>
#include <cltrain/experimental/bundle.h>

#include "agreement.h"
#include "data_spec.h"
#include "devices.h"
#include "fingerprint.h"
#include "finetune.h"
#include "model_file.h"
#include "recipe.h"
#include "report.h"
#include "run.h"
#include "stages.h"
#include "summary.h"
#include "task.h"
#include "threads.h"
#include "tools/common/message.h"
#include "tools/survey/output.h"

static void announce(const report *r, const data_parts *data) {
    int stages = r->options->pipeline_spec.options.stages;
    char others[64] = "", frozen[80] = "", samples[320], validation[48] = "";
    task_describe(data, samples, sizeof samples);
    if (r->ranks > 1 && !r->options->pipeline) snprintf(others, sizeof others, " on each of %d ranks", r->ranks);
    else if (stages && r->ranks > stages) snprintf(others, sizeof others, ", the first of %d pipelines of %d stages", r->ranks / stages, stages);
    else if (r->ranks > 1) snprintf(others, sizeof others, ", the first of %d stages", r->ranks);
    if (r->options->freeze) snprintf(frozen, sizeof frozen, ", %lld of them trained", (long long)r->trained_parameters);
    if (r->options->lora) snprintf(frozen, sizeof frozen, ", and %lld of adapters, which are trained", (long long)r->trained_parameters);
    message_line("Model   %s, %lld parameter%s%s", r->options->model, (long long)r->parameters, PLURAL(r->parameters), frozen);
    if (r->validation_samples) snprintf(validation, sizeof validation, ", %lld validation", (long long)r->validation_samples);
    message_line("Data    %s, %lld training%s and %lld %s samples", r->options->data, (long long)r->train_samples, validation, (long long)r->test_samples,
                 data->vocabulary ? r->held_out : "test");
    message_line("        %s", samples);
    message_line("Device  %s%s", r->device->name, others);
}

static int print_report(const report *r) {
    message_wipe();
    if (!r->options->json) return report_print_text(r, stdout) ? 0 : output_failed(stdout);
    output o;
    int code = output_open(&o, r->options->json);
    if (code) return code;
    if (report_print_json(r, o.file)) return output_commit(&o);
    code = output_failed(o.file);
    output_abort(&o);
    return code;
}

static int summarize(const options *given, const data_parts *data, const task *made, clt_device *device) {
    clt_train_options training = recipe_train_options(given, clt_dataset_samples(data->train), made->output);
    return summary_print(given, made, device, &training);
}

static int train_on(const options *given, const data_parts *data, const task *made,
                    clt_device *device, ranks *group) {
    report result = {
        .options = given,
        .device = clt_device_get_info(device),
        .preprocessing = data->preprocessing,
        .classification = made->classification,
        .tokens = data->vocabulary > 0,
        .standardized = data->standardized,
        .parameters = clt_graph_parameter_count(made->graph),
        .train_samples = clt_dataset_samples(data->train),
        .test_samples = clt_dataset_samples(data->test),
        .train_hash = ranks_lead(group) ? fingerprint(data->train) : 0,
        .train = report_no_metrics(),
        .test = report_no_metrics(),
        .validation = report_no_metrics(),
        .validation_samples = data->validation ? clt_dataset_samples(data->validation) : 0,
        .held_out = data->vocabulary || data->validation ? "validation" : "test",
        .samples_per_second = NAN,
        .epoch_seconds = NAN,
        .first_step_seconds = NAN,
        .kernel_seconds = NAN,
        .total_seconds = NAN,
        .ranks = group->size,
    };
    int code = finetune_freeze(made->graph, given->freeze);
    if (!code) code = finetune_adapt(made->graph, given);
    if (code) return code;
    result.trained_parameters = clt_graph_parameter_count(made->graph);
    result.profile.wanted = given->profile != NULL && !given->pipeline && ranks_lead(group);
    announce(&result, data);
    if (given->summary) return ranks_lead(group) ? summarize(given, data, made, device) : 0;
    code = run_training(&result, given, data, made, device, group);
    if ((code == 0 || code > EXIT_SIGNAL) && ranks_lead(group) && !given->lr_find && !given->bundle) {
        int printed = print_report(&result);
        if (!printed && given->profile && given->pipeline) printed = stages_report(&result.timed, given->profile, given->json ? stderr : stdout);
        if (!printed) printed = profiler_report(&result.profile, given->profile, given->json ? stderr : stdout);
        if (!code) code = printed;
    }
    if (!code && given->epochs != 0 && result.skipped && result.test.samples && !isfinite(result.test.loss))
        code = run_error("the %s loss is not finite, and %lld of %lld updates were left out. " DIVERGED, result.held_out, (long long)result.skipped, (long long)result.steps);
    profiler_free(&result.profile);
    free(result.confusion);
    free(result.stages);
    free(result.timed.turns);
    return code;
}

/* What the file that training begins with was trained on decides how the data is read. */
static int open_data(data_parts *data, const options *given, ranks *group) {
    clt_preprocessing *trained_on = NULL;
    int code = model_file_read(&trained_on, given, group);
    if (!code && given->no_standardize && clt_preprocessing_standardizes(trained_on))
        code = usage_error("--no-standardize: the model was trained on standardized data, which --resume, --init and FILE.onnx go on with");
    if (!code)
        code = data_open(data, &given->data_spec, task_wants_regression(given), !given->no_standardize && given->model_spec.id != MODEL_ONNX, given->seed, trained_on);
    if (code && trained_on && given->init) message_line("--init reads the data as the model's were; --init-matching reads them by themselves, and takes the tensors that fit");
    clt_preprocessing_destroy(trained_on);
    return code;
}

/* cltrain-offline: what was compiled for it becomes a bundle, of several ranks that of the one that leads. */
static int train_and_keep(const options *given, const data_parts *data, const task *made, clt_device *device, ranks *group) {
    clt_status status = given->bundle ? clt_bundle_begin(device) : CLT_OK;
    int code = status < 0 ? library_error(status, "making a bundle") : train_on(given, data, made, device, group);
    if (code || !given->bundle || !ranks_lead(group)) return code;
    status = clt_bundle_write(device, given->bundle);
    return status < 0 ? library_error(status, "writing the bundle") : 0;
}

/* Stages of a pipeline have the same batches, as one process has; of several pipelines each has its own, and is what a rank is without. */
static int check_stages(options *given, const ranks *group) {
    int *stages = &given->pipeline_spec.options.stages;
    if (group->size < 2) return usage_error("--pipeline: there is one rank; expected --devices A,B,..., or cltrain-run -n N");
    if (!*stages) *stages = group->size;
    if (group->size % *stages)
        return usage_error("--pipeline stages=%d: there are %d ranks: expected as many, or a multiple of them, which makes several pipelines", *stages, group->size);
    for (int r = 0; r < group->size; r++) {
        int first = r - r % *stages;
        if (given->each_batch[r] != given->each_batch[first]) return usage_error("--pipeline: ranks %d and %d, of one pipeline, differ in --batch", first, r);
    }
    given->ranks = group->size / *stages;
    for (int i = 0; i < given->ranks; i++) given->each_batch[i] = given->each_batch[i * *stages];
    return 0;
}

/* `device`: NULL opens the one of the options. */
static int train_on_data(const options *as_given, const data_parts *data, ranks *group, clt_device *device) {
    task made = {0};
    clt_device *opened = NULL;
    options given = *as_given; /* to be completed */
    bool piped = given.pipeline != NULL;
    given.ranks = group->begun;
    int code = agreement_begin(&given, data, group);
    if (!code && piped) code = check_stages(&given, group);
    if (!code) code = recipe_complete(&given, clt_dataset_samples(data->train), ranks_part(group, &given), ranks_parts(group, &given));
    if (!code) code = task_build(&made, &given, data);
    if (!code && !device) code = device_open(&opened, given.device);
    if (!code) code = train_and_keep(&given, data, &made, device ? device : opened, group);
    task_free(&made);
    clt_device_close(opened);
    free(given.each_batch);
    free(given.each_share);
    return code;
}

/* Ranks that are threads have an engine of their own. */
static int check_engine(const options *given) {
    const char *engine = getenv("CLTRAIN_COMM_ENGINE");
    if (!given->devices || !engine || !*engine || !strcmp(engine, "auto") || !strcmp(engine, "local")) return 0;
    return usage_error("--devices: its ranks are threads of this process, which CLTRAIN_COMM_ENGINE=%.64s does not serve; leave one of them out", engine);
}

static int train_together(const options *given, ranks *group) {
    data_parts data = {0};
    int code = open_data(&data, given, group);
    if (!code) code = given->devices ? train_on_threads(given, &data, train_on_data) : train_on_data(given, &data, group, NULL);
    data_close(&data);
    return code;
}

int job_run(const options *given) {
    ranks group = {.size = 1, .begun = 1};
    int code = check_engine(given);
    if (!code && given->devices) unsetenv("CLTRAIN_COMM_ENGINE");
    if (!code && given->memory_limit) setenv("CLTRAIN_MEMORY_LIMIT", given->memory_limit, 1);
    if (!code) code = ranks_join(&group, given);
    if (!code && given->devices && group.size > 1)
        code = usage_error("--devices: this is rank %d of %d that a launcher has started, which has one device: cltrain-run --devices gives each its own",
                           group.rank, group.size);
    if (!code) do code = train_together(given, &group);
        while (code == RANKS_MEET_ANEW);
    ranks_leave(&group);
    return code;
}
