/* All stores through the same cases. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "comm/rendezvous/store.h"
#include "runtime/base/thread.h"

/* A store under test: how to open it once more, as another process would. */
typedef struct fixture {
    const char *name;
    clt_status (*open)(clt_rendezvous **rendezvous, const char *job);
    bool (*begin)(void); /* false: not here */
    void (*end)(void);
} fixture;

static double soon(void) {
    return clt_seconds() + 20;
}

static clt_rendezvous *open_store(const fixture *f, const char *job) {
    clt_rendezvous *rendezvous;
    assert_ok(f->open(&rendezvous, job));
    return rendezvous;
}

static void assert_value(clt_rendezvous *r, const char *key, const char *wanted) {
    char value[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    assert_ok(clt_rendezvous_get(r, key, value, &bytes, soon()));
    assert_int_equal(bytes, strlen(wanted));
    assert_memory_equal(value, wanted, bytes);
}

static void set(clt_rendezvous *r, const char *key, const char *value) {
    assert_ok(clt_rendezvous_set(r, key, value, strlen(value), soon()));
}

/* ---- the cases ---- */

static void case_set_get_remove(const fixture *f) {
    clt_rendezvous *a = open_store(f, "basic"), *b = open_store(f, "basic");
    char value[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    assert_int_equal(clt_rendezvous_look(b, "x", value, &bytes, soon()), CLT_END);
    set(a, "x", "one");
    assert_value(b, "x", "one");
    set(b, "x", "two, longer");
    assert_value(a, "x", "two, longer");
    set(a, "x", "");
    assert_value(b, "x", "");
    assert_ok(clt_rendezvous_look(b, "x", value, &bytes, soon()));
    assert_ok(clt_rendezvous_remove(b, "x", soon()));
    assert_ok(clt_rendezvous_remove(b, "x", soon()));
    assert_int_equal(clt_rendezvous_look(a, "x", value, &bytes, soon()), CLT_END);
    clt_rendezvous_close(a);
    clt_rendezvous_close(b);
}

static void case_values(const fixture *f) {
    clt_rendezvous *r = open_store(f, "values");
    char value[CLT_RENDEZVOUS_VALUE_BYTES + 1], back[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    for (size_t i = 0; i < sizeof value; i++) value[i] = (char)(i * 7); /* zeros too */
    assert_ok(clt_rendezvous_set(r, "full", value, CLT_RENDEZVOUS_VALUE_BYTES, soon()));
    assert_ok(clt_rendezvous_get(r, "full", back, &bytes, soon()));
    assert_int_equal(bytes, CLT_RENDEZVOUS_VALUE_BYTES);
    assert_memory_equal(value, back, bytes);
    assert_status(clt_rendezvous_set(r, "full", value, CLT_RENDEZVOUS_VALUE_BYTES + 1, soon()), CLT_E_INVALID);
    assert_detail("4097 bytes");
    assert_status(clt_rendezvous_set_once(r, "other", value, CLT_RENDEZVOUS_VALUE_BYTES + 1, NULL, NULL, soon()), CLT_E_INVALID);
    clt_rendezvous_close(r);
}

/* Names that a folder or a protocol might trip over are keys like others, and no two are one. */
static void case_keys(const fixture *f) {
    clt_rendezvous *r = open_store(f, "../ä /%2F*");
    char longest[2][CLT_RENDEZVOUS_KEY_BYTES + 2];
    memset(longest, '/', sizeof longest);
    longest[0][CLT_RENDEZVOUS_KEY_BYTES] = longest[1][CLT_RENDEZVOUS_KEY_BYTES] = 0;
    longest[1][CLT_RENDEZVOUS_KEY_BYTES - 1] = 'x';
    const char *const keys[] = {".", "..", "../x", "/", "//", "a/b", "a+b", "a b", "a%2Fb", "a\r\nb", "\x01\xff", "A", "a", "*", "?",
                                longest[0], longest[1]};
    for (size_t i = 0; i < CLT_COUNT_OF(keys); i++) set(r, keys[i], keys[i]);
    for (size_t i = 0; i < CLT_COUNT_OF(keys); i++) assert_value(r, keys[i], keys[i]);
    assert_status(clt_rendezvous_set(r, "", "x", 1, soon()), CLT_E_INVALID);
    longest[0][CLT_RENDEZVOUS_KEY_BYTES] = 'x';
    longest[0][CLT_RENDEZVOUS_KEY_BYTES + 1] = 0;
    assert_status(clt_rendezvous_set(r, longest[0], "x", 1, soon()), CLT_E_INVALID);
    clt_rendezvous_close(r);
}

static void case_jobs_are_apart(const fixture *f) {
    clt_rendezvous *a = open_store(f, "job"), *b = open_store(f, "job/x"), *c = open_store(f, NULL);
    char value[CLT_RENDEZVOUS_VALUE_BYTES], name[CLT_STORE_JOB_BYTES + 2];
    size_t bytes;
    set(a, "x/y", "a");
    assert_int_equal(clt_rendezvous_look(b, "y", value, &bytes, soon()), CLT_END);
    assert_int_equal(clt_rendezvous_look(c, "x/y", value, &bytes, soon()), CLT_END);
    clt_rendezvous_close(a);
    clt_rendezvous_close(b);
    clt_rendezvous_close(c);
    memset(name, '/', sizeof name);
    name[CLT_STORE_JOB_BYTES + 1] = 0;
    assert_status(f->open(&a, name), CLT_E_INVALID);
    assert_detail("the job's name has 128 characters");
    name[CLT_STORE_JOB_BYTES] = 0;
    assert_ok(f->open(&a, name));
    set(a, "x", "long");
    assert_value(a, "x", "long");
    clt_rendezvous_close(a);
}

static void case_set_once(const fixture *f) {
    clt_rendezvous *a = open_store(f, "once"), *b = open_store(f, "once");
    char stands[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes = 99;
    assert_ok(clt_rendezvous_set_once(a, "k", "first", 5, stands, &bytes, soon()));
    assert_int_equal(bytes, 5);
    assert_memory_equal(stands, "first", 5);
    assert_ok(clt_rendezvous_set_once(b, "k", "second!", 7, stands, &bytes, soon()));
    assert_int_equal(bytes, 5);
    assert_memory_equal(stands, "first", 5);
    assert_ok(clt_rendezvous_set_once(b, "k", "third", 5, NULL, NULL, soon()));
    assert_value(b, "k", "first");
    assert_ok(clt_rendezvous_set_once(a, "empty", "", 0, stands, &bytes, soon()));
    assert_int_equal(bytes, 0);
    assert_ok(clt_rendezvous_set_once(b, "empty", "x", 1, stands, &bytes, soon()));
    assert_int_equal(bytes, 0);
    clt_rendezvous_close(a);
    clt_rendezvous_close(b);
}

static void case_get_waits(const fixture *f) {
    clt_rendezvous *r = open_store(f, "waits");
    char value[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    double begin = clt_seconds();
    assert_status(clt_rendezvous_get(r, "never", value, &bytes, begin + 0.3), CLT_E_TIMEOUT);
    assert_detail("never");
    assert_true(clt_seconds() - begin >= 0.29);
    assert_true(clt_seconds() - begin < 10);
    set(r, "there", "x"); /* and the store is still of use */
    assert_value(r, "there", "x");
    clt_rendezvous_close(r);
}

/* ---- several threads, each as a process of its own ---- */

enum { RACERS = 6, ROUNDS = 40 };

typedef struct racer {
    const fixture *f;
    int number;
    clt_status status;
    char won[ROUNDS], saw[ROUNDS];
    clt_thread thread;
} racer;

static clt_status race(racer *me, clt_rendezvous *r) {
    for (int i = 0; i < ROUNDS; i++) {
        char key[32], own[2] = {(char)('a' + me->number), (char)i}, stands[CLT_RENDEZVOUS_VALUE_BYTES], got[CLT_RENDEZVOUS_VALUE_BYTES];
        size_t bytes, got_bytes;
        snprintf(key, sizeof key, "race/%d", i);
        CLT_TRY(clt_rendezvous_set_once(r, key, own, 2, stands, &bytes, soon()));
        if (bytes != 2 || stands[1] != (char)i) return clt_fail(CLT_E_MISMATCH, "round %d: a value that nobody wrote", i);
        me->won[i] = stands[0] == own[0];
        me->saw[i] = stands[0];
        CLT_TRY(clt_rendezvous_get(r, key, got, &got_bytes, soon()));
        if (got_bytes != 2 || got[0] != stands[0]) return clt_fail(CLT_E_MISMATCH, "round %d: the value changed", i);
    }
    return CLT_OK;
}

static void *run_racer(void *argument) {
    racer *me = argument;
    clt_rendezvous *r;
    me->status = me->f->open(&r, "race");
    if (me->status < 0) return NULL;
    me->status = race(me, r);
    clt_rendezvous_close(r);
    return NULL;
}

static void case_race(const fixture *f) {
    static racer racers[RACERS];
    memset(racers, 0, sizeof racers);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (racer){.f = f, .number = i};
        assert_ok(clt_thread_start(&racers[i].thread, run_racer, &racers[i]));
    }
    for (int i = 0; i < RACERS; i++) clt_thread_join(racers[i].thread);
    for (int i = 0; i < RACERS; i++) assert_int_equal(racers[i].status, CLT_OK);
    for (int round = 0; round < ROUNDS; round++) {
        int winners = 0;
        for (int i = 0; i < RACERS; i++) {
            winners += racers[i].won[round];
            assert_int_equal(racers[i].saw[round], racers[0].saw[round]);
        }
        assert_int_equal(winners, 1);
    }
}

typedef struct giver {
    const fixture *f;
    clt_status status;
} giver;

static void *give_late(void *argument) {
    giver *g = argument;
    clt_rendezvous *r;
    nanosleep(&(struct timespec){0, 200000000}, NULL);
    g->status = g->f->open(&r, "late");
    if (g->status < 0) return NULL;
    g->status = clt_rendezvous_set(r, "gift", "here", 4, soon());
    clt_rendezvous_close(r);
    return NULL;
}

static void case_get_what_comes_later(const fixture *f) {
    clt_rendezvous *r = open_store(f, "late");
    giver g = {.f = f};
    clt_thread thread;
    assert_ok(clt_thread_start(&thread, give_late, &g));
    assert_value(r, "gift", "here");
    clt_thread_join(thread);
    assert_int_equal(g.status, CLT_OK);
    clt_rendezvous_close(r);
}

/* A reader that looks while a writer replaces never sees a part of a value. */
static void *replace_often(void *argument) {
    giver *g = argument;
    clt_rendezvous *r;
    static char value[CLT_RENDEZVOUS_VALUE_BYTES];
    g->status = g->f->open(&r, "whole");
    for (int i = 1; g->status == CLT_OK && i <= 150; i++) {
        memset(value, i, sizeof value);
        g->status = clt_rendezvous_set(r, "v", value, sizeof value / (size_t)(i % 3 + 1), soon());
    }
    if (g->status == CLT_OK) g->status = clt_rendezvous_set(r, "done", "", 0, soon());
    clt_rendezvous_close(r);
    return NULL;
}

static void case_values_are_whole(const fixture *f) {
    clt_rendezvous *r = open_store(f, "whole");
    giver g = {.f = f};
    clt_thread thread;
    char value[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    assert_ok(clt_thread_start(&thread, replace_often, &g));
    while (clt_rendezvous_look(r, "done", value, &bytes, soon()) == CLT_END) {
        clt_status status = clt_rendezvous_look(r, "v", value, &bytes, soon());
        if (status == CLT_END) continue;
        assert_ok(status);
        assert_int_equal(bytes, sizeof value / (size_t)((unsigned char)value[0] % 3 + 1));
        for (size_t i = 1; i < bytes; i++) assert_int_equal(value[i], value[0]);
    }
    clt_thread_join(thread);
    assert_int_equal(g.status, CLT_OK);
    clt_rendezvous_close(r);
}

static void run_cases(const fixture *f) {
    static void (*const cases[])(const fixture *) = {
        case_set_get_remove, case_values, case_keys, case_jobs_are_apart, case_set_once, case_get_waits, case_race,
        case_get_what_comes_later, case_values_are_whole};
    if (f->begin && !f->begin()) skip();
    for (size_t i = 0; i < CLT_COUNT_OF(cases); i++) cases[i](f);
    if (f->end) f->end();
}

/* ---- files ---- */

static clt_status open_url(clt_rendezvous **rendezvous, const char *url, const char *job) {
    return clt_rendezvous_open(rendezvous, &(clt_rendezvous_options){.url = url, .job = job, .connect_seconds = 10});
}

static char folder_url[8300];

static clt_status open_file(clt_rendezvous **rendezvous, const char *job) {
    return open_url(rendezvous, folder_url, job);
}

static void name_folder(const char *name) {
    snprintf(folder_url, sizeof folder_url, "file://%s", support_path(name));
}

static void test_file(void **state) {
    (void)state;
    name_folder("deep/er/st%6Fre");
    run_cases(&(fixture){.name = "file", .open = open_file});
    assert_int_equal(access(support_path("deep/er/store"), F_OK), 0);
}

/* What others lay into the folder neither blocks, nor is followed, nor fills the memory. */
static void test_hostile_folder(void **state) {
    (void)state;
    name_folder("hostile");
    clt_rendezvous *r;
    char value[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    assert_ok(open_file(&r, "j"));
    support_write(support_path("secret"), "secret", 6);
    assert_int_equal(symlink(support_path("secret"), support_path("hostile/k.j+link")), 0);
    assert_status(clt_rendezvous_look(r, "link", value, &bytes, soon()), CLT_E_IO);
    assert_int_equal(mkfifo(support_path("hostile/k.j+fifo"), 0600), 0);
    assert_status(clt_rendezvous_look(r, "fifo", value, &bytes, soon()), CLT_E_IO);
    assert_detail("not a regular file");
    assert_int_equal(mkdir(support_path("hostile/k.j+folder"), 0700), 0);
    assert_status(clt_rendezvous_look(r, "folder", value, &bytes, soon()), CLT_E_IO);
    static char large[CLT_RENDEZVOUS_VALUE_BYTES + 1];
    support_write(support_path("hostile/k.j+large"), large, sizeof large);
    assert_status(clt_rendezvous_look(r, "large", value, &bytes, soon()), CLT_E_FORMAT);
    assert_detail("hostile/k.j+large: more than the 4096 bytes");
    assert_status(clt_rendezvous_set_once(r, "large", "x", 1, value, &bytes, soon()), CLT_E_FORMAT);
    clt_rendezvous_set(r, "link", "x", 1, soon()); /* replaces the link, not what it names */
    assert_value(r, "link", "x");
    struct stat facts;
    assert_int_equal(stat(support_path("secret"), &facts), 0);
    assert_int_equal(facts.st_size, 6);
    clt_rendezvous_close(r);
}

static void test_urls(void **state) {
    (void)state;
    clt_rendezvous *r;
    assert_status(open_url(&r, NULL, "j"), CLT_E_INVALID);
    assert_detail("no store is named");
    assert_status(open_url(&r, "http://user:secret@x", "j"), CLT_E_INVALID);
    assert_detail("begins with 'http': expected tcp://, file:// or redis://");
    assert_null(strstr(clt_error_detail(), "secret"));
    assert_status(open_url(&r, "file://relative", "j"), CLT_E_INVALID);
    assert_status(open_url(&r, "file:///tmp/%zz", "j"), CLT_E_INVALID);
    assert_status(open_url(&r, "file:///tmp/%00", "j"), CLT_E_INVALID);
    assert_status(open_url(&r, "file:///dev/null", "j"), CLT_E_IO);
    assert_detail("/dev/null");
    assert_status(open_url(&r, "file:///dev/null/x", "j"), CLT_E_IO);
    clt_rendezvous_close(NULL);
    char text[8] = "a%41%2f";
    assert_ok(clt_url_decode(text));
    assert_string_equal(text, "aA/");
    char out[8];
    assert_true(clt_url_encode("a b_", out, 7));
    assert_string_equal(out, "a%20b_");
    assert_false(clt_url_encode("a b_", out, 6));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_file), cmocka_unit_test(test_hostile_folder),
                                       cmocka_unit_test(test_urls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
