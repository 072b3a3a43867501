/* Collectives between processes over the real transport: every algorithm, type and awkward count, against sums made here. */
#include "tests/support.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "comm/algorithms/algorithms.h"
#include "runtime/base/halves.h"
#include "runtime/base/thread.h"
#include "comm/reduce.h"
#include "runtime/base/base.h"
#include "tests/comm/jobs.h"

/* ---- values that every rank can make of every rank ---- */

static uint32_t mix(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352d;
    x = (x ^ x >> 15) * 0x846ca68b;
    return x ^ x >> 16;
}

static float small_value(int rank, size_t i) {
    return (float)(int)(mix((uint32_t)i * 31 + (uint32_t)rank * 977 + 5) % 20001) / 1000.0f - 10.0f;
}

static void fill(void *data, size_t count, clt_dtype dtype, int rank) {
    for (size_t i = 0; i < count; i++) {
        float value = small_value(rank, i);
        uint32_t bits = mix((uint32_t)i + 7919u * (uint32_t)rank);
        if (dtype == CLT_F32) ((float *)data)[i] = value;
        if (dtype == CLT_I32) ((uint32_t *)data)[i] = bits;
        if (dtype == CLT_I64) ((uint64_t *)data)[i] = (uint64_t)bits << 31 ^ bits;
        if (dtype == CLT_U8) ((uint8_t *)data)[i] = (uint8_t)bits;
        if (dtype == CLT_F16) clt_f32_to_f16((uint16_t *)data + i, &value, 1);
        if (dtype == CLT_BF16) clt_f32_to_bf16((uint16_t *)data + i, &value, 1);
    }
}

/* Made once, before there are ranks, which each would make those of all: values, and sums over the first ranks. */
enum { MOST_KNOWN = 300007, RANKS_KNOWN = 8 };
static void *known_values[CLT_I64 + 1][RANKS_KNOWN], *known_sums[CLT_I64 + 1][RANKS_KNOWN + 1];

/* False where not so much is known. */
static bool take_known(void *data, const void *known, size_t count, clt_dtype dtype) {
    if (!known || count > MOST_KNOWN) return false;
    memcpy(data, known, count * clt_dtype_bytes(dtype));
    return true;
}

static void *filled(size_t count, clt_dtype dtype, int rank) {
    void *data = malloc(count * clt_dtype_bytes(dtype) + 1);
    CHECK(data);
    if (rank >= RANKS_KNOWN || !take_known(data, known_values[dtype][rank], count, dtype)) fill(data, count, dtype, rank);
    return data;
}

/* The result in the order of ranks. */
static void *wanted_of(size_t count, clt_dtype dtype, clt_reduction reduction, int n) {
    void *wanted = malloc(count * clt_dtype_bytes(dtype) + 1), *pieces[16];
    CHECK(wanted);
    if (reduction == CLT_REDUCE_SUM && n <= RANKS_KNOWN && take_known(wanted, known_sums[dtype][n], count, dtype)) return wanted;
    for (int r = 0; r < n; r++) pieces[r] = filled(count, dtype, r);
    clt_reduce_many(wanted, (const void *const *)pieces, n, count, dtype, reduction);
    for (int r = 0; r < n; r++) free(pieces[r]);
    return wanted;
}

/* f32 sums may be made in another order: within the rounding of n additions of numbers below 10. All else is exact. */
static void check_values(const void *got, const void *wanted, size_t count, clt_dtype dtype, clt_reduction reduction,
                         int n) {
    if (dtype != CLT_F32 || reduction != CLT_REDUCE_SUM) {
        CHECK(memcmp(got, wanted, count * clt_dtype_bytes(dtype)) == 0);
        return;
    }
    const float *a = got, *b = wanted;
    for (size_t i = 0; i < count; i++) CHECK(fabsf(a[i] - b[i]) <= 2e-6f * (float)n * (float)n);
}

