#include "runtime/graph/attribute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

double clt_attribute_number(const clt_attribute *a, const void *attributes) {
    const void *value = clt_attribute_value(a, attributes);
    switch (a->type) {
    case CLT_ATTRIBUTE_INT:
    case CLT_ATTRIBUTE_ENUM:
        return *(const int *)value;
    case CLT_ATTRIBUTE_INT64:
        return (double)*(const int64_t *)value;
    case CLT_ATTRIBUTE_FLOAT:
        return (double)*(const float *)value;
    case CLT_ATTRIBUTE_BOOL:
        return *(const bool *)value;
    case CLT_ATTRIBUTE_AXES:
        return *(const unsigned *)value;
    default:
        return 0;
    }
}

void clt_attribute_set_number(const clt_attribute *a, void *attributes, double number) {
    void *value = (char *)attributes + a->offset;
    switch (a->type) {
    case CLT_ATTRIBUTE_INT:
    case CLT_ATTRIBUTE_ENUM:
        *(int *)value = (int)number;
        break;
    case CLT_ATTRIBUTE_INT64:
        *(int64_t *)value = (int64_t)number;
        break;
    case CLT_ATTRIBUTE_FLOAT:
        *(float *)value = (float)number;
        break;
    case CLT_ATTRIBUTE_BOOL:
        *(bool *)value = number != 0;
        break;
    case CLT_ATTRIBUTE_AXES:
        *(unsigned *)value = (unsigned)number;
        break;
    default:
        break;
    }
}

static clt_status check_number(const clt_attribute *a, double value) {
    int digits = a->type == CLT_ATTRIBUTE_FLOAT ? 6 : 15;
    if (a->least == 0 && a->most == 0) return CLT_OK;
    if (value >= a->least && (a->below ? value < a->most : value <= a->most)) return CLT_OK;
    if (isinf(a->most))
        return clt_fail(CLT_E_INVALID, "%s is %.*g; it must be at least %.*g", a->name, digits, value, digits, a->least);
    return clt_fail(CLT_E_INVALID, "%s is %.*g; it must be in [%.*g, %.*g%c", a->name, digits, value, digits, a->least, digits,
                    a->most, a->below ? ')' : ']');
}

static int count_words(const clt_attribute *a) {
    int n = 0;
    while (a->words[n]) n++;
    return n;
}

clt_status clt_attributes_check(const clt_attribute *schema, const void *attributes) {
    for (const clt_attribute *a = schema; a && a->name; a++) {
        double value = clt_attribute_number(a, attributes);
        if (a->type == CLT_ATTRIBUTE_ENUM && (value < 0 || value >= count_words(a)))
            return clt_fail(CLT_E_INVALID, "%s is %.9g; it must be 0 to %d", a->name, value, count_words(a) - 1);
        CLT_TRY(check_number(a, value));
    }
    return CLT_OK;
}

void clt_attributes_init(const clt_attribute *schema, void *attributes, size_t bytes) {
    memset(attributes, 0, bytes);
    for (const clt_attribute *a = schema; a && a->name; a++) clt_attribute_set_number(a, attributes, a->usual);
}

bool clt_attributes_follow(const clt_attribute *schema, const void *attributes) {
    bool follow = false;
    for (const clt_attribute *a = schema; a && a->name; a++) {
        const void *value = clt_attribute_value(a, attributes);
        const clt_shape *shape = value;
        clt_multiple m;
        if (a->type == CLT_ATTRIBUTE_INT64) follow |= clt_dim_is_length(*(const int64_t *)value);
        for (int d = 0; a->type == CLT_ATTRIBUTE_RESULT && d < shape->rank && d < CLT_MAX_RANK; d++) follow |= clt_dim_multiple(shape->dims[d], &m);
    }
    return follow;
}

/* ---- comparing ---- */

static const char *text_of(const void *value) {
    const char *text = *(const char *const *)value;
    return text ? text : "";
}

static bool same_text(const clt_attribute *a, const void *x, const void *y) {
    clt_text one = {0}, other = {0};
    a->write(x, &one);
    a->write(y, &other);
    bool same = one.status == CLT_OK && other.status == CLT_OK && !strcmp(clt_text_data(&one), clt_text_data(&other));
    clt_text_free(&one);
    clt_text_free(&other);
    return same;
}

