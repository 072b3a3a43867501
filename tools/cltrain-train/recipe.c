#include "recipe.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/common/numbers.h"
#include "tools/common/recipes.h"
#include "tools/common/shares.h"
#include "option_table.h"

static const char *const schedule_names[] = {"constant", "step", "cosine"};

const char *recipe_schedule_name(int schedule) {
    return schedule_names[schedule];
}

/* Small data needs small batches, to have steps enough; where there are a hundred or so an epoch,
 * larger ones are faster. */
static int64_t choose_batch(const recipe *model, int64_t train_samples) {
    int64_t batch = model->batch_least;
    while (batch < model->batch_most && batch * 128 < train_samples) batch *= 2;
    return batch;
}

static void whole_default(int64_t *value, int64_t standard) {
    if (*value == OPTION_UNSET) *value = standard;
}

static void real_default(double *value, double standard) {
    if (isnan(*value)) *value = standard;
}

static int check_optimizer(const options *given) {
    bool sgd = given->optimizer == CLT_SGD;
    if (!sgd && !isnan(given->momentum))
        return usage_error("--momentum is of --optimizer sgd, not of %s",
                           optimizer_names[given->optimizer]);
    if (!sgd && given->nesterov)
        return usage_error("--nesterov is of --optimizer sgd, not of %s",
                           optimizer_names[given->optimizer]);
    return 0;
}

static int check_schedule(const options *given) {
    bool step = given->schedule == CLT_SCHEDULE_STEP;
    if (!step && (given->decay_steps != OPTION_UNSET || !isnan(given->decay_factor)))
        return usage_error("--decay-steps and --decay-factor need --schedule step");
    if (given->schedule != CLT_SCHEDULE_COSINE && !isnan(given->min_lr))
        return usage_error("--min-lr needs --schedule cosine");
    return 0;
}

static int complete_optimizer(options *given, const recipe *model) {
    recipe base =
        given->optimizer == OPTION_UNSET ? *model : recipe_of_optimizer((clt_optimizer)given->optimizer);
    given->optimizer = (int)base.optimizer;
    int code = check_optimizer(given);
    if (code) return code;
    real_default(&given->lr, base.lr);
    real_default(&given->momentum, base.momentum);
    real_default(&given->weight_decay, base.weight_decay);
    if (given->nesterov && given->momentum == 0)
        return usage_error("--nesterov needs --momentum above 0");
    given->nesterov = given->nesterov || (base.nesterov && given->momentum > 0);
    return 0;
}

static int complete_schedule(options *given, const recipe *model, int64_t train_samples) {
    if (given->schedule == OPTION_UNSET) given->schedule = (int)model->schedule;
    int code = check_schedule(given);
    if (code) return code;
    int64_t total = recipe_total_steps(given, train_samples);
    whole_default(&given->warmup, 0);
    whole_default(&given->decay_steps, total > 3 ? total / 3 : 1);
    real_default(&given->decay_factor, 0.1);
    real_default(&given->min_lr, 0);
    if (given->schedule == CLT_SCHEDULE_COSINE && given->min_lr > given->lr)
        return usage_error("--min-lr %g is above --lr %g", given->min_lr, given->lr);
    if (given->schedule == CLT_SCHEDULE_COSINE && given->warmup >= total && total > 0)
        return usage_error("--warmup %lld leaves no step of the run's %lld for the cosine",
                           (long long)given->warmup, (long long)total);
    return 0;
}

/* ---- several ranks ---- */

/* A rank's batch: the usual one in as many parts, but no smaller than keeps a processor busy. */
static int64_t choose_part(const recipe *model, int64_t train_samples, int ranks) {
    enum { LEAST_PART = 16 };
    int64_t whole = choose_batch(model, train_samples), part = whole / ranks;
    if (part < LEAST_PART) part = whole < LEAST_PART ? whole : LEAST_PART;
    return part;
}

/* The whole batch, in proportion to each_share. */
static int share_whole(options *given, int ranks) {
    double *weights = calloc((size_t)ranks, sizeof *weights);
    if (!weights) return run_error("no memory for the shares of %d ranks", ranks);
    for (int r = 0; r < ranks; r++) weights[r] = (double)given->each_share[r];
    share_out(given->whole_batch, weights, ranks, given->each_share);
    free(weights);
    return 0;
}

/* "8,24,16,16", of all ranks that the job began with. Which of them were lost before this is not known: those who are left have the same. */
static int read_shares(options *given, int64_t train_samples, int ranks) {
    const char *at = given->shares;
    int n = 0;
    for (bool more = true; more; n++) {
        char word[24];
        size_t length = strcspn(at, ",");
        int64_t share = 0;
        if (length < sizeof word) memcpy(word, at, length), word[length] = '\0';
        if (length >= sizeof word || !number_whole(word, 1, train_samples, &share))
            return usage_error("--shares %s: expected whole numbers from 1 to the %lld training samples, such as 8,24",
                               given->shares, (long long)train_samples);
        if (n < ranks) given->each_share[n] = share;
        given->whole_batch += share;
        more = at[length] == ',';
        at += length + more;
    }
    if (n != given->ranks)
        return usage_error("--shares %s: %d number%s for %d rank%s", given->shares, n, PLURAL(n), given->ranks, PLURAL(given->ranks));
    if (given->whole_batch > train_samples)
        return usage_error("--shares %s: more than the %lld training samples", given->shares, (long long)train_samples);
    if (ranks == given->ranks) return 0;
    for (int r = 0; r < ranks; r++) given->each_share[r] = 1;
    return share_whole(given, ranks);
}

