#define _POSIX_C_SOURCE 200809L /* setenv, dirent */
/* The measured peaks of a device: what was done by the time that it took, and remembered. */
#include "tests/support.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/device/device.h"

static clt_device *device;

/* The one file in the cache's folder of peaks, or NULL. */
static const char *peaks_file(void) {
    static char path[8192];
    clt_text folder = {0};
    bool found = false;
    assert_ok(clt_file_cache_folder(clt_device_settings(device)->cache_folder, "peaks", &folder));
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

/* A clock that only launches move: the first few by a millisecond, the others by as much as is said here. */
static double launch_seconds, now;
static int n_short;
double __real_clt_seconds(void);
double __wrap_clt_seconds(void);
clt_status __real_clt_kernel_enqueue(clt_kernel *kernel, int dims, const size_t *global, const size_t *local);
clt_status __wrap_clt_kernel_enqueue(clt_kernel *kernel, int dims, const size_t *global, const size_t *local);

double __wrap_clt_seconds(void) {
    return launch_seconds > 0 ? now : __real_clt_seconds();
}

clt_status __wrap_clt_kernel_enqueue(clt_kernel *kernel, int dims, const size_t *global, const size_t *local) {
    now += n_short-- > 0 ? 0.001 : launch_seconds;
    return __real_clt_kernel_enqueue(kernel, dims, global, local);
}

static clt_peaks peaks_by_clock(int n, double seconds) {
    clt_peaks peaks = {0};
    now = 0;
    n_short = n;
    launch_seconds = seconds;
    clt_status status = clt_device_measure_peaks(device, &peaks);
    launch_seconds = 0;
    assert_ok(status);
    return peaks;
}

static void assert_near(double got, double wanted) {
    if (!(fabs(got / wanted - 1) < 1e-9)) fail_msg("%.12g, not %.12g", got, wanted);
}

/* That the counts are those of the work, whatever the machine is busy with. What the kernels compute tells how often they did it,
 * and tests/bench/limits.py holds the rates against the host's own loops. */
static void rates_are_work_by_time(void **state) {
    (void)state;
    const clt_device_info *info = clt_device_get_info(device);
    double width = clt_device_vector_width(device);
    double items = info->compute_units * (width > 1 ? 1 : fmin(64, (double)info->max_work_group_size));
    /* Long enough at once: 12 vectors a work-item, 4 rounds of 4 multiply-adds; 16384 floats, read and written. */
    clt_peaks least = peaks_by_clock(0, 0.5);
    assert_near(least.fma_flops, 2 * 4 * 4 * 12 * width * items / 0.5);
    assert_near(least.copy_bytes, 2 * 16384 * sizeof(float) / 0.5);
    /* Three launches are tried, then three of four times the rounds, and four times those. */
    assert_near(peaks_by_clock(6, 0.5).fma_flops, 16 * least.fma_flops);
    /* Long enough for multiply-adds, and so short that all of a buffer larger than caches is copied. */
    clt_peaks whole = peaks_by_clock(0, 0.05);
    assert_near(whole.fma_flops, 10 * least.fma_flops);
    double bytes = whole.copy_bytes * 0.05 / 2;
    assert_true(bytes <= 256 << 20 && bytes <= (double)info->max_buffer_bytes);
    assert_true(bytes > 31 << 20 || bytes > 0.1 * (double)info->memory_bytes);
}

static void measured(void **state) {
    (void)state;
    clt_peaks peaks;
    assert_ok(clt_device_measure_peaks(device, &peaks));
    print_message("%.1f GFLOP/s, %.2f GB/s\n", 1e-9 * peaks.fma_flops, 1e-9 * peaks.copy_bytes);
    assert_true(peaks.fma_flops > 1e3 && peaks.copy_bytes > 1e3);
}

static void remembered(void **state) {
    (void)state;
    clt_peaks first, second;
    assert_null(peaks_file());
    assert_ok(clt_device_peaks(device, &first));
    const char *path = peaks_file();
    assert_non_null(path);
    /* Measured often enough: given as they are. Else the best of what is known and what is measured. */
    assert_ok(clt_file_write(path, "2e9 3e9 3\n", 10));
    assert_ok(clt_device_peaks(device, &second));
    assert_true(second.fma_flops == 2e9 && second.copy_bytes == 3e9);
    assert_ok(clt_file_write(path, "2e5 3e12 2\n", 11));
    assert_ok(clt_device_peaks(device, &first));
    assert_true(first.fma_flops > 2e5 && first.copy_bytes == 3e12);
    /* Written as no locale writes otherwise. */
    char *text;
    size_t length;
    assert_ok(clt_file_read(path, 1000, (void **)&text, &length));
    assert_int_equal(strspn(text, "0123456789 \n"), length);
    clt_free(text);
    assert_ok(clt_device_peaks(device, &second));
    assert_true(second.fma_flops / first.fma_flops - 1 < 1e-6 && second.copy_bytes == 3e12);
    /* Of what is behind the line nobody knows where it comes from. */
    assert_ok(clt_file_write(path, "2e9 3e9 3\n2", 11));
    assert_ok(clt_device_peaks(device, &second));
    assert_true(second.copy_bytes != 3e9);
}

static void garbage_is_measured_anew(void **state) {
    (void)state;
    static const char *const garbage[] = {"",           "1e9 1e9",   "-1 5 3",   "nan nan 3",
                                          "1e300 1 3\n", "\xff\xfe\n", "0 0 3\n", "1e9 1e9 0\n",
                                          "9e17 1e9 3\n", "1e9 9e17 3\n", "1 1e9 3\n", "1e9 1 3\n"};
    clt_peaks peaks;
    const char *path = peaks_file();
    assert_non_null(path);
    for (size_t i = 0; i < CLT_COUNT_OF(garbage); i++) {
        assert_ok(clt_file_write(path, garbage[i], strlen(garbage[i])));
        assert_ok(clt_device_peaks(device, &peaks));
        assert_true(peaks.fma_flops > 1e3 && peaks.fma_flops < 8e17 && peaks.copy_bytes > 1e3 && peaks.copy_bytes < 8e17);
    }
    assert_status(clt_device_peaks(NULL, &peaks), CLT_E_INVALID);
    assert_status(clt_device_peaks(device, NULL), CLT_E_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_work_by_time),
        cmocka_unit_test(measured),
        cmocka_unit_test(remembered),
        cmocka_unit_test(garbage_is_measured_anew),
    };
    setenv("XDG_CACHE_HOME", support_folder(), 1);
    if (clt_device_open(&device, NULL) < 0) {
        print_error("%s\n", clt_error_detail());
        return 1;
    }
    int failures = cmocka_run_group_tests_name("peaks", tests, NULL, NULL);
    clt_device_close(device);
    return failures;
}
