/* What builders make, beside values: variables, views, refusals. */
#include "tests/ops/harness.h"

#include <math.h>

static clt_graph *new_graph(void) {
    clt_graph *graph;
    assert_ok(clt_graph_create(&graph));
    return graph;
}

/* They are zero, or what they are: nothing else. */
static void subnormal_numbers_have_small_powers(void **state) {
    (void)state;
    const float values[] = {1e-40f, 1e-44f, 0.25f}, exponents[] = {0.5f, 1, 3, -1};
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++) {
        clt_graph *graph = new_graph();
        clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(3));
        float y[3], z[3];
        op_compute(clt_pow_scalar(x, exponents[i]), x, values, y);
        op_compute(clt_pow(x, clt_add_scalar(clt_mul_scalar(x, 0), exponents[i])), x, values, z);
        for (int k = 0; k < 2; k++) assert_true(exponents[i] < 0 ? y[k] > 1e37f && z[k] > 1e37f : y[k] <= 2e-20f && z[k] <= 2e-20f);
        assert_true(fabsf(y[2] - powf(0.25f, exponents[i])) < 1e-4f);
        clt_graph_destroy(graph);
    }
}

static void cast_to_its_own_type_is_itself(void **state) {
    (void)state;
    clt_graph *graph = new_graph();
    clt_tensor *x = clt_input(graph, "x", CLT_U8, CLT_SHAPE(3));
    assert_ptr_equal(clt_cast(x, CLT_U8), x);
    clt_graph_destroy(graph);
}

/* One element has no variance: training would divide 0 by 0, and spoil the running variance for good. */
static void batch_norm_of_one_element_a_channel_is_refused(void **state) {
    (void)state;
    clt_graph *graph = new_graph();
    clt_state_store *store;
    clt_tensor *y = clt_batch_norm(clt_input(graph, "x", CLT_F32, CLT_SHAPE(1, 2)), "bn");
    assert_ok(clt_state_store_create(op_device(), &store));
    clt_plan_options options = {.device = op_device(), .store = store, .graph = graph, .targets = &y, .n_targets = 1};
    clt_plan *plan = NULL;
    options.training = true;
    assert_status(clt_plan_compile(&plan, &options), CLT_E_SHAPE);
    assert_detail("batch_norm");
    assert_detail("[1, 2]");
    options.training = false;
    assert_ok(clt_plan_compile(&plan, &options));
    clt_plan_destroy(plan);
    clt_state_store_destroy(store);
    clt_graph_destroy(graph);
}

/* A new model normalizes: weight 1, bias 0. */
static void losses_stay_apart_or_are_summed(void **state) {
    (void)state;
    clt_graph *graph = new_graph();
    clt_tensor *logits = clt_input(graph, "logits", CLT_F32, CLT_SHAPE(2, 3)), *target = clt_input(graph, "target", CLT_I32, CLT_SHAPE(2));
    clt_tensor *truth = clt_input(graph, "truth", CLT_F32, CLT_SHAPE(2, 3));
    for (int r = CLT_LOSS_MEAN; r <= CLT_LOSS_NONE; r++) {
        clt_loss_options options = {(clt_loss_reduction)r};
        const clt_tensor *losses[] = {clt_cross_entropy_with(logits, target, (clt_cross_entropy_options){.reduction = options.reduction}), clt_bce_with_logits_with(logits, truth, options),
                                      clt_mse_loss_with(logits, truth, options)};
        for (int i = 0; i < 3; i++) {
            assert_int_equal(losses[i]->shape.rank, r < CLT_LOSS_NONE ? 0 : i ? 2 : 1);
            if (r == CLT_LOSS_NONE) continue;
            const clt_reduce_attributes *at = losses[i]->attributes;
            assert_int_equal(at->reduction, r == CLT_LOSS_SUM ? CLT_AXES_SUM : CLT_AXES_MEAN);
        }
    }
    assert_ok(clt_graph_status(graph));
    clt_mse_loss_with(logits, truth, (clt_loss_options){(clt_loss_reduction)3});
    assert_status(clt_graph_status(graph), CLT_E_INVALID);
    assert_detail("reduction = 3");
    clt_graph_destroy(graph);
    const struct {
        clt_cross_entropy_options options;
        const char *words;
    } wrong[] = {{{.label_smoothing = 1.5f}, "label_smoothing is 1.5"}, {{.label_smoothing = -1}, "label_smoothing is -1"}, {{0}, "the weight is [2]; it must be [3]"}};
    for (int i = 0; i < 3; i++) {
        graph = new_graph();
        clt_cross_entropy_options options = wrong[i].options;
        if (i == 2) options.weight = clt_input(graph, "weight", CLT_F32, CLT_SHAPE(2));
        clt_cross_entropy_with(clt_input(graph, "logits", CLT_F32, CLT_SHAPE(2, 3)), clt_input(graph, "target", CLT_I32, CLT_SHAPE(2)), options);
        assert_status(clt_graph_status(graph), i == 2 ? CLT_E_SHAPE : CLT_E_INVALID);
        assert_detail(wrong[i].words);
        clt_graph_destroy(graph);
    }
}