/* Each rank's own --batch. One whole batch at least must be full. It is as large as with those that were lost before this. */
static int shares_of_batches(options *given, const recipe *model, int64_t train_samples, int ranks) {
    int begun = given->ranks, r = 0;
    if (train_samples < begun)
        return usage_error("%d ranks are more than the %lld training samples", begun, (long long)train_samples);
    do {
        int64_t batch = given->each_batch[r];
        if (batch < 1) batch = choose_part(model, train_samples, begun); /* not given */
        if (batch > train_samples / begun) batch = train_samples / begun;
        given->each_share[r] = batch;
        given->whole_batch += batch;
    } while (++r < ranks);
    given->whole_batch = given->whole_batch * begun / ranks;
    return ranks < begun ? share_whole(given, ranks) : 0;
}

static int complete_batch(options *given, const recipe *model, int64_t train_samples, int ranks) {
    given->whole_batch = 0;
    given->each_share = calloc((size_t)ranks, sizeof *given->each_share);
    if (!given->each_share) return run_error("no memory for the shares of %d ranks", ranks);
    real_default(&given->bucket_mb, 0);
    whole_default(&given->drift_steps, 100);
    return given->shares ? read_shares(given, train_samples, ranks) : shares_of_batches(given, model, train_samples, ranks);
}

int recipe_complete(options *given, int64_t train_samples, int rank, int ranks) {
    const recipe *model = recipe_of_model(given->model_spec.id);
    whole_default(&given->epochs, 10);
    whole_default(&given->accumulate, 1);
    int shared = complete_batch(given, model, train_samples, ranks);
    if (shared) return shared;
    given->batch = given->each_share[rank];
    if (recipe_epoch_steps(given, train_samples) == 0)
        return usage_error(
            "--accumulate %lld: %lld training samples are fewer than so many batches of %lld",
            (long long)given->accumulate, (long long)train_samples, (long long)given->whole_batch);
    real_default(&given->clip_norm, 0);
    real_default(&given->clip_value, 0);
    int code = complete_optimizer(given, model);
    return code ? code : complete_schedule(given, model, train_samples);
}

int64_t recipe_epoch_steps(const options *given, int64_t train_samples) {
    return train_samples / given->whole_batch / given->accumulate;
}

int64_t recipe_total_steps(const options *given, int64_t train_samples) {
    if (given->steps != OPTION_UNSET) return given->steps;
    return given->epochs * recipe_epoch_steps(given, train_samples);
}

clt_train_options recipe_train_options(const options *given, int64_t train_samples,
                                       clt_tensor *output) {
    int64_t total = recipe_total_steps(given, train_samples);
    clt_train_options wanted = {
        .optimizer = (clt_optimizer)given->optimizer,
        .lr = given->lr > 0 ? (float)given->lr : CLT_ZERO,
        .momentum = (float)given->momentum,
        .nesterov = given->nesterov,
        .weight_decay = given->weight_decay > 0 ? (float)given->weight_decay : CLT_ZERO,
        .schedule = (clt_schedule)given->schedule,
        .warmup_steps = given->warmup,
        .clip_norm = (float)given->clip_norm,
        .average = given->ema > 0 ? (float)given->ema : 0,
        .precision = options_precision(given),
        .recompute = (clt_recompute)given->recompute,
        .offload = (clt_offload)given->offload,
        .offload_folder = given->offload_folder,
        .clip_value = (float)given->clip_value,
        .on_nonfinite = (clt_nonfinite)given->on_nonfinite,
        .locate_nonfinite = given->locate_nan,
        .accumulate = (int)given->accumulate,
        .seed = (uint64_t)given->seed,
        .output = output,
        .compress = given->compress_options,
        .sync_batch_norm = given->sync_batch_norm,
        .shard = (clt_shard)given->shard,
        .pipeline = given->pipeline_spec.options,
        .drift_steps = given->drift_steps == 0 ? -1 : given->drift_steps,
        .bucket_bytes = (size_t)(given->bucket_mb * (1 << 20)),
        .recoverable = given->ranks > 1 && given->on_failure == ON_FAILURE_SHRINK,
    };
    if (given->pipeline_spec.split[0]) wanted.pipeline.split = given->pipeline_spec.split;
    if (wanted.schedule == CLT_SCHEDULE_COSINE) {
        wanted.total_steps = total > 0 ? total : 1;
        wanted.min_lr = (float)given->min_lr;
    } else if (wanted.schedule == CLT_SCHEDULE_STEP) {
        wanted.decay_steps = given->decay_steps;
        wanted.decay_factor = (float)given->decay_factor;
    }
    return wanted;
}

void recipe_print(FILE *file) {
    fprintf(file, "Defaults, unless --optimizer is given:\n");
    for (int i = 0; i < MODEL_COUNT; i++) {
        const recipe *r = recipe_of_model((model_id)i);
        char momentum[48] = "", decay[48] = "", most[32] = "";
        if (r->momentum > 0) snprintf(momentum, sizeof momentum, ", %smomentum %g", r->nesterov ? "Nesterov " : "", r->momentum);
        if (r->weight_decay > 0) snprintf(decay, sizeof decay, ", weight decay %g", r->weight_decay);
        if (r->batch_most > r->batch_least) snprintf(most, sizeof most, " to %lld", (long long)r->batch_most);
        help_print(file, "  %-13s %s, lr %g%s%s%s%s, batch %lld%s\n", model_name((model_id)i), optimizer_names[r->optimizer], r->lr, momentum, decay,
                 r->schedule ? ", " : "", r->schedule ? schedule_names[r->schedule] : "", (long long)r->batch_least, most);
    }
    fprintf(file, "Batches are larger where there is more data.\n");
}
