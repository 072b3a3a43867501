#include "runtime/text/tokenizer.h"

#include <string.h>

/* As they stand in tokenizer.json (GPT-2's is ByteLevel's own), and for PCRE2, whose \s leaves out U+0085. */
const char clt_gpt2_pattern[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

#define SPACE "[\\s\\x{85}]"
#define NO_SPACE "[^\\s\\x{85}]"
#define SIGN "[^\\s\\x{85}\\p{L}\\p{N}]"

static const struct {
    const char *pattern, *pcre;
} known[] = {
    {clt_gpt2_pattern, "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?" SIGN "+|" SPACE "+(?!" NO_SPACE ")|" SPACE "+"},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", /* Llama 3 */
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?" SIGN "+[\\r\\n]*|" SPACE "*[\\r\\n]+|" SPACE "+(?!" NO_SPACE ")|" SPACE
     "+"},
};

static const char *find_pcre(const char *pattern) {
    for (size_t i = 0; i < CLT_COUNT_OF(known); i++)
        if (strcmp(pattern, known[i].pattern) == 0) return known[i].pcre;
    return NULL;
}

#ifdef CLT_WITH_PCRE2

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct clt_splitter {
    pcre2_code *code;
};

clt_status clt_splitter_create(clt_splitter **splitter, const char *pattern) {
    const char *pcre = find_pcre(pattern);
    char shown[CLT_SHOWN_TEXT];
    int error;
    PCRE2_SIZE at;
    if (!pcre)
        return clt_fail(CLT_E_UNSUPPORTED, "the pre-tokenizer splits by the regular expression %s: expected GPT-2's or Llama 3's", clt_show(pattern, shown));
    clt_splitter *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_fail_memory(sizeof *s);
    s->code = pcre2_compile((PCRE2_SPTR)pcre, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &error, &at, NULL);
    if (!s->code) {
        clt_splitter_destroy(s);
        return clt_fail(CLT_E_UNSUPPORTED, "PCRE2 refuses the pre-tokenizer's regular expression at character %zu: error %d", (size_t)at, error);
    }
    pcre2_jit_compile(s->code, PCRE2_JIT_COMPLETE); /* where it cannot, matching is slower */
    *splitter = s;
    return CLT_OK;
}

void clt_splitter_destroy(clt_splitter *s) {
    if (!s) return;
    pcre2_code_free(s->code);
    clt_free(s);
}

static clt_status run(const clt_splitter *s, pcre2_match_data *match, const char *text, size_t bytes, clt_piece *piece, void *user) {
    size_t from = 0;
    while (from < bytes) {
        int found = pcre2_match(s->code, (PCRE2_SPTR)text, bytes, from, PCRE2_NO_UTF_CHECK, match, NULL);
        if (found == PCRE2_ERROR_NOMATCH) break;
        if (found < 0) return clt_fail(CLT_E_FORMAT, "PCRE2 cannot split the text after byte %zu: error %d", from, found);
        const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(match);
        if (ends[0] > from) CLT_TRY(piece(user, text + from, ends[0] - from));
        CLT_TRY(piece(user, text + ends[0], ends[1] - ends[0]));
        from = ends[1];
    }
    return from < bytes ? piece(user, text + from, bytes - from) : CLT_OK;
}

clt_status clt_splitter_run(const clt_splitter *s, const char *text, size_t bytes, clt_piece *piece, void *user) {
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    if (!match) return clt_fail_memory(0);
    clt_status status = run(s, match, text, bytes, piece, user);
    pcre2_match_data_free(match);
    return status;
}

#else

clt_status clt_splitter_create(clt_splitter **splitter, const char *pattern) {
    *splitter = NULL;
    return clt_fail(CLT_E_UNSUPPORTED, "this build has no PCRE2, which a pre-tokenizer with a regular expression%s needs: install libpcre2-dev and build again",
                    find_pcre(pattern) ? "" : " (and none that is known)");
}

void clt_splitter_destroy(clt_splitter *s) {
    (void)s;
}

clt_status clt_splitter_run(const clt_splitter *s, const char *text, size_t bytes, clt_piece *piece, void *user) {
    (void)s;
    return piece(user, text, bytes);
}

#endif