static void tensors_have_names(void **state) {
    (void)state;
    clt_graph *graph = new_graph(), *clone;
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3)), *h = clt_relu(x), *y = clt_tanh(h), **copies;
    char text[64];
    assert_ok(clt_tensor_set_name(h, "first"));
    assert_ok(clt_tensor_set_name(h, "hidden"));
    assert_ok(clt_tensor_set_name(h, "hidden"));
    assert_null(clt_graph_find(graph, "first"));
    assert_ptr_equal(clt_graph_find(graph, "hidden"), h);
    assert_string_equal(clt_tensor_name(h), "hidden");
    assert_string_equal(clt_tensor_label(h, text), "\"hidden\"");
    assert_ok(clt_graph_clone(graph, &y, 1, (clt_sizes){.batch = 5}, &clone, &copies));
    assert_ptr_equal(clt_graph_find(clone, "hidden"), copies[h->index]);
    clt_free(copies);
    clt_graph_destroy(clone);
    const struct {
        clt_tensor *tensor;
        const char *name, *words;
    } wrong[] = {{NULL, "a", "tensor is NULL"}, {y, NULL, "name is NULL"},   {y, "", "empty"}, {x, "a", "\"x\" is not a result of an op"},
                 {y, "x", "\"x\" already"},     {y, "hidden", "\"hidden\" already"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_status(clt_tensor_set_name(wrong[i].tensor, wrong[i].name), CLT_E_INVALID);
        assert_detail(wrong[i].words);
    }
    assert_ok(clt_graph_status(graph));
    assert_string_equal(clt_tensor_name(y), "tanh");
    clt_matmul(h, h);
    assert_detail("\"hidden\" [2, 3]");
    clt_graph_destroy(graph);
    graph = new_graph();
    assert_ok(clt_tensor_set_name(clt_relu(clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3))), "taken"));
    clt_parameter(graph, "taken", CLT_SHAPE(2), (clt_init){0});
    assert_status(clt_graph_status(graph), CLT_E_INVALID);
    assert_detail("parameter \"taken\" exists already");
    clt_graph_destroy(graph);
}

static void zero_of_a_norm_is_zero_where_it_is_said(void **state) {
    (void)state;
    static const struct {
        clt_norm_options options;
        float eps, momentum;
    } norms[] = {{{0}, 1e-5f, 0.1f}, {{.eps = CLT_ZERO}, 0, 0.1f}, {{.momentum = CLT_ZERO}, 1e-5f, 0}, {{.eps = 0.5f, .momentum = 1}, 0.5f, 1}};
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        clt_graph *graph;
        assert_ok(clt_graph_create(&graph));
        clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3));
        clt_tensor *b = clt_batch_norm_with(x, "bn", norms[i].options), *l = clt_layer_norm_with(x, "ln", 1, norms[i].options);
        assert_ok(clt_graph_status(graph));
        const clt_batch_norm_attributes *at = b->attributes;
        assert_true(at->eps == norms[i].eps && at->momentum == norms[i].momentum && !signbit(at->eps) && !signbit(at->momentum));
        assert_true(((const clt_layer_norm_attributes *)l->attributes)->eps == norms[i].eps);
        clt_graph_destroy(graph);
    }
}

