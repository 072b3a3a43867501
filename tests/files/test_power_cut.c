#define _XOPEN_SOURCE 700 /* setenv */
/*
 * Power cuts: what is written while checkpoints are saved, and caches, is recorded; and of each moment, the disk is made as a
 * power cut may leave it (crash.h). A checkpoint is then the old or the new one, bit by bit, and is loaded; a cache is never
 * an error.
 *
 *     power_cut [all]        10,000 states of checkpoints; without, 1,000
 */
#include "tests/support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cltrain/cltrain.h>

#include "backends/tune/tune.h"
#include "runtime/base/file.h"
#include "runtime/device/device.h"
#include "tests/files/crash.h"
#include "tests/files/layer.h"
#include "tests/files/model.h"

enum { SAVES = 3 };

static int states = 1000;
static clt_device *device;
static clt_dataset *digits;
static model source, target;

/* ---- states on the disk ---- */

static void empty_folder(const char *folder) {
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char path[9300];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    if (entries) closedir(entries);
}

static void write_state(const crash_state *state) {
    for (int i = 0; i < state->n; i++) support_write(state->files[i].name, state->files[i].bytes, state->files[i].length);
}

static void add_file(crash_state *state, const char *name, const char *path) {
    void *bytes;
    size_t length;
    assert_ok(clt_file_read(path, 1 << 26, &bytes, &length));
    crash_add(state, name, bytes, length);
    clt_free(bytes);
}

/* Without what the library does to be safe: then there must be states that show it. */
static layer_journal without(const layer_journal *journal, layer_kind kind) {
    layer_journal less = {.events = calloc((size_t)journal->n, sizeof *less.events), .files = journal->files};
    assert_non_null(less.events);
    for (int i = 0; i < journal->n; i++)
        if (journal->events[i].kind != kind) less.events[less.n++] = journal->events[i];
    return less;
}

/* ---- checkpoints ---- */

static layer_journal journal; /* of SAVES checkpoints, one after the other */
static int done[SAVES + 1];   /* events after which save i was over; done[0] = 0 */
static int renamed[SAVES + 1];
static crash_state versions; /* [0] was there before, [i] is what save i made */
static char checkpoint[8200];

static void record_saves(void) {
    snprintf(checkpoint, sizeof checkpoint, "%s", support_path("disk/model.safetensors"));
    assert_ok(clt_file_make_folder(support_path("disk")));
    assert_ok(clt_checkpoint_save(source.trainer, source.loader, checkpoint));
    add_file(&versions, checkpoint, checkpoint);
    int ends[SAVES];
    layer_journal_begin();
    for (int i = 0; i < SAVES; i++) {
        assert_ok(model_train(&source, 1));
        assert_ok(clt_checkpoint_save(source.trainer, source.loader, checkpoint));
        add_file(&versions, checkpoint, checkpoint);
    }
    journal = layer_journal_end();
    int n = 0;
    for (int i = 0; i < journal.n; i++) {
        if (journal.events[i].kind == LAYER_RENAME) renamed[n + 1] = i + 1;
        if (journal.events[i].kind == LAYER_SYNC_FOLDER) ends[n++] = i + 1;
    }
    assert_int_equal(n, SAVES);
    for (int i = 0; i < SAVES; i++) done[i + 1] = ends[i];
}

/* The number of the version that a file is; -1: none. */
static int version_of(const crash_file *file) {
    for (int i = 0; file && i <= SAVES; i++)
        if (file->length == versions.files[i].length && !memcmp(file->bytes, versions.files[i].bytes, file->length)) return i;
    return -1;
}

/* The versions that may be there after so many events. */
static void expected(int events, int *oldest, int *newest) {
    *oldest = *newest = 0;
    for (int i = 1; i <= SAVES; i++) {
        if (events >= done[i]) *oldest = i;
        if (events >= renamed[i]) *newest = i;
    }
}

