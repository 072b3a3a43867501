/*
 * tokenizer.json of the Hugging Face tokenizers library (https://huggingface.co/docs/tokenizers): of its many forms those that
 * byte-level BPE and character tokenizers have. What is not one of them is refused by name: ids that differ from those a model was
 * trained with would be worse than an error.
 */
#include "runtime/text/tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/base/json.h"

#define MOST_FILE_BYTES ((size_t)64 << 20)
#define CHARS_PATTERN "[\\s\\S]"

/* ---- the bytes behind ByteLevel's characters ---- */

/* GPT-2's bytes_to_unicode: printable bytes are themselves, the others U+0100 and so on in their order. */
static void byte_codes(uint32_t codes[256]) {
    uint32_t next = 256;
    for (uint32_t b = 0; b < 256; b++) {
        bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        codes[b] = printable ? b : next++;
    }
}

/* The bytes that a token's text in the file stands for; false if a character stands for none. `bytes` has room for the text. */
static bool bytes_of(const char *text, size_t length, char *bytes, size_t *count) {
    uint32_t codes[256], code;
    byte_codes(codes);
    *count = 0;
    for (size_t i = 0, step; i < length; i += step) {
        step = clt_utf8_read(text + i, length - i, &code);
        if (!step) return false;
        int b = 0;
        while (b < 256 && codes[b] != code) b++;
        if (b == 256) return false;
        bytes[(*count)++] = (char)b;
    }
    return true;
}

/* ---- reading ---- */

/* The text of a member, "" if it is missing or no string. */
static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool is_set(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return value && !json_is_null(value) && !json_is_false(value) && !(json_is_string(value) && !json_string_length(value));
}

static clt_status refuse(const char *what, const char *found, const char *expected) {
    char shown[CLT_SHOWN_TEXT];
    return clt_fail(CLT_E_UNSUPPORTED, "%s '%s' is not supported: expected %s", what, clt_show(found, shown), expected);
}

static clt_status read_vocabulary(clt_tokenizer *t, const json_t *model) {
    const char *key;
    json_t *value, *vocabulary = json_object_get(model, "vocab");
    if (!json_is_object(vocabulary)) return clt_fail(CLT_E_FORMAT, "model.vocab is not an object");
    json_object_foreach(vocabulary, key, value) {
        size_t length = strlen(key);
        char *bytes = clt_alloc(length + 1);
        if (!bytes) return clt_fail_memory(length + 1);
        /* What no byte stands for is a special token, as it is. */
        if (t->kind != CLT_TOKENIZER_BPE || !bytes_of(key, length, bytes, &length)) memcpy(bytes, key, length = strlen(key));
        clt_status status = json_is_integer(value) ? clt_tokenizer_add(t, json_integer_value(value), bytes, length)
                                                   : clt_fail(CLT_E_FORMAT, "model.vocab: an id is not an integer");
        clt_free(bytes);
        CLT_TRY(status);
    }
    return CLT_OK;
}

static clt_status read_added(clt_tokenizer *t, const json_t *root) {
    size_t i;
    json_t *added = json_object_get(root, "added_tokens"), *entry;
    if (!added || !json_array_size(added)) return CLT_OK;
    t->added = clt_alloc(json_array_size(added) * sizeof *t->added);
    if (!t->added) return clt_fail_memory(json_array_size(added) * sizeof *t->added);
    json_array_foreach(added, i, entry) {
        const char *content = text_of(entry, "content");
        int64_t id = json_integer_value(json_object_get(entry, "id"));
        if (!json_is_integer(json_object_get(entry, "id")) || !content[0])
            return clt_fail(CLT_E_FORMAT, "added_tokens: entry %zu has no id or no content", i);
        static const char *const flags[] = {"single_word", "lstrip", "rstrip"};
        for (size_t f = 0; f < CLT_COUNT_OF(flags); f++)
            if (is_set(entry, flags[f])) return refuse("an added token with", flags[f], "tokens that are found as they are");
        bool known = id >= 0 && (size_t)id < t->n_tokens && t->tokens[id].bytes;
        if (known && strcmp(t->tokens[id].bytes, content) != 0) {
            /* In the vocabulary its text may lie in ByteLevel's characters: the added form counts. */
            clt_free(t->tokens[id].bytes);
            t->tokens[id] = (clt_token){0};
            known = false;
        }
        if (!known) CLT_TRY(clt_tokenizer_add(t, id, content, strlen(content)));
        t->added[t->n_added++] = (int32_t)id;
    }
    return CLT_OK;
}