/* A part each, whose gradients are put together once. */
static void split_gives_parts(void **state) {
    (void)state;
    clt_graph *graph = new_graph();
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(4, 3, 7)), *parts[7];
    clt_split(x, -1, (const int64_t[]){2, 1, 4}, 3, parts);
    assert_ok(clt_graph_status(graph));
    assert_true(parts[0]->shape.dims[2] == 2 && parts[1]->shape.dims[2] == 1 && parts[2]->shape.dims[2] == 4 && parts[2]->shape.dims[1] == 3);
    clt_split(x, 1, NULL, 3, parts);
    assert_ok(clt_graph_status(graph));
    assert_true(parts[0]->shape.dims[1] == 1 && parts[2]->shape.dims[2] == 7);
    clt_graph_destroy(graph);
    static const struct {
        int axis, n;
        int64_t sizes[3];
    } wrong[] = {{2, 3, {2, 1, 3}}, {2, 2, {8, -1}}, {2, 2, {7, 0}}, {0, 2, {2, 2}}, {3, 1, {7}}, {2, 2, {INT64_MAX, INT64_MAX}}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        graph = new_graph();
        x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(4, 3, 7));
        clt_split(x, wrong[i].axis, wrong[i].sizes, wrong[i].n, parts);
        assert_status(clt_graph_status(graph), CLT_E_SHAPE);
        assert_false(clt_tensor_valid(parts[0]));
        clt_graph_destroy(graph);
    }
    graph = new_graph();
    clt_split(clt_input(graph, "x", CLT_F32, CLT_SHAPE(4, 7)), 1, NULL, 2, parts);
    assert_status(clt_graph_status(graph), CLT_E_SHAPE);
    clt_graph_destroy(graph);
    clt_split(NULL, 0, NULL, 2, parts);
    assert_null(parts[1]);
}

static void batch_norm_has_initial_values(void **state) {
    (void)state;
    clt_graph *graph = new_graph();
    clt_batch_norm(clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3)), "bn");
    assert_ok(clt_graph_status(graph));
    const struct {
        const char *name;
        bool trained;
        float value;
    } wanted[] = {
        {"bn.weight", true, 1},
        {"bn.bias", true, 0},
        {"bn.running_mean", false, 0},
        {"bn.running_var", false, 1},
    };
    for (int i = 0; i < 4; i++) {
        const clt_variable *v = clt_graph_find_variable(graph, wanted[i].name);
        assert_non_null(v);
        assert_int_equal(v->trained, wanted[i].trained);
        assert_true((v->init.kind == CLT_INIT_ZEROS ? 0 : v->init.value) == wanted[i].value);
    }
    assert_int_equal(clt_graph_parameter_count(graph), 6);
    clt_graph_destroy(graph);
}

/* A view of a view, each read by the host and by other nodes. */
static void views_share_memory(void **state) {
    (void)state;
    clt_graph *graph = new_graph();
    clt_state_store *store;
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3));
    clt_tensor *squares = clt_mul(x, x);
    clt_tensor *view = clt_reshape(squares, CLT_SHAPE(6));
    clt_tensor *column = clt_reshape(view, CLT_SHAPE(3, 2));
    clt_tensor *total = clt_sum(clt_add(column, clt_reshape(squares, CLT_SHAPE(3, 2))), CLT_ALL_AXES);
    clt_tensor *targets[] = {view, column, squares, total};
    clt_plan *plan = op_compile(graph, targets, 4, false, &store);
    const float values[] = {1, 2, 3, 4, 5, 6};
    assert_ok(clt_plan_feed(plan, x, values));
    assert_ok(clt_plan_run(plan));
    for (int t = 0; t < 3; t++) {
        float got[6];
        assert_ok(clt_plan_read(plan, targets[t], got, sizeof got));
        for (int i = 0; i < 6; i++) assert_true(got[i] == values[i] * values[i]);
    }
    float sum;
    assert_ok(clt_plan_read(plan, total, &sum, sizeof sum));
    assert_true(sum == 182);
    clt_plan_destroy(plan);
    clt_state_store_destroy(store);
    clt_graph_destroy(graph);
}