static void check_state(const crash_state *state, int events, uint64_t seed, int counts[3]) {
    int oldest, newest, version = version_of(crash_find(state, checkpoint));
    expected(events, &oldest, &newest);
    if (version < oldest || version > newest)
        fail_msg("after %d of %d events, seed %llu: the checkpoint is %d, not from %d to %d", events, journal.n,
                 (unsigned long long)seed, version, oldest, newest);
    counts[version == oldest ? newest == oldest ? 0 : 1 : 2]++;
    empty_folder(support_path("disk"));
    write_state(state);
    assert_ok(clt_checkpoint_load(target.trainer, target.loader, checkpoint));
    assert_ok(clt_checkpoint_save(target.trainer, target.loader, support_path("now")));
    crash_state now = {0};
    add_file(&now, "now", support_path("now"));
    assert_int_equal(version_of(&now.files[0]), version);
    crash_free(&now);
}

/* All of them in turn; every other time one about a rename, where most can go wrong. */
static int moment(int i) {
    int save = 1 + i / 2 % SAVES;
    return i % 2 ? i / 2 % (journal.n + 1) : renamed[save] - 1 + i / 6 % (done[save] - renamed[save] + 2);
}

static void checkpoints(void **state) {
    (void)state;
    int counts[3] = {0};
    crash_state before = {0};
    record_saves();
    crash_add(&before, checkpoint, versions.files[0].bytes, versions.files[0].length);
    for (int i = 0; i < states; i++) {
        int events = moment(i);
        crash_state cut = crash_draw(&journal, events, &before, (uint64_t)i);
        check_state(&cut, events, (uint64_t)i, counts);
        crash_free(&cut);
    }
    print_message("%d power cuts over %d events: %d where one alone may be, %d old and %d new where both may be; all whole and loaded\n", states,
                  journal.n, counts[0], counts[1], counts[2]);
    assert_true(counts[1] > 0 && counts[2] > 0);
    crash_free(&before);
}

/* The first save of all: nothing, or the new one. */
static void first_checkpoint(void **state) {
    (void)state;
    int none = 0;
    const crash_state before = {0};
    for (int i = 0; i < states / 4; i++) {
        int events = i % (done[1] + 1);
        crash_state cut = crash_draw(&journal, events, &before, (uint64_t)i);
        const crash_file *file = crash_find(&cut, checkpoint);
        assert_true(file ? events >= renamed[1] && version_of(file) == 1 : events < done[1]);
        none += !file;
        if (!file && i < 100) {
            empty_folder(support_path("disk"));
            write_state(&cut);
            assert_status(clt_checkpoint_load(target.trainer, target.loader, checkpoint), CLT_E_IO);
            assert_detail(checkpoint);
            assert_ok(clt_checkpoint_save(target.trainer, target.loader, checkpoint)); /* beside what is left of another */
        }
        crash_free(&cut);
    }
    assert_true(none > 0);
}

static int count_lost(const layer_journal *less, int *late) {
    int lost = 0;
    crash_state before = {0};
    crash_add(&before, checkpoint, versions.files[0].bytes, versions.files[0].length);
    *late = 0;
    for (int i = 0; i < 500; i++) {
        crash_state cut = crash_draw(less, 1 + i % less->n, &before, (uint64_t)i);
        int version = version_of(crash_find(&cut, checkpoint));
        lost += version < 0;
        *late += 1 + i % less->n == less->n && version != SAVES;
        crash_free(&cut);
    }
    crash_free(&before);
    return lost;
}

/* That the states are hostile enough: without the one fsync or the other, they lose something. */
static void states_show_a_missing_sync(void **state) {
    (void)state;
    int late;
    layer_journal less = without(&journal, LAYER_SYNC);
    assert_true(count_lost(&less, &late) > 50);
    free(less.events);
    less = without(&journal, LAYER_SYNC_FOLDER);
    assert_int_equal(count_lost(&less, &late), 0);
    assert_true(late > 0); /* a save that was told to be done is undone */
    free(less.events);
    assert_int_equal(count_lost(&journal, &late), 0);
    assert_int_equal(late, 0);
}

/* ---- caches, on disks that do not even keep what they say is synced ---- */

static const clt_module tiny[] = {{.label = "tiny", .text = "kernel void tiny_cut(global float *x) { x[get_global_id(0)] += 1; }\n"}};

static clt_build_counts build_tiny(void) {
    clt_device *own;
    assert_ok(clt_device_open(&own, NULL));
    assert_ok(clt_device_build(own, tiny, 1));
    clt_build_counts counts = clt_device_build_counts(own);
    clt_device_close(own);
    return counts;
}

