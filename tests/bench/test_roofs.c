#define _POSIX_C_SOURCE 200809L /* setenv, dirent */
/* The measured roofs of a device: plausible beside a loop of the host's own, and remembered. */
#include "tests/support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/device/device.h"
#include "tests/bench/host_peak.h"

static clt_device *device;

/* The one file in the cache's folder of roofs, or NULL. */
static const char *roofs_file(void) {
    static char path[8192];
    clt_text folder = {0};
    bool found = false;
    assert_ok(clt_file_cache_folder("roofs", &folder));
    DIR *entries = opendir(folder.data);
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] == '.') continue;
        assert_false(found);
        found = true;
        snprintf(path, sizeof path, "%s/%s", folder.data, entry->d_name);
    }
    closedir(entries);
    clt_text_free(&folder);
    return found ? path : NULL;
}

/* A count that is wrong by a factor shows against the host's loop, which shares the processor; the
 * margin is for a machine that is busy with something else. */
static void peak_is_the_hosts(void **state) {
    (void)state;
    clt_roofs roofs;
    const clt_device_info *info = clt_device_get_info(device);
    assert_ok(clt_device_measure_roofs(device, &roofs));
    double host = host_peak((int)info->compute_units);
    double copied = host_copy((int)info->compute_units, (size_t)128 << 20);
    print_message("%.1f GFLOP/s (host loop %.1f), %.2f GB/s (host loop %.2f)\n", 1e-9 * roofs.fma_flops, 1e-9 * host,
                  1e-9 * roofs.copy_bytes, 1e-9 * copied);
    assert_true(roofs.fma_flops > 1e3 && roofs.copy_bytes > 1e3);
    if (info->type != CLT_DEVICE_CPU || !clt_text_contains(info->platform, "Portable") || host == 0) return;
    assert_true(roofs.fma_flops > 0.4 * host && roofs.fma_flops < 1.7 * host);
    assert_true(copied > 0 && roofs.copy_bytes > 0.3 * copied && roofs.copy_bytes < 3 * copied);
}

static void remembered(void **state) {
    (void)state;
    clt_roofs first, second;
    assert_null(roofs_file());
    assert_ok(clt_device_roofs(device, &first));
    const char *path = roofs_file();
    assert_non_null(path);
    /* Measured often enough: given as they are. Else the best of what is known and what is measured. */
    assert_ok(clt_file_write(path, "2e9 3e9 3\n", 10));
    assert_ok(clt_device_roofs(device, &second));
    assert_true(second.fma_flops == 2e9 && second.copy_bytes == 3e9);
    assert_ok(clt_file_write(path, "2e5 3e12 2\n", 11));
    assert_ok(clt_device_roofs(device, &first));
    assert_true(first.fma_flops > 2e5 && first.copy_bytes == 3e12);
    /* Written as no locale writes otherwise. */
    char *text;
    size_t length;
    assert_ok(clt_file_read(path, 1000, (void **)&text, &length));
    assert_int_equal(strspn(text, "0123456789 \n"), length);
    clt_free(text);
    assert_ok(clt_device_roofs(device, &second));
    assert_true(second.fma_flops / first.fma_flops - 1 < 1e-6 && second.copy_bytes == 3e12);
    /* Of what is behind the line nobody knows where it comes from. */
    assert_ok(clt_file_write(path, "2e9 3e9 3\n2", 11));
    assert_ok(clt_device_roofs(device, &second));
    assert_true(second.copy_bytes != 3e9);
}

static void garbage_is_measured_anew(void **state) {
    (void)state;
    static const char *const garbage[] = {"",           "1e9 1e9",   "-1 5 3",   "nan nan 3",
                                          "1e300 1 3\n", "\xff\xfe\n", "0 0 3\n", "1e9 1e9 0\n",
                                          "9e17 1e9 3\n", "1e9 9e17 3\n", "1 1e9 3\n", "1e9 1 3\n"};
    clt_roofs roofs;
    const char *path = roofs_file();
    assert_non_null(path);
    for (size_t i = 0; i < CLT_COUNT_OF(garbage); i++) {
        assert_ok(clt_file_write(path, garbage[i], strlen(garbage[i])));
        assert_ok(clt_device_roofs(device, &roofs));
        assert_true(roofs.fma_flops > 1e3 && roofs.fma_flops < 8e17 && roofs.copy_bytes > 1e3 && roofs.copy_bytes < 8e17);
    }
    assert_status(clt_device_roofs(NULL, &roofs), CLT_E_INVALID);
    assert_status(clt_device_roofs(device, NULL), CLT_E_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peak_is_the_hosts),
        cmocka_unit_test(remembered),
        cmocka_unit_test(garbage_is_measured_anew),
    };
    setenv("XDG_CACHE_HOME", support_folder(), 1);
    if (clt_device_open(&device, NULL) < 0) {
        print_error("%s\n", clt_error_detail());
        return 1;
    }
    int failures = cmocka_run_group_tests_name("roofs", tests, NULL, NULL);
    clt_device_close(device);
    return failures;
}