static void check_same_on_all(clt_comm *comm, const void *data, size_t bytes) {
    char *first = malloc(bytes + 1);
    CHECK(first);
    memcpy(first, data, bytes);
    CHECK(clt_comm_broadcast(comm, first, bytes, CLT_U8, 0, NULL) == CLT_OK);
    CHECK(memcmp(first, data, bytes) == 0);
    free(first);
}

/* ---- the operations ---- */

static void check_all_reduce(clt_comm *comm, size_t count, clt_dtype dtype, clt_reduction reduction) {
    int n = clt_comm_size(comm), rank = clt_comm_rank(comm);
    size_t bytes = count * clt_dtype_bytes(dtype);
    void *wanted = wanted_of(count, dtype, reduction, n), *data = filled(count, dtype, rank);
    CHECK(clt_comm_all_reduce(comm, data, count, dtype, reduction, NULL) == CLT_OK);
    check_values(data, wanted, count, dtype, reduction, n);
    check_same_on_all(comm, data, bytes);
    void *again = filled(count, dtype, rank);
    clt_work *work;
    CHECK(clt_comm_all_reduce(comm, again, count, dtype, reduction, &work) == CLT_OK);
    CHECK(clt_work_wait(work) == CLT_OK);
    CHECK(memcmp(data, again, bytes) == 0);
    free(wanted), free(data), free(again);
}

static void check_reduce_scatter(clt_comm *comm, const size_t *counts, clt_dtype dtype) {
    int n = clt_comm_size(comm), rank = clt_comm_rank(comm);
    size_t count = 0, start = 0, element = clt_dtype_bytes(dtype);
    for (int r = 0; r < n; r++) {
        if (r == rank) start = count;
        count += counts[r];
    }
    void *wanted = wanted_of(count, dtype, CLT_REDUCE_SUM, n), *data = filled(count, dtype, rank);
    CHECK(clt_comm_reduce_scatter(comm, data, counts, dtype, CLT_REDUCE_SUM, NULL) == CLT_OK);
    check_values((char *)data + start * element, (char *)wanted + start * element, counts[rank], dtype, CLT_REDUCE_SUM, n);
    free(wanted), free(data);
}

static void check_all_gather(clt_comm *comm, const size_t *counts, clt_dtype dtype) {
    int n = clt_comm_size(comm), rank = clt_comm_rank(comm);
    size_t count = 0, start = 0, element = clt_dtype_bytes(dtype);
    for (int r = 0; r < n; r++) {
        if (r == rank) start = count;
        count += counts[r];
    }
    char *wanted = filled(count, dtype, 3), *data = calloc(count + 1, element);
    CHECK(data);
    memcpy(data + start * element, wanted + start * element, counts[rank] * element);
    CHECK(clt_comm_all_gather(comm, data, counts, dtype, NULL) == CLT_OK);
    CHECK(memcmp(data, wanted, count * element) == 0);
    free(wanted), free(data);
}

static void check_broadcast(clt_comm *comm, size_t count, int root) {
    float *wanted = filled(count, CLT_F32, root), *data = filled(count, CLT_F32, clt_comm_rank(comm));
    CHECK(clt_comm_broadcast(comm, data, count, CLT_F32, root, NULL) == CLT_OK);
    CHECK(memcmp(data, wanted, count * sizeof *data) == 0);
    free(wanted), free(data);
}

/* Everybody to everybody, large and small, received in another order than sent. */
static void check_messages(clt_comm *comm, size_t count) {
    int n = clt_comm_size(comm), rank = clt_comm_rank(comm);
    clt_work *works[64];
    float *in[16], *out[16];
    int begun = 0;
    for (int r = n - 1; r >= 0; r--) {
        if (r == rank) continue;
        in[r] = calloc(count + 1, sizeof(float));
        out[r] = filled(count, CLT_F32, 10 * rank + r);
        CHECK(in[r] && clt_comm_receive(comm, in[r], count, CLT_F32, r, 9, &works[begun++]) == CLT_OK);
    }
    for (int r = 0; r < n; r++)
        if (r != rank) CHECK(clt_comm_send(comm, out[r], count, CLT_F32, r, 9, &works[begun++]) == CLT_OK);
    for (int i = 0; i < begun; i++) CHECK(clt_work_wait(works[i]) == CLT_OK);
    for (int r = 0; r < n; r++) {
        if (r == rank) continue;
        float *wanted = filled(count, CLT_F32, 10 * r + rank);
        CHECK(memcmp(in[r], wanted, count * sizeof(float)) == 0);
        free(wanted), free(in[r]), free(out[r]);
    }
}

