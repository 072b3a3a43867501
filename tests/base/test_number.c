#include "tests/support.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/base/number.h"

static void reads_numbers(void **state) {
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"0", 0},
        {"-0", -0.0},
        {"1", 1},
        {"+7", 7},
        {"-12.5", -12.5},
        {".5", 0.5},
        {"5.", 5},
        {" 3\t", 3},
        {"1e3", 1000},
        {"1E-3", 1e-3},
        {"2.5e+2", 250},
        {"0.1", 0.1},
        {"1e23", 1e23},
        {"1e-30", 1e-30},
        {"1e400", INFINITY},
        {"-1e400", -INFINITY},
        {"1e-400", 0},
        {"9007199254740993", 9007199254740992.0},
        {"1e99999999999999999999", INFINITY},
        {"1e-99999999999999999999", 0},
        {"0.00000000000000000000000000000000000000000000001234", 1234e-50},
        {"123456789012345678901234567890", 123456789012345678901234567890.0},
        {"3.14159265358979323846264338327950288", 3.14159265358979323846264338327950288},
        {"0e5", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double value = -77;
        if (!clt_number_parse(cases[i].text, &value)) fail_msg("\"%s\" is refused", cases[i].text);
        if (memcmp(&value, &cases[i].value, sizeof value))
            fail_msg("\"%s\" gives %.17g", cases[i].text, value);
    }
    (void)state;
}

static void refuses_the_rest(void **state) {
    static const char *const texts[] = {"",
                                        " ",
                                        ".",
                                        "-",
                                        "+.",
                                        "e5",
                                        "1e",
                                        "1e+",
                                        "1 2",
                                        "1,5",
                                        "nan",
                                        "-inf",
                                        "0x10",
                                        "1f",
                                        "--1",
                                        "1..2",
                                        "NaN",
                                        "INFINITY",
                                        "\n1",
                                        "1e5.",
                                        "1_000",
                                        ("\xc2\xa0"
                                         "1")};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        double value;
        if (clt_number_parse(texts[i], &value)) fail_msg("\"%s\" gives %g", texts[i], value);
    }
    (void)state;
}

/* Printed with enough digits, every double comes back, by the fast way and the slow one. */
static void rounds_correctly(void **state) {
    clt_random random;
    clt_random_init(&random, 1, 0);
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = clt_random_u32(&random) | (uint64_t)clt_random_u32(&random) << 32;
        double value, back;
        memcpy(&value, &bits, sizeof value);
        if (i % 2)
            value = floor(clt_random_uniform(&random) * 1e9) /
                    pow(10, (double)clt_random_below(&random, 10));
        if (!isfinite(value)) continue;
        char text[40];
        snprintf(text, sizeof text, "%.17g", value);
        assert_true(clt_number_parse(text, &back));
        assert_memory_equal(&back, &value, sizeof value);
        snprintf(text, sizeof text, "%.6g", value);
        assert_true(clt_number_parse(text, &back));
        value = strtod(text, NULL);
        assert_memory_equal(&back, &value, sizeof value);
    }
    (void)state;
}

static void ignores_the_locale(void **state) {
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "nl_NL.UTF-8", "pt_BR.UTF-8",
                                        "de_DE"};
    size_t i = 0;
    while (i < sizeof names / sizeof names[0] && !setlocale(LC_ALL, names[i])) i++;
    if (i == sizeof names / sizeof names[0]) skip(); /* none with a decimal comma is installed */
    assert_string_equal(localeconv()->decimal_point, ",");
    double fast, slow;
    bool good = clt_number_parse("1.5", &fast) && clt_number_parse("1.5e-30", &slow);
    bool comma = clt_number_parse("1,5", &fast);
    const char *kept = localeconv()->decimal_point;
    assert_string_equal(kept, ",");
    setlocale(LC_ALL, "C");
    assert_true(good && !comma);
    assert_true(fast == 1.5 && slow == 1.5e-30);
    (void)state;
}

static void whole_numbers(void **state) {
    static const struct {
        const char *text;
        uint64_t most, value;
    } good[] = {{"0", 0, 0}, {"7", 7, 7}, {"007", 10, 7}, {"99", 100, 99}, {"100", 100, 100}, {"4294967295", UINT32_MAX, UINT32_MAX},
                {"18446744073709551615", UINT64_MAX, UINT64_MAX}},
      bad[] = {{"", 9, 0}, {"1", 0, 0}, {"8", 7, 0}, {"101", 100, 0}, {"1000", 100, 0}, {"+1", 9, 0}, {"-1", 9, 0}, {" 1", 9, 0}, {"1 ", 9, 0},
               {"1.", 9, 0}, {"1e1", 99, 0}, {"0x1", 9, 0}, {"18446744073709551616", UINT64_MAX, 0}, {"99999999999999999999", UINT64_MAX, 0},
               {"184467440737095516150", UINT64_MAX, 0}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t value = 77;
        if (!clt_number_whole(good[i].text, good[i].most, &value) || value != good[i].value) fail_msg("\"%s\" is not read", good[i].text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t value = 77;
        if (clt_number_whole(bad[i].text, bad[i].most, &value) || value != 77) fail_msg("\"%s\" is taken", bad[i].text);
    }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_numbers),
        cmocka_unit_test(refuses_the_rest),
        cmocka_unit_test(rounds_correctly),
        cmocka_unit_test(ignores_the_locale),
        cmocka_unit_test(whole_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