/* Each state is a broken cache or none: what is asked for is there all the same, and mends it. */
static void program_cache(void **state) {
    (void)state;
    int loaded = 0, built = 0;
    const crash_state before = {0};
    char folder[8200];
    snprintf(folder, sizeof folder, "%s", support_path("cache/cltrain/programs"));
    empty_folder(folder);
    layer_journal_begin();
    assert_int_equal(build_tiny().built, 1);
    layer_journal whole = layer_journal_end(), less = without(&whole, LAYER_SYNC);
    for (int i = 0; i < states / 10; i++) {
        const layer_journal *disk = i % 2 ? &whole : &less;
        crash_state cut = crash_draw(disk, disk->n - i % 3, &before, (uint64_t)i);
        empty_folder(folder);
        write_state(&cut);
        clt_build_counts counts = build_tiny();
        assert_int_equal(counts.loaded + counts.built, 1);
        loaded += counts.loaded;
        built += counts.built;
        if (counts.built) assert_int_equal(build_tiny().loaded, 1);
        crash_free(&cut);
    }
    print_message("%d broken or missing program caches were made anew, %d were whole\n", built, loaded);
    assert_true(built > 0 && loaded > 0);
    free(less.events);
    layer_journal_free(&whole);
}

static clt_device *open_with_result(int number) {
    clt_device *own;
    clt_tuning_result v = {.row = "native", .us = 3, .default_us = 6, .effort = CLT_TUNE_FULL};
    assert_ok(clt_device_open(&own, NULL));
    snprintf(v.problem, sizeof v.problem, "matmul %dx4 16x4^T -> %dx16", number, number);
    assert_ok(clt_tuning_results_put(&clt_tune_database_of(own)->measured, &v));
    return own;
}

static void tuner_cache(void **state) {
    (void)state;
    int broken = 0;
    const crash_state before = {0};
    char folder[8200];
    snprintf(folder, sizeof folder, "%s", support_path("cache/cltrain/tune"));
    layer_journal_begin();
    for (int i = 1; i < 30; i++) { /* of some sectors */
        clt_device *own = open_with_result(i);
        assert_ok(clt_tune_store(own));
        clt_device_close(own);
    }
    layer_journal whole = layer_journal_end(), less = without(&whole, LAYER_SYNC);
    for (int i = 0; i < states / 4; i++) {
        crash_state cut = crash_draw(&less, 1 + i % less.n, &before, (uint64_t)i);
        empty_folder(folder);
        write_state(&cut);
        clt_device *own = open_with_result(100);
        broken += clt_tune_database_of(own)->measured.n < 2;
        assert_ok(clt_tune_store(own));
        clt_device_close(own);
        assert_ok(clt_device_open(&own, NULL));
        assert_non_null(clt_tuning_results_find(&clt_tune_database_of(own)->measured, "matmul 100x4 16x4^T -> 100x16"));
        clt_device_close(own);
        crash_free(&cut);
    }
    print_message("%d of %d files of tuning results had nothing left in them, and were written anew\n", broken, states / 4);
    assert_true(broken > 0);
    free(less.events);
    layer_journal_free(&whole);
}

/* ---- */

static int set_up(void **state) {
    (void)state;
    setenv("XDG_CACHE_HOME", support_path("cache"), 1);
    setenv("CLTRAIN_PROGRAM_CACHE", "on", 1);
    assert_ok(clt_device_open(&device, NULL));
    assert_ok(clt_dataset_digits(&digits));
    assert_ok(model_make(&source, device, digits, 16));
    assert_ok(model_make(&target, device, digits, 16));
    assert_ok(model_train(&source, 2));
    assert_ok(model_train(&target, 1));
    clt_device_settle_programs(device);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    layer_journal_free(&journal);
    crash_free(&versions);
    model_destroy(&source);
    model_destroy(&target);
    clt_dataset_destroy(digits);
    clt_device_close(device);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints),   cmocka_unit_test(first_checkpoint), cmocka_unit_test(states_show_a_missing_sync),
        cmocka_unit_test(program_cache), cmocka_unit_test(tuner_cache),
    };
    if (argc > 1 && !strcmp(argv[1], "all")) states = 10000;
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
