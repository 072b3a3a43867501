#define _XOPEN_SOURCE 700 /* setenv */
/*
 * Every call on files fails in its turn, once and for ever, or moves less than it was asked to: what is written is the old or
 * the new, whole; what is read is right or an error; nothing stays open, allocated or lying about.
 *
 * A scenario runs first to count its calls, then once for each of them and each kind of fault; of what is very slow, for some of
 * them, if not all are asked for.
 */
#include "tests/support.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cltrain/cltrain.h>

#include "backends/tune/tune.h"
#include "comm/rendezvous/rendezvous.h"
#include "runtime/base/file.h"
#include "runtime/device/device.h"
#include "tests/files/layer.h"
#include "tests/files/model.h"

static clt_device *device;
static clt_dataset *digits;
static model source, target; /* to be saved; to be restored */

/* ---- memory ---- */

static size_t blocks; /* in use; the savers' threads are waited for before it is looked at */

static void *allocate(size_t bytes, void *user) {
    (void)user;
    __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
    return malloc(bytes);
}

static void *reallocate(void *memory, size_t bytes, void *user) {
    (void)user;
    return realloc(memory, bytes);
}

static void release(void *memory, void *user) {
    (void)user;
    __atomic_sub_fetch(&blocks, 1, __ATOMIC_RELAXED);
    free(memory);
}

/* ---- the loop ---- */

typedef struct scenario {
    const char *name;
    void (*prepare)(void);
    clt_status (*run)(void);
    /* After faults, and with none any more. `hit`: whether any call failed. */
    void (*check)(clt_status status, bool hit);
    bool must_succeed; /* whatever fails: what it has of files is a cache */
    bool slow;         /* no faults but EIO */
    bool very_slow;    /* and none for ever */
} scenario;

enum { STRIDE = 5 }; /* from one call to the next of what is very slow; no divisor of what it does again and again */

static int injected, runs;
static bool every_call;

static void run_once(const scenario *s, const fault *f, int *calls, int *hits) {
    s->prepare();
    size_t before = blocks;
    int open_before = layer_open_files();
    layer_begin(f);
    clt_status status = s->run();
    char detail[200];
    snprintf(detail, sizeof detail, "%s", clt_error_detail());
    *calls = layer_end(hits);
    injected += *hits;
    runs++;
    if (*hits == 0 && status < 0) fail_msg("%s: %s, though nothing failed", s->name, detail);
    if (s->must_succeed && status < 0) fail_msg("%s: %s: it failed with its cache, at call %d", s->name, detail, f->nth);
    if (status < 0 && !detail[0]) fail_msg("%s: an error without words, at call %d", s->name, f->nth);
    if (layer_open_files() != open_before) fail_msg("%s: files stay open after a fault at call %d (errno %d)", s->name, f->nth, f->error);
    if (blocks > before) fail_msg("%s: %zu blocks stay allocated after a fault at call %d", s->name, blocks - before, f->nth);
    s->check(status, *hits > 0);
}

static void run_faults(const scenario *s, int error, bool for_ever) {
    for (int nth = 1;; nth += s->very_slow && !every_call ? STRIDE : 1) {
        int calls, hits;
        run_once(s, &(fault){error, nth, for_ever}, &calls, &hits);
        if (hits == 0) return; /* there is no call of that number */
        assert_true(nth < 100000);
    }
}

static void run_scenario(const scenario *s) {
    static const int errors[] = {EIO, ENOSPC, EINTR, LAYER_SHORT, LAYER_NOTHING};
    int calls, hits;
    injected = runs = 0;
    run_once(s, &(fault){0}, &calls, &hits);
    assert_true(calls > 0);
    for (size_t i = 0; i < (s->slow ? 1 : CLT_COUNT_OF(errors)); i++) {
        if (errors[i] != LAYER_NOTHING) run_faults(s, errors[i], false);
        /* A call that is interrupted for ever is repeated for ever: no system does that. */
        if (errors[i] != EINTR && !s->very_slow) run_faults(s, errors[i], true);
    }
    print_message("%s: %d calls on files, %d runs, %d calls that failed or fell short\n", s->name, calls, runs, injected);
}

/* ---- what is there ---- */

typedef struct content {
    void *bytes;
    size_t length;
} content;

static content read_content(const char *path) {
    content c;
    assert_ok(clt_file_read(path, 1 << 26, &c.bytes, &c.length));
    return c;
}

