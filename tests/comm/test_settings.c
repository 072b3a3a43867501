/* What options and environment make together. */
#define _XOPEN_SOURCE 700 /* setenv */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "comm/settings.h"

static const char *const variables[] = {
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
    "SLURM_PROCID", "JOB_COMPLETION_INDEX", "CLTRAIN_COMM_STORE", "CLTRAIN_COMM_STORE_SERVED", "CLTRAIN_COMM_TOKEN",
    "CLTRAIN_COMM_TOKEN_FILE", "CLTRAIN_COMM_JOB", "CLTRAIN_COMM_INTERFACE", "CLTRAIN_COMM_PORTS",
    "CLTRAIN_COMM_SECURITY", "CLTRAIN_COMM_CHANNELS", "CLTRAIN_COMM_ALGORITHMS", "CLTRAIN_COMM_GENERATION",
    "CLTRAIN_COMM_CONNECT_SECONDS", "CLTRAIN_COMM_TIMEOUT_SECONDS", "CLTRAIN_COMM_HEARTBEAT_SECONDS", "CLTRAIN_COMM_ENGINE",
};

static int clear(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    return 0;
}

static void set(const char *name, const char *value) {
    assert_int_equal(setenv(name, value, 1), 0);
}

static void test_nothing_is_a_job_of_one(void **state) {
    (void)state;
    clt_comm_settings s;
    assert_ok(clt_comm_settings_resolve(&s, NULL));
    assert_true(s.rank == 0 && s.size == 1 && s.channels == 1 && s.security == CLT_SECURITY_TLS && !s.serve);
    assert_true(s.connect_seconds == 120 && s.timeout_seconds == 300 && s.heartbeat_seconds == 5);
    clt_comm_settings_free(&s);
    clt_comm *comm;
    assert_ok(clt_comm_create(&comm, NULL));
    assert_int_equal(clt_comm_size(comm), 1);
    clt_comm_destroy(comm);
}

static void test_environment(void **state) {
    (void)state;
    clt_comm_settings s;
    set("RANK", "0");
    set("WORLD_SIZE", "3");
    set("MASTER_ADDR", "192.0.2.1");
    set("MASTER_PORT", "29511");
    set("CLTRAIN_COMM_SECURITY", "auth");
    set("CLTRAIN_COMM_CHANNELS", "4");
    set("CLTRAIN_COMM_GENERATION", "7");
    support_write(support_path("token"), "a secret of some length\n", 24);
    set("CLTRAIN_COMM_TOKEN_FILE", support_path("token"));
    assert_ok(clt_comm_settings_resolve(&s, NULL));
    assert_true(s.size == 3 && s.channels == 4 && s.generation == 7 && s.security == CLT_SECURITY_AUTH && s.serve);
    assert_string_equal(s.store, "tcp://192.0.2.1:29511");
    assert_string_equal(s.towards, "192.0.2.1:29511");
    assert_string_equal(s.token, "a secret of some length");
    clt_comm_settings_free(&s);
    set("CLTRAIN_COMM_STORE", "redis://:word@192.0.2.9:6380/2");
    set("CLTRAIN_COMM_STORE_SERVED", "1");
    set("CLTRAIN_COMM_TOKEN", "another secret, nearer");
    assert_ok(clt_comm_settings_resolve(&s, &(clt_comm_options){.channels = 2, .generation = 9, .security = CLT_SECURITY_NONE}));
    assert_true(!s.serve && s.channels == 2 && s.generation == 9 && s.security == CLT_SECURITY_NONE);
    assert_string_equal(s.towards, "192.0.2.9:6380");
    assert_string_equal(s.token, "another secret, nearer");
    clt_comm_settings_free(&s);
    set("CLTRAIN_COMM_CONNECT_SECONDS", "30");
    set("CLTRAIN_COMM_TIMEOUT_SECONDS", "90.25");
    set("CLTRAIN_COMM_HEARTBEAT_SECONDS", ".5");
    assert_ok(clt_comm_settings_resolve(&s, &(clt_comm_options){.timeout_seconds = 7}));
    assert_true(s.connect_seconds == 30 && s.timeout_seconds == 7 && s.heartbeat_seconds == 0.5);
    clt_comm_settings_free(&s);
    assert_ok(clt_comm_settings_resolve(&s, NULL));
    assert_true(s.timeout_seconds == 90.25);
    clt_comm_settings_free(&s);
    set("CLTRAIN_COMM_STORE", "tcp://192.0.2.5:1000");
    assert_ok(clt_comm_settings_resolve(&s, NULL)); /* the launcher serves it */
    assert_false(s.serve);
    clt_comm_settings_free(&s);
}

static void refuse(const clt_comm_options *options, const char *words) {
    clt_comm_settings s;
    assert_status(clt_comm_settings_resolve(&s, options), CLT_E_INVALID);
    assert_detail(words);
    assert_null(s.store);
}