/* Same tag: in order. */
static void check_message_order(clt_comm *comm) {
    enum { MESSAGES = 20 };
    clt_work *works[MESSAGES];
    if (clt_comm_rank(comm) > 1) return;
    float (*data)[9000] = calloc(MESSAGES, sizeof *data); /* small and large by turns */
    CHECK(data);
    for (int i = 0; i < MESSAGES; i++) {
        size_t count = i % 2 ? 9000 : 3;
        if (clt_comm_rank(comm) == 0) {
            data[i][0] = data[i][count - 1] = (float)i;
            CHECK(clt_comm_send(comm, data[i], count, CLT_F32, 1, 4, &works[i]) == CLT_OK);
        } else CHECK(clt_comm_receive(comm, data[i], count, CLT_F32, 0, 4, &works[i]) == CLT_OK);
    }
    for (int i = 0; i < MESSAGES; i++) CHECK(clt_work_wait(works[i]) == CLT_OK);
    for (int i = 0; i < MESSAGES; i++) CHECK(data[i][0] == (float)i && data[i][i % 2 ? 8999 : 2] == (float)i);
    free(data);
}

/* ---- jobs ---- */

static void all_reduces(clt_comm *comm, void *argument) {
    (void)argument;
    size_t n = (size_t)clt_comm_size(comm);
    const size_t counts[] = {0, 1, 2, n - 1, n, n + 1, 37, 1000, 4097, 40001, 300007};
    for (size_t i = 0; i < CLT_COUNT_OF(counts); i++)
        for (int dtype = CLT_F32; dtype <= CLT_I64; dtype++)
            check_all_reduce(comm, counts[i], (clt_dtype)dtype, CLT_REDUCE_SUM);
    for (int dtype = CLT_F32; dtype <= CLT_I64; dtype++)
        for (size_t i = 0; i < 3; i++) {
            check_all_reduce(comm, (size_t[]){3, 5000, 70001}[i], (clt_dtype)dtype, CLT_REDUCE_MAX);
            check_all_reduce(comm, (size_t[]){3, 5000, 70001}[i], (clt_dtype)dtype, CLT_REDUCE_MIN);
        }
}

static void with_parts(clt_comm *comm, void *argument) {
    (void)argument;
    const size_t counts[][5] = {{0, 0, 0, 0, 0}, {1, 0, 2, 0, 1},          {3, 3, 3, 3, 3},
                                {0, 0, 0, 0, 9}, {40000, 1, 0, 70001, 33}, {50000, 50001, 49999, 50000, 1}};
    for (size_t i = 0; i < CLT_COUNT_OF(counts); i++)
        for (int dtype = CLT_F32; dtype <= CLT_I64; dtype++) {
            check_reduce_scatter(comm, counts[i], (clt_dtype)dtype);
            check_all_gather(comm, counts[i], (clt_dtype)dtype);
        }
}

static void others(clt_comm *comm, void *argument) {
    (void)argument;
    for (int root = 0; root < clt_comm_size(comm); root++) {
        check_broadcast(comm, 0, root);
        check_broadcast(comm, 1, root);
        check_broadcast(comm, 300000, root);
        CHECK(clt_comm_barrier(comm, NULL) == CLT_OK);
    }
    if (clt_comm_size(comm) > 1) {
        check_messages(comm, 0);
        check_messages(comm, 10);
        check_messages(comm, 100000);
        check_message_order(comm);
    }
    clt_comm_stats stats = clt_comm_get_stats(comm);
    if (clt_comm_size(comm) > 1) CHECK(stats.bytes_sent > 1000000 && stats.bytes_received > 1000000);
    CHECK(stats.operations >= 4 && stats.busy_seconds >= 0);
}

