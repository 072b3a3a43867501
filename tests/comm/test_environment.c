#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "comm/rendezvous/nodelist.h"
#include "comm/rendezvous/rendezvous.h"

static const char *const variables[] = {
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_USE_AGENT_STORE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS", "PMI_JOBID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_PTY_PORT", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS",
    "SLURM_LOCALID", "SLURM_JOB_ID", "SLURM_RESTART_COUNT", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST",
    "JOB_COMPLETION_INDEX"};

static clt_launch_environment e;

/* Reads the environment of these variables alone: "NAME", "value", …, NULL. */
static clt_status read_with(const char *const *pairs) {
    for (size_t i = 0; i < CLT_COUNT_OF(variables); i++) unsetenv(variables[i]);
    for (; *pairs; pairs += 2) setenv(pairs[0], pairs[1], 1);
    return clt_launch_environment_read(&e);
}
#define READ(...) read_with((const char *const[]){__VA_ARGS__, NULL})

static void assert_place(const char *launcher, int rank, int size, int local, const char *master) {
    assert_string_equal(e.launcher, launcher);
    assert_int_equal(e.rank, rank);
    assert_int_equal(e.size, size);
    assert_int_equal(e.local_rank, local);
    assert_string_equal(e.master, master);
}

static void test_none(void **state) {
    (void)state;
    assert_ok(read_with((const char *const[]){NULL}));
    assert_null(e.launcher);
    assert_int_equal(e.rank, 0);
    assert_int_equal(e.size, 1);
    assert_string_equal(e.master, "");
    assert_string_equal(e.job, "");
    assert_ok(READ("WORLD_SIZE", "4")); /* alone it says nothing */
    assert_null(e.launcher);
    assert_ok(READ("RANK", ""));
    assert_null(e.launcher);
}

static void test_torchrun(void **state) {
    (void)state;
    assert_ok(READ("RANK", "3", "WORLD_SIZE", "8", "LOCAL_RANK", "1", "MASTER_ADDR", "node1", "MASTER_PORT", "1234"));
    assert_place("torchrun", 3, 8, 1, "node1:1234");
    assert_int_equal(e.generation, 0);
    assert_ok(READ("RANK", "0", "WORLD_SIZE", "1", "MASTER_ADDR", "fe80::1"));
    assert_place("torchrun", 0, 1, 0, "[fe80::1]:29500");
    assert_ok(READ("RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", "a", "MASTER_PORT", "7", "TORCHELASTIC_RUN_ID", "r1",
                   "TORCHELASTIC_RESTART_COUNT", "2", "TORCHELASTIC_USE_AGENT_STORE", "True"));
    assert_place("torchrun", 0, 2, 0, "a:8"); /* the agent's own store has 7 */
    assert_int_equal(e.generation, 2);
    assert_string_equal(e.job, "torchrun-r1+2");
}

static void test_open_mpi(void **state) {
    (void)state;
    assert_ok(READ("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2", "OMPI_COMM_WORLD_LOCAL_RANK", "1",
                   "OMPI_COMM_WORLD_LOCAL_SIZE", "2", "PMIX_NAMESPACE", "4096"));
    assert_string_equal(e.launcher, "Open MPI");
    assert_string_equal(e.job, "ompi-4096");
    char first[sizeof e.master];
    strcpy(first, e.master);
    assert_int_equal(strncmp(first, "127.0.0.1:2", 11), 0);
    assert_ok(READ("OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "2", "OMPI_COMM_WORLD_LOCAL_SIZE", "2", "PMIX_NAMESPACE",
                   "4096"));
    assert_string_equal(e.master, first); /* all ranks of the job meet */
    assert_ok(READ("OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "2", "OMPI_COMM_WORLD_LOCAL_SIZE", "2", "PMIX_NAMESPACE",
                   "4097"));
    assert_string_not_equal(e.master, first); /* others do not */
    assert_ok(READ("OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_LOCAL_SIZE", "2", "PMIX_NAMESPACE",
                   "4096"));
    assert_string_equal(e.master, ""); /* several hosts: it does not say which is rank 0's */
    assert_ok(READ("OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_LOCAL_SIZE", "2", "MASTER_ADDR", "h",
                   "MASTER_PORT", "99"));
    assert_string_equal(e.master, "h:99");
}

