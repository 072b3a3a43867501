#include "runtime/text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

/* ---- making one ---- */

clt_status clt_tokenizer_new(clt_tokenizer **tokenizer, clt_tokenizer_kind kind) {
    clt_tokenizer *t = clt_calloc(1, sizeof *t);
    if (!t) return clt_fail_memory(sizeof *t);
    t->kind = kind;
    t->most_ids = CLT_TOKENIZER_MOST;
    for (int i = 0; i < 256; i++) t->byte_ids[i] = -1;
    *tokenizer = t;
    return CLT_OK;
}

void clt_tokenizer_destroy(clt_tokenizer *t) {
    if (!t) return;
    for (size_t i = 0; i < t->n_tokens; i++) clt_free(t->tokens[i].bytes);
    clt_free(t->tokens);
    clt_free(t->added);
    clt_table_free(&t->ids);
    clt_table_free(&t->merges);
    clt_splitter_destroy(t->splitter);
    clt_free(t);
}

static clt_status make_room(clt_tokenizer *t, size_t count) {
    if (count <= t->n_tokens) return CLT_OK;
    size_t capacity = CLT_MAX(count, t->n_tokens + t->n_tokens / 2);
    clt_token *tokens = clt_realloc(t->tokens, capacity * sizeof *tokens);
    if (!tokens) return clt_fail_memory(capacity * sizeof *tokens);
    memset(tokens + t->n_tokens, 0, (capacity - t->n_tokens) * sizeof *tokens);
    t->tokens = tokens;
    t->n_tokens = capacity;
    return CLT_OK;
}

clt_status clt_tokenizer_add(clt_tokenizer *t, int64_t id, const char *bytes, size_t length) {
    if (id < 0 || id >= t->most_ids)
        return clt_fail(CLT_E_FORMAT, "expected token ids from 0 to %lld, found %lld", (long long)t->most_ids - 1, (long long)id);
    CLT_TRY(make_room(t, (size_t)id + 1));
    if (t->tokens[id].bytes) return clt_fail(CLT_E_FORMAT, "two tokens have the id %lld", (long long)id);
    char *copy = clt_alloc(length + 1);
    if (!copy) return clt_fail_memory(length + 1);
    memcpy(copy, bytes, length);
    copy[length] = '\0';
    t->tokens[id] = (clt_token){copy, length};
    return CLT_OK;
}

clt_status clt_tokenizer_index(clt_tokenizer *t) {
    while (t->n_tokens && !t->tokens[t->n_tokens - 1].bytes) t->n_tokens--;
    if (!t->n_tokens) return clt_fail(CLT_E_FORMAT, "the vocabulary is empty");
    CLT_TRY(clt_table_reserve(&t->ids, t->n_tokens));
    for (size_t i = 0; i < t->n_tokens; i++) {
        const clt_token *token = &t->tokens[i];
        if (!token->bytes) continue;
        clt_table_put(&t->ids, clt_table_key(token->bytes, token->length), (int32_t)i, 0);
        if (token->length == 1 && t->byte_ids[(unsigned char)token->bytes[0]] < 0) t->byte_ids[(unsigned char)token->bytes[0]] = (int32_t)i;
    }
    return CLT_OK;
}

int32_t clt_tokenizer_id(const clt_tokenizer *t, const char *bytes, size_t length) {
    const clt_table_entry *entry = clt_table_find(&t->ids, clt_table_key(bytes, length));
    for (; entry; entry = clt_table_next(&t->ids, entry)) {
        const clt_token *token = &t->tokens[entry->value];
        if (token->length == length && memcmp(token->bytes, bytes, length) == 0) return entry->value;
    }
    return -1;
}

clt_status clt_tokenizer_bytes(clt_tokenizer **tokenizer) {
    if (!tokenizer) return clt_fail(CLT_E_INVALID, "clt_tokenizer_bytes: tokenizer is NULL");
    clt_tokenizer *t = NULL;
    clt_status status;
    CLT_TRY_GOTO(clt_tokenizer_new(&t, CLT_TOKENIZER_BYTES));
    for (int i = 0; i < 256; i++) CLT_TRY_GOTO(clt_tokenizer_add(t, i, &(char){(char)i}, 1));
    CLT_TRY_GOTO(clt_tokenizer_index(t));
    *tokenizer = t;
    return CLT_OK;
fail:
    clt_tokenizer_destroy(t);
    return status;
}