static void run_all(void (*body)(clt_comm *, void *), const char *algorithms, clt_comm_security security) {
    for (int n = 1; n <= 5; n++) {
        clt_comm_options options = {.algorithms = algorithms, .security = security};
        support_run_job(&(support_job){.ranks = n, .options = &options, .body = body, .killed = -1});
    }
}

static void test_chosen(void **state) {
    (void)state;
    run_all(all_reduces, NULL, CLT_SECURITY_NONE);
    run_all(with_parts, NULL, CLT_SECURITY_NONE);
    run_all(others, NULL, CLT_SECURITY_NONE);
}

static void test_encrypted(void **state) {
    (void)state;
    run_all(with_parts, NULL, CLT_SECURITY_TLS);
    run_all(others, NULL, CLT_SECURITY_TLS);
}

static void test_ring(void **state) {
    (void)state;
    run_all(all_reduces, "ring", CLT_SECURITY_NONE);
    run_all(with_parts, "ring", CLT_SECURITY_NONE);
}

static void test_direct(void **state) {
    (void)state;
    run_all(all_reduces, "direct", CLT_SECURITY_NONE);
    run_all(with_parts, "direct", CLT_SECURITY_NONE);
}

static void test_shards(void **state) {
    (void)state;
    run_all(all_reduces, "shards", CLT_SECURITY_NONE);
}

static void test_halving_doubling(void **state) {
    (void)state;
    run_all(all_reduces, "halving_doubling", CLT_SECURITY_NONE);
}

static void test_broadcasts(void **state) {
    (void)state;
    run_all(others, "tree", CLT_SECURITY_NONE);
    run_all(others, "chain", CLT_SECURITY_NONE);
}

/* What came before it was asked for must not wait for the next beat, a second away: hundreds would take minutes. */
static void in_a_row(clt_comm *comm, void *argument) {
    (void)argument;
    float data[3] = {0};
    for (int i = 0; i < 300; i++) {
        CHECK(clt_comm_all_reduce(comm, data, 1 + (size_t)(i % 3), CLT_F32, CLT_REDUCE_SUM, NULL) == CLT_OK);
        CHECK(clt_comm_broadcast(comm, data, 1, CLT_F32, i % clt_comm_size(comm), NULL) == CLT_OK);
    }
}

static void test_nothing_stands_still(void **state) {
    (void)state;
    const char *const lists[] = {NULL, "direct,tree", "shards,chain", "ring", "halving_doubling"};
    for (size_t i = 0; i < CLT_COUNT_OF(lists); i++)
        for (int n = 2; n <= 3; n++) {
            clt_comm_options options = {.algorithms = lists[i], .security = CLT_SECURITY_NONE};
            support_run_job(&(support_job){.ranks = n, .options = &options, .body = in_a_row, .killed = -1});
        }
}

/* Sums are in the order of ranks to the last bit: those of the own engine by some of its algorithms, which are named then. */
static void sums_in_order(clt_comm *comm, void *algorithms) {
    enum { COUNT = 40001 };
    int n = clt_comm_size(comm);
    if (!strcmp(clt_comm_engine(comm), "cltrain") && !algorithms) return;
    float *wanted = wanted_of(COUNT, CLT_F32, CLT_REDUCE_SUM, n), *data = filled(COUNT, CLT_F32, clt_comm_rank(comm));
    CHECK(clt_comm_all_reduce(comm, data, COUNT, CLT_F32, CLT_REDUCE_SUM, NULL) == CLT_OK);
    CHECK(memcmp(data, wanted, COUNT * sizeof *data) == 0);
    CHECK(algorithms || n == 1 || !strcmp(clt_comm_algorithm(comm, COUNT), clt_comm_engine(comm)));
    clt_comm_stats stats = clt_comm_get_stats(comm);
    CHECK(stats.bytes_sent == stats.bytes_received || COUNT % n);
    free(wanted), free(data);
}

