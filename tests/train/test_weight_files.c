/* Weights that other programs wrote: several files and their index, half the bits, other names. */
#include "tests/data/files.h"

#include <cltrain/cltrain.h>

#include "runtime/base/halves.h"
#include "runtime/train/weight_files.h"

SUPPORT_DEVICE

/* ---- files ---- */

static const float first[] = {1, -2.5f, 0.125f, 65504, -0.0f, 3}, second[] = {7, -8}, third[] = {0.5f, 1e-30f};

typedef struct tensor {
    const char *name;
    clt_safetensors_dtype dtype;
    clt_shape shape;
    const float *values;
} tensor;

#define WEIGHT(name, dtype) ((tensor){(name), CLT_SAFETENSORS_##dtype, CLT_SHAPE(2, 3), first})
#define BIAS(name, dtype)   ((tensor){(name), CLT_SAFETENSORS_##dtype, CLT_SHAPE(2), second})
#define SCALE(name, dtype)  ((tensor){(name), CLT_SAFETENSORS_##dtype, CLT_SHAPE(2), third})

static void write_weights(const char *file, int n, const tensor *tensors) {
    clt_safetensors_entry entries[8];
    clt_safetensors_writer *writer;
    for (int i = 0; i < n; i++) entries[i] = (clt_safetensors_entry){.name = tensors[i].name, .dtype = tensors[i].dtype, .shape = tensors[i].shape};
    assert_ok(clt_safetensors_writer_open(&writer, support_path(file), entries, (size_t)n, NULL, 0));
    for (int i = 0; i < n; i++) {
        size_t count = (size_t)clt_shape_elements(&tensors[i].shape);
        uint16_t halves[6];
        const void *bytes = halves;
        if (tensors[i].dtype == CLT_SAFETENSORS_F16) clt_f32_to_f16(halves, tensors[i].values, count);
        else if (tensors[i].dtype == CLT_SAFETENSORS_BF16) clt_f32_to_bf16(halves, tensors[i].values, count);
        else bytes = tensors[i].values;
        assert_ok(clt_safetensors_writer_write(writer, bytes, count * clt_safetensors_dtype_bytes(tensors[i].dtype)));
    }
    assert_ok(clt_safetensors_writer_commit(writer));
}

static const char *write_index(const char *map) {
    static char text[2000];
    const char *path = support_path("m.safetensors.index.json");
    snprintf(text, sizeof text, "{\"metadata\": {\"total_size\": 1}, \"weight_map\": %s}", map);
    support_write(path, text, strlen(text));
    return path;
}

/* ---- a model of them ---- */

typedef struct model {
    clt_graph *graph;
    clt_tensor *output;
} model;

static model make(void) {
    model m;
    assert_ok(clt_graph_create(&m.graph));
    clt_tensor *h = clt_linear(clt_input(m.graph, "x", CLT_F32, CLT_SHAPE(1, 3)), "transformer.h.0.fc", 2);
    m.output = clt_mul(h, clt_parameter(m.graph, "model.scale", CLT_SHAPE(2), (clt_init){CLT_INIT_CONSTANT, .value = 9}));
    return m;
}

static void assert_values(clt_predictor *p, const char *name, const float *wanted, size_t count, clt_safetensors_dtype dtype) {
    float got[6], rounded[6];
    uint16_t halves[6];
    memcpy(rounded, wanted, count * sizeof *rounded);
    if (dtype == CLT_SAFETENSORS_F16) clt_f32_to_f16(halves, wanted, count), clt_f16_to_f32(rounded, halves, count);
    if (dtype == CLT_SAFETENSORS_BF16) clt_f32_to_bf16(halves, wanted, count), clt_bf16_to_f32(rounded, halves, count);
    assert_ok(clt_predictor_get(p, name, got, count));
    assert_memory_equal(got, rounded, count * sizeof *got);
}

static void loads(const char *path, clt_safetensors_dtype dtypes[3]) {
    model m = make();
    clt_predictor *p = NULL;
    clt_shape shape;
    assert_ok(clt_predictor_create(&p, device, m.output, &(clt_predictor_options){.weights = path}));
    assert_values(p, "transformer.h.0.fc.weight", first, 6, dtypes[0]);
    assert_values(p, "transformer.h.0.fc.bias", second, 2, dtypes[1]);
    assert_values(p, "model.scale", third, 2, dtypes[2]);
    assert_ok(clt_weights_shape(path, "transformer.h.0.fc.weight", &shape));
    assert_int_equal(shape.dims[1], 3);
    clt_predictor_destroy(p);
    clt_graph_destroy(m.graph);
}

