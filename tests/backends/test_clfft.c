/*
 * Convolution with large filters by clFFT against the reference, and that it serves only where it is
 * asked for.
 */
#include "tests/backends/compare.h"

#include <stdlib.h>
#include <string.h>

static clt_device *device;
static const double bound = 1e-10;

static void directions(void **state) {
    (void)state;
    /* The large pictures are 12 x 12, 20 x 18 and 16 x 30: few, for each is kernels to compile. */
    static const compare_window windows[] = {
        {2, 3, 12, 11, 5, 7, 7, 1, 1, 0, 0, 1, 1, 1},
        {3, 5, 14, 12, 2, 7, 9, 1, 1, 3, 3, 1, 1, 1},
        {1, 1, 9, 20, 1, 5, 11, 1, 1, 3, 5, 1, 1, 1},
    };
    for (size_t i = 0; i < CLT_COUNT_OF(windows); i++)
        for (int direction = 0; direction < 3; direction++) {
            compare_test test = compare_convolution(&windows[i], direction);
            compare_check(device, &test, compare_row(device, &test, "clfft"), NULL, bound);
        }
}

static bool serves(compare_window window) {
    compare_test test = compare_convolution(&window, 0);
    return !strcmp(compare_chosen(device, &test), "clfft");
}

static void what_is_served(void **state) {
    (void)state;
    static const compare_window window = {1, 2, 20, 20, 2, 7, 7, 1, 1, 3, 3, 1, 1, 1};
    compare_window w = window;
    assert_true(serves(w));
    w.kh = 6;
    assert_false(serves(w));
    w = window, w.sw = 2;
    assert_false(serves(w));
    w = window, w.dh = 2;
    assert_false(serves(w));
    w = window, w.groups = 2;
    assert_false(serves(w));
    clt_device_override(device, &(clt_settings){.backends = ""});
    assert_false(serves(window));
    clt_device_override(device, &(clt_settings){.device_class = "gpu"});
    assert_false(serves(window)); /* a tuner may choose it, no other */
    compare_test test = compare_convolution(&window, 0);
    compare_row(device, &test, "clfft");
    clt_device_override(device, &(clt_settings){.device_class = ""});
    clt_device_override(device, &(clt_settings){.backends = "reference,native,clfft"});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(directions), cmocka_unit_test(what_is_served)};
    if (!clt_clfft_rows[0].op) return print_message("built without clFFT\n"), 0;
    if (clt_device_open_with(&device, &(clt_settings){.backends = "reference,native,clfft"}) < 0) return print_error("no device: %s\n", clt_error_detail()), 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clt_device_close(device);
    return failed;
}