static void test_pmi(void **state) {
    (void)state;
    assert_ok(READ("PMI_RANK", "2", "PMI_SIZE", "3", "MPI_LOCALRANKID", "1", "MASTER_ADDR", "10.0.0.1"));
    assert_place("PMI", 2, 3, 1, "10.0.0.1:29500");
}

static void test_slurm(void **state) {
    (void)state;
    assert_ok(READ("SLURM_JOB_ID", "1234", "SLURM_STEP_ID", "0", "SLURM_PROCID", "5", "SLURM_NTASKS", "9", "SLURM_STEP_NUM_TASKS", "8",
                   "SLURM_LOCALID", "1", "SLURM_JOB_NODELIST", "n[01-04,7],m3"));
    assert_place("Slurm", 5, 8, 1, "n01:21234");
    assert_string_equal(e.job, "slurm-1234.0");
    assert_ok(READ("SLURM_JOB_ID", "1234", "SLURM_STEP_ID", "2", "SLURM_PROCID", "0", "SLURM_NTASKS", "2", "SLURM_JOB_NODELIST",
                   "n[01-04,7],m3", "SLURM_STEP_NODELIST", "n[03-04]", "SLURM_RESTART_COUNT", "1"));
    assert_place("Slurm", 0, 2, 0, "n03:21236");
    assert_string_equal(e.job, "slurm-1234.2+1");
    assert_ok(READ("SLURM_JOB_ID", "1", "SLURM_STEP_ID", "0", "SLURM_PROCID", "0", "SLURM_NTASKS", "2", "SLURM_NODELIST", "a,b",
                   "MASTER_PORT", "77"));
    assert_string_equal(e.master, "a:77");
}

/* salloc's shell, a batch script, srun --pty: none of them is a rank. */
static void test_slurm_shells(void **state) {
    (void)state;
    assert_ok(READ("SLURM_JOB_ID", "1", "SLURM_NTASKS", "4", "SLURM_JOB_NODELIST", "n1"));
    assert_null(e.launcher);
    assert_ok(READ("SLURM_JOB_ID", "1", "SLURM_NTASKS", "4", "SLURM_PROCID", "0"));
    assert_null(e.launcher);
    assert_ok(READ("SLURM_STEP_ID", "4294967291", "SLURM_NTASKS", "4", "SLURM_PROCID", "0"));
    assert_null(e.launcher);
    assert_ok(READ("SLURM_STEP_ID", "0", "SLURM_NTASKS", "4", "SLURM_PROCID", "0", "SLURM_PTY_PORT", "40000"));
    assert_null(e.launcher);
}

static void test_kubernetes(void **state) {
    (void)state;
    assert_ok(READ("JOB_COMPLETION_INDEX", "2", "WORLD_SIZE", "3", "MASTER_ADDR", "train-0.train"));
    assert_place("Kubernetes", 2, 3, 0, "train-0.train:29500");
    assert_status(READ("JOB_COMPLETION_INDEX", "2"), CLT_E_INVALID);
    assert_detail("WORLD_SIZE is not");
}

/* The innermost launcher counts. */
static void test_nested(void **state) {
    (void)state;
    assert_ok(READ("JOB_COMPLETION_INDEX", "1", "RANK", "5", "WORLD_SIZE", "8", "MASTER_ADDR", "m"));
    assert_place("torchrun", 5, 8, 0, "m:29500");
    assert_ok(READ("SLURM_STEP_ID", "0", "SLURM_PROCID", "1", "SLURM_NTASKS", "2", "OMPI_COMM_WORLD_RANK", "7",
                   "OMPI_COMM_WORLD_SIZE", "16"));
    assert_place("Open MPI", 7, 16, 0, "");
    assert_ok(READ("SLURM_STEP_ID", "0", "SLURM_PROCID", "1", "SLURM_NTASKS", "2", "SLURM_STEP_NUM_TASKS", "2", "PMI_RANK", "3",
                   "PMI_SIZE", "8"));
    assert_place("PMI", 3, 8, 0, ""); /* Hydra's proxy was the task */
    assert_ok(READ("SLURM_STEP_ID", "0", "SLURM_PROCID", "1", "SLURM_NTASKS", "2", "SLURM_STEP_NUM_TASKS", "2", "PMI_RANK", "1",
                   "PMI_SIZE", "2", "SLURM_STEP_NODELIST", "x1", "SLURM_JOB_ID", "3"));
    assert_place("Slurm", 1, 2, 0, "x1:20003");
}

