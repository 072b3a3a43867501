/* Options with their defaults and what they must satisfy; the learning rate's schedule. */
#include <math.h>

#include "runtime/train/compress.h"

enum { DEFAULT_BUCKET_BYTES = 4 << 20, DEFAULT_DRIFT_STEPS = 100 };

static clt_status fail_option(const char *name, double value, const char *wanted) {
    return clt_fail(CLT_E_INVALID, "option %s = %g: it must be %s", name, value, wanted);
}

static clt_status check_numbers(const clt_train_options *o) {
    const struct {
        const char *name;
        float value, low, high; /* low <= value < high */
    } ranges[] = {
        {"lr", o->lr, 0, INFINITY},           {"momentum", o->momentum, 0, 1},
        {"beta1", o->beta1, 0, 1},            {"beta2", o->beta2, 0, 1},
        {"eps", o->eps, 0, INFINITY},         {"weight_decay", o->weight_decay, 0, INFINITY},
        {"min_lr", o->min_lr, 0, INFINITY},   {"decay_factor", o->decay_factor, 0, INFINITY},
        {"clip_value", o->clip_value, 0, INFINITY}, {"clip_norm", o->clip_norm, 0, INFINITY},
        {"average", o->average, 0, 1},
    };
    for (size_t i = 0; i < CLT_COUNT_OF(ranges); i++)
        if (!(ranges[i].value >= ranges[i].low && ranges[i].value < ranges[i].high))
            return fail_option(ranges[i].name, (double)ranges[i].value,
                               ranges[i].high == 1 ? "in [0, 1)" : "finite and not negative");
    return CLT_OK;
}

/* Options that are other optimizers' own. */
static bool is_said(float value) {
    return value != 0 || signbit(value);
}

static clt_status check_known(const clt_train_options *given) {
    static const char *const names[] = {"SGD", "Adam", "AdamW"};
    bool sgd = given->optimizer == CLT_SGD;
    const struct {
        const char *name;
        bool said, known;
    } options[] = {
        {"momentum", is_said(given->momentum), sgd}, {"nesterov", given->nesterov, sgd},     {"beta1", is_said(given->beta1), !sgd},
        {"beta2", is_said(given->beta2), !sgd},      {"eps", is_said(given->eps), !sgd},
    };
    for (size_t i = 0; i < CLT_COUNT_OF(options); i++)
        if (options[i].said && !options[i].known)
            return clt_fail(CLT_E_INVALID, "option %s: %s does not have it; %s", options[i].name, names[given->optimizer], sgd ? "Adam and AdamW do" : "SGD does");
    return CLT_OK;
}

static clt_status check_rules(const clt_train_options *o) {
    if (o->n_rules < 0 || o->n_rules > CLT_MAX_PARAMETER_RULES || (o->n_rules > 0 && !o->rules))
        return clt_fail(CLT_E_INVALID, "option n_rules = %d: it must be from 0 to %d, and rules that many", o->n_rules, CLT_MAX_PARAMETER_RULES);
    for (int i = 0; i < o->n_rules; i++) {
        const clt_parameter_rule *rule = &o->rules[i];
        if (!rule->pattern || !rule->pattern[0]) return clt_fail(CLT_E_INVALID, "option rules[%d].pattern: it must be a name or a pattern", i);
        if (!(rule->lr_factor >= 0 && rule->lr_factor < INFINITY))
            return clt_fail(CLT_E_INVALID, "option rules[%d].lr_factor = %g: it must be finite and not negative", i, (double)rule->lr_factor);
        if (!(fabsf(rule->weight_decay) < INFINITY))
            return clt_fail(CLT_E_INVALID, "option rules[%d].weight_decay = %g: it must be finite", i, (double)rule->weight_decay);
    }
    return CLT_OK;
}

static clt_status check_schedule(const clt_train_options *o) {
    if ((unsigned)o->schedule > CLT_SCHEDULE_FUNCTION) return fail_option("schedule", (int)o->schedule, "one of clt_schedule");
    if (o->warmup_steps < 0) return fail_option("warmup_steps", (double)o->warmup_steps, "0 or more");
    if ((o->schedule == CLT_SCHEDULE_FUNCTION) != (o->lr_factor != NULL))
        return clt_fail(CLT_E_INVALID, "option lr_factor goes with CLT_SCHEDULE_FUNCTION: it must be given with that schedule, and with no other");
    if (o->schedule == CLT_SCHEDULE_FUNCTION && o->warmup_steps) return fail_option("warmup_steps", (double)o->warmup_steps, "0 with a function, which warms up itself");
    if (o->schedule == CLT_SCHEDULE_STEP && o->decay_steps < 1)
        return fail_option("decay_steps", (double)o->decay_steps, "1 or more with the step schedule");
    if (o->schedule == CLT_SCHEDULE_COSINE && o->total_steps <= o->warmup_steps)
        return fail_option("total_steps", (double)o->total_steps, "more than warmup_steps with the cosine schedule");
    return CLT_OK;
}

