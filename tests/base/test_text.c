#include "tests/support.h"

#include <string.h>

#include "runtime/base/base.h"
#include "runtime/base/name.h"

static void test_grows(void **state) {
    (void)state;
    clt_text text = {0};
    assert_string_equal(clt_text_data(&text), "");
    for (int i = 0; i < 1000; i++) clt_text_add(&text, "%d,", i);
    assert_int_equal(text.status, CLT_OK);
    assert_int_equal(text.length, 10 * 2 + 90 * 3 + 900 * 4);
    assert_int_equal(strlen(text.data), text.length);
    assert_int_equal(strncmp(text.data, "0,1,2,", 6), 0);
    assert_string_equal(text.data + text.length - 8, "998,999,");
    clt_text_free(&text);
    assert_null(text.data);
    assert_string_equal(clt_text_data(&text), "");
    clt_text_free(&text);
}

static void test_bytes(void **state) {
    (void)state;
    clt_text text = {0};
    clt_text_add_bytes(&text, "a\0b", 3);
    clt_text_add_bytes(&text, "", 0);
    clt_text_add(&text, "%s", "");
    assert_int_equal(text.length, 3);
    assert_memory_equal(text.data, "a\0b", 4); /* with the NUL behind */
    clt_text_free(&text);
}

static void *no_memory(size_t bytes, void *user) {
    (void)bytes, (void)user;
    return NULL;
}

static void *no_more_memory(void *memory, size_t bytes, void *user) {
    (void)memory, (void)bytes, (void)user;
    return NULL;
}

static void release(void *memory, void *user) {
    (void)memory, (void)user;
}

static void test_first_failure_sticks(void **state) {
    (void)state;
    const clt_allocator none = {no_memory, no_more_memory, release, NULL};
    assert_ok(clt_allocator_set(&none));
    clt_text text = {0};
    clt_text_add(&text, "x");
    assert_ok(clt_allocator_set(NULL));
    clt_text_add(&text, "y"); /* memory is there again, but the text would lack its beginning */
    assert_int_equal(text.status, CLT_E_NO_MEMORY);
    assert_string_equal(clt_text_data(&text), "");
    clt_text_free(&text);
    assert_int_equal(text.status, CLT_OK);
}

static void test_contains(void **state) {
    (void)state;
    assert_true(clt_text_contains("Portable Computing Language", "computing"));
    assert_true(clt_text_contains("pocl", "POCL"));
    assert_true(clt_text_contains("pocl", ""));
    assert_true(clt_text_contains("", ""));
    assert_true(clt_text_contains("aab", "ab"));
    assert_false(clt_text_contains("", "a"));
    assert_false(clt_text_contains("poc", "pocl"));
    assert_false(clt_text_contains("pocl", "mesa"));
}

static void test_lists(void **state) {
    static const char *const names[] = {"ring", "tree", "ring", "red"};
    static const char *const fine[] = {NULL, "", "ring", "-ring", "ring,tree", ",ring,,-red,", "-tree,red"};
    static const char *const bad[][2] = {{"rin", "\"rin\""}, {"rings", "\"rings\""}, {"ring,-trees", "\"trees\""}, {"--ring", "\"-ring\""},
                                         {"-", "\"\""}, {"ring, tree", "\" tree\""}, {"RING", "\"RING\""}};
    (void)state;
    assert_true(clt_list_allows(NULL, "ring") && clt_list_allows("", "ring") && clt_list_allows("-tree", "ring"));
    assert_false(clt_list_allows("tree", "ring") || clt_list_allows("-ring", "ring") || clt_list_allows("ring,-ring", "ring"));
    assert_true(clt_list_names("tree,ring", "ring") && clt_list_names("ring,tree", "ring"));
    assert_false(clt_list_names(NULL, "ring") || clt_list_names("-ring", "ring") || clt_list_names("rings,rin,", "ring"));
    for (size_t i = 0; i < CLT_COUNT_OF(fine); i++) assert_ok(clt_list_check("WHAT", fine[i], true, names, CLT_COUNT_OF(names)));
    for (size_t i = 0; i < CLT_COUNT_OF(bad); i++) {
        assert_int_equal(clt_list_check("WHAT", bad[i][0], true, names, CLT_COUNT_OF(names)), CLT_E_INVALID);
        assert_non_null(strstr(clt_error_detail(), bad[i][1]));
        assert_non_null(strstr(clt_error_detail(), "WHAT: there is no "));
        assert_non_null(strstr(clt_error_detail(), ": there are ring, tree, red"));
    }
    assert_int_equal(clt_list_check("WHAT", "ring,-red", false, names, CLT_COUNT_OF(names)), CLT_E_INVALID);
    assert_ok(clt_choice_check("WHAT", NULL, names, CLT_COUNT_OF(names)));
    assert_ok(clt_choice_check("WHAT", "", names, CLT_COUNT_OF(names)));
    assert_ok(clt_choice_check("WHAT", "red", names, CLT_COUNT_OF(names)));
    assert_int_equal(clt_choice_check("WHAT", "red,ring", names, CLT_COUNT_OF(names)), CLT_E_INVALID);
    assert_int_equal(clt_choice_check("WHAT", "-red", names, CLT_COUNT_OF(names)), CLT_E_INVALID);
}

