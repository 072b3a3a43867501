/* Text as samples of a language model. */
#include <string.h>

#include "runtime/base/source.h"
#include "runtime/data/data.h"

/* The header of llm.c's files of tokens: 256 i32 (magic, version, count, zeros), then u16 ids; all little-endian. */
enum { SHARD_MAGIC = 20240520, SHARD_VERSION = 1, SHARD_HEADER_WORDS = 256 };

typedef struct tokens {
    int32_t *ids;
    size_t count;
} tokens;

clt_status clt_dataset_tokens(clt_dataset **dataset, const int32_t *ids, int64_t count, int64_t context) {
    if (!dataset || !ids || context < 1) return clt_fail(CLT_E_INVALID, "clt_dataset_tokens: dataset or ids is NULL, or the context is below 1");
    if (count <= context)
        return clt_fail(CLT_E_RANGE, "%lld tokens: a sample of context %lld needs at least %lld", (long long)count, (long long)context, (long long)context + 1);
    clt_dataset *d = NULL;
    clt_status status;
    CLT_TRY_GOTO(clt_dataset_new(&d, (count - 1) / context));
    for (int i = 0; i < 2; i++) {
        CLT_TRY_GOTO(clt_dataset_add(d, CLT_I32, CLT_SHAPE(context), NULL));
        memcpy(d->fields[i].data, ids + i, (size_t)d->samples * d->fields[i].sample_bytes);
    }
    *dataset = d;
    return CLT_OK;
fail:
    clt_dataset_destroy(d);
    return status;
}

/* ---- files ---- */

/* Whole, plain or gzipped. Release with clt_free. */
static clt_status read_all(const char *path, char **text, size_t *bytes) {
    enum { CHUNK = 1 << 20 };
    clt_source *source = NULL;
    size_t capacity = 0, got = CHUNK;
    clt_status status;
    *text = NULL;
    *bytes = 0;
    CLT_TRY(clt_source_open(&source, path));
    while (got == CHUNK) {
        if (capacity - *bytes < CHUNK) {
            capacity = CLT_MAX(capacity + capacity / 2, *bytes + CHUNK);
            char *larger = clt_realloc(*text, capacity);
            if (!larger) {
                status = clt_fail_memory(capacity);
                goto fail;
            }
            *text = larger;
        }
        CLT_TRY_GOTO(clt_source_read(source, *text + *bytes, CHUNK, &got));
        *bytes += got;
    }
    clt_source_close(source);
    return CLT_OK;
fail:
    clt_source_close(source);
    clt_free(*text);
    *text = NULL;
    return status;
}

static uint32_t word_of(const char *bytes, size_t index) {
    const unsigned char *b = (const unsigned char *)bytes + 4 * index;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static bool is_shard(const char *text, size_t bytes) {
    return bytes >= 8 && word_of(text, 0) == SHARD_MAGIC;
}

static clt_status read_shard(tokens *into, const char *bytes, size_t length) {
    const size_t header = 4 * (size_t)SHARD_HEADER_WORDS;
    if (length < header) return clt_fail(CLT_E_FORMAT, "a file of tokens of %zu bytes has no room for its header of %zu", length, header);
    uint32_t version = word_of(bytes, 1), count = word_of(bytes, 2);
    if (version != SHARD_VERSION) return clt_fail(CLT_E_UNSUPPORTED, "a file of tokens of version %u: expected version %d", version, SHARD_VERSION);
    if (length != header + 2 * (size_t)count)
        return clt_fail(CLT_E_FORMAT, "the header tells of %u tokens, which are %zu bytes; the file has %zu", count, header + 2 * (size_t)count, length);
    into->ids = clt_alloc(count * sizeof *into->ids);
    if (!into->ids) return clt_fail_memory(count * sizeof *into->ids);
    for (into->count = 0; into->count < count; into->count++) {
        const unsigned char *b = (const unsigned char *)bytes + header + 2 * into->count;
        into->ids[into->count] = b[0] | b[1] << 8;
    }
    return CLT_OK;
}

static clt_status encode(tokens *into, const clt_tokenizer *tokenizer, const char *text, size_t bytes) {
    CLT_TRY(clt_tokenizer_encode(tokenizer, text, bytes, NULL, 0, &into->count));
    into->ids = clt_alloc(into->count * sizeof *into->ids);
    if (!into->ids) return clt_fail_memory(into->count * sizeof *into->ids);
    return clt_tokenizer_encode(tokenizer, text, bytes, into->ids, into->count, &into->count);
}

static clt_status check_ids(const tokens *t, const clt_tokenizer *tokenizer) {
    int64_t vocabulary = clt_tokenizer_vocabulary(tokenizer);
    for (size_t i = 0; vocabulary && i < t->count; i++)
        if (t->ids[i] >= vocabulary)
            return clt_fail(CLT_E_RANGE, "token %zu is %d: expected ids from 0 to %lld", i, t->ids[i], (long long)vocabulary - 1);
    return CLT_OK;
}

static clt_status read_tokens(tokens *into, const char *path, const clt_tokenizer *tokenizer) {
    char *text;
    size_t bytes;
    CLT_TRY(read_all(path, &text, &bytes));
    clt_status status;
    if (is_shard(text, bytes)) status = read_shard(into, text, bytes);
    else if (tokenizer) status = encode(into, tokenizer, text, bytes);
    else status = clt_fail(CLT_E_INVALID, "no file of tokens, and no tokenizer is given");
    if (status == CLT_OK) status = check_ids(into, tokenizer);
    clt_free(text);
    return status < 0 ? clt_fail_context(status, "%s: ", path) : CLT_OK;
}

clt_status clt_dataset_text(clt_dataset **train, clt_dataset **validation, const char *path, const clt_text_options *options) {
    tokens all = {0};
    if (!train || !path || !options) return clt_fail(CLT_E_INVALID, "clt_dataset_text: train, path or options is NULL");
    if (!(options->validation >= 0 && options->validation < 1))
        return clt_fail(CLT_E_INVALID, "clt_dataset_text: expected a validation fraction from 0 to below 1, got %g", options->validation);
    double fraction = options->validation > 0 ? options->validation : 0.1;
    int64_t context = options->context ? options->context : 256;
    clt_dataset *parts[2] = {NULL, NULL};
    clt_status status;
    CLT_TRY_GOTO(read_tokens(&all, path, options->tokenizer));
    int64_t first = validation ? (int64_t)((1 - fraction) * (double)all.count) : (int64_t)all.count;
    CLT_TRY_GOTO(clt_dataset_tokens(&parts[0], all.ids, first, context));
    if (validation) CLT_TRY_GOTO(clt_dataset_tokens(&parts[1], all.ids + first, (int64_t)all.count - first, context));
    clt_free(all.ids);
    *train = parts[0];
    if (validation) *validation = parts[1];
    return CLT_OK;
fail:
    clt_dataset_destroy(parts[0]);
    clt_free(all.ids);
    return status;
}

clt_status clt_tokenizer_chars_of(clt_tokenizer **tokenizer, const char *path) {
    char *text;
    size_t bytes;
    if (!tokenizer || !path) return clt_fail(CLT_E_INVALID, "clt_tokenizer_chars_of: tokenizer or path is NULL");
    CLT_TRY(read_all(path, &text, &bytes));
    clt_status status = clt_tokenizer_chars(tokenizer, text, bytes);
    clt_free(text);
    return status < 0 ? clt_fail_context(status, "%s: ", path) : CLT_OK;
}
