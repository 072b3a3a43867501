/* Trains a GPT on the bytes of a text, at three lengths in turn, then goes on writing it: gpt FILE [STEPS] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpt.h"

#define TRY(call)                                         \
    if ((call) < 0) {                                     \
        fprintf(stderr, "gpt: %s\n", clt_error_detail()); \
        goto done;                                        \
    }

enum { BATCH = 16, WRITTEN = 300 };

static const unsigned char *read_text(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    unsigned char *text = NULL;
    if (file && fseek(file, 0, SEEK_END) == 0 && ftell(file) > GPT_LONGEST) {
        *length = (size_t)ftell(file);
        text = malloc(*length);
        rewind(file);
        if (text && fread(text, 1, *length, file) != *length) free(text), text = NULL;
    }
    if (file) fclose(file);
    return text;
}

/* Windows of the text that begin anywhere. */
static clt_batch windows(const unsigned char *text, size_t bytes, int64_t length) {
    static int32_t tokens[BATCH * GPT_LONGEST], next[BATCH * GPT_LONGEST];
    for (int64_t s = 0; s < BATCH; s++) {
        size_t from = (size_t)((double)rand() / ((double)RAND_MAX + 1) * (double)(bytes - (size_t)length));
        for (int64_t t = 0; t < length; t++) {
            tokens[s * length + t] = text[from + (size_t)t];
            next[s * length + t] = text[from + (size_t)t + 1];
        }
    }
    return (clt_batch){.samples = BATCH, .n_fields = 2,
                       .fields = {{CLT_I32, CLT_SHAPE(BATCH, length), tokens}, {CLT_I32, CLT_SHAPE(BATCH, length), next}}};
}

static int draw(const float *logits) {
    double sum = 0, chosen, largest = -INFINITY;
    for (int w = 0; w < GPT_WORDS; w++) largest = fmax(largest, (double)logits[w]);
    for (int w = 0; w < GPT_WORDS; w++) sum += exp((double)logits[w] - largest);
    chosen = sum * rand() / RAND_MAX;
    for (int w = 0; w < GPT_WORDS; w++)
        if ((chosen -= exp((double)logits[w] - largest)) <= 0) return w;
    return ' ';
}

static clt_status write_on(clt_trainer *trainer, clt_tensor *logits) {
    static float found[GPT_LONGEST * GPT_WORDS];
    int32_t tokens[GPT_LONGEST] = {'\n'};
    int n = 1;
    for (int i = 0; i < WRITTEN; i++) {
        clt_batch batch = {.samples = 1, .n_fields = 1, .fields = {{CLT_I32, CLT_SHAPE(1, n), tokens}}};
        clt_status status = clt_trainer_predict(trainer, logits, &batch, found, (size_t)n * GPT_WORDS);
        if (status < 0) return status;
        int32_t word = draw(found + (n - 1) * GPT_WORDS);
        putchar(word);
        if (n == GPT_LONGEST) for (int t = 1; t < n; t++) tokens[t - 1] = tokens[t];
        else n++;
        tokens[n - 1] = word;
    }
    putchar('\n');
    return CLT_OK;
}

int main(int argc, char **argv) {
    static const int64_t lengths[] = {32, 48, 64};
    int result = 1, steps = argc > 2 ? atoi(argv[2]) : 600;
    size_t bytes = 0;
    const unsigned char *text = argc > 1 ? read_text(argv[1], &bytes) : NULL;
    clt_device *device = NULL;
    clt_trainer *trainer = NULL;
    gpt model = {0};
    if (!text) {
        fprintf(stderr, "usage: gpt FILE [STEPS]; FILE is a text of more than %d bytes\n", GPT_LONGEST);
        return 2;
    }
    TRY(clt_device_open(&device, NULL));
    TRY(gpt_build(&model, BATCH));
    clt_parameter_rule no_decay[] = {{.pattern = "*.bias", .weight_decay = -1}, {.pattern = "*norm*", .weight_decay = -1}};
    clt_train_options options = {.optimizer = CLT_ADAMW, .lr = 2e-3f, .weight_decay = 0.1f, .rules = no_decay, .n_rules = 2,
                                 .clip_norm = 1, .schedule = CLT_SCHEDULE_COSINE, .warmup_steps = steps / 10, .total_steps = steps,
                                 .output = model.logits};
    TRY(clt_trainer_create(&trainer, device, model.loss, &options));
    TRY(gpt_set_positions(trainer));
    for (int step = 1; step <= steps; step++) {
        clt_metrics metrics;
        clt_batch batch = windows(text, bytes, lengths[step % 3]);
        TRY(clt_trainer_step(trainer, &batch));
        if (step % 50) continue;
        TRY(clt_trainer_train_metrics(trainer, &metrics, true));
        printf("step %4d: loss %.4f, accuracy %.4f\n", step, metrics.loss, metrics.accuracy);
    }
    TRY(write_on(trainer, model.logits));
    result = 0;
done:
    clt_trainer_destroy(trainer), clt_graph_destroy(model.graph), clt_device_close(device);
    free((void *)text);
    return result;
}