static void test_hash(void **state) {
    (void)state;
    char a[CLT_HASH_TEXT], b[CLT_HASH_TEXT];
    /* XXH3-128 of nothing, from xxHash's own `xxhsum -H2`. */
    clt_hash_text("", 0, a);
    assert_string_equal(a, "99aa06d3014798d86001c324468d497f");
    clt_hash_text("kernel", 6, a);
    assert_int_equal(strlen(a), 32);
    assert_int_equal(strspn(a, "0123456789abcdef"), 32);
    clt_hash_text("kernel", 6, b);
    assert_string_equal(a, b);
    clt_hash_text("kernem", 6, b);
    assert_string_not_equal(a, b);
    clt_hash_text("kernel", 5, b);
    assert_string_not_equal(a, b);
}

static void test_show(void **state) {
    (void)state;
    char shown[CLT_SHOWN_TEXT], many[CLT_SHOWN_TEXT];
    assert_string_equal(clt_show("a b~", shown), "a b~");
    assert_string_equal(clt_show("\xc3\xa4\n\x7f", shown), "\\xc3\\xa4\\x0a\\x7f");
    for (size_t length = 0; length < sizeof many; length++) {
        memset(many, '\xff', length);
        many[length] = '\0';
        clt_show(many, shown);
        assert_int_equal(strlen(shown), length <= CLT_SHOWN_TEXT / 4 - 2 ? 4 * length : CLT_SHOWN_TEXT - 5);
    }
    assert_string_equal(shown + CLT_SHOWN_TEXT - 8, "...");
}

/* What is hashed piece by piece is a sequence: where the pieces end counts. */
static void test_hash_of_pieces(void **state) {
    (void)state;
    char a[CLT_HASH_TEXT] = "", b[CLT_HASH_TEXT] = "", c[CLT_HASH_TEXT] = "", d[CLT_HASH_TEXT] = "";
    clt_hash_add(a, "source", 6);
    clt_hash_add(a, "options", 7);
    clt_hash_add(b, "source", 6);
    clt_hash_add(b, "options", 7);
    clt_hash_add(c, "options", 7);
    clt_hash_add(c, "source", 6);
    clt_hash_add(d, "sourceo", 7);
    clt_hash_add(d, "ptions", 6);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    assert_string_not_equal(a, d);
    clt_hash_add(b, "", 0);
    assert_string_not_equal(a, b);
}

static void test_name_patterns(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *yes, *no;
    } cases[] = {
        {"", "", "a"}, {"*", "", NULL}, {"*", "fc1.weight", NULL}, {"fc1.weight", "fc1.weight", "fc1.weigh"}, {"fc?.*", "fc1.bias", "fc12.bias"},
        {"*.bias", "a.b.bias", "a.bias.b"}, {"*a*b", "xaxbxb", "xaxbx"}, {"a**b", "ab", "ac"}, {"?*", "a", ""}, {"*aab", "aaaab", "aaaaba"}, {"*?", "\xc3\xa9", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!clt_name_matches(cases[i].yes, cases[i].pattern)) fail_msg("\"%s\" does not match \"%s\"", cases[i].yes, cases[i].pattern);
        if (cases[i].no && clt_name_matches(cases[i].no, cases[i].pattern)) fail_msg("\"%s\" matches \"%s\"", cases[i].no, cases[i].pattern);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_first_failure_sticks),
        cmocka_unit_test(test_contains),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_hash_of_pieces),
        cmocka_unit_test(test_show),
        cmocka_unit_test(test_name_patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