static bool equal(const content *a, const content *b) {
    return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

static content old_content, new_content;

static void forget(void) {
    clt_free(old_content.bytes);
    clt_free(new_content.bytes);
    old_content = new_content = (content){0};
}

/* How many temporaries lie in a folder; they are removed. */
static int temporaries(const char *folder) {
    int count = 0;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char path[8192];
        size_t length = strlen(entry->d_name);
        if (length < 4 || strcmp(entry->d_name + length - 4, ".tmp") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
        count++;
    }
    if (entries) closedir(entries);
    return count;
}

/* A file is the old one or the new one; the new one if all went well. A temporary is left only where
 * removing it failed. */
static void check_file(const char *path, const char *folder, clt_status status) {
    content now = read_content(path);
    bool old = equal(&now, &old_content), fresh = equal(&now, &new_content);
    clt_free(now.bytes);
    if (!old && !fresh) fail_msg("%s is neither the old nor the new one", path);
    if (status == CLT_OK && !fresh) fail_msg("%s is the old one after a success", path);
    assert_in_range(temporaries(folder), 0, layer_failed_unlinks());
}

/* ---- checkpoints ---- */

static const char *checkpoint(void) {
    return support_path("model.safetensors");
}

static void prepare_checkpoint(void) {
    support_write(checkpoint(), old_content.bytes, old_content.length);
}

static clt_status save_checkpoint(void) {
    return clt_checkpoint_save(source.trainer, source.loader, checkpoint());
}

static void check_saved(clt_status status, bool hit) {
    (void)hit;
    check_file(checkpoint(), support_folder(), status);
    assert_ok(clt_checkpoint_load(target.trainer, target.loader, checkpoint()));
}

static clt_status save_weights(void) {
    return clt_weights_save(source.trainer, checkpoint());
}

static void make_contents(clt_status (*save)(void)) {
    assert_ok(save());
    old_content = read_content(checkpoint());
    assert_ok(model_train(&source, 1));
    assert_ok(save());
    new_content = read_content(checkpoint());
    assert_false(equal(&old_content, &new_content));
}

static void saving_a_checkpoint(void **state) {
    (void)state;
    make_contents(save_checkpoint);
    run_scenario(&(scenario){"saving a checkpoint", prepare_checkpoint, save_checkpoint, check_saved});
    forget();
}

static void saving_weights(void **state) {
    (void)state;
    make_contents(save_weights);
    run_scenario(&(scenario){"saving weights", prepare_checkpoint, save_weights, check_saved});
    forget();
}

/* The target is as the old checkpoint has it; loading makes it as the new one has it, or leaves it. */
static void prepare_target(void) {
    prepare_checkpoint();
    assert_ok(clt_checkpoint_load(target.trainer, target.loader, checkpoint()));
    support_write(support_path("new"), new_content.bytes, new_content.length);
}

static clt_status load_checkpoint(void) {
    return clt_checkpoint_load(target.trainer, target.loader, support_path("new"));
}

static void check_loaded(clt_status status, bool hit) {
    (void)hit;
    assert_ok(clt_checkpoint_save(target.trainer, target.loader, support_path("now")));
    content now = read_content(support_path("now"));
    assert_true(equal(&now, status == CLT_OK ? &new_content : &old_content));
    clt_free(now.bytes);
}

static void loading_a_checkpoint(void **state) {
    (void)state;
    make_contents(save_checkpoint);
    run_scenario(&(scenario){"loading a checkpoint", prepare_target, load_checkpoint, check_loaded});
    forget();
}

/* ---- files as such ---- */

/* It has permissions that the umask would take away. */
static void prepare_plain(void) {
    umask(022);
    support_write(support_path("plain"), old_content.bytes, old_content.length);
    assert_int_equal(chmod(support_path("plain"), 0666), 0);
}

static clt_status write_plain(void) {
    return clt_file_write(support_path("plain"), new_content.bytes, new_content.length);
}

static void check_plain(clt_status status, bool hit) {
    struct stat facts;
    (void)hit;
    check_file(support_path("plain"), support_folder(), status);
    assert_int_equal(stat(support_path("plain"), &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0666);
}

static clt_status read_plain(void) {
    void *bytes;
    size_t length;
    CLT_TRY(clt_file_read(support_path("plain"), 1 << 20, &bytes, &length));
    bool right = length == old_content.length && !memcmp(bytes, old_content.bytes, length);
    clt_free(bytes);
    return right ? CLT_OK : CLT_E_MISMATCH;
}

static void check_read(clt_status status, bool hit) {
    (void)hit;
    assert_true(status == CLT_OK || status == CLT_E_IO);
}

static void files_as_such(void **state) {
    (void)state;
    assert_non_null(old_content.bytes = clt_calloc(1, 100000));
    assert_non_null(new_content.bytes = clt_calloc(1, 70000));
    old_content.length = 100000, new_content.length = 70000;
    memset(new_content.bytes, 7, new_content.length);
    run_scenario(&(scenario){"writing a file", prepare_plain, write_plain, check_plain});
    run_scenario(&(scenario){"reading a file", prepare_plain, read_plain, check_read});
    forget();
}

static void prepare_folders(void) {
    rmdir(support_path("a/b/c"));
    rmdir(support_path("a/b"));
    rmdir(support_path("a"));
}

static clt_status make_folders(void) {
    return clt_file_make_folder(support_path("a/b/c"));
}

static void check_folders(clt_status status, bool hit) {
    (void)hit;
    if (status == CLT_OK) assert_int_equal(access(support_path("a/b/c"), W_OK), 0);
    assert_ok(make_folders());
}

static void folders(void **state) {
    (void)state;
    run_scenario(&(scenario){"making folders", prepare_folders, make_folders, check_folders});
}

/* ---- data ---- */

static void nothing(void) {
}

static clt_status take_dataset(clt_status status, clt_dataset **dataset) {
    if (status < 0) return status;
    int64_t samples = clt_dataset_samples(*dataset);
    clt_dataset_destroy(*dataset);
    return samples == 2 ? CLT_OK : CLT_E_MISMATCH;
}

static clt_status read_csv(void) {
    clt_dataset *dataset;
    return take_dataset(clt_dataset_csv(&dataset, support_path("table.csv"), NULL), &dataset);
}

static clt_status read_idx(void) {
    clt_dataset *dataset;
    return take_dataset(clt_dataset_idx(&dataset, support_path("images"), support_path("labels")), &dataset);
}

static clt_status read_npy(void) {
    clt_dataset *dataset;
    return take_dataset(clt_dataset_npy(&dataset, support_path("x.npy"), support_path("y.npy")), &dataset);
}

static clt_status read_cifar10(void) {
    clt_dataset *dataset;
    const char *path = support_path("batch.bin");
    return take_dataset(clt_dataset_cifar10(&dataset, &path, 1), &dataset);
}

static void write_npy(const char *name, const char *header, size_t data) {
    char bytes[256] = "\x93NUMPY\1";
    size_t length = strlen(header);
    bytes[8] = (char)length;
    memcpy(bytes + 10, header, length);
    support_write(support_path(name), bytes, 10 + length + data);
}

static void data_sets(void **state) {
    (void)state;
    static const char images[] = "\0\0\10\3\0\0\0\2\0\0\0\1\0\0\0\2abcd", labels[] = "\0\0\10\1\0\0\0\2\0\1";
    static char records[2 * 3073];
    support_write(support_path("table.csv"), "1,2,0\n3,4,1\n", 12);
    support_write(support_path("images"), images, sizeof images - 1);
    support_write(support_path("labels"), labels, sizeof labels - 1);
    support_write(support_path("batch.bin"), records, sizeof records);
    write_npy("x.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}\n", 16);
    write_npy("y.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}\n", 2);
    run_scenario(&(scenario){"reading CSV", nothing, read_csv, check_read});
    run_scenario(&(scenario){"reading IDX", nothing, read_idx, check_read});
    run_scenario(&(scenario){"reading NPY", nothing, read_npy, check_read});
    run_scenario(&(scenario){"reading CIFAR-10", nothing, read_cifar10, check_read});
}

/* ---- the store of a job in files ---- */

static clt_rendezvous *store;

static void prepare_store(void) {
    char url[8300];
    snprintf(url, sizeof url, "file://%s", support_path("store"));
    clt_rendezvous_close(store);
    assert_ok(clt_rendezvous_open(&store, &(clt_rendezvous_options){.url = url, .connect_seconds = 1}));
    assert_ok(clt_rendezvous_set(store, "key", "old", 3, clt_seconds() + 1));
    assert_ok(clt_rendezvous_remove(store, "once", clt_seconds() + 1));
}

static clt_status use_store(void) {
    char value[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    double deadline = clt_seconds() + 0.02;
    CLT_TRY(clt_rendezvous_set(store, "key", "newer", 5, deadline));
    CLT_TRY(clt_rendezvous_look(store, "key", value, &bytes, deadline));
    if (bytes != 5 || memcmp(value, "newer", 5) != 0) return clt_fail(CLT_E_MISMATCH, "another value");
    return clt_rendezvous_set_once(store, "once", "mine", 4, value, &bytes, deadline);
}

static void check_store(clt_status status, bool hit) {
    char value[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    (void)hit;
    assert_true(status != CLT_E_MISMATCH);
    assert_ok(clt_rendezvous_look(store, "key", value, &bytes, clt_seconds() + 1));
    assert_true((bytes == 3 && !memcmp(value, "old", 3)) || (bytes == 5 && !memcmp(value, "newer", 5)));
    clt_status once = clt_rendezvous_look(store, "once", value, &bytes, clt_seconds() + 1);
    assert_true(once == CLT_END || (once == CLT_OK && bytes == 4 && !memcmp(value, "mine", 4)));
    assert_true(status != CLT_OK || once == CLT_OK);
}

static void store_in_files(void **state) {
    (void)state;
    run_scenario(&(scenario){"the store in files", prepare_store, use_store, check_store});
    clt_rendezvous_close(store);
    store = NULL;
}

/* ---- caches: their faults are nobody's errors ---- */

static const char *cache_folder(const char *name) {
    static char path[9000];
    snprintf(path, sizeof path, "%s/cltrain/%s", getenv("XDG_CACHE_HOME"), name);
    return path;
}

static void remove_files(const char *folder) {
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char path[9300];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    if (entries) closedir(entries);
}

static clt_device *own;
static bool warm; /* the cache is left as it is */

static void open_own(void) {
    if (!warm) remove_files(cache_folder("programs"));
    clt_device_close(own);
    assert_ok(clt_device_open(&own, NULL));
}

static const clt_module tiny[] = {{.label = "tiny", .text = "kernel void tiny_fault(global float *x) { x[get_global_id(0)] += 1; }\n"}};

static clt_status build_tiny(void) {
    CLT_TRY(clt_device_build(own, tiny, 1));
    clt_device_settle_programs(own);
    return CLT_OK;
}

static void close_own(void) {
    clt_device_close(own);
    own = NULL;
}

/* Whatever the faults left in the cache: the next device builds, or loads, the same. */
static void check_built(clt_status status, bool hit) {
    (void)status, (void)hit;
    close_own();
    assert_in_range(temporaries(cache_folder("programs")), 0, layer_failed_unlinks());
    assert_ok(clt_device_open(&own, NULL));
    assert_ok(build_tiny());
    clt_build_counts counts = clt_device_build_counts(own);
    assert_int_equal(counts.built + counts.loaded, 1);
    if (!hit) assert_int_equal(counts.loaded, 1);
    close_own();
}

static clt_status build_and_close(void) {
    clt_status status = build_tiny();
    close_own();
    return status;
}

static void programs(void **state) {
    (void)state;
    open_own();
    run_scenario(&(scenario){"storing programs", open_own, build_and_close, check_built, .must_succeed = true, .slow = true});
    assert_ok(clt_device_open(&own, NULL));
    assert_ok(build_and_close());
    warm = true;
    run_scenario(&(scenario){"loading programs", open_own, build_and_close, check_built, .must_succeed = true, .slow = true});
    warm = false;
}

static clt_tuning_result some_result(double us) {
    clt_tuning_result v = {.row = "native", .us = us, .default_us = 2 * us, .tried = 3, .effort = CLT_TUNE_FULL};
    snprintf(v.problem, sizeof v.problem, "matmul 8x4 16x4^T -> 8x16");
    return v;
}

static void prepare_results(void) {
    clt_device_close(own);
    remove_files(cache_folder("tune"));
    assert_ok(clt_device_open(&own, NULL));
    clt_tuning_result old = some_result(5);
    assert_ok(clt_tuning_results_put(&clt_tune_database_of(own)->measured, &old));
    assert_ok(clt_tune_store(own));
}

static clt_status store_results(void) {
    clt_tuning_result fresh = some_result(3);
    clt_tune_database *db = clt_tune_database_of(own);
    snprintf(fresh.problem, sizeof fresh.problem, "matmul 9x4 16x4^T -> 9x16");
    clt_status status = clt_tuning_results_put(&db->measured, &fresh);
    if (status == CLT_OK) status = clt_tune_store(own);
    /* What this run knows is what the next one will know: nothing else may be in it. The list's block is the device's. */
    clt_device_close(own);
    own = NULL;
    return status;
}

static void check_results(clt_status status, bool hit) {
    assert_in_range(temporaries(cache_folder("tune")), 0, layer_failed_unlinks());
    assert_ok(clt_device_open(&own, NULL));
    const clt_tuning_results *measured = &clt_tune_database_of(own)->measured;
    bool old = clt_tuning_results_find(measured, "matmul 8x4 16x4^T -> 8x16"), fresh = clt_tuning_results_find(measured, "matmul 9x4 16x4^T -> 9x16");
    if (!hit) assert_true(old);
    if (status == CLT_OK) assert_true(fresh);
    close_own();
}

static void tuning_results(void **state) {
    (void)state;
    run_scenario(&(scenario){"storing tuning results", prepare_results, store_results, check_results});
}

static void prepare_capability(void) {
    clt_device_close(own);
    remove_files(cache_folder("capabilities"));
    assert_ok(clt_device_open(&own, NULL));
}

static bool capability;

static clt_status ask_capability(void) {
    bool now = clt_device_has(own, CLT_CAP_BF16_STORAGE);
    close_own();
    return now == capability ? CLT_OK : clt_fail(CLT_E_MISMATCH, "the capability came and went");
}

static void check_capability(clt_status status, bool hit) {
    (void)status, (void)hit;
    assert_in_range(temporaries(cache_folder("capabilities")), 0, layer_failed_unlinks());
    assert_ok(clt_device_open(&own, NULL));
    assert_ok(ask_capability());
}

static void capabilities(void **state) {
    (void)state;
    capability = clt_device_has(device, CLT_CAP_BF16_STORAGE);
    run_scenario(&(scenario){"capabilities", prepare_capability, ask_capability, check_capability, .must_succeed = true, .slow = true});
}

static void prepare_peaks(void) {
    clt_device_close(own);
    remove_files(cache_folder("peaks"));
    assert_ok(clt_device_open(&own, NULL));
}

static clt_status ask_peaks(void) {
    clt_peaks peaks = {0};
    clt_status status = clt_device_peaks(own, &peaks);
    close_own();
    return status == CLT_OK && !(peaks.fma_flops > 0) ? clt_fail(CLT_E_MISMATCH, "no peaks") : status;
}

static void check_peaks(clt_status status, bool hit) {
    (void)status, (void)hit;
    assert_in_range(temporaries(cache_folder("peaks")), 0, layer_failed_unlinks());
    assert_ok(clt_device_open(&own, NULL));
    assert_ok(ask_peaks());
}

static void peaks(void **state) {
    (void)state;
    run_scenario(&(scenario){"peaks", prepare_peaks, ask_peaks, check_peaks, .must_succeed = true, .slow = true, .very_slow = true});
    close_own();
}

/* ---- */

static int set_up(void **state) {
    (void)state;
    assert_ok(clt_allocator_set(&(clt_allocator){allocate, reallocate, release, NULL}));
    setenv("XDG_CACHE_HOME", support_path("cache"), 1);
    setenv("CLTRAIN_PROGRAM_CACHE", "on", 1);
    assert_ok(clt_device_open(&device, NULL));
    assert_ok(clt_dataset_digits(&digits));
    assert_ok(model_make(&source, device, digits, 24));
    assert_ok(model_make(&target, device, digits, 24));
    assert_ok(model_train(&source, 2));
    assert_ok(model_train(&target, 1));
    clt_device_settle_programs(device);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    close_own();
    model_destroy(&source);
    model_destroy(&target);
    clt_dataset_destroy(digits);
    clt_device_close(device);
    assert_int_equal(blocks, 0);
    return 0;
}

/* faults [all | TEST]: every call of all scenarios; a pattern such as "saving*" */
int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_as_such),   cmocka_unit_test(folders),        cmocka_unit_test(saving_a_checkpoint),
        cmocka_unit_test(saving_weights),  cmocka_unit_test(loading_a_checkpoint),
        cmocka_unit_test(data_sets),       cmocka_unit_test(store_in_files), cmocka_unit_test(programs),
        cmocka_unit_test(tuning_results),        cmocka_unit_test(capabilities),   cmocka_unit_test(peaks),
    };
    every_call = argc > 1;
    if (argc > 1 && strcmp(argv[1], "all") != 0) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