/* Nothing of a file that is refused is loaded. */
static void refuses(const char *path, clt_status status, const char *words) {
    model m = make();
    clt_predictor *p = NULL;
    float before[2], after[2];
    assert_ok(clt_predictor_create(&p, device, m.output, NULL));
    assert_ok(clt_predictor_get(p, "model.scale", before, 2));
    assert_status(clt_predictor_load(p, path), status);
    assert_detail(words);
    assert_ok(clt_predictor_get(p, "model.scale", after, 2));
    assert_memory_equal(before, after, sizeof before);
    clt_predictor_destroy(p);
    clt_graph_destroy(m.graph);
}

#define ALL(dtype) ((clt_safetensors_dtype[]){CLT_SAFETENSORS_##dtype, CLT_SAFETENSORS_##dtype, CLT_SAFETENSORS_##dtype})

static void widens_halves(void **state) {
    (void)state;
    const struct {
        tensor tensors[3];
    } files[] = {
        {{WEIGHT("transformer.h.0.fc.weight", F16), BIAS("transformer.h.0.fc.bias", F16), SCALE("model.scale", F16)}},
        {{WEIGHT("transformer.h.0.fc.weight", BF16), BIAS("transformer.h.0.fc.bias", BF16), SCALE("model.scale", BF16)}},
    };
    write_weights("f16.safetensors", 3, files[0].tensors);
    loads(support_path("f16.safetensors"), ALL(F16));
    write_weights("bf16.safetensors", 3, files[1].tensors);
    loads(support_path("bf16.safetensors"), ALL(BF16));
    const tensor whole[] = {WEIGHT("transformer.h.0.fc.weight", F32), {"transformer.h.0.fc.bias", CLT_SAFETENSORS_I32, CLT_SHAPE(2), second}, SCALE("model.scale", F32)};
    write_weights("i32.safetensors", 3, whole);
    refuses(support_path("i32.safetensors"), CLT_E_MISMATCH, "\"transformer.h.0.fc.bias\" is I32 [2]; the model has F32 [2]");
}

static void knows_names_without_a_head(void **state) {
    (void)state;
    const tensor body[] = {WEIGHT("h.0.fc.weight", F32), BIAS("h.0.fc.bias", F32), SCALE("scale", F32), SCALE("h.0.attn.bias", F32), SCALE("h.0.attn.masked_bias", F32),
                           SCALE("layers.0.self_attn.rotary_emb.inv_freq", F32)};
    write_weights("body.safetensors", 6, body);
    loads(support_path("body.safetensors"), ALL(F32));
    const tensor both[] = {WEIGHT("h.0.fc.weight", F32), BIAS("h.0.fc.bias", F32), SCALE("scale", F32), SCALE("model.scale", F32)};
    write_weights("both.safetensors", 4, both);
    refuses(support_path("both.safetensors"), CLT_E_MISMATCH, "has a tensor \"scale\" that the model has not");
    const tensor other[] = {WEIGHT("model.h.0.fc.weight", F32), BIAS("h.0.fc.bias", F32), SCALE("scale", F32)};
    write_weights("other.safetensors", 3, other);
    refuses(support_path("other.safetensors"), CLT_E_MISMATCH, "has no tensor \"transformer.h.0.fc.weight\"");
}

static const char whole_map[] = "{\"transformer.h.0.fc.weight\": \"a.safetensors\", \"transformer.h.0.fc.bias\": \"b.safetensors\", \"model.scale\": \"a.safetensors\"}";

static void write_two(void) {
    const tensor a[] = {WEIGHT("transformer.h.0.fc.weight", F16), SCALE("model.scale", F32)}, b[] = {BIAS("transformer.h.0.fc.bias", BF16)};
    write_weights("a.safetensors", 2, a);
    write_weights("b.safetensors", 1, b);
}