/* Marks the code points of a text, a bit each. */
static clt_status mark_codes(const char *text, size_t bytes, unsigned char *marks) {
    uint32_t code;
    CLT_TRY(clt_utf8_check(text, bytes));
    for (size_t i = 0; i < bytes; i += clt_utf8_read(text + i, bytes - i, &code)) {
        clt_utf8_read(text + i, bytes - i, &code);
        marks[code / 8] |= (unsigned char)(1u << code % 8);
    }
    return CLT_OK;
}

clt_status clt_tokenizer_chars(clt_tokenizer **tokenizer, const char *text, size_t bytes) {
    enum { CODES = 0x110000 };
    if (!tokenizer || (!text && bytes)) return clt_fail(CLT_E_INVALID, "clt_tokenizer_chars: tokenizer or text is NULL");
    if (!bytes) return clt_fail(CLT_E_FORMAT, "clt_tokenizer_chars: the text is empty");
    clt_tokenizer *t = NULL;
    clt_status status;
    unsigned char *marks = clt_calloc(CODES / 8, 1);
    if (!marks) return clt_fail_memory(CODES / 8);
    CLT_TRY_GOTO(mark_codes(text, bytes, marks));
    CLT_TRY_GOTO(clt_tokenizer_new(&t, CLT_TOKENIZER_CHARS));
    int64_t id = 0;
    for (uint32_t code = 0; code < CODES; code++) {
        char utf8[4];
        if (marks[code / 8] >> code % 8 & 1) CLT_TRY_GOTO(clt_tokenizer_add(t, id++, utf8, clt_utf8_write(code, utf8)));
    }
    CLT_TRY_GOTO(clt_tokenizer_index(t));
    clt_free(marks);
    *tokenizer = t;
    return CLT_OK;
fail:
    clt_free(marks);
    clt_tokenizer_destroy(t);
    return status;
}

int64_t clt_tokenizer_vocabulary(const clt_tokenizer *t) {
    return t ? (int64_t)t->n_tokens : 0;
}

/* ---- using it ---- */

static clt_status encode_chars(const clt_tokenizer *t, const char *text, size_t bytes, clt_ids *ids) {
    uint32_t code;
    for (size_t i = 0, length; i < bytes; i += length) {
        length = clt_utf8_read(text + i, bytes - i, &code);
        int32_t id = clt_tokenizer_id(t, text + i, length);
        if (id < 0)
            return clt_fail(CLT_E_FORMAT, "the character U+%04X at byte %zu has no token: the tokenizer knows %zu characters", code, i, t->n_tokens);
        clt_ids_put(ids, id);
    }
    return CLT_OK;
}

clt_status clt_tokenizer_encode(const clt_tokenizer *t, const char *text, size_t bytes, int32_t *ids, size_t capacity, size_t *count) {
    if (!t || (!text && bytes) || (!ids && capacity) || !count)
        return clt_fail(CLT_E_INVALID, "clt_tokenizer_encode: tokenizer, text, ids or count is NULL");
    clt_ids out = {ids, capacity, 0};
    if (t->kind == CLT_TOKENIZER_BYTES) {
        for (size_t i = 0; i < bytes; i++) clt_ids_put(&out, (unsigned char)text[i]);
    } else {
        CLT_TRY(clt_utf8_check(text, bytes));
        CLT_TRY(t->kind == CLT_TOKENIZER_CHARS ? encode_chars(t, text, bytes, &out) : clt_bpe_encode(t, text, bytes, &out));
    }
    *count = out.count;
    return CLT_OK;
}

clt_status clt_tokenizer_decode(const clt_tokenizer *t, const int32_t *ids, size_t count, char *text, size_t capacity, size_t *bytes) {
    if (!t || (!ids && count) || (!text && capacity) || !bytes)
        return clt_fail(CLT_E_INVALID, "clt_tokenizer_decode: tokenizer, ids, text or bytes is NULL");
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (ids[i] < 0 || (size_t)ids[i] >= t->n_tokens || !t->tokens[ids[i]].bytes)
            return clt_fail(CLT_E_RANGE, "id %d at place %zu is not a token: expected ids from 0 to %zu", ids[i], i, t->n_tokens - 1);
        const clt_token *token = &t->tokens[ids[i]];
        if (used < capacity) memcpy(text + used, token->bytes, CLT_MIN(token->length, capacity - used));
        used += token->length;
    }
    *bytes = used;
    return CLT_OK;
}
