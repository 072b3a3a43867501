/*
 * Byte pair encoding; Sennrich, Haddow, Birch 2016, on bytes as GPT-2 does it: of all neighbors the pair of the lowest rank is merged,
 * the leftmost of equals, until no pair has a rank. A heap of candidates makes a piece of n bytes cost n log n.
 */
#include "runtime/text/tokenizer.h"

#include <string.h>

typedef struct symbol {
    int32_t id; /* -1: merged into the one before */
    int32_t previous, next;
} symbol;

typedef struct candidate {
    int32_t rank, at;    /* at: the left one */
    int32_t left, right; /* ids when it was found: it is stale where they have changed */
    int32_t merged;
} candidate;

typedef struct bpe {
    const clt_tokenizer *tokenizer;
    clt_ids *ids;
    symbol *symbols;
    size_t symbol_capacity;
    candidate *heap;
    size_t heap_count, heap_capacity;
} bpe;

static bool before(const candidate *a, const candidate *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static clt_status push(bpe *b, candidate c) {
    CLT_TRY(clt_grow(&b->heap, &b->heap_capacity, b->heap_count, sizeof c));
    size_t i = b->heap_count++;
    for (; i > 0 && before(&c, &b->heap[(i - 1) / 2]); i = (i - 1) / 2) b->heap[i] = b->heap[(i - 1) / 2];
    b->heap[i] = c;
    return CLT_OK;
}

static candidate pop(bpe *b) {
    candidate top = b->heap[0], last = b->heap[--b->heap_count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < b->heap_count; i = child) {
        if (child + 1 < b->heap_count && before(&b->heap[child + 1], &b->heap[child])) child++;
        if (!before(&b->heap[child], &last)) break;
        b->heap[i] = b->heap[child];
    }
    b->heap[i] = last;
    return top;
}

static clt_status consider(bpe *b, int32_t at) {
    int32_t next = at < 0 ? -1 : b->symbols[at].next;
    if (next < 0) return CLT_OK;
    int32_t left = b->symbols[at].id, right = b->symbols[next].id;
    const clt_table_entry *merge = clt_table_find(&b->tokenizer->merges, clt_pair_key(left, right));
    return merge ? push(b, (candidate){merge->value, at, left, right, merge->extra}) : CLT_OK;
}

static clt_status merge_all(bpe *b) {
    symbol *s = b->symbols;
    while (b->heap_count) {
        candidate c = pop(b);
        int32_t next = s[c.at].next;
        if (s[c.at].id != c.left || next < 0 || s[next].id != c.right) continue;
        s[c.at].id = c.merged;
        s[c.at].next = s[next].next;
        s[next].id = -1;
        if (s[c.at].next >= 0) s[s[c.at].next].previous = c.at;
        CLT_TRY(consider(b, s[c.at].previous));
        CLT_TRY(consider(b, c.at));
    }
    return CLT_OK;
}

/* A symbol for each byte of a piece, and the pairs that can be merged. */
static clt_status begin(bpe *b, const char *text, size_t bytes) {
    while (b->symbol_capacity < bytes) CLT_TRY(clt_grow(&b->symbols, &b->symbol_capacity, b->symbol_capacity, sizeof *b->symbols));
    for (size_t i = 0; i < bytes; i++) {
        int32_t id = b->tokenizer->byte_ids[(unsigned char)text[i]];
        if (id < 0) return clt_fail(CLT_E_FORMAT, "the byte 0x%02x has no token", (unsigned char)text[i]);
        b->symbols[i] = (symbol){id, (int32_t)i - 1, i + 1 < bytes ? (int32_t)i + 1 : -1};
    }
    for (size_t i = 0; i + 1 < bytes; i++) CLT_TRY(consider(b, (int32_t)i));
    return CLT_OK;
}

static clt_status encode_piece(void *user, const char *text, size_t bytes) {
    bpe *b = user;
    int32_t whole = b->tokenizer->ignore_merges ? clt_tokenizer_id(b->tokenizer, text, bytes) : -1;
    if (whole >= 0) {
        clt_ids_put(b->ids, whole);
        return CLT_OK;
    }
    if (!bytes) return CLT_OK;
    if (bytes > INT32_MAX) return clt_fail(CLT_E_RANGE, "a piece of %zu bytes without a place to split it", bytes);
    CLT_TRY(begin(b, text, bytes));
    CLT_TRY(merge_all(b));
    for (int32_t i = 0; i >= 0; i = b->symbols[i].next) clt_ids_put(b->ids, b->symbols[i].id);
    return CLT_OK;
}

static clt_status encode_split(bpe *b, const char *text, size_t bytes) {
    const clt_splitter *splitter = b->tokenizer->splitter;
    return splitter ? clt_splitter_run(splitter, text, bytes, encode_piece, b) : encode_piece(b, text, bytes);
}

/* Text between added tokens. */
static clt_status encode_section(bpe *b, const char *text, size_t bytes) {
    if (!bytes) return CLT_OK;
    if (!b->tokenizer->add_prefix_space || text[0] == ' ') return encode_split(b, text, bytes);
    char *prefixed = clt_alloc(bytes + 1);
    if (!prefixed) return clt_fail_memory(bytes + 1);
    prefixed[0] = ' ';
    memcpy(prefixed + 1, text, bytes);
    clt_status status = encode_split(b, prefixed, bytes + 1);
    clt_free(prefixed);
    return status;
}

/* The longest added token that begins here, -1 if none does. */
static int32_t added_at(const clt_tokenizer *t, const char *text, size_t bytes) {
    int32_t best = -1;
    for (size_t i = 0; i < t->n_added; i++) {
        const clt_token *token = &t->tokens[t->added[i]];
        if (token->length > bytes || memcmp(token->bytes, text, token->length) != 0) continue;
        if (best < 0 || token->length > t->tokens[best].length) best = t->added[i];
    }
    return best;
}

static clt_status encode_sections(bpe *b, const char *text, size_t bytes) {
    const clt_tokenizer *t = b->tokenizer;
    bool first[256] = {false}; /* bytes that an added token begins with */
    size_t from = 0;
    for (size_t i = 0; i < t->n_added; i++) first[(unsigned char)t->tokens[t->added[i]].bytes[0]] = true;
    for (size_t i = 0; t->n_added && i < bytes; i++) {
        int32_t id = first[(unsigned char)text[i]] ? added_at(t, text + i, bytes - i) : -1;
        if (id < 0) continue;
        CLT_TRY(encode_section(b, text + from, i - from));
        clt_ids_put(b->ids, id);
        from = i + t->tokens[id].length;
        i = from - 1;
    }
    return encode_section(b, text + from, bytes - from);
}

clt_status clt_bpe_encode(const clt_tokenizer *tokenizer, const char *text, size_t bytes, clt_ids *ids) {
    bpe b = {.tokenizer = tokenizer, .ids = ids};
    clt_status status = encode_sections(&b, text, bytes);
    clt_free(b.symbols);
    clt_free(b.heap);
    return status;
}