static void test_what_is_wrong_is_named(void **state) {
    (void)state;
    static const struct {
        const char *pairs[7], *words;
    } cases[] = {
        {{"RANK", "0"}, "WORLD_SIZE is not"},
        {{"RANK", "x", "WORLD_SIZE", "2"}, "RANK is 'x'"},
        {{"RANK", "2", "WORLD_SIZE", "2"}, "RANK is '2': expected a whole number from 0 to 1"},
        {{"RANK", "-1", "WORLD_SIZE", "2"}, "RANK is '-1'"},
        {{"RANK", " 1", "WORLD_SIZE", "2"}, "RANK is ' 1'"},
        {{"RANK", "0", "WORLD_SIZE", "0"}, "WORLD_SIZE is '0'"},
        {{"RANK", "0", "WORLD_SIZE", "99999999999999999999"}, "WORLD_SIZE is '99999999999999999999'"},
        {{"RANK", "0", "WORLD_SIZE", "2", "LOCAL_RANK", "2"}, "LOCAL_RANK is '2'"},
        {{"RANK", "0", "WORLD_SIZE", "2", "MASTER_PORT", "65536"}, "MASTER_PORT is '65536'"},
        {{"OMPI_COMM_WORLD_RANK", "0"}, "OMPI_COMM_WORLD_SIZE is not"},
        {{"PMI_RANK", "0", "PMI_SIZE", "1e1"}, "PMI_SIZE is '1e1'"},
        {{"SLURM_STEP_ID", "x", "SLURM_PROCID", "0", "SLURM_NTASKS", "1"}, "SLURM_STEP_ID is 'x'"},
        {{"SLURM_STEP_ID", "0", "SLURM_PROCID", "0"}, "SLURM_NTASKS is not"},
    };
    for (size_t i = 0; i < CLT_COUNT_OF(cases); i++) {
        assert_status(read_with(cases[i].pairs), CLT_E_INVALID);
        assert_detail(cases[i].words);
    }
    assert_status(READ("SLURM_STEP_ID", "0", "SLURM_PROCID", "0", "SLURM_NTASKS", "1", "SLURM_JOB_NODELIST", "n[1"), CLT_E_INVALID);
    assert_detail("SLURM_JOB_NODELIST: 'n[1'");
    char name[400];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_status(READ("RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", name), CLT_E_INVALID);
    assert_detail("the master's name");
}

static void test_nodelists(void **state) {
    (void)state;
    static const struct {
        const char *list, *first;
    } good[] = {{"n1", "n1"},          {"n1,n2", "n1"},           {"n[01-04,7],m3", "n01"}, {"n[7,01]", "n7"},
                {"a-b.c[10]-ib", "a-b.c10-ib"}, {"r[1-2]n[003-9]", "r1n003"}, {"[1-3]", "1"}};
    char node[16];
    for (size_t i = 0; i < CLT_COUNT_OF(good); i++) {
        assert_ok(clt_nodelist_first(good[i].list, node, sizeof node));
        assert_string_equal(node, good[i].first);
    }
    static const char *const bad[] = {"", ",", "n[", "n[]", "n[1", "n[1-", "n[1-]", "n[-2]", "n[a]", "n]", "n[1,,2]", "n[1", "n[1;2]",
                                      "n 1", "abcdefghijklmnop", "n[0123456789012345]"};
    for (size_t i = 0; i < CLT_COUNT_OF(bad); i++) assert_status(clt_nodelist_first(bad[i], node, sizeof node), CLT_E_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),   cmocka_unit_test(test_torchrun),     cmocka_unit_test(test_open_mpi),
        cmocka_unit_test(test_pmi),    cmocka_unit_test(test_slurm),        cmocka_unit_test(test_slurm_shells),
        cmocka_unit_test(test_kubernetes), cmocka_unit_test(test_nested),   cmocka_unit_test(test_what_is_wrong_is_named),
        cmocka_unit_test(test_nodelists)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
