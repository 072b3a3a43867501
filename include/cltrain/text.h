/*
 * Tokenizers: text to token ids and back.
 *
 * Three kinds: bytes (256 ids), characters (the Unicode code points of a given text, in order), and byte-level BPE read from a
 * tokenizer.json of the Hugging Face tokenizers library as GPT-2 and Llama 3 use it. Text is UTF-8.
 * A tokenizer is immutable once made and may be used by several threads at a time.
 */
#ifndef CLTRAIN_TEXT_H
#define CLTRAIN_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include <cltrain/export.h>
#include <cltrain/status.h>

CLT_BEGIN_DECLS

typedef struct clt_tokenizer clt_tokenizer;

/* Token i is the byte i. */
CLT_API clt_status clt_tokenizer_bytes(clt_tokenizer **tokenizer);

/* One token for each distinct code point of `text`, numbered in the order of their values. CLT_E_FORMAT if the text is empty or not UTF-8. */
CLT_API clt_status clt_tokenizer_chars(clt_tokenizer **tokenizer, const char *text, size_t bytes);

/* Reads a tokenizer.json: a BPE model with the ByteLevel pre-tokenizer, alone (GPT-2) or behind a Split by a regular expression (Llama 3);
 * or the file of a character tokenizer that clt_tokenizer_save wrote. Added tokens are found in the text before anything else.
 * Post-processing, which adds tokens such as <s>, is not done. CLT_E_IO; CLT_E_FORMAT for a file that is damaged; CLT_E_UNSUPPORTED,
 * with its name, for another kind of model, normalizer or pre-tokenizer. */
CLT_API clt_status clt_tokenizer_load(clt_tokenizer **tokenizer, const char *path);

/* Writes a character or byte tokenizer as a tokenizer.json that clt_tokenizer_load and the tokenizers library read. CLT_E_UNSUPPORTED for BPE. */
CLT_API clt_status clt_tokenizer_save(const clt_tokenizer *tokenizer, const char *path);

/* The same from and to the text of such a file, for programs that keep it elsewhere. `json` receives up to `capacity` bytes with a NUL, `*bytes` the length
 * of all without it. */
CLT_API clt_status clt_tokenizer_parse(clt_tokenizer **tokenizer, const char *json, size_t bytes);
CLT_API clt_status clt_tokenizer_json(const clt_tokenizer *tokenizer, char *json, size_t capacity, size_t *bytes);

/* NULL is fine. */
CLT_API void clt_tokenizer_destroy(clt_tokenizer *tokenizer);

/* Ids are from 0 to this minus 1. */
CLT_API int64_t clt_tokenizer_vocabulary(const clt_tokenizer *tokenizer);

/* The ids of a text. Writes up to `capacity` of them to `ids` (which may be NULL if that is 0), and how many there are to `*count`: a first call
 * with capacity 0 tells how much room is needed. CLT_E_FORMAT for text that is not UTF-8 (not of a byte tokenizer), and for a character
 * that has no token, with its place. */
CLT_API clt_status clt_tokenizer_encode(const clt_tokenizer *tokenizer, const char *text, size_t bytes, int32_t *ids, size_t capacity,
                                        size_t *count);

/* The bytes of ids, likewise; they need not be whole characters. CLT_E_RANGE for an id that is none. */
CLT_API clt_status clt_tokenizer_decode(const clt_tokenizer *tokenizer, const int32_t *ids, size_t count, char *text, size_t capacity,
                                        size_t *bytes);

/* ---- drawing tokens ---------------------------------------------------------------- */

typedef struct clt_sampling_options {
    float temperature; /* what logits are divided by; 0: the likeliest token, of equal ones the first */
    int top_k;         /* only the k likeliest are drawn from; 0: all */
    float top_p;       /* only the likeliest whose probabilities reach p together (Holtzman et al. 2019, nucleus sampling); 0: all */
    uint64_t seed;
} clt_sampling_options;

/* Draws one of `n` tokens by their logits: first temperature, then top_k, then top_p. Number `step` of a text has a random number of its own,
 * so that the same seed gives the same text. CLT_E_INVALID for an invalid option, CLT_E_NONFINITE where a logit is NaN or infinite. */
CLT_API clt_status clt_sample_token(const float *logits, int64_t n, const clt_sampling_options *options, uint64_t step, int32_t *token);

CLT_END_DECLS

#endif