static void reads_several_files(void **state) {
    (void)state;
    write_two();
    loads(write_index(whole_map), (clt_safetensors_dtype[]){CLT_SAFETENSORS_F16, CLT_SAFETENSORS_BF16, CLT_SAFETENSORS_F32});
    clt_weight_files *files;
    assert_ok(clt_weight_files_open(&files, write_index(whole_map)));
    assert_int_equal(clt_weight_files_count(files), 3);
    assert_string_equal(clt_weight_files_at(files, 0)->entry->name, "model.scale");
    assert_null(clt_weight_files_find(files, "fc.bias"));
    assert_status(clt_weight_read(clt_weight_files_find(files, "transformer.h.0.fc.weight"), (float[8]){0}, 32), CLT_E_INVALID);
    clt_weight_files_close(files);
}

static void refuses_an_index_that_lies(void **state) {
    (void)state;
    static const struct {
        const char *map;
        clt_status status;
        const char *words;
    } cases[] = {
        {"{}", CLT_E_FORMAT, "m.safetensors.index.json: \"weight_map\" is missing, or no object with tensors"},
        {"[]", CLT_E_FORMAT, "the header has an array where there can be none"},
        {"7", CLT_E_FORMAT, "\"weight_map\" is missing"},
        {"{\"x\": \"../a.safetensors\"}", CLT_E_FORMAT, "tensor \"x\": expected the name of a file in the same folder"},
        {"{\"x\": \"/etc/passwd\"}", CLT_E_FORMAT, "expected the name of a file in the same folder"},
        {"{\"x\": \"..\"}", CLT_E_FORMAT, "expected the name of a file in the same folder"},
        {"{\"x\": \"\"}", CLT_E_FORMAT, "expected the name of a file in the same folder"},
        {"{\"x\": 1}", CLT_E_FORMAT, "expected the name of a file in the same folder"},
        {"{\"x\": \"none.safetensors\"}", CLT_E_IO, "none.safetensors"},
        {"{\"x\": \"a.safetensors\"}", CLT_E_FORMAT, "tensor \"x\" is not in a.safetensors, where the index has it"},
        {"{\"model.scale\": \"a.safetensors\"}", CLT_E_FORMAT, "\"transformer.h.0.fc.weight\" is in one of its files, but not in the index"},
        {"{\"transformer.h.0.fc.weight\": \"a.safetensors\", \"transformer.h.0.fc.bias\": \"a.safetensors\", \"model.scale\": \"b.safetensors\"}", CLT_E_FORMAT,
         "\"transformer.h.0.fc.bias\" is not in a.safetensors"},
        {"{\"a\": \"a.safetensors\", \"a\": \"b.safetensors\"}", CLT_E_FORMAT, "line 1: duplicate"},
        {"{", CLT_E_FORMAT, "line 1:"},
        {"{\"transformer.h.0.fc.weight\": \"a.safetensors\", \"model.scale\": \"a.safetensors\"}", CLT_E_MISMATCH, "has no tensor \"transformer.h.0.fc.bias\""},
    };
    write_two();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) refuses(write_index(cases[i].map), cases[i].status, cases[i].words);
    const tensor twice[] = {BIAS("transformer.h.0.fc.bias", F32), SCALE("model.scale", F32)};
    write_weights("b.safetensors", 2, twice);
    refuses(write_index(whole_map), CLT_E_FORMAT, "two of its files have a tensor \"model.scale\"");
    write_two();
    char cut[200];
    support_write(support_path("b.safetensors"), cut, (size_t)snprintf(cut, sizeof cut, "%s", "no weights"));
    refuses(write_index(whole_map), CLT_E_FORMAT, "b.safetensors");
    refuses(support_path("nowhere.safetensors.index.json"), CLT_E_IO, "nowhere.safetensors.index.json");
}

static void survives_failing_memory(void **state) {
    (void)state;
    write_two();
    const char *path = write_index(whole_map);
    clt_status status = CLT_E_NO_MEMORY;
    long at = 0;
    for (; status != CLT_OK; at++) {
        clt_weight_files *files = NULL;
        watch_begin(at);
        status = clt_weight_files_open(&files, path);
        if (status == CLT_OK) clt_weight_files_close(files);
        else assert_int_equal(status, CLT_E_NO_MEMORY);
        watch_end();
    }
    assert_true(at > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widens_halves),
        cmocka_unit_test(knows_names_without_a_head),
        cmocka_unit_test(reads_several_files),
        cmocka_unit_test(refuses_an_index_that_lies),
        cmocka_unit_test(survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
