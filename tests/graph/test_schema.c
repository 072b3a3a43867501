/* Schemas of all ops: they cover the attributes, and ranks that differ in one of them are told apart. */
#include "tests/support.h"

#include "runtime/ops/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK = 4 };

/* A node of the op with usual attributes, and no inputs: what a description reads. */
typedef struct sample {
    clt_tensor node;
    clt_shape shape;
} sample;

static void make(sample *s, const clt_op *op) {
    *s = (sample){.node = {.kind = CLT_NODE_OP, .op = op, .shape = CLT_SHAPE(2, 3, 4, 5)}};
    s->node.attributes = op->attributes_bytes ? calloc(1, op->attributes_bytes) : NULL;
    if (s->node.attributes) clt_attributes_init(op->schema, s->node.attributes, op->attributes_bytes);
}

static void describe(const sample *s, clt_text *text) {
    *text = (clt_text){0};
    clt_tensor_describe(&s->node, NULL, text);
    assert_ok(text->status);
}

/* Another value of that type. */
static void change(const clt_attribute *a, void *attributes) {
    void *value = (char *)attributes + a->offset;
    switch (a->type) {
    case CLT_ATTRIBUTE_DTYPE:
        *(clt_dtype *)value = *(clt_dtype *)value == CLT_I32 ? CLT_F32 : CLT_I32;
        break;
    case CLT_ATTRIBUTE_ORDER:
        ((int *)value)[RANK - 1] += 1;
        break;
    case CLT_ATTRIBUTE_SIZES:
        ((int64_t *)value)[RANK - 1] += 1;
        break;
    case CLT_ATTRIBUTE_TEXT:
        *(const char **)value = "another";
        break;
    case CLT_ATTRIBUTE_FLOAT: /* the next one */
        *(uint32_t *)value += 1;
        break;
    default:
        clt_attribute_set_number(a, attributes, clt_attribute_number(a, attributes) == 0 ? 1 : 0);
    }
}

/* The rank of this process, and shapes, which are compared as such, may differ. */
static void each_attribute_is_compared(void **state) {
    (void)state;
    int compared = 0;
    for (int i = 0; clt_ops[i]; i++) {
        const clt_op *op = clt_ops[i];
        for (const clt_attribute *a = op->schema; a && a->name; a++) {
            if (a->of_rank || a->type == CLT_ATTRIBUTE_RESULT || a->type == CLT_ATTRIBUTE_OPAQUE) continue;
            sample one, other;
            clt_text before, after;
            make(&one, op);
            make(&other, op);
            change(a, other.node.attributes);
            describe(&one, &before);
            describe(&other, &after);
            if (!strcmp(clt_text_data(&before), clt_text_data(&after)))
                fail_msg("ranks that differ in %s of %s pass as equal: \"%s\"", a->name, op->name, clt_text_data(&before));
            assert_false(clt_attributes_equal(op->schema, one.node.attributes, other.node.attributes));
            clt_text_free(&before);
            clt_text_free(&after);
            free(one.node.attributes);
            free(other.node.attributes);
            compared++;
        }
    }
    assert_true(compared > 60);
}

/* What lies between the fields of a schema is padding: less than the alignment of what follows. */
static void schemas_cover_the_attributes(void **state) {
    (void)state;
    for (int i = 0; clt_ops[i]; i++) {
        const clt_op *op = clt_ops[i];
        char *covered = calloc(op->attributes_bytes + 1, 1);
        for (const clt_attribute *a = op->schema; a && a->name; a++) {
            assert_true(a->offset + a->bytes <= op->attributes_bytes);
            memset(covered + a->offset, 1, a->bytes);
        }
        size_t gap = 0;
        for (size_t b = 0; b < op->attributes_bytes; b++) {
            gap = covered[b] ? 0 : gap + 1;
            if (gap > 7) fail_msg("%s: bytes %zu to %zu of its attributes are in no schema", op->name, b + 1 - gap, b);
        }
        free(covered);
    }
}

static void ops_have_names_of_their_own(void **state) {
    (void)state;
    for (int i = 0; clt_ops[i]; i++)
        for (int k = 0; k < i; k++) assert_string_not_equal(clt_ops[i]->name, clt_ops[k]->name);
}

static void usual_values_pass_the_check(void **state) {
    (void)state;
    for (int i = 0; clt_ops[i]; i++) {
        sample s;
        make(&s, clt_ops[i]);
        for (const clt_attribute *a = clt_ops[i]->schema; a && a->name && s.node.attributes; a++)
            if (a->least > a->usual && a->usual == 0) clt_attribute_set_number(a, s.node.attributes, a->least);
        if (s.node.attributes) assert_ok(clt_attributes_check(clt_ops[i]->schema, s.node.attributes));
        free(s.node.attributes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_attribute_is_compared),
        cmocka_unit_test(schemas_cover_the_attributes),
        cmocka_unit_test(ops_have_names_of_their_own),
        cmocka_unit_test(usual_values_pass_the_check),
    };
    return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
