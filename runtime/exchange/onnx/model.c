#include "runtime/exchange/onnx/model.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/number.h"

typedef struct reader {
    clt_arena *arena;
    const unsigned char *start; /* of the file */
} reader;

/* ---- names of types ---- */

static const struct {
    int64_t number;
    const char *name;
    size_t bytes;
} types[] = {
#define ROW(number, name, bytes) {number, #name, bytes},
    CLT_ONNX_TYPE_MAP(ROW)
#undef ROW
};

static size_t row_of(int64_t type) {
    size_t i = 0;
    while (i < CLT_COUNT_OF(types) && types[i].number != type) i++;
    return i;
}

const char *clt_onnx_type_name(int64_t type) {
    size_t row = row_of(type);
    return row < CLT_COUNT_OF(types) ? types[row].name : "?";
}

size_t clt_onnx_type_bytes(int64_t type) {
    size_t row = row_of(type);
    return row < CLT_COUNT_OF(types) ? types[row].bytes : 0;
}

/* ---- fields ---- */

static clt_status fail_at(const reader *r, const unsigned char *at, const char *message, const char *what) {
    return clt_fail(CLT_E_FORMAT, "byte %zu, in %s: %s", (size_t)(at - r->start), message, what);
}

/* The next field of a message of that name. *more is false at its end. */
static clt_status next_field(const reader *r, clt_wire *message, const char *name, clt_wire_field *field, bool *more) {
    const unsigned char *at = message->at;
    int got = clt_wire_next(message, field);
    *more = got == 1;
    return got < 0 ? fail_at(r, at, name, "not a field of protocol buffers, or one that goes past the end") : CLT_OK;
}

/* The field's bytes or number, where it has the type that the schema gives it. */
static clt_status want(const reader *r, const clt_wire *message, const char *name, const clt_wire_field *field, clt_wire_type type) {
    if (field->type == type) return CLT_OK;
    return clt_fail(CLT_E_FORMAT, "byte %zu, in %s: field %u is of type %d, and not of %d as in the schema", (size_t)(message->at - r->start), name,
                    field->number, field->type, type);
}

static clt_status read_bytes(const reader *r, clt_wire bytes, const char **text) {
    size_t length = clt_wire_length(bytes);
    char *copy;
    CLT_TRY(clt_arena_take(r->arena, length + 1, 1, &copy));
    if (length) memcpy(copy, bytes.at, length);
    *text = copy;
    return CLT_OK;
}

static clt_status read_text(const reader *r, clt_wire bytes, const char **text) {
    if (clt_wire_length(bytes) && memchr(bytes.at, 0, clt_wire_length(bytes))) return fail_at(r, bytes.at, "a text", "it has a NUL inside");
    return read_bytes(r, bytes, text);
}

/* What reads one item of a repeated field into its place. */
typedef clt_status (*read_item)(const reader *r, clt_wire bytes, void *item);

static clt_status text_item(const reader *r, clt_wire bytes, void *item) {
    return read_text(r, bytes, item);
}

/* Where the items of a repeated field of texts or messages are put. */
typedef struct list {
    uint32_t number;
    size_t bytes; /* of an item */
    read_item read;
    void *items; /* the address of the pointer to them */
    size_t *n;
    const char *what; /* they are called in errors; NULL: "items" */
} list;

/* Of a list, as what is made of an item takes up to a hundred times its bytes. */
enum { MOST_ITEMS = 1 << 18 };

static clt_status count_items(const reader *r, clt_wire message, const char *name, const list *lists, size_t n_lists, size_t *counts) {
    clt_wire_field field;
    for (bool more;;) {
        CLT_TRY(next_field(r, &message, name, &field, &more));
        if (!more) break;
        for (size_t i = 0; i < n_lists; i++)
            if (lists[i].number == field.number) {
                CLT_TRY(want(r, &message, name, &field, CLT_WIRE_BYTES));
                counts[i]++;
            }
    }
    for (size_t i = 0; i < n_lists; i++)
        if (counts[i] > MOST_ITEMS && lists[i].bytes)
            return clt_fail(CLT_E_UNSUPPORTED, "byte %zu, in %s: %zu %s, more than %d", (size_t)(message.end - r->start), name, counts[i], lists[i].what ? lists[i].what : "items", MOST_ITEMS);
    return CLT_OK;
}