/* One side of a merge, as a token. */
static int32_t side(const clt_tokenizer *t, const char *text, size_t length) {
    char bytes[4096];
    size_t count;
    if (length >= sizeof bytes || !bytes_of(text, length, bytes, &count)) return -1;
    return clt_tokenizer_id(t, bytes, count);
}

/* "left right", or ["left", "right"] */
static bool sides_of(const json_t *merge, const char *sides[2], size_t lengths[2]) {
    const char *text = json_string_value(merge), *space = text ? strchr(text, ' ') : NULL;
    if (space) {
        sides[0] = text, lengths[0] = (size_t)(space - text);
        sides[1] = space + 1, lengths[1] = strlen(space + 1);
        return true;
    }
    for (size_t i = 0; i < 2; i++) {
        sides[i] = json_string_value(json_array_get(merge, i));
        if (!sides[i]) return false;
        lengths[i] = strlen(sides[i]);
    }
    return json_array_size(merge) == 2;
}

static clt_status read_merge(clt_tokenizer *t, const json_t *merge, size_t rank) {
    const char *sides[2];
    size_t lengths[2];
    char joined[8192];
    if (!sides_of(merge, sides, lengths)) return clt_fail(CLT_E_FORMAT, "model.merges: entry %zu is not a pair of tokens", rank);
    int32_t left = side(t, sides[0], lengths[0]), right = side(t, sides[1], lengths[1]), both = -1;
    if (left >= 0 && right >= 0) {
        const clt_token *l = &t->tokens[left], *r = &t->tokens[right];
        memcpy(joined, l->bytes, l->length);
        memcpy(joined + l->length, r->bytes, r->length);
        both = clt_tokenizer_id(t, joined, l->length + r->length);
    }
    if (both < 0) return clt_fail(CLT_E_FORMAT, "model.merges: entry %zu or what it makes is not a token of the vocabulary", rank);
    uint64_t key = clt_pair_key(left, right);
    if (!clt_table_find(&t->merges, key)) clt_table_put(&t->merges, key, (int32_t)rank, both);
    return CLT_OK;
}

static clt_status read_merges(clt_tokenizer *t, const json_t *model) {
    size_t rank;
    json_t *merges = json_object_get(model, "merges"), *merge;
    if (!json_is_array(merges) || json_array_size(merges) > CLT_TOKENIZER_MOST) return clt_fail(CLT_E_FORMAT, "model.merges is not an array");
    CLT_TRY(clt_table_reserve(&t->merges, json_array_size(merges)));
    json_array_foreach(merges, rank, merge) CLT_TRY(read_merge(t, merge, rank));
    return CLT_OK;
}

static clt_status read_byte_level(clt_tokenizer *t, const json_t *node, bool may_split) {
    const json_t *use_regex = json_object_get(node, "use_regex");
    bool split = !use_regex || json_is_true(use_regex);
    t->add_prefix_space = is_set(node, "add_prefix_space");
    if (split && !may_split) return refuse("pre_tokenizer", "ByteLevel with use_regex after a Split", "use_regex: false there");
    return split ? clt_splitter_create(&t->splitter, clt_gpt2_pattern) : CLT_OK;
}

static clt_status read_split(clt_tokenizer *t, const json_t *node) {
    if (strcmp(text_of(node, "behavior"), "Isolated") != 0) return refuse("the Split behavior", text_of(node, "behavior"), "Isolated");
    if (is_set(node, "invert")) return refuse("Split with", "invert", "a pattern of the pieces");
    return clt_splitter_create(&t->splitter, text_of(json_object_get(node, "pattern"), "Regex"));
}