static void test_sums_in_order(void **state) {
    (void)state;
    clt_comm_options options = {.algorithms = "direct,shards", .security = CLT_SECURITY_NONE};
    for (int n = 1; n <= 5; n++) {
        support_run_job(&(support_job){.ranks = n, .body = sums_in_order, .killed = -1});
        support_run_job(&(support_job){.ranks = n, .options = &options, .body = sums_in_order, .argument = &options, .killed = -1});
    }
}

/* The order of a hierarchy: that of ranks within a host, and then that of the hosts' first ranks. */
static float *wanted_by_hosts(size_t count, const char *hosts) {
    size_t n = strlen(hosts), n_hosts = 0;
    float *sums[16];
    const void *pieces[16];
    for (size_t first = 0; first < n; first++) {
        int locals = 0;
        if (memchr(hosts, hosts[first], first)) continue;
        for (size_t r = first; r < n; r++)
            if (hosts[r] == hosts[first]) pieces[locals++] = filled(count, CLT_F32, (int)r);
        sums[n_hosts] = malloc(count * sizeof(float) + 1);
        CHECK(sums[n_hosts]);
        clt_reduce_many(sums[n_hosts++], pieces, locals, count, CLT_F32, CLT_REDUCE_SUM);
        for (int i = 0; i < locals; i++) free((void *)pieces[i]);
    }
    for (size_t h = 0; h < n_hosts; h++) pieces[h] = sums[h];
    clt_reduce_many(sums[0], pieces, (int)n_hosts, count, CLT_F32, CLT_REDUCE_SUM);
    for (size_t h = 1; h < n_hosts; h++) free(sums[h]);
    return sums[0];
}

static void by_hosts(clt_comm *comm, void *hosts) {
    const size_t counts[] = {40001, 3, 300007};
    CHECK(clt_comm_barrier(comm, NULL) == CLT_OK); /* hosts are known from the first operation on */
    CHECK(!strcmp(clt_comm_algorithm(comm, 1 << 20), "hierarchy"));
    all_reduces(comm, NULL);
    for (size_t i = 0; i < CLT_COUNT_OF(counts); i++) {
        bool small = !strcmp(clt_comm_algorithm(comm, counts[i] * sizeof(float)), "direct");
        float *wanted = small ? wanted_of(counts[i], CLT_F32, CLT_REDUCE_SUM, clt_comm_size(comm)) : wanted_by_hosts(counts[i], hosts);
        float *data = filled(counts[i], CLT_F32, clt_comm_rank(comm));
        CHECK(clt_comm_all_reduce(comm, data, counts[i], CLT_F32, CLT_REDUCE_SUM, NULL) == CLT_OK);
        CHECK(memcmp(data, wanted, counts[i] * sizeof *data) == 0);
        free(wanted), free(data);
    }
}

static void not_by_hosts(clt_comm *comm, void *argument) {
    (void)argument;
    CHECK(clt_comm_barrier(comm, NULL) == CLT_OK);
    CHECK(strcmp(clt_comm_algorithm(comm, 1 << 20), "hierarchy") != 0);
    check_all_reduce(comm, 300007, CLT_F32, CLT_REDUCE_SUM);
}

static void test_hierarchy(void **state) {
    (void)state;
    const char *const shared[] = {"aab", "aabb", "abab", "abca", "aaabb", "abbba", "abcab", "aabbccab"}, *const alone[] = {"aa", "ab", "aaaa", "abcd"};
    const clt_comm_options forced = {.algorithms = "hierarchy", .security = CLT_SECURITY_NONE};
    for (size_t i = 0; i < CLT_COUNT_OF(shared); i++)
        for (int force = 0; force < 2; force++)
            support_run_job(&(support_job){.ranks = (int)strlen(shared[i]), .hosts = shared[i], .options = force ? &forced : NULL, .body = by_hosts,
                                           .argument = (void *)shared[i], .killed = -1});
    for (size_t i = 0; i < CLT_COUNT_OF(alone); i++)
        support_run_job(&(support_job){.ranks = (int)strlen(alone[i]), .hosts = alone[i], .options = &forced, .body = not_by_hosts, .killed = -1});
    support_run_job(&(support_job){.ranks = 5, .hosts = "aabab", .options = &forced, .body = in_a_row, .killed = -1});
}

