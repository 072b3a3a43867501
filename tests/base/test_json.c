#include "tests/support.h"

#include "runtime/base/json.h"

static void test_writes_what_was_set(void **state) {
    (void)state;
    clt_text text = {0};
    json_t *object = json_object();
    assert_ok(clt_json_set(object, "b", json_integer(3)));
    assert_ok(clt_json_set_text(object, "a", "\xc3\xa4\""));
    clt_text_add(&text, "> ");
    assert_ok(clt_json_dump(object, JSON_COMPACT, &text));
    assert_string_equal(text.data, "> {\"b\":3,\"a\":\"\xc3\xa4\\\"\"}");
    clt_text_free(&text);
    json_decref(object);
}

static void test_refuses_what_is_no_text(void **state) {
    (void)state;
    json_t *object = json_object(), *string = NULL;
    assert_status(clt_json_string(&string, "caf\xe9"), CLT_E_INVALID);
    assert_null(string);
    assert_detail("is not UTF-8");
    assert_status(clt_json_set_text(object, "a", "\xff"), CLT_E_INVALID);
    assert_int_equal(json_object_size(object), 0);
    json_decref(object);
}

/* What could not be made comes in as NULL. */
static void test_tells_missing_memory(void **state) {
    (void)state;
    clt_text text = {0};
    json_t *object = json_object();
    assert_status(clt_json_set(object, "a", NULL), CLT_E_NO_MEMORY);
    assert_int_equal(json_object_size(object), 0);
    assert_status(clt_json_set(NULL, "a", json_integer(3)), CLT_E_NO_MEMORY);
    assert_status(clt_json_set_text(NULL, "a", "b"), CLT_E_NO_MEMORY);
    assert_status(clt_json_dump(NULL, 0, &text), CLT_E_NO_MEMORY);
    assert_int_equal(text.status, CLT_E_NO_MEMORY);
    clt_text_free(&text);
    json_decref(object);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writes_what_was_set),
        cmocka_unit_test(test_refuses_what_is_no_text),
        cmocka_unit_test(test_tells_missing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