/* All items of a message's lists, in their order: the message is gone over twice, so that no list has to grow. */
static clt_status read_lists(const reader *r, clt_wire message, const char *name, const list *lists, size_t n_lists) {
    enum { MOST_LISTS = 8 };
    size_t counts[MOST_LISTS] = {0};
    char *items[MOST_LISTS];
    clt_wire_field field;
    CLT_TRY(count_items(r, message, name, lists, n_lists, counts));
    for (size_t i = 0; i < n_lists; i++) {
        CLT_TRY(clt_arena_take(r->arena, counts[i], lists[i].bytes, &items[i]));
        memcpy(lists[i].items, &items[i], sizeof items[i]);
        *lists[i].n = 0;
    }
    for (bool more;;) {
        CLT_TRY(next_field(r, &message, name, &field, &more));
        if (!more) return CLT_OK;
        for (size_t i = 0; i < n_lists; i++)
            if (lists[i].number == field.number)
                CLT_TRY(lists[i].read(r, field.bytes, items[i] + (*lists[i].n)++ * lists[i].bytes));
    }
}

/* The values of a repeated field of numbers, each by itself or packed; into `values`, where that is not NULL. */
static clt_status walk_numbers(const reader *r, clt_wire message, const char *name, uint32_t number, clt_wire_type type, uint64_t *values,
                               size_t *n) {
    clt_wire_field field;
    *n = 0;
    for (bool more;;) {
        CLT_TRY(next_field(r, &message, name, &field, &more));
        if (!more) return CLT_OK;
        if (field.number != number) continue;
        if (field.type == type) {
            if (values) values[*n] = field.value;
            (*n)++;
            continue;
        }
        CLT_TRY(want(r, &message, name, &field, CLT_WIRE_BYTES));
        int got;
        for (uint64_t value; (got = clt_wire_value(&field.bytes, type, &value)) == 1; (*n)++)
            if (values) values[*n] = value;
        if (got < 0) return fail_at(r, field.bytes.at, name, "a list of numbers that ends inside one");
    }
}

static clt_status read_integers(const reader *r, clt_wire message, const char *name, uint32_t number, const int64_t **values, size_t *n) {
    int64_t *taken;
    CLT_TRY(walk_numbers(r, message, name, number, CLT_WIRE_VARINT, NULL, n));
    CLT_TRY(clt_arena_take(r->arena, *n, sizeof *taken, &taken));
    *values = taken;
    return walk_numbers(r, message, name, number, CLT_WIRE_VARINT, (uint64_t *)taken, n);
}