static void *abort_soon(void *comm) {
    nanosleep(&(struct timespec){.tv_nsec = 1 + clt_comm_size(comm) * 300000}, NULL);
    clt_comm_abort(comm, "enough");
    return NULL;
}

/* What a rank gave is its own again when its call has returned, also where that is cut short while others read it. */
static void aborted(clt_comm *comm, void *argument) {
    (void)argument;
    clt_thread thread;
    clt_status status = CLT_OK;
    if (clt_comm_rank(comm) == 0) CHECK(clt_thread_start(&thread, abort_soon, comm) == CLT_OK);
    while (status == CLT_OK) {
        float *data = filled(30011, CLT_F32, clt_comm_rank(comm));
        status = clt_comm_all_reduce(comm, data, 30011, CLT_F32, CLT_REDUCE_SUM, NULL);
        free(data);
    }
    CHECK(status == CLT_E_ABORTED);
    if (clt_comm_rank(comm) == 0) clt_thread_join(thread);
}

static void test_threads(void **state) {
    (void)state;
    for (int i = 0; i < 60; i++) support_run_local_job(&(support_job){.ranks = 2 + i % 7, .body = aborted, .killed = -1});
    support_run_local_job(&(support_job){.ranks = 16, .body = in_a_row, .killed = -1});
    clt_comm *comms[2];
    assert_status(clt_comm_create_local(NULL, 2, 0), CLT_E_INVALID);
    assert_status(clt_comm_create_local(comms, 0, 0), CLT_E_INVALID);
    assert_status(clt_comm_create_local(comms, 65, 0), CLT_E_INVALID);
    assert_status(clt_comm_create_local(comms, 2, -1), CLT_E_INVALID);
}

/* ---- parts of a group ---- */

/* Sums are in the order of ranks. */
static void use_part(clt_comm *part) {
    const size_t counts[] = {0, 1, 37, 40001};
    for (size_t i = 0; i < CLT_COUNT_OF(counts); i++)
        for (int dtype = CLT_F32; dtype <= CLT_I64; dtype++) check_all_reduce(part, counts[i], (clt_dtype)dtype, dtype % 2 ? CLT_REDUCE_SUM : CLT_REDUCE_MAX);
    float *wanted = wanted_of(5003, CLT_F32, CLT_REDUCE_SUM, clt_comm_size(part)), *data = filled(5003, CLT_F32, clt_comm_rank(part));
    CHECK(clt_comm_all_reduce(part, data, 5003, CLT_F32, CLT_REDUCE_SUM, NULL) == CLT_OK && memcmp(data, wanted, 5003 * sizeof *data) == 0);
    free(wanted), free(data);
    with_parts(part, NULL);
    others(part, NULL);
}

/* Operations of a group and of its parts, in another order on each rank. */
static void use_all_at_once(clt_comm *whole, clt_comm *even_or_odd, clt_comm *same) {
    clt_comm *groups[] = {whole, even_or_odd, same};
    clt_work *works[3];
    float *data[3], *wanted[3];
    for (int i = 0; i < 3; i++) {
        int at = (i + clt_comm_rank(whole)) % 3, n = clt_comm_size(groups[at]);
        wanted[at] = wanted_of(70001, CLT_F32, CLT_REDUCE_MAX, n);
        data[at] = filled(70001, CLT_F32, clt_comm_rank(groups[at]));
        CHECK(clt_comm_all_reduce(groups[at], data[at], 70001, CLT_F32, CLT_REDUCE_MAX, &works[at]) == CLT_OK);
    }
    for (int i = 0; i < 3; i++) {
        CHECK(clt_work_wait(works[i]) == CLT_OK && memcmp(data[i], wanted[i], 70001 * sizeof(float)) == 0);
        free(data[i]), free(wanted[i]);
    }
}