/* To rounding, whatever is in them. */
static void rows_of_softmax_sum_to_one(void **state) {
    (void)state;
    enum { ROWS = 37, COLUMNS = 129 };
    float x[ROWS * COLUMNS], y[ROWS * COLUMNS];
    clt_graph *graph = new_graph();
    clt_tensor *in = clt_input(graph, "x", CLT_F32, CLT_SHAPE(ROWS, COLUMNS));
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i * 7919 % 4001) / 100 - 20;
    op_compute(clt_softmax(in, 1), in, x, y);
    for (int row = 0; row < ROWS; row++) {
        double sum = 0;
        for (int i = 0; i < COLUMNS; i++) {
            double value = y[row * COLUMNS + i];
            assert_true(value >= 0 && value <= 1);
            sum += value;
        }
        assert_true(fabs(sum - 1) < 1e-5);
    }
    clt_graph_destroy(graph);
}

/* Whoever computes a target that is not a class is told so. */
static void losses_of_no_class_are_not_numbers(void **state) {
    (void)state;
    const float logits[] = {0, 1, 2, 3, 1, 0, -1, 0, 1, 5, 0, 0};
    for (int nll = 0; nll < 2; nll++) {
        float losses[4];
        clt_graph *graph = new_graph();
        clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(4, 3)), *target = clt_constant(graph, "target", &(clt_array){CLT_I32, CLT_SHAPE(4), (int32_t[]){2, 3, 0, -1}});
        op_compute(nll ? clt_nll_loss_with(clt_log_softmax(x, 1), target, (clt_loss_options){CLT_LOSS_NONE})
                       : clt_cross_entropy_with(x, target, (clt_cross_entropy_options){.reduction = CLT_LOSS_NONE}),
                   x, logits, losses);
        assert_true(fabsf(losses[0] - 0.4076059f) < 1e-6f && fabsf(losses[2] - 2.4076059f) < 1e-6f);
        assert_true(isnan(losses[1]) && isnan(losses[3]));
        clt_graph_destroy(graph);
    }
}

static void dropout_checks_its_probability(void **state) {
    (void)state;
    const float bad[] = {-0.1f, 1, 1.5f, NAN};
    for (size_t i = 0; i < CLT_COUNT_OF(bad); i++) {
        clt_graph *graph = new_graph();
        clt_dropout(clt_input(graph, "x", CLT_F32, CLT_SHAPE(3)), bad[i]);
        assert_status(clt_graph_status(graph), CLT_E_INVALID);
        assert_detail("dropout");
        clt_graph_destroy(graph);
    }
}

OP_MAIN("builders", cmocka_unit_test(subnormal_numbers_have_small_powers), cmocka_unit_test(cast_to_its_own_type_is_itself),
        cmocka_unit_test(batch_norm_of_one_element_a_channel_is_refused),
        cmocka_unit_test(losses_stay_apart_or_are_summed), cmocka_unit_test(tensors_have_names),
        cmocka_unit_test(zero_of_a_norm_is_zero_where_it_is_said), cmocka_unit_test(split_gives_parts), cmocka_unit_test(batch_norm_has_initial_values),
        cmocka_unit_test(views_share_memory), cmocka_unit_test(rows_of_softmax_sum_to_one), cmocka_unit_test(losses_of_no_class_are_not_numbers),
        cmocka_unit_test(dropout_checks_its_probability))
