#include "tests/support.h"

#include <stdlib.h>

#include "tests/exchange/messages.h"

static void test_fields(void **state) {
    (void)state;
    message m = {.length = 0};
    put_number(&m, 1, 300);
    put_text(&m, 2, "abc");
    put_float(&m, 3, 1.5f);
    put_varint(&m, 4 << 3 | CLT_WIRE_64);
    memcpy(m.bytes + m.length, "\1\2\3\4\5\6\7\10", 8);
    m.length += 8;
    put_number(&m, (1u << 29) - 1, UINT64_MAX);
    clt_wire wire = wire_of(&m);
    clt_wire_field f;
    assert_int_equal(clt_wire_next(&wire, &f), 1);
    assert_true(f.number == 1 && f.type == CLT_WIRE_VARINT && f.value == 300);
    assert_int_equal(clt_wire_next(&wire, &f), 1);
    assert_true(f.number == 2 && f.type == CLT_WIRE_BYTES && clt_wire_length(f.bytes) == 3 && !memcmp(f.bytes.at, "abc", 3));
    assert_int_equal(clt_wire_next(&wire, &f), 1);
    assert_true(f.number == 3 && f.type == CLT_WIRE_32 && f.value == 0x3fc00000);
    assert_int_equal(clt_wire_next(&wire, &f), 1);
    assert_true(f.number == 4 && f.type == CLT_WIRE_64 && f.value == 0x0807060504030201);
    assert_int_equal(clt_wire_next(&wire, &f), 1);
    assert_true(f.number == (1u << 29) - 1 && f.value == UINT64_MAX);
    assert_int_equal(clt_wire_next(&wire, &f), 0);
    assert_int_equal(clt_wire_next(&wire, &f), 0);
}

/* Numbers of each length, from one byte to ten. */
static void test_varints(void **state) {
    (void)state;
    for (int bits = 0; bits <= 64; bits++) {
        uint64_t value = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1, got;
        message m = {.length = 0};
        put_varint(&m, value);
        clt_wire wire = wire_of(&m);
        assert_int_equal(clt_wire_value(&wire, CLT_WIRE_VARINT, &got), 1);
        assert_true(got == value);
        assert_int_equal(clt_wire_value(&wire, CLT_WIRE_VARINT, &got), 0);
        wire = (clt_wire){m.bytes, m.bytes + m.length - 1};
        assert_int_equal(clt_wire_value(&wire, CLT_WIRE_VARINT, &got), m.length == 1 ? 0 : -1);
    }
}

/* What is cut at any byte is the fields before, or malformed; what lies behind is not looked at. */
static void test_truncation(void **state) {
    (void)state;
    message m = {.length = 0};
    put_number(&m, 1, 70000);
    size_t first = m.length;
    put_text(&m, 2, "abc");
    size_t second = m.length;
    put_float(&m, 3, 1);
    for (size_t length = 0; length < m.length; length++) {
        unsigned char *cut = malloc(length ? length : 1); /* so that sanitizers see what is read behind it */
        assert_non_null(cut);
        memcpy(cut, m.bytes, length);
        clt_wire wire = {cut, cut + length};
        clt_wire_field f;
        int got, n = 0;
        while ((got = clt_wire_next(&wire, &f)) == 1) n++;
        bool whole = length == 0 || length == first || length == second;
        assert_int_equal(got, whole ? 0 : -1);
        assert_int_equal(n, length < first ? 0 : length < second ? 1 : 2);
        free(cut);
    }
}

static void test_malformed(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
    } cases[] = {
        {"\x00\x01", 2},                                             /* field 0 */
        {"\x0b", 1},                                                 /* a group begins */
        {"\x0c", 1},                                                 /* and ends */
        {"\x0e\x01", 2},                                             /* types 6 */
        {"\x0f\x01", 2},                                             /* and 7 */
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11},        /* a key of eleven bytes */
        {"\x80\x80\x80\x80\x20\x01", 6},                             /* field 2^30 */
        {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},        /* 2^64 - 1 bytes */
        {"\x12\x02\x61", 3},                                         /* one byte more than there is */
    };
    for (size_t i = 0; i < CLT_COUNT_OF(cases); i++) {
        clt_wire wire = {(const unsigned char *)cases[i].bytes, (const unsigned char *)cases[i].bytes + cases[i].length};
        clt_wire_field f;
        assert_int_equal(clt_wire_next(&wire, &f), -1);
    }
    uint64_t value;
    assert_int_equal(clt_wire_value(&(clt_wire){(const unsigned char *)"a", (const unsigned char *)"a" + 1}, CLT_WIRE_BYTES, &value), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields), cmocka_unit_test(test_varints), cmocka_unit_test(test_truncation),
                                       cmocka_unit_test(test_malformed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