static clt_status read_pre_tokenizer(clt_tokenizer *t, const json_t *node) {
    const char *type = text_of(node, "type"), *expected = "ByteLevel, or a Sequence of Split and ByteLevel";
    const json_t *list = json_object_get(node, "pretokenizers"), *first = json_array_get(list, 0), *second = json_array_get(list, 1);
    if (strcmp(type, "ByteLevel") == 0) return read_byte_level(t, node, true);
    if (strcmp(type, "Sequence") != 0) return refuse("pre_tokenizer", type, expected);
    if (json_array_size(list) != 2 || strcmp(text_of(first, "type"), "Split") != 0 || strcmp(text_of(second, "type"), "ByteLevel") != 0)
        return refuse("pre_tokenizer", "Sequence of other parts", expected);
    CLT_TRY(read_split(t, first));
    return read_byte_level(t, second, false);
}

static clt_status read_bpe(clt_tokenizer *t, const json_t *root, const json_t *model) {
    static const char *const unsupported[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"};
    for (size_t i = 0; i < CLT_COUNT_OF(unsupported); i++)
        if (is_set(model, unsupported[i])) return refuse("BPE with", unsupported[i], "byte-level BPE without it");
    t->ignore_merges = is_set(model, "ignore_merges");
    CLT_TRY(read_pre_tokenizer(t, json_object_get(root, "pre_tokenizer")));
    CLT_TRY(read_vocabulary(t, model));
    CLT_TRY(read_added(t, root));
    CLT_TRY(clt_tokenizer_index(t));
    return read_merges(t, model);
}

/* What clt_tokenizer_save writes of a character tokenizer. */
static clt_status read_chars(clt_tokenizer *t, const json_t *root, const json_t *model) {
    const json_t *split = json_object_get(root, "pre_tokenizer");
    if (strcmp(text_of(json_object_get(split, "pattern"), "Regex"), CHARS_PATTERN) != 0)
        return refuse("model", "WordLevel", "BPE, or WordLevel of single characters");
    CLT_TRY(read_vocabulary(t, model));
    for (size_t i = 0; i < t->n_tokens; i++) {
        uint32_t code;
        const clt_token *token = &t->tokens[i];
        if (token->bytes && clt_utf8_read(token->bytes, token->length, &code) != token->length)
            return clt_fail(CLT_E_FORMAT, "model.vocab: token %zu is not a single character", i);
    }
    return clt_tokenizer_index(t);
}

/* As many as there are tokens, and some that a model leaves unused. */
static int64_t most_ids(const json_t *root, const json_t *model) {
    enum { UNUSED = 65536 };
    size_t tokens = json_object_size(json_object_get(model, "vocab")) + json_array_size(json_object_get(root, "added_tokens"));
    return CLT_MIN((int64_t)tokens + UNUSED, CLT_TOKENIZER_MOST);
}

static clt_status read_root(clt_tokenizer **tokenizer, const json_t *root) {
    const json_t *model = json_object_get(root, "model");
    const char *type = text_of(model, "type");
    /* Files of earlier versions leave the type out. */
    bool bpe = strcmp(type, "BPE") == 0 || (!type[0] && json_object_get(model, "merges"));
    if (!json_is_object(model)) return clt_fail(CLT_E_FORMAT, "there is no object \"model\": this is not a tokenizer.json");
    if (!bpe && strcmp(type, "WordLevel") != 0) return refuse("model", type, "BPE");
    if (is_set(root, "normalizer")) return refuse("normalizer", text_of(json_object_get(root, "normalizer"), "type"), "none");
    CLT_TRY(clt_tokenizer_new(tokenizer, bpe ? CLT_TOKENIZER_BPE : CLT_TOKENIZER_CHARS));
    (*tokenizer)->most_ids = most_ids(root, model);
    return bpe ? read_bpe(*tokenizer, root, model) : read_chars(*tokenizer, root, model);
}

static clt_status parse(clt_tokenizer **tokenizer, const char *bytes, size_t length) {
    json_error_t error;
    json_t *root = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &error);
    if (!root) return clt_fail(CLT_E_FORMAT, "line %d, column %d: %s", error.line, error.column, error.text);
    clt_status status = read_root(tokenizer, root);
    json_decref(root);
    return status;
}

clt_status clt_tokenizer_parse(clt_tokenizer **tokenizer, const char *json, size_t bytes) {
    clt_tokenizer *t = NULL;
    if (!tokenizer || !json) return clt_fail(CLT_E_INVALID, "clt_tokenizer_parse: an argument is NULL");
    clt_status status = parse(&t, json, bytes);
    if (status < 0) clt_tokenizer_destroy(t);
    else *tokenizer = t;
    return status;
}