clt_status clt_train_options_resolve(const clt_train_options *given, clt_train_options *resolved) {
    clt_train_options o = given ? *given : (clt_train_options){0};
    if ((unsigned)o.optimizer > CLT_ADAMW) return fail_option("optimizer", (int)o.optimizer, "one of clt_optimizer");
    CLT_TRY(check_known(&o));
    o.lr = clt_or_default(o.lr, o.optimizer == CLT_SGD ? 1e-2f : 1e-3f);
    o.beta1 = clt_or_default(o.beta1, 0.9f);
    o.beta2 = clt_or_default(o.beta2, 0.999f);
    o.eps = clt_or_default(o.eps, 1e-8f);
    o.weight_decay = clt_or_default(o.weight_decay, o.optimizer == CLT_ADAMW ? 1e-2f : 0.0f);
    if (o.weight_decay < 0) o.weight_decay = 0;
    o.decay_factor = clt_or_default(o.decay_factor, 0.1f);
    o.accumulate = o.accumulate ? o.accumulate : 1;
    if (o.accumulate < 1) return fail_option("accumulate", o.accumulate, "1 or more");
    if (o.pipeline.stages < 0 || o.pipeline.microbatches < 0) return fail_option("pipeline.stages or pipeline.microbatches", CLT_MIN(o.pipeline.stages, o.pipeline.microbatches), "0 or more");
    if (o.pipeline.chunks < 0) return fail_option("pipeline.chunks", o.pipeline.chunks, "0 or more");
    if ((unsigned)o.pipeline.schedule > CLT_PIPELINE_INTERLEAVED) return fail_option("pipeline.schedule", (int)o.pipeline.schedule, "one of clt_pipeline_schedule");
    CLT_TRY(clt_compress_resolve(&o.compress));
    if (!o.drift_steps) o.drift_steps = DEFAULT_DRIFT_STEPS;
    if (!o.bucket_bytes) o.bucket_bytes = DEFAULT_BUCKET_BYTES;
    if ((unsigned)o.shard > CLT_SHARD_PARAMETERS) return fail_option("shard", (int)o.shard, "one of clt_shard");
    if (o.shard && o.compress.method)
        return clt_fail(CLT_E_INVALID, "options shard and compress exclude each other");
    if (o.shard && o.recoverable)
        return clt_fail(CLT_E_INVALID, "options shard and recoverable exclude each other");
    if (o.shard && o.average != 0) return clt_fail(CLT_E_INVALID, "options shard and average exclude each other");
    if ((unsigned)o.offload > CLT_OFFLOAD_ALL) return fail_option("offload", (int)o.offload, "one of clt_offload");
    if (o.offload_folder && o.offload == CLT_OFFLOAD_NONE) return clt_fail(CLT_E_INVALID, "option offload_folder goes with offload");
    if ((unsigned)o.recompute > CLT_RECOMPUTE_ALL) return fail_option("recompute", (int)o.recompute, "one of clt_recompute");
    if ((unsigned)o.precision > CLT_PRECISION_F16) return fail_option("precision", (int)o.precision, "one of clt_precision");
    if (o.precision == CLT_PRECISION_F16 && o.on_nonfinite != CLT_NONFINITE_SKIP)
        return clt_fail(CLT_E_INVALID, "option precision f16 needs on_nonfinite skip: an update whose gradients overflow is left out, and the loss's scale halved");
    if ((unsigned)o.on_nonfinite > CLT_NONFINITE_STOP)
        return fail_option("on_nonfinite", (int)o.on_nonfinite, "one of clt_nonfinite");
    if (o.locate_nonfinite && o.on_nonfinite == CLT_NONFINITE_IGNORE)
        return clt_fail(CLT_E_INVALID, "option locate_nonfinite goes with on_nonfinite skip or stop, which keep the parameters");
    if (o.nesterov && o.momentum == 0) return fail_option("momentum", 0, "above 0 with nesterov");
    CLT_TRY(check_numbers(&o));
    CLT_TRY(check_schedule(&o));
    CLT_TRY(check_rules(&o));
    *resolved = o;
    return CLT_OK;
}

float clt_schedule_lr(const clt_train_options *o, int64_t step) {
    const double pi = 3.14159265358979323846;
    double lr = o->lr;
    if (o->schedule == CLT_SCHEDULE_FUNCTION) return (float)(lr * (double)o->lr_factor(step, o->lr_factor_user));
    if (step < o->warmup_steps) return (float)(lr * (double)(step + 1) / (double)o->warmup_steps);
    int64_t since = step - o->warmup_steps;
    if (o->schedule == CLT_SCHEDULE_STEP)
        return (float)(lr * pow(o->decay_factor, (double)(since / o->decay_steps)));
    if (o->schedule == CLT_SCHEDULE_COSINE) {
        double progress = CLT_MIN(1.0, (double)since / (double)(o->total_steps - o->warmup_steps));
        return (float)(o->min_lr + 0.5 * (lr - o->min_lr) * (1 + cos(pi * progress)));
    }
    return (float)lr;
}