static void in_parts(clt_comm *comm, void *argument) {
    clt_comm *half, *same, *some, *none;
    int rank = clt_comm_rank(comm), n = clt_comm_size(comm);
    (void)argument;
    CHECK(clt_comm_split(comm, rank % 2, &half) == CLT_OK && clt_comm_split(comm, 7, &same) == CLT_OK);
    CHECK(clt_comm_size(half) == (n + 1 - rank % 2) / 2 && clt_comm_rank(half) == rank / 2 && clt_comm_size(same) == n && clt_comm_rank(same) == rank);
    CHECK(!strcmp(clt_comm_engine(half), "part") && clt_comm_generation(half) == clt_comm_generation(comm));
    CHECK(clt_comm_split(comm, rank ? -1 : 0, &some) == CLT_OK && (some != NULL) == (rank == 0));
    use_part(half);
    use_part(same);
    if (some) use_part(some);
    use_all_at_once(comm, half, same);
    CHECK(clt_comm_split(comm, -2, &none) == CLT_E_INVALID && clt_comm_split(half, 0, &none) == CLT_E_UNSUPPORTED && !none);
    if (clt_comm_size(half) > 1) CHECK(clt_comm_send(half, &rank, 1, CLT_I32, rank / 2 ? 0 : 1, 1 << 21, NULL) == CLT_E_INVALID);
    CHECK(!(clt_comm_abilities(half) & CLT_CAN_SHRINK) && clt_comm_shrink(half, &none) == (clt_comm_size(half) > 1 ? CLT_E_UNSUPPORTED : CLT_E_INVALID));
    clt_comm_destroy(some);
    clt_comm_destroy(half);
    check_all_reduce(same, 1000, CLT_F32, CLT_REDUCE_MAX);
    clt_comm_destroy(same);
    check_all_reduce(comm, 1000, CLT_F32, CLT_REDUCE_MAX);
}

static void test_parts(void **state) {
    (void)state;
    run_all(in_parts, NULL, CLT_SECURITY_NONE);
}

static void test_gloo(void **state) {
    (void)state;
    if (clt_algorithm_check_list("gloo_ring") < 0) skip(); /* built without */
    run_all(all_reduces, "gloo_ring", CLT_SECURITY_NONE);
    run_all(all_reduces, "gloo_bcube", CLT_SECURITY_NONE);
    run_all(with_parts, "gloo", CLT_SECURITY_NONE);
    run_all(others, "gloo", CLT_SECURITY_NONE);
}

#ifndef CLT_TEST_BODIES_ONLY
static int make_known(void **state) {
    (void)state;
    for (int dtype = CLT_F32; dtype <= CLT_I64; dtype++) {
        for (int r = 0; r < RANKS_KNOWN; r++) known_values[dtype][r] = filled(MOST_KNOWN, (clt_dtype)dtype, r);
        for (int n = 1; n <= RANKS_KNOWN; n++) known_sums[dtype][n] = wanted_of(MOST_KNOWN, (clt_dtype)dtype, CLT_REDUCE_SUM, n);
    }
    return 0;
}

static int free_known(void **state) {
    (void)state;
    for (int dtype = CLT_F32; dtype <= CLT_I64; dtype++) {
        for (int r = 0; r < RANKS_KNOWN; r++) free(known_values[dtype][r]);
        for (int n = 1; n <= RANKS_KNOWN; n++) free(known_sums[dtype][n]);
    }
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chosen),  cmocka_unit_test(test_encrypted), cmocka_unit_test(test_ring),
        cmocka_unit_test(test_direct),  cmocka_unit_test(test_shards),    cmocka_unit_test(test_halving_doubling),
        cmocka_unit_test(test_broadcasts),
        cmocka_unit_test(test_nothing_stands_still),
        cmocka_unit_test(test_sums_in_order), cmocka_unit_test(test_hierarchy),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_gloo),
    };
    return cmocka_run_group_tests(tests, make_known, free_known);
}
#endif