static float float_of(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

static clt_status read_floats(const reader *r, clt_wire message, const char *name, uint32_t number, const float **values, size_t *n) {
    float *taken;
    uint64_t *bits;
    CLT_TRY(walk_numbers(r, message, name, number, CLT_WIRE_32, NULL, n));
    CLT_TRY(clt_arena_take(r->arena, *n, sizeof *bits, &bits));
    CLT_TRY(clt_arena_take(r->arena, *n, sizeof *taken, &taken));
    CLT_TRY(walk_numbers(r, message, name, number, CLT_WIRE_32, bits, n));
    for (size_t i = 0; i < *n; i++) taken[i] = float_of(bits[i]);
    *values = taken;
    return CLT_OK;
}

/* ---- tensors ---- */

static clt_status pair_item(const reader *r, clt_wire message, void *item) {
    clt_onnx_pair *p = item;
    clt_wire_field field;
    p->key = p->value = "";
    for (bool more;;) {
        CLT_TRY(next_field(r, &message, "an entry of text", &field, &more));
        if (!more) return CLT_OK;
        if (field.number != 1 && field.number != 2) continue;
        CLT_TRY(want(r, &message, "an entry of text", &field, CLT_WIRE_BYTES));
        CLT_TRY(read_text(r, field.bytes, field.number == 1 ? &p->key : &p->value));
    }
}

static clt_status fail_tensor(const reader *r, const clt_onnx_tensor *tensor, const char *what) {
    char text[2 * CLT_SHOWN_TEXT] = "a tensor", name[CLT_SHOWN_TEXT];
    if (*tensor->name) snprintf(text, sizeof text, "tensor \"%s\"", clt_show(tensor->name, name));
    return fail_at(r, tensor->message.at, text, what);
}

static clt_status read_external(const reader *r, clt_wire message, clt_onnx_tensor *tensor) {
    static const char name[] = "a tensor's external data";
    clt_onnx_pair *pairs;
    size_t n;
    clt_onnx_external *external;
    CLT_TRY(read_lists(r, message, name, (list[]){{13, sizeof(clt_onnx_pair), pair_item, &pairs, &n}}, 1));
    CLT_TRY(clt_arena_take(r->arena, 1, sizeof *external, &external));
    external->location = "";
    for (size_t i = 0; i < n; i++) {
        bool is_offset = !strcmp(pairs[i].key, "offset"), is_length = !strcmp(pairs[i].key, "length");
        if (!strcmp(pairs[i].key, "location")) external->location = pairs[i].value;
        if ((is_offset || is_length) &&
            !clt_number_whole(pairs[i].value, INT64_MAX, is_offset ? &external->offset : &external->length))
            return fail_tensor(r, tensor, "the offset or length of its external data is not a whole number");
        external->has_length |= is_length;
    }
    tensor->external = external;
    return external->location[0] ? CLT_OK : fail_tensor(r, tensor, "its external data name no file");
}

static clt_status read_kind(const reader *r, const clt_wire *message, const clt_wire_field *field, clt_onnx_tensor *tensor) {
    clt_onnx_pair p;
    CLT_TRY(want(r, message, "a tensor", field, CLT_WIRE_BYTES));
    CLT_TRY(pair_item(r, field->bytes, &p));
    if (!strcmp(p.key, CLT_ONNX_KIND_KEY)) tensor->kind = p.value;
    return CLT_OK;
}

static clt_status count_elements(const reader *r, clt_onnx_tensor *tensor) {
    tensor->elements = 1;
    bool empty = false;
    for (size_t i = 0; i < tensor->rank; i++) {
        if (tensor->dims[i] < 0) return fail_tensor(r, tensor, "a dimension below 0");
        if (tensor->dims[i] == 0) empty = true;
    }
    for (size_t i = 0; i < tensor->rank && !empty; i++)
        if (__builtin_mul_overflow(tensor->elements, tensor->dims[i], &tensor->elements))
            return fail_tensor(r, tensor, "the product of its dimensions is too large");
    if (empty) tensor->elements = 0;
    return CLT_OK;
}

static clt_status tensor_item(const reader *r, clt_wire message, void *item) {
    static const char name[] = "a tensor";
    enum { DATA_TYPE = 2, SEGMENT = 3, NAME = 8, RAW = 9, LOCATION = 14, METADATA = 16 };
    clt_onnx_tensor *tensor = item;
    clt_wire_field field;
    bool is_external = false;
    *tensor = (clt_onnx_tensor){.name = "", .message = message, .kind = ""};
    CLT_TRY(read_integers(r, message, name, 1, &tensor->dims, &tensor->rank));
    for (bool more;;) {
        CLT_TRY(next_field(r, &message, name, &field, &more));
        if (!more) break;
        bool is_number = field.number == DATA_TYPE || field.number == LOCATION;
        if (is_number || field.number == NAME || field.number == RAW)
            CLT_TRY(want(r, &message, name, &field, is_number ? CLT_WIRE_VARINT : CLT_WIRE_BYTES));
        if (field.number == DATA_TYPE) tensor->type = (int64_t)field.value;
        if (field.number == NAME) CLT_TRY(read_text(r, field.bytes, &tensor->name));
        if (field.number == LOCATION) is_external = field.value == 1;
        if (field.number == METADATA) CLT_TRY(read_kind(r, &message, &field, tensor));
        if (field.number == SEGMENT) return fail_at(r, message.at, name, "it is stored in segments, which are not read");
        if (field.number != RAW) continue;
        if (tensor->has_raw) return fail_tensor(r, tensor, "it has raw data twice");
        tensor->has_raw = true;
        tensor->raw = field.bytes;
    }
    CLT_TRY(count_elements(r, tensor));
    if (!is_external) return CLT_OK;
    if (tensor->has_raw) return fail_tensor(r, tensor, "its data are both here and external");
    return read_external(r, tensor->message, tensor);
}

/* ---- nodes ---- */

static clt_status read_attribute_lists(const reader *r, clt_wire message, clt_onnx_attribute *a) {
    static const char name[] = "an attribute";
    switch (a->type) {
    case CLT_ONNX_A_FLOATS: return read_floats(r, message, name, 7, &a->floats, &a->n);
    case CLT_ONNX_A_INTS: return read_integers(r, message, name, 8, &a->ints, &a->n);
    case CLT_ONNX_A_STRINGS: return read_lists(r, message, name, (list[]){{9, sizeof(char *), text_item, &a->strings, &a->n}}, 1);
    default: return CLT_OK;
    }
}

static clt_status attribute_item(const reader *r, clt_wire message, void *item) {
    static const char name[] = "an attribute";
    enum { NAME = 1, F = 2, I = 3, S = 4, T = 5, TYPE = 20 };
    clt_onnx_attribute *a = item;
    clt_wire whole = message;
    clt_wire_field field;
    *a = (clt_onnx_attribute){.name = "", .s = ""};
    for (bool more;;) {
        CLT_TRY(next_field(r, &message, name, &field, &more));
        if (!more) return read_attribute_lists(r, whole, a);
        switch (field.number) {
        case NAME:
            CLT_TRY(want(r, &message, name, &field, CLT_WIRE_BYTES));
            CLT_TRY(read_text(r, field.bytes, &a->name));
            break;
        case F:
            CLT_TRY(want(r, &message, name, &field, CLT_WIRE_32));
            a->f = float_of(field.value);
            break;
        case I:
            CLT_TRY(want(r, &message, name, &field, CLT_WIRE_VARINT));
            a->i = (int64_t)field.value;
            break;
        case S:
            CLT_TRY(want(r, &message, name, &field, CLT_WIRE_BYTES));
            CLT_TRY(read_bytes(r, field.bytes, &a->s));
            a->length = clt_wire_length(field.bytes);
            break;
        case T: {
            clt_onnx_tensor *tensor;
            CLT_TRY(want(r, &message, name, &field, CLT_WIRE_BYTES));
            CLT_TRY(clt_arena_take(r->arena, 1, sizeof *tensor, &tensor));
            CLT_TRY(tensor_item(r, field.bytes, tensor));
            a->tensor = tensor;
            break;
        }
        case TYPE:
            CLT_TRY(want(r, &message, name, &field, CLT_WIRE_VARINT));
            a->type = (int64_t)field.value;
            break;
        default: break;
        }
    }
}

/* ONNX's own domain has two names. */
static const char *plain_domain(const char *domain) {
    return strcmp(domain, "ai.onnx") ? domain : "";
}

/* Texts that a message has once, by the number of their field. */
typedef struct text_field {
    uint32_t number;
    const char **text;
} text_field;

static clt_status read_texts(const reader *r, clt_wire message, const char *name, const text_field *texts, size_t n) {
    clt_wire_field field;
    for (size_t i = 0; i < n; i++) *texts[i].text = "";
    for (bool more;;) {
        CLT_TRY(next_field(r, &message, name, &field, &more));
        if (!more) return CLT_OK;
        for (size_t i = 0; i < n; i++)
            if (texts[i].number == field.number) {
                CLT_TRY(want(r, &message, name, &field, CLT_WIRE_BYTES));
                CLT_TRY(read_text(r, field.bytes, texts[i].text));
            }
    }
}

static clt_status node_item(const reader *r, clt_wire message, void *item) {
    clt_onnx_node *node = item;
    const text_field texts[] = {{3, &node->name}, {4, &node->op}, {7, &node->domain}};
    const list lists[] = {
        {1, sizeof(char *), text_item, &node->inputs, &node->n_inputs},
        {2, sizeof(char *), text_item, &node->outputs, &node->n_outputs},
        {5, sizeof(clt_onnx_attribute), attribute_item, &node->attributes, &node->n_attributes},
    };
    CLT_TRY(read_texts(r, message, "a node", texts, CLT_COUNT_OF(texts)));
    node->domain = plain_domain(node->domain);
    return read_lists(r, message, "a node", lists, CLT_COUNT_OF(lists));
}

const clt_onnx_attribute *clt_onnx_attribute_of(const clt_onnx_node *node, const char *name, int64_t type) {
    for (size_t i = 0; i < node->n_attributes; i++) {
        clt_onnx_attribute *a = &node->attributes[i];
        if (strcmp(a->name, name)) continue;
        if (!type || !a->type || a->type == type) return a;
        a->wanted = type;
        return NULL;
    }
    return NULL;
}

static const char *attribute_type_name(int64_t type) {
    static const char *const names[] = {"no type", "FLOAT", "INT", "STRING", "TENSOR", "GRAPH", "FLOATS", "INTS", "STRINGS"};
    return type >= 0 && type < (int64_t)CLT_COUNT_OF(names) ? names[type] : "another type";
}

clt_status clt_onnx_attributes_check(const clt_onnx_node *node) {
    char name[CLT_SHOWN_TEXT];
    for (size_t i = 0; i < node->n_attributes; i++) {
        const clt_onnx_attribute *a = &node->attributes[i];
        if (a->wanted)
            return clt_fail(CLT_E_FORMAT, "its attribute \"%s\" is %s: expected %s", clt_show(a->name, name), attribute_type_name(a->type), attribute_type_name(a->wanted));
    }
    return CLT_OK;
}

/* ---- inputs and outputs ---- */

static clt_status dim_item(const reader *r, clt_wire message, void *item) {
    static const char name[] = "a dimension";
    clt_onnx_dim *dim = item;
    clt_wire_field field;
    *dim = (clt_onnx_dim){.symbol = "", .size = -1};
    for (bool more;;) {
        CLT_TRY(next_field(r, &message, name, &field, &more));
        if (!more) return CLT_OK;
        if (field.number == 1) {
            CLT_TRY(want(r, &message, name, &field, CLT_WIRE_VARINT));
            dim->size = (int64_t)field.value;
        } else if (field.number == 2) {
            CLT_TRY(want(r, &message, name, &field, CLT_WIRE_BYTES));
            CLT_TRY(read_text(r, field.bytes, &dim->symbol));
        }
    }
}

/* The last message that is field `number` of another; *found is false where there is none. */
static clt_status find_message(const reader *r, clt_wire message, const char *name, uint32_t number, clt_wire *inner, bool *found) {
    clt_wire_field field;
    *found = false;
    for (bool more;;) {
        CLT_TRY(next_field(r, &message, name, &field, &more));
        if (!more) return CLT_OK;
        if (field.number != number) continue;
        CLT_TRY(want(r, &message, name, &field, CLT_WIRE_BYTES));
        *inner = field.bytes;
        *found = true;
    }
}

/* A number that a message has once; as it was where it has none. */
static clt_status read_number(const reader *r, clt_wire message, const char *name, uint32_t number, int64_t *value) {
    clt_wire_field field;
    for (bool more;;) {
        CLT_TRY(next_field(r, &message, name, &field, &more));
        if (!more) return CLT_OK;
        if (field.number != number) continue;
        CLT_TRY(want(r, &message, name, &field, CLT_WIRE_VARINT));
        *value = (int64_t)field.value;
    }
}

static clt_status info_item(const reader *r, clt_wire message, void *item) {
    static const char name[] = "the type of an input or output";
    clt_onnx_info *info = item;
    clt_wire type, tensor, shape;
    bool found;
    *info = (clt_onnx_info){.name = ""};
    CLT_TRY(read_texts(r, message, name, (text_field[]){{1, &info->name}}, 1));
    CLT_TRY(find_message(r, message, name, 2, &type, &found));
    if (!found) return CLT_OK;
    CLT_TRY(find_message(r, type, name, 1, &tensor, &info->is_tensor));
    if (!info->is_tensor) return CLT_OK;
    CLT_TRY(read_number(r, tensor, name, 1, &info->type));
    CLT_TRY(find_message(r, tensor, name, 2, &shape, &info->has_shape));
    if (!info->has_shape) return CLT_OK;
    CLT_TRY(read_lists(r, shape, name, (list[]){{1, sizeof(clt_onnx_dim), dim_item, &info->dims, &info->rank}}, 1));
    for (size_t d = 0; d < info->rank; d++) { /* -1, as some exporters write what they do not know */
        char text[2 * CLT_SHOWN_TEXT], shown[CLT_SHOWN_TEXT];
        snprintf(text, sizeof text, "\"%s\", an input or output", clt_show(info->name, shown));
        if (info->dims[d].size < -1) return fail_at(r, message.at, text, "a dimension below -1");
    }
    return CLT_OK;
}

static clt_status note_item(const reader *r, clt_wire message, void *item) {
    static const char name[] = "a value";
    enum { METADATA = 4 };
    clt_onnx_note *note = item;
    clt_wire_field field;
    *note = (clt_onnx_note){.kind = ""};
    CLT_TRY(read_texts(r, message, name, (text_field[]){{1, &note->name}}, 1));
    for (bool more;;) {
        clt_onnx_pair p;
        CLT_TRY(next_field(r, &message, name, &field, &more));
        if (!more) return CLT_OK;
        if (field.number != METADATA) continue;
        CLT_TRY(want(r, &message, name, &field, CLT_WIRE_BYTES));
        CLT_TRY(pair_item(r, field.bytes, &p));
        if (strcmp(p.key, "pkg.torch.export.graph_signature.InputSpec.kind")) continue;
        note->kind = !strcmp(p.value, "BUFFER") ? "buffer" : !strcmp(p.value, "CONSTANT_TENSOR") ? "constant" : "";
    }
}

/* ---- the model ---- */

static clt_status opset_item(const reader *r, clt_wire message, void *item) {
    clt_onnx_opset *opset = item;
    opset->version = 1;
    CLT_TRY(read_texts(r, message, "an opset", (text_field[]){{1, &opset->domain}}, 1));
    opset->domain = plain_domain(opset->domain);
    return read_number(r, message, "an opset", 2, &opset->version);
}

static clt_status wire_item(const reader *r, clt_wire message, void *item) {
    (void)r;
    *(clt_wire *)item = message;
    return CLT_OK;
}

/* Of what is counted alone. */
static clt_status ignored_item(const reader *r, clt_wire message, void *item) {
    (void)r, (void)message, (void)item;
    return CLT_OK;
}

static clt_status read_graph(const reader *r, clt_wire message, clt_onnx_model *m) {
    const char *ignored;
    const list lists[] = {
        {1, sizeof(clt_onnx_node), node_item, &m->nodes, &m->n_nodes, "nodes"},
        {5, sizeof(clt_onnx_tensor), tensor_item, &m->initializers, &m->n_initializers, "weights"},
        {11, sizeof(clt_onnx_info), info_item, &m->inputs, &m->n_inputs, "inputs"},
        {12, sizeof(clt_onnx_info), info_item, &m->outputs, &m->n_outputs, "outputs"},
        {13, sizeof(clt_onnx_note), note_item, &m->notes, &m->n_notes, "values"},
        {15, 0, ignored_item, &ignored, &m->n_sparse},
    };
    CLT_TRY(read_texts(r, message, "the graph", (text_field[]){{2, &m->name}}, 1));
    return read_lists(r, message, "the graph", lists, CLT_COUNT_OF(lists));
}

static clt_status read_model(const reader *r, clt_wire file, clt_onnx_model *m) {
    static const char name[] = "the model";
    const text_field texts[] = {{2, &m->producer}, {3, &m->producer_version}};
    const char *ignored;
    size_t n_graphs;
    clt_wire *graphs;
    const list lists[] = {
        {7, sizeof(clt_wire), wire_item, &graphs, &n_graphs},
        {8, sizeof(clt_onnx_opset), opset_item, &m->opsets, &m->n_opsets},
        {14, sizeof(clt_onnx_pair), pair_item, &m->metadata, &m->n_metadata},
        {25, 0, ignored_item, &ignored, &m->n_functions},
    };
    CLT_TRY(read_number(r, file, name, 1, &m->ir_version));
    CLT_TRY(read_texts(r, file, name, texts, CLT_COUNT_OF(texts)));
    CLT_TRY(read_lists(r, file, name, lists, CLT_COUNT_OF(lists)));
    if (n_graphs != 1)
        return clt_fail(CLT_E_FORMAT, "a model with %zu graphs, and not one: is it an ONNX file?", n_graphs);
    return read_graph(r, graphs[0], m);
}

/* Bytes of memory for each of the file: an empty node of two bytes takes 72. */
enum { MEMORY_PER_BYTE = 64, LEAST_MEMORY = 1 << 16 };

clt_status clt_onnx_model_read(clt_onnx_model *model, clt_wire file) {
    size_t length = clt_wire_length(file), limit = length > SIZE_MAX / MEMORY_PER_BYTE - LEAST_MEMORY ? SIZE_MAX : length * MEMORY_PER_BYTE + LEAST_MEMORY;
    *model = (clt_onnx_model){.arena.limit = limit};
    return read_model(&(reader){&model->arena, file.at}, file, model);
}

clt_status clt_onnx_tensor_read(clt_arena *arena, clt_wire file, clt_onnx_tensor *tensor) {
    return tensor_item(&(reader){arena, file.at}, file, tensor);
}

void clt_onnx_model_free(clt_onnx_model *model) {
    clt_arena_free(&model->arena);
}
