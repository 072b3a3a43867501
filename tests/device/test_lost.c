/*
 * Devices that run out of memory, are lost or hang in the middle of training. Calls of OpenCL that this program defines itself
 * stand before the driver's, and fail on demand.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "tests/support.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CL/cl.h>

#include <cltrain/cltrain.h>

#include "runtime/base/base.h"
#include "runtime/device/device.h"

/* ---- faults ---- */

typedef enum call { ENQUEUE, FINISH, WAIT, CREATE, READ, LATER, CALLS } call;
static cl_int fault[CALLS]; /* what the call gives; 0: the driver's own answer */
static int after[CALLS];    /* so many calls later */
static int made[CALLS];
static const char *hanging; /* launches of this kernel never end; NULL: none */

static cl_int faulty(call c) {
    made[c]++;
    if (!fault[c] || after[c]-- > 0) return CL_SUCCESS;
    return fault[c];
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* An event of what the driver took, and which failed later. */
static cl_int fail_later(cl_command_queue queue, cl_int error, cl_event *event) {
    cl_context context;
    clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    if (!event) return CL_SUCCESS;
    *event = clCreateUserEvent(context, NULL);
    return clSetUserEventStatus(*event, error);
}

static bool is_hanging(cl_kernel kernel) {
    char name[64] = "";
    if (hanging) clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    return hanging && !strcmp(name, hanging);
}

/* They wait for an event that nobody sets. */
static cl_event never(cl_command_queue queue) {
    cl_context context;
    clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    return clCreateUserEvent(context, NULL);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                              const size_t *global, const size_t *local, cl_uint n, const cl_event *list, cl_event *event) {
    cl_int later = faulty(LATER), error = faulty(ENQUEUE);
    if (later) {
        after[LATER] = INT_MAX; /* this one alone */
        return fail_later(queue, later, event);
    }
    cl_event ever = is_hanging(kernel) ? never(queue) : NULL;
    if (ever) list = &ever, n = 1;
    return error ? error : REAL(clEnqueueNDRangeKernel)(queue, kernel, dims, offset, global, local, n, list, event);
}

cl_int clFinish(cl_command_queue queue) {
    cl_int error = faulty(FINISH);
    return error ? error : REAL(clFinish)(queue);
}

cl_int clWaitForEvents(cl_uint n, const cl_event *events) {
    cl_int error = faulty(WAIT);
    return error ? error : REAL(clWaitForEvents)(n, events);
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *error) {
    *error = bytes > 1 << 20 ? faulty(CREATE) : CL_SUCCESS; /* of an activation's size */
    return *error ? NULL : REAL(clCreateBuffer)(context, flags, bytes, host, error);
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t bytes, void *to,
                           cl_uint n, const cl_event *list, cl_event *event) {
    cl_int error = faulty(READ);
    return error ? error : REAL(clEnqueueReadBuffer)(queue, memory, blocking, offset, bytes, to, n, list, event);
}

static int no_faults(void **state) {
    (void)state;
    memset(fault, 0, sizeof fault);
    memset(after, 0, sizeof after);
    memset(made, 0, sizeof made);
    return 0;
}

/* ---- a trainer; `spin` makes a kernel that ends only if its input is small ---- */

enum { BATCH = 8, D = 2048, WIDTH = 64 };

typedef struct model {
    clt_device *device;
    clt_graph *graph;
    clt_tensor *output;
    clt_trainer *trainer;
} model;

static clt_tensor *add_spin(clt_tensor *x) {
    const clt_user_op spin = {
        .name = "spin",
        .source = "kernel void spin(global const float *x, global float *y, int count) {\n"
                  "    int i = get_global_id(0);\n"
                  "    volatile global const float *flag = x;\n"
                  "    if (i >= count) return;\n"
                  "    while (flag[i] > 1e6f) {}\n"
                  "    y[i] = x[i];\n"
                  "}\n"
                  "kernel void spin_grad(global const float *x, global const float *y, global const float *dy,\n"
                  "                      global float *dx, int count) {\n"
                  "    int i = get_global_id(0);\n"
                  "    if (i < count) dx[i] = dy[i];\n"
                  "}\n",
        .n_inputs = 1,
        .forward = "spin",
        .backward = {"spin_grad"},
    };
    return clt_apply(&spin, &x, NULL, 0);
}

static void make(model *m, bool spins) {
    *m = (model){0};
    assert_ok(clt_device_open(&m->device, NULL));
    assert_ok(clt_graph_create(&m->graph));
    clt_tensor *x = clt_input(m->graph, "x", CLT_F32, CLT_SHAPE(BATCH, D));
    clt_tensor *t = clt_input(m->graph, "t", CLT_F32, CLT_SHAPE(BATCH, WIDTH));
    m->output = clt_linear(clt_relu(x), "fc", WIDTH);
    if (spins) m->output = add_spin(m->output);
    assert_ok(clt_trainer_create(&m->trainer, m->device, clt_mse_loss(m->output, t),
                                 &(clt_train_options){.output = m->output, .optimizer = CLT_ADAM}));
}

static void destroy(model *m) {
    clt_trainer_destroy(m->trainer);
    clt_graph_destroy(m->graph);
    clt_device_close(m->device);
}

static clt_status work(model *m, int samples, float value, clt_status (*take)(clt_trainer *, const clt_batch *)) {
    enum { MOST = 1024 };
    static float x[MOST][D], t[MOST][WIDTH];
    for (int i = 0; i < samples; i++) x[i][0] = value;
    clt_batch batch = {.samples = samples,
                       .n_fields = 2,
                       .fields = {{CLT_F32, CLT_SHAPE(samples, D), x}, {CLT_F32, CLT_SHAPE(samples, WIDTH), t}}};
    return take(m->trainer, &batch);
}

static clt_status step(model *m, int samples) {
    return work(m, samples, 1, clt_trainer_step);
}

/* ---- out of memory ---- */

static void a_plan_that_does_not_fit_changes_nothing(void **state) {
    (void)state;
    model m;
    enum { LARGE = 1000 };
    float before[WIDTH], got[WIDTH];
    make(&m, false);
    assert_ok(step(&m, BATCH));
    assert_ok(clt_trainer_get(m.trainer, "fc.bias", before, WIDTH));
    fault[CREATE] = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    for (int evaluates = 0; evaluates < 2; evaluates++) {
        assert_status(work(&m, LARGE, 1, evaluates ? clt_trainer_evaluate : clt_trainer_step), CLT_E_DEVICE_MEMORY);
        assert_detail(evaluates ? "evaluation with 1000 samples" : "training with 1000 samples");
        assert_detail("[1000, 2048], of 8192000 bytes"); /* relu's result */
        assert_detail("the device has");
        assert_detail("CL_MEM_OBJECT_ALLOCATION_FAILURE");
    }
    assert_true(made[CREATE] >= 2);
    assert_ok(clt_trainer_get(m.trainer, "fc.bias", got, WIDTH));
    assert_memory_equal(got, before, sizeof got);
    assert_ok(step(&m, BATCH));
    assert_ok(clt_checkpoint_save(m.trainer, NULL, support_path("after.safetensors")));
    fault[CREATE] = 0;
    assert_ok(work(&m, LARGE, 1, clt_trainer_evaluate));
    destroy(&m);
}

/* Where the driver finds room only when something is launched. */
static void a_launch_that_finds_no_memory(void **state) {
    (void)state;
    model m;
    make(&m, false);
    assert_ok(step(&m, BATCH));
    fault[ENQUEUE] = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    after[ENQUEUE] = 4; /* after hyper and a few of forward, before the update */
    assert_status(step(&m, BATCH), CLT_E_DEVICE_MEMORY);
    assert_detail(" by "); /* the op and its row */
    assert_detail("kernel ");
    fault[ENQUEUE] = 0;
    assert_ok(step(&m, BATCH));
    assert_ok(clt_trainer_wait(m.trainer));
    assert_int_equal(clt_trainer_steps(m.trainer), 2);
    destroy(&m);
}

/* ---- lost ---- */

static void assert_all_refuse(model *m) {
    char words[512];
    float values[WIDTH];
    clt_metrics metrics;
    clt_memory *memory;
    snprintf(words, sizeof words, "%s", clt_error_detail());
    assert_true(clt_device_is_lost(m->device));
    int calls = made[ENQUEUE] + made[FINISH] + made[WAIT] + made[READ];
    assert_status(step(m, BATCH), CLT_E_DEVICE_LOST);
    assert_detail(words);
    assert_status(clt_trainer_wait(m->trainer), CLT_E_DEVICE_LOST);
    assert_status(work(m, BATCH, 1, clt_trainer_evaluate), CLT_E_DEVICE_LOST);
    assert_status(clt_trainer_train_metrics(m->trainer, &metrics, true), CLT_E_DEVICE_LOST);
    assert_status(clt_trainer_get(m->trainer, "fc.bias", values, WIDTH), CLT_E_DEVICE_LOST);
    assert_status(clt_trainer_set(m->trainer, "fc.bias", values, WIDTH), CLT_E_DEVICE_LOST);
    assert_status(clt_checkpoint_save(m->trainer, NULL, support_path("lost.safetensors")), CLT_E_DEVICE_LOST);
    assert_status(clt_memory_create(m->device, 100, &memory), CLT_E_DEVICE_LOST);
    assert_status(clt_device_set_timeout(m->device, 1), CLT_E_DEVICE_LOST);
    assert_detail(words);
    assert_int_equal(made[ENQUEUE] + made[FINISH] + made[WAIT] + made[READ], calls); /* the driver is not asked */
}

static void a_lost_device_says_so_from_then_on(void **state) {
    (void)state;
    static const struct {
        call call;
        int after;
        cl_int error;
        const char *words;
    } cases[] = {
        {ENQUEUE, 3, CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE; what was being launched: "},
        {ENQUEUE, 3, CL_INVALID_COMMAND_QUEUE, "CL_INVALID_COMMAND_QUEUE"},
        {ENQUEUE, 3, -9999, "OpenCL error -9999"},
        {FINISH, 0, CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
        {WAIT, 0, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "CL_EXEC_STATUS_ERROR"},
        {READ, 0, CL_OUT_OF_RESOURCES, "reading a buffer: CL_OUT_OF_RESOURCES"},
    };
    for (size_t i = 0; i < CLT_COUNT_OF(cases); i++) {
        model m;
        float values[WIDTH];
        no_faults(NULL);
        make(&m, false);
        assert_ok(step(&m, BATCH));
        assert_ok(clt_trainer_wait(m.trainer));
        fault[cases[i].call] = cases[i].error;
        after[cases[i].call] = cases[i].after;
        clt_status status = CLT_OK;
        for (int k = 0; k < 4 && status >= 0; k++) status = step(&m, BATCH);
        if (status >= 0) status = clt_trainer_wait(m.trainer);
        if (status >= 0) status = clt_trainer_get(m.trainer, "fc.bias", values, WIDTH);
        fault[cases[i].call] = 0;
        assert_int_equal(status, CLT_E_DEVICE_LOST);
        assert_detail("was lost: ");
        assert_detail(cases[i].words);
        assert_all_refuse(&m);
        destroy(&m);
    }
}

/* A launch that the driver took may fail while nobody waits for it: what waits next tells which it was, however many followed. */
static void a_launch_that_fails_later_is_named(void **state) {
    enum { STEPS = 700 }; /* of more launches than are kept */
    static const int launches[] = {0, 1, 7, 40};
    (void)state;
    for (size_t i = 0; i < 2 * CLT_COUNT_OF(launches); i++) {
        model m;
        no_faults(NULL);
        make(&m, false);
        assert_ok(clt_device_set_timeout(m.device, 120));
        assert_ok(step(&m, BATCH));
        assert_ok(clt_trainer_wait(m.trainer));
        fault[LATER] = CL_OUT_OF_RESOURCES;
        after[LATER] = launches[i / 2];
        int steps = i % 2 ? STEPS : 12;
        clt_status status = CLT_OK;
        for (int k = 0; k < steps && status >= 0; k++) status = step(&m, BATCH);
        if (status >= 0) status = clt_trainer_wait(m.trainer);
        fault[LATER] = 0;
        assert_int_equal(status, CLT_E_DEVICE_LOST);
        assert_detail("was lost: ");
        assert_detail("CL_OUT_OF_RESOURCES");
        assert_detail("the first that did not: ");
        assert_detail("kernel ");
        assert_all_refuse(&m);
        destroy(&m);
    }
}

/* ---- hangs: in a process of its own, for the kernel goes on for ever ---- */

static void say_and_end(const char *words, int code) {
    printf("%s\n", words);
    fflush(stdout);
    _exit(code); /* what runs at a normal end may wait for the kernel */
}

static void keep_message(clt_log_level level, const char *message, void *user) {
    (void)level;
    (void)user;
    printf("log: %s\n", message);
}

static void hang(void) {
    model m;
    make(&m, true);
    clt_log_set(keep_message, CLT_LOG_WARNING, NULL);
    if (clt_trainer_wait(m.trainer) < 0 || step(&m, BATCH) < 0 || clt_trainer_wait(m.trainer) < 0)
        say_and_end(clt_error_detail(), 2);
    double start = clt_seconds();
    clt_status status = work(&m, BATCH, 1e30f, clt_trainer_step);
    if (status >= 0) status = clt_trainer_wait(m.trainer);
    printf("%s after %.1f s: %s\n", clt_status_name(status), clt_seconds() - start, clt_error_detail());
    status = step(&m, BATCH);
    printf("then %s: %s\n", clt_status_name(status), clt_error_detail());
    destroy(&m);
    say_and_end("destroyed", 0);
}

/* A kernel that is tried on a device for trials, which has the timeout that the program set. */
static void hang_trial(void) {
    clt_device *device, *trial;
    setenv("XDG_CACHE_HOME", support_folder(), 1);
    if (clt_device_open(&device, NULL) < 0 || clt_device_set_timeout(device, 2) < 0 || clt_device_open_again(device, &trial) < 0)
        say_and_end(clt_error_detail(), 2);
    hanging = "test";
    bool has = clt_device_has(trial, CLT_CAP_FP64);
    clt_status status = clt_device_finish(trial);
    printf("%d, %s: %s\n", has, clt_status_name(status), clt_error_detail());
    clt_device_close(trial);
    say_and_end("closed", 0);
}

/* What the program printed when it was started again as one that hangs. */
static void run_hanging(char *how, char *out, size_t bytes, int *code) {
    char *arguments[] = {"/proc/self/exe", how, NULL};
    int pipes[2];
    pid_t child;
    size_t n = 0;
    posix_spawn_file_actions_t actions;
    extern char **environ;
    assert_int_equal(pipe(pipes), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
    posix_spawn_file_actions_addclose(&actions, pipes[0]);
    assert_int_equal(posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(pipes[1]);
    for (ssize_t got; n + 1 < bytes && (got = read(pipes[0], out + n, bytes - n - 1)) != 0;)
        if (got > 0) n += (size_t)got;
        else if (errno != EINTR) break;
    out[n] = 0;
    close(pipes[0]);
    int status = 0;
    waitpid(child, &status, 0);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void assert_hangs(char *how, const char *const *wanted) {
    char out[8192];
    int code;
    run_hanging(how, out, sizeof out, &code);
    for (; *wanted; wanted++)
        if (!strstr(out, *wanted)) fail_msg("exit code %d, and no word of \"%s\":\n%s", code, *wanted, out);
    assert_int_equal(code, 0);
}

static void a_kernel_that_hangs_is_named(void **state) {
    (void)state;
    assert_hangs("hang", (const char *const[]){"CLT_E_DEVICE_LOST after ", " hangs: ", "no launch has finished for 2 s",
                                               "the first that did not: spin", "the last launch that finished: ",
                                               "then CLT_E_DEVICE_LOST", "are left to the driver", "destroyed", NULL});
}

static void a_trial_that_hangs_is_named(void **state) {
    (void)state;
    assert_hangs("trial", (const char *const[]){"0, CLT_E_DEVICE_LOST: ", " hangs: trying out fp64", "for 2 s", "closed", NULL});
}

static void a_timeout_leaves_healthy_devices_alone(void **state) {
    (void)state;
    model m;
    float values[WIDTH];
    make(&m, false);
    assert_ok(clt_device_set_timeout(m.device, 120));
    for (int i = 0; i < 600; i++) assert_ok(step(&m, BATCH)); /* more launches than are kept */
    assert_ok(clt_trainer_wait(m.trainer));
    assert_ok(clt_trainer_get(m.trainer, "fc.bias", values, WIDTH));
    assert_ok(clt_device_set_timeout(m.device, 0));
    assert_ok(step(&m, BATCH));
    assert_ok(clt_trainer_wait(m.trainer));
    assert_status(clt_device_set_timeout(m.device, -1), CLT_E_INVALID);
    destroy(&m);
    clt_device *device;
    setenv("CLTRAIN_DEVICE_TIMEOUT", "soon", 1);
    clt_status status = clt_device_open(&device, NULL);
    unsetenv("CLTRAIN_DEVICE_TIMEOUT");
    assert_int_equal(status, CLT_E_INVALID);
    assert_detail("CLTRAIN_DEVICE_TIMEOUT=soon");
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "hang")) {
        alarm(120); /* if nothing else ends it */
        setenv("CLTRAIN_DEVICE_TIMEOUT", "2", 1);
        hang();
    }
    if (argc > 1 && !strcmp(argv[1], "trial")) {
        alarm(60);
        hang_trial();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_plan_that_does_not_fit_changes_nothing, no_faults),
        cmocka_unit_test_setup(a_launch_that_finds_no_memory, no_faults),
        cmocka_unit_test_setup(a_lost_device_says_so_from_then_on, no_faults),
        cmocka_unit_test_setup(a_launch_that_fails_later_is_named, no_faults),
        cmocka_unit_test_setup(a_kernel_that_hangs_is_named, no_faults),
        cmocka_unit_test_setup(a_trial_that_hangs_is_named, no_faults),
        cmocka_unit_test_setup(a_timeout_leaves_healthy_devices_alone, no_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
