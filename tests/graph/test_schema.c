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
} sample;

static void make(sample *s, const clt_op *op) {
    *s = (sample){.node = {.kind = CLT_NODE_OP, .op = op, .shape = CLT_SHAPE(2, 3, 4, 5)}};
    s->node.attributes = op->attributes_bytes ? calloc(1, op->attributes_bytes) : NULL;
    if (s->node.attributes) clt_attributes_init(op->schema, s->node.attributes, op->attributes_bytes);
}

/* ---- other values ---- */

enum { OFFSETS = 2 };
static int64_t offsets[OFFSETS], other_offsets[OFFSETS];

/* What an opaque attribute holds before it is changed, so that each of its parts is told. */
static void fill_opaque(const clt_attribute *a, void *value) {
    static clt_user_definition definition = {.n_inputs = 2, .name = "name", .source = "source", .forward = "forward", .backward = {"0", "1"}};
    if (!strcmp(a->name, "stages") || !strcmp(a->name, "chain")) {
        clt_fused *fused = value;
        fused->n_stages = 2;
        for (int i = 0; i < 2; i++) {
            fused->stages[i] = (clt_fused_stage){.form = {.name = "name", .expression = "a"}};
            clt_form_read(&fused->stages[i].form, 'a', i, CLT_READ_BROADCAST, 0);
        }
    } else if (strstr(a->name, "definition")) {
        *(clt_user_definition **)value = &definition;
    } else if (!strcmp(a->name, "offsets")) {
        *(clt_pack_attributes *)value = (clt_pack_attributes){offsets, OFFSETS};
    }
}

/* Another value of part `i` of an opaque attribute; false if there is no such part. */
static bool change_opaque(const clt_attribute *a, void *value, int i) {
    if (strstr(a->name, "scalars")) {
        if (i < CLT_USER_OP_MAX_SCALARS) ((float *)value)[i] += 1;
        return i < CLT_USER_OP_MAX_SCALARS;
    }
    if (strstr(a->name, "definition")) {
        static clt_user_definition other;
        other = **(clt_user_definition **)value;
        char **const texts[] = {&other.name, &other.source, &other.forward, &other.backward[0], &other.backward[1]};
        *(clt_user_definition **)value = &other;
        if (i < 5) *texts[i] = "another";
        else other.n_inputs--;
        return i < 6;
    }
    if (!strcmp(a->name, "offsets")) {
        *(clt_pack_attributes *)value = (clt_pack_attributes){other_offsets, OFFSETS};
        memcpy(other_offsets, offsets, sizeof offsets);
        if (i < OFFSETS) other_offsets[i] = 256;
        else ((clt_pack_attributes *)value)->n--;
        return i <= OFFSETS;
    }
    clt_fused *fused = value;
    clt_form *form = &fused->stages[i & 1].form;
    switch (i / 2) {
    case 0: form->name = "another"; break;
    case 1: form->expression = "-a"; break;
    case 2: form->s[0] = 1; break;
    case 3: form->s[1] = 1; break;
    case 4: form->operands[0].letter = 'b'; break;
    case 5: form->operands[0].input += 1; break;
    case 6: form->operands[0].read = CLT_READ_ROW; break;
    case 7: form->operands[0].offset = 1; break;
    case 8: form->operands[0].dims = 1; break;
    case 9: form->n_operands = 0; break;
    case 10: fused->stages[i & 1].dtype = CLT_I32; break;
    case 11: *(i & 1 ? &fused->n_stages : &fused->n_inputs) += 1; break;
    default: return false;
    }
    return true;
}