static bool equal(const clt_attribute *a, const void *x, const void *y) {
    if (a->type == CLT_ATTRIBUTE_OPAQUE) return !a->write || same_text(a, x, y);
    if (a->type == CLT_ATTRIBUTE_TEXT) return !strcmp(text_of(x), text_of(y));
    if (a->type == CLT_ATTRIBUTE_RESULT) return clt_shape_equal(x, y);
    return !memcmp(x, y, a->bytes);
}

bool clt_attributes_equal(const clt_attribute *schema, const void *x, const void *y) {
    for (const clt_attribute *a = schema; a && a->name; a++)
        if (!equal(a, clt_attribute_value(a, x), clt_attribute_value(a, y))) return false;
    return true;
}

/* ---- writing ---- */

/* As few digits as give the same number back. */
static void write_float(float value, clt_text *text) {
    char digits[32];
    for (int precision = 6; precision <= 9; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, (double)value);
        if (strtof(digits, NULL) == value) break;
    }
    clt_text_add(text, "%s", digits);
}

static void write_axes(unsigned axes, clt_text *text) {
    const char *between = "{";
    for (int d = 0; d < CLT_MAX_RANK; d++)
        if (axes >> d & 1) {
            clt_text_add(text, "%s%d", between, d);
            between = ", ";
        }
    clt_text_add(text, axes ? "}" : "{}");
}

static void write_list(const clt_attribute *a, const void *value, int rank, clt_text *text) {
    for (int d = 0; d < rank; d++)
        clt_text_add(text, "%s%lld", d ? ", " : "[",
                     a->type == CLT_ATTRIBUTE_ORDER ? (long long)((const int *)value)[d] : (long long)((const int64_t *)value)[d]);
    clt_text_add(text, rank ? "]" : "[]");
}

void clt_attribute_write(const clt_attribute *a, const void *attributes, int rank, clt_text *text) {
    const void *value = clt_attribute_value(a, attributes);
    char shape[CLT_SHAPE_TEXT];
    switch (a->type) {
    case CLT_ATTRIBUTE_BOOL:
        clt_text_add(text, *(const bool *)value ? "true" : "false");
        break;
    case CLT_ATTRIBUTE_ENUM:
        clt_text_add(text, "%s", a->words[*(const int *)value]);
        break;
    case CLT_ATTRIBUTE_DTYPE:
        clt_text_add(text, "%s", clt_dtype_name(*(const clt_dtype *)value));
        break;
    case CLT_ATTRIBUTE_AXES:
        write_axes(*(const unsigned *)value, text);
        break;
    case CLT_ATTRIBUTE_ORDER:
    case CLT_ATTRIBUTE_SIZES:
        write_list(a, value, rank, text);
        break;
    case CLT_ATTRIBUTE_RESULT:
        clt_text_add(text, "%s", clt_shape_text(value, shape));
        break;
    case CLT_ATTRIBUTE_TEXT:
        clt_text_add(text, "%s", text_of(value));
        break;
    case CLT_ATTRIBUTE_OPAQUE:
        a->write(value, text);
        break;
    case CLT_ATTRIBUTE_FLOAT:
        write_float(*(const float *)value, text);
        break;
    case CLT_ATTRIBUTE_INT:
        clt_text_add(text, "%d", *(const int *)value);
        break;
    case CLT_ATTRIBUTE_INT64:
        clt_text_add(text, "%lld", (long long)*(const int64_t *)value);
        break;
    }
}

void clt_attributes_write(const clt_attribute *schema, const void *attributes, int rank, clt_text *text) {
    const char *between = "";
    for (const clt_attribute *a = schema; a && a->name; a++) {
        bool told = a->type == CLT_ATTRIBUTE_OPAQUE ? a->write != NULL
                    : a->type == CLT_ATTRIBUTE_RESULT ? ((const clt_shape *)clt_attribute_value(a, attributes))->rank > 0
                                                      : true;
        if (a->of_rank || !told) continue;
        clt_text_add(text, "%s%s=", between, a->name);
        clt_attribute_write(a, attributes, rank, text);
        between = " ";
    }
}
