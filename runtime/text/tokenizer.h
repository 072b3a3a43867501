/*
 * The tokenizer's inside: a vocabulary, and for BPE merges, splits and added tokens.
 */
#ifndef CLT_TEXT_TOKENIZER_H
#define CLT_TEXT_TOKENIZER_H

#include <cltrain/text.h>

#include "runtime/base/table.h"

/* ---- tokenizer.c ---- */

typedef struct clt_token {
    char *bytes; /* NULL: no token has this id */
    size_t length;
} clt_token;

typedef enum clt_tokenizer_kind { CLT_TOKENIZER_BYTES, CLT_TOKENIZER_CHARS, CLT_TOKENIZER_BPE } clt_tokenizer_kind;

typedef struct clt_splitter clt_splitter;

struct clt_tokenizer {
    clt_tokenizer_kind kind;
    clt_token *tokens; /* by id */
    size_t n_tokens;
    int64_t most_ids; /* a larger id is refused: memory goes with the largest */
    clt_table ids; /* hash of a token's bytes to its id */

    /* BPE */
    int32_t byte_ids[256]; /* -1: no token */
    clt_table merges;      /* pair of ids to the rank of their merge (value) and the id of the result (extra) */
    clt_splitter *splitter; /* NULL: the text is one piece */
    bool ignore_merges;     /* a piece that is a token is that token */
    bool add_prefix_space;
    int32_t *added; /* ids of the tokens that are looked for in the text first */
    size_t n_added;
};

clt_status clt_tokenizer_new(clt_tokenizer **tokenizer, clt_tokenizer_kind kind);
/* Gives `id` these bytes, which are copied; ids may come in any order. CLT_E_FORMAT if it has some, or is not below most_ids. */
clt_status clt_tokenizer_add(clt_tokenizer *tokenizer, int64_t id, const char *bytes, size_t length);
/* Once all tokens are there: makes them findable. */
clt_status clt_tokenizer_index(clt_tokenizer *tokenizer);
/* The token of these bytes, -1 if there is none. */
int32_t clt_tokenizer_id(const clt_tokenizer *tokenizer, const char *bytes, size_t length);

#define CLT_TOKENIZER_MOST 16777216

/* Where ids or bytes go: counted, and written while there is room. */
typedef struct clt_ids {
    int32_t *to;
    size_t capacity, count;
} clt_ids;

static inline void clt_ids_put(clt_ids *ids, int32_t id) {
    if (ids->count < ids->capacity) ids->to[ids->count] = id;
    ids->count++;
}

/* ---- bpe.c ---- */

static inline uint64_t clt_pair_key(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}
clt_status clt_bpe_encode(const clt_tokenizer *tokenizer, const char *text, size_t bytes, clt_ids *ids);

/* ---- split.c: the regular expressions of known tokenizers ---- */

typedef clt_status clt_piece(void *user, const char *text, size_t bytes);

/* The splitter for a pattern as it stands in a file. CLT_E_UNSUPPORTED for one that is not known. */
clt_status clt_splitter_create(clt_splitter **splitter, const char *pattern);
extern const char clt_gpt2_pattern[];
void clt_splitter_destroy(clt_splitter *splitter); /* NULL is fine */
/* Hands all pieces of a text to `piece`, in order. */
clt_status clt_splitter_run(const clt_splitter *splitter, const char *text, size_t bytes, clt_piece *piece, void *user);

/* ---- utf8.c ---- */

/* Bytes of the code point at `text` (1 to 4), with its value; 0 if it is none (RFC 3629: no surrogates, no overlong forms). */
size_t clt_utf8_read(const char *text, size_t bytes, uint32_t *code);
size_t clt_utf8_write(uint32_t code, char text[4]);
/* CLT_E_FORMAT, with the place, for text that is not UTF-8. */
clt_status clt_utf8_check(const char *text, size_t bytes);

#endif