static void test_refusals(void **state) {
    (void)state;
    const clt_comm_options two = {.size = 2, .store = "file:///tmp/x"};
    clt_comm_options o = two;
    refuse(&(clt_comm_options){.size = 2}, "CLTRAIN_COMM_STORE");
    refuse(&(clt_comm_options){.size = 2, .rank = 2}, "rank is 2");
    refuse(&(clt_comm_options){.size = -1}, "size is -1");
    refuse(&(clt_comm_options){.size = 100000}, "size is 100000");
    o.channels = 17, refuse(&o, "channels is 17"), o = two;
    o.heartbeat_seconds = 0.1, refuse(&o, "heartbeat_seconds is 0.1"), o = two;
    o.timeout_seconds = -1, refuse(&o, "timeout_seconds is -1"), o = two;
    o.algorithms = "ring,quantum", refuse(&o, "\"quantum\""), o = two;
    o.algorithms = "-ringg", refuse(&o, "\"ringg\""), o = two;
    o.security = (clt_comm_security)9, refuse(&o, "security is 9"), o = two;
    set("CLTRAIN_COMM_SECURITY", "yes"), refuse(&o, "CLTRAIN_COMM_SECURITY is 'yes'");
    set("CLTRAIN_COMM_SECURITY", "tls");
    set("CLTRAIN_COMM_CHANNELS", "2x"), refuse(&o, "CLTRAIN_COMM_CHANNELS is '2x'");
    set("CLTRAIN_COMM_CHANNELS", "2");
    static const char *const no_seconds[] = {"0.1", "-1", "1e3", "5s", ".", "5.", "nan", "99999999999"};
    for (size_t i = 0; i < sizeof no_seconds / sizeof *no_seconds; i++)
        set("CLTRAIN_COMM_HEARTBEAT_SECONDS", no_seconds[i]), refuse(&o, "CLTRAIN_COMM_HEARTBEAT_SECONDS is '");
    set("CLTRAIN_COMM_HEARTBEAT_SECONDS", "");
    set("CLTRAIN_COMM_GENERATION", "99999999999999999999"), refuse(&o, "CLTRAIN_COMM_GENERATION");
    unsetenv("CLTRAIN_COMM_GENERATION");
    clt_comm_settings s;
    set("CLTRAIN_COMM_TOKEN_FILE", "/nowhere/at/all");
    assert_status(clt_comm_settings_resolve(&s, &o), CLT_E_IO);
    assert_detail("CLTRAIN_COMM_TOKEN_FILE");
    unsetenv("CLTRAIN_COMM_TOKEN_FILE");
    clt_comm *comm = (clt_comm *)&s;
    assert_status(clt_comm_create(&comm, &o), CLT_E_INVALID); /* no token */
    assert_detail("token");
    assert_null(comm);
    set("RANK", "1");
    refuse(NULL, "WORLD_SIZE");
}

/* What an engine does not have is refused by its name, whether its plugin is here or not. */
static void test_engines(void **state) {
    (void)state;
    clt_comm_options o = {.rank = 0, .size = 2, .store = "file:///tmp", .engine = "smoke"};
    refuse(&o, "engine is 'smoke': expected auto, cltrain, gloo or mpi");
    o.engine = "mpi", refuse(&o, "engine mpi takes no store: MPI carries the job over its own network, in the clear");
    o.engine = "gloo", o.ports = "29600", refuse(&o, "engine gloo takes no ports");
    o.ports = NULL, o.security = CLT_SECURITY_TLS, refuse(&o, "engine gloo takes no security");
    /* What the environment asks for is not left out in silence. */
    o = (clt_comm_options){.engine = "mpi"};
    set("CLTRAIN_COMM_SECURITY", "tls"), refuse(&o, "engine mpi takes no security");
    set("CLTRAIN_COMM_SECURITY", "none");
    set("CLTRAIN_COMM_CHANNELS", "2"), refuse(&o, "engine mpi takes no channels");
    unsetenv("CLTRAIN_COMM_CHANNELS"), unsetenv("CLTRAIN_COMM_SECURITY");
    o.engine = "local", refuse(&o, "clt_comm_create_local makes those");
    o = (clt_comm_options){.rank = 0, .size = 2, .store = "file:///tmp", .engine = "gloo"};
    clt_comm_settings s;
    o.security = CLT_SECURITY_DEFAULT, o.token = "a secret of some length";
    clt_status status = clt_comm_settings_resolve(&s, &o);
    assert_true(status == CLT_E_UNSUPPORTED || status == CLT_E_INVALID);
    assert_detail(status == CLT_E_INVALID ? "engine gloo neither authenticates nor encrypts" : "libgloo-dev");
    o.engine = NULL, set("CLTRAIN_COMM_ENGINE", "cltrain");
    assert_ok(clt_comm_settings_resolve(&s, &o));
    assert_string_equal(s.engine, "cltrain");
    clt_comm_settings_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_nothing_is_a_job_of_one, clear),
        cmocka_unit_test_setup(test_environment, clear),
        cmocka_unit_test_setup(test_refusals, clear),
        cmocka_unit_test_setup(test_engines, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