/* Another value of the attribute, in its part `i`; false if there is no such part. */
static bool change(const clt_attribute *a, void *attributes, int i) {
    void *value = (char *)attributes + a->offset;
    switch (a->type) {
    case CLT_ATTRIBUTE_ORDER:
        if (i < RANK) ((int *)value)[i] += 1;
        return i < RANK;
    case CLT_ATTRIBUTE_SIZES:
        if (i < RANK) ((int64_t *)value)[i] += 1;
        return i < RANK;
    case CLT_ATTRIBUTE_RESULT:
        *(clt_shape *)value = CLT_SHAPE(2, 3);
        if (i < 2) ((clt_shape *)value)->dims[i] += 1;
        else ((clt_shape *)value)->rank -= 1;
        return i < 3;
    case CLT_ATTRIBUTE_OPAQUE:
        return change_opaque(a, value, i);
    case CLT_ATTRIBUTE_DTYPE:
        *(clt_dtype *)value = *(clt_dtype *)value == CLT_I32 ? CLT_F32 : CLT_I32;
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
    return i == 0;
}

/* ---- tests ---- */

/* The word of the second description that is not in the first names the attribute. */
static void expect_told_apart(const clt_attribute *a, const sample *one, const sample *other) {
    clt_text texts[2] = {{0}, {0}};
    char name[64];
    clt_tensor_describe(&one->node, NULL, &texts[0]);
    clt_tensor_describe(&other->node, NULL, &texts[1]);
    const char *x = clt_text_data(&texts[0]), *y = clt_text_data(&texts[1]);
    assert_ok(texts[0].status);
    assert_ok(texts[1].status);
    if (!strcmp(x, y)) fail_msg("ranks that differ in %s of %s pass as equal: \"%s\"", a->name, one->node.op->name, x);
    size_t word = clt_describe_difference(x, y);
    snprintf(name, sizeof name, "%s=", a->name);
    if (strncmp(y + word, name, strlen(name))) fail_msg("%s of %s is not what is told to differ: \"%s\" and \"%s\"", a->name, one->node.op->name, x, y + word);
    assert_false(clt_attributes_equal(one->node.op->schema, one->node.attributes, other->node.attributes));
    clt_text_free(&texts[0]);
    clt_text_free(&texts[1]);
}

/* Each part of each attribute. The rank of this process may differ, and what other attributes tell. */
static void each_attribute_is_compared(void **state) {
    (void)state;
    int compared = 0;
    for (int i = 0; clt_ops[i]; i++) {
        const clt_op *op = clt_ops[i];
        for (const clt_attribute *a = op->schema; a && a->name; a++) {
            /* All that is not compared. */
            for (const clt_attribute *b = op->schema; b < a; b++)
                if (b->offset == a->offset && b->type == a->type) fail_msg("%s of %s is told twice", a->name, op->name);
            if (a->of_rank && strcmp(a->name, "rank")) fail_msg("%s of %s differs from rank to rank", a->name, op->name);
            if (a->type == CLT_ATTRIBUTE_OPAQUE && !a->write && strcmp(a->name, "function")) fail_msg("%s of %s has no text", a->name, op->name);
            if (a->of_rank || (a->type == CLT_ATTRIBUTE_OPAQUE && !a->write)) continue;
            bool more = true;
            for (int part = 0; more; part++) {
                sample one, other;
                make(&one, op);
                make(&other, op);
                if (a->type == CLT_ATTRIBUTE_OPAQUE) fill_opaque(a, (char *)one.node.attributes + a->offset);
                if (a->type == CLT_ATTRIBUTE_RESULT) *(clt_shape *)(void *)((char *)one.node.attributes + a->offset) = CLT_SHAPE(2, 3);
                memcpy(other.node.attributes, one.node.attributes, op->attributes_bytes);
                more = change(a, other.node.attributes, part);
                if (more) expect_told_apart(a, &one, &other);
                compared += more;
                free(one.node.attributes);
                free(other.node.attributes);
            }
        }
    }
    assert_true(compared > 200);
}

static size_t alignment_of(const clt_attribute *a) {
    switch (a->type) {
    case CLT_ATTRIBUTE_BOOL: return _Alignof(bool);
    case CLT_ATTRIBUTE_INT64:
    case CLT_ATTRIBUTE_SIZES: return _Alignof(int64_t);
    case CLT_ATTRIBUTE_RESULT: return _Alignof(clt_shape);
    case CLT_ATTRIBUTE_TEXT: return _Alignof(const char *);
    case CLT_ATTRIBUTE_OPAQUE: return a->bytes % _Alignof(void *) ? _Alignof(int) : _Alignof(void *);
    default: return _Alignof(int);
    }
}

static size_t aligned(size_t offset, size_t alignment) {
    return (offset + alignment - 1) / alignment * alignment;
}

/* The fields lie where a struct of them alone has them: what one more would take has no place. */
static void schemas_cover_the_attributes(void **state) {
    (void)state;
    for (int i = 0; clt_ops[i]; i++) {
        const clt_op *op = clt_ops[i];
        size_t end = 0, largest = 1;
        bool any = true;
        while (any) { /* in the order of the struct */
            const clt_attribute *next = NULL;
            for (const clt_attribute *a = op->schema; a && a->name; a++)
                if (a->offset >= end && (!next || a->offset < next->offset)) next = a;
            any = next != NULL;
            if (!any) continue;
            size_t expected = aligned(end, alignment_of(next));
            if (next->offset != expected)
                fail_msg("%s: bytes %zu to %zu of its attributes, before %s, are in no schema", op->name, expected, next->offset - 1, next->name);
            largest = CLT_MAX(largest, alignment_of(next));
            end = next->offset + next->bytes;
        }
        if (aligned(end, largest) != op->attributes_bytes)
            fail_msg("%s: its attributes have %zu bytes, those of its schema end at %zu", op->name, op->attributes_bytes, end);
    }
}

static void ops_have_names_of_their_own(void **state) {
    (void)state;
    for (int i = 0; clt_ops[i]; i++)
        for (int k = 0; k < i; k++) assert_string_not_equal(clt_ops[i]->name, clt_ops[k]->name);
}

/* What a key says is written, and read back as it was (backends/tune/key.c). */
static void keys_can_be_read(void **state) {
    (void)state;
    for (int i = 0; clt_ops[i]; i++)
        for (const clt_attribute *a = clt_ops[i]->schema; a && a->name; a++) {
            const char *op = clt_ops[i]->name;
            if (!a->key) continue;
            bool whole = a->type == CLT_ATTRIBUTE_INT || a->type == CLT_ATTRIBUTE_INT64, is_switch = a->type == CLT_ATTRIBUTE_BOOL;
            bool other = a->type == CLT_ATTRIBUTE_ENUM || a->type == CLT_ATTRIBUTE_AXES || a->type == CLT_ATTRIBUTE_ORDER;
            if (!whole && !is_switch && !other) fail_msg("%s.%s: no text of a problem tells an attribute of its kind", op, a->name);
            if (whole && !(a->least >= 0 && a->most > 0)) fail_msg("%s.%s: a word is of whole numbers from 0: expected bounds", op, a->name);
            if (is_switch && a->usual != 0) fail_msg("%s.%s: a word says that it is true: expected false to be usual", op, a->name);
            for (const clt_attribute *b = clt_ops[i]->schema; is_switch && b->name; b++)
                if (b != a && b->key && !strncmp(b->key, a->key, strlen(a->key))) fail_msg("%s.%s: its word begins that of %s", op, a->name, b->name);
        }
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
        cmocka_unit_test(keys_can_be_read),
        cmocka_unit_test(usual_values_pass_the_check),
    };
    return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