clt_status clt_tokenizer_load(clt_tokenizer **tokenizer, const char *path) {
    void *bytes;
    size_t length;
    if (!tokenizer || !path) return clt_fail(CLT_E_INVALID, "clt_tokenizer_load: tokenizer or path is NULL");
    CLT_TRY(clt_file_read(path, MOST_FILE_BYTES, &bytes, &length));
    clt_status status = clt_tokenizer_parse(tokenizer, bytes, length);
    clt_free(bytes);
    return status < 0 ? clt_fail_context(status, "%s: ", path) : CLT_OK;
}

/* ---- writing ---- */

static clt_status add_vocabulary(const clt_tokenizer *t, json_t *vocabulary) {
    uint32_t codes[256];
    byte_codes(codes);
    for (size_t i = 0; i < t->n_tokens; i++) {
        char key[8] = {0};
        if (t->kind == CLT_TOKENIZER_BYTES) clt_utf8_write(codes[i], key);
        else memcpy(key, t->tokens[i].bytes, t->tokens[i].length);
        CLT_TRY(clt_json_set(vocabulary, key, json_integer((json_int_t)i)));
    }
    return CLT_OK;
}

static clt_status dump(const clt_tokenizer *t, clt_text *text) {
    bool bytes = t->kind == CLT_TOKENIZER_BYTES;
    json_t *vocabulary = json_object();
    clt_status status = vocabulary ? add_vocabulary(t, vocabulary) : clt_fail_memory(0);
    json_t *model = bytes ? json_pack("{s:s, s:O, s:[]}", "type", "BPE", "vocab", vocabulary, "merges")
                          : json_pack("{s:s, s:O, s:s}", "type", "WordLevel", "vocab", vocabulary, "unk_token", "<unk>");
    json_t *split = bytes ? json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 0, "use_regex", 0)
                          : json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex", CHARS_PATTERN, "behavior", "Isolated", "invert", 0);
    json_t *decoder = bytes ? json_incref(split) : json_pack("{s:s}", "type", "Fuse");
    json_t *root = json_pack("{s:s, s:n, s:n, s:[], s:n, s:O*, s:n, s:O*, s:O*}", "version", "1.0", "truncation", "padding", "added_tokens",
                             "normalizer", "pre_tokenizer", split, "post_processor", "decoder", decoder, "model", model);
    if (status == CLT_OK) status = clt_json_dump(root, JSON_INDENT(1) | JSON_ENSURE_ASCII, text);
    json_decref(root);
    json_decref(decoder);
    json_decref(split);
    json_decref(model);
    json_decref(vocabulary);
    return status;
}

static clt_status check_known(const clt_tokenizer *t, const char *function) {
    if (t->kind != CLT_TOKENIZER_BPE) return CLT_OK;
    return clt_fail(CLT_E_UNSUPPORTED, "%s: copy the tokenizer.json that the tokenizer was read from", function);
}

clt_status clt_tokenizer_json(const clt_tokenizer *t, char *json, size_t capacity, size_t *bytes) {
    clt_text text = {0};
    if (!t || !bytes || (!json && capacity)) return clt_fail(CLT_E_INVALID, "clt_tokenizer_json: an argument is NULL");
    CLT_TRY(check_known(t, "clt_tokenizer_json"));
    clt_status status = dump(t, &text);
    *bytes = text.length;
    if (status == CLT_OK && capacity) snprintf(json, capacity, "%s", clt_text_data(&text));
    clt_text_free(&text);
    return status;
}

clt_status clt_tokenizer_save(const clt_tokenizer *t, const char *path) {
    clt_text text = {0};
    if (!t || !path) return clt_fail(CLT_E_INVALID, "clt_tokenizer_save: tokenizer or path is NULL");
    CLT_TRY(check_known(t, "clt_tokenizer_save"));
    clt_status status = dump(t, &text);
    if (status == CLT_OK) status = clt_file_write(path, clt_text_data(&text), text.length);
    clt_text_free(&text);
    return status;
}
