/* What other launchers may have left in the store for cltrain-run: a line of the input for each value that is asked for, none where it is
 * empty. */
#include "tools/cltrain-run/agree.c"
#include "tests/fuzz/fuzz.h"

#include "tests/fuzz/fuzz_messages.h"

static fuzz_input values;

static clt_status next_value(char value[CLT_STORE_TEXT_BYTES]) {
    if (values.size == 0) return CLT_E_NETWORK;
    char *line = fuzz_line(&values);
    snprintf(value, CLT_STORE_TEXT_BYTES, "%s", line);
    fuzz_free(line);
    return value[0] ? CLT_OK : CLT_E_TIMEOUT;
}

clt_status clt_store_open(clt_store **store, const clt_comm_options *options, bool serve) {
    FUZZ_CHECK(options->job && !serve);
    *store = NULL;
    return CLT_OK;
}

void clt_store_close(clt_store *store) {
    (void)store;
}

clt_status clt_store_set(clt_store *store, const char *key, const char *value, double seconds) {
    (void)store, (void)seconds;
    FUZZ_CHECK(strlen(key) < KEY_BYTES - 1 && strlen(value) < CLT_STORE_TEXT_BYTES);
    return CLT_OK;
}

clt_status clt_store_set_once(clt_store *store, const char *key, const char *value, char stands[CLT_STORE_TEXT_BYTES], double seconds) {
    clt_store_set(store, key, value, seconds);
    clt_status status = next_value(stands);
    if (status != CLT_E_TIMEOUT) return status;
    snprintf(stands, CLT_STORE_TEXT_BYTES, "%s", value);
    return CLT_OK;
}

clt_status clt_store_get(clt_store *store, const char *key, char value[CLT_STORE_TEXT_BYTES], double seconds) {
    clt_store_set(store, key, "", seconds);
    return next_value(value);
}

void job_name_of_start(const job *j, char name[NAME_BYTES]) {
    snprintf(name, NAME_BYTES, "%s", j->name);
}

bool job_serves_store(const job *j) {
    return j->options->node_rank == 0;
}

int job_reopen_store(job *j) {
    return (int)j->options->ranks - 2;
}

static void begin(job *j) {
    if (agree_begin(j)) return;
    const run_options *o = j->options;
    FUZZ_CHECK(j->world >= o->nodes && j->world <= 4096 * o->nodes && j->first_rank >= o->node_rank && j->first_rank < j->world);
}

static void check_end(const end_of_start *end) {
    FUZZ_CHECK(end->kind >= END_DONE && end->kind <= END_LOST && end->status >= 0 && end->status <= 255 && end->rank >= -1);
}

/* How it ended is told in the words in which it was read, but for zeros before a number. */
static void check_words(const char *text) {
    end_of_start end;
    char again[64];
    if (!read_end(text, &end)) return;
    check_end(&end);
    snprintf(again, sizeof again, "%s %d %d", kind_names[end.kind], end.status, end.rank);
    FUZZ_CHECK(!strcmp(text, again) || strstr(text, " 0") || strstr(text, "-0"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    fuzz_begin(size);
    uint8_t how = fuzz_byte(&input);
    run_options o = {.ranks = 2, .nodes = 1 + how % 4, .node_rank = how / 4 % 4 % (1 + how % 4), .max_restarts = how / 64};
    job j = {.options = &o, .name = "a job", .self = "0123456789abcdef", .restarts = how / 16 % 3};
    end_of_start end = {END_FAILED, 3, 1};
    values = input;
    begin(&j);
    agree_tell(&j, &end);
    check_end(&end);
    end = await_news(NULL);
    check_end(&end);
    agree_done(&j, 0);
    agree_lost(&j, 1, 137);
    agree_part(&j, &end);
    agree_return(&j);
    FUZZ_CHECK(j.restarts <= o.max_restarts || j.restarts == how / 16 % 3);
    while (input.size) {
        char *line = fuzz_line(&input);
        check_words(line);
        fuzz_free(line);
    }
    return 0;
}
