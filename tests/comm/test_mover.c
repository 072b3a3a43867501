/* The engine above movers, with a mover of threads that is slow, and fails, as it is told. */
#include "tests/support.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "comm/mover/engine.h"
#include "runtime/base/base.h"
#include "runtime/base/random.h"
#include "runtime/base/thread.h"

enum { MOST = 5, COUNT = 3000, STRANGE = 77 };

/* ---- the mover ---- */

typedef struct call {
    const void *out;
    void *in;
    int out_bytes[MOST], in_bytes[MOST];
    int bytes, root;
} call;

/* The k-th collective of all ranks: who comes last carries it out. */
typedef struct collective {
    char kind;
    int arrived;
    call calls[MOST];
    atomic_bool done;
} collective;

typedef struct letter {
    bool sends, matched;
    clt_lane lane;
    void *data;
    int bytes, from, to;
    uint32_t tag;
    atomic_bool done;
    struct letter *next;
} letter;

typedef struct world {
    clt_mutex mutex;
    int n, slowness; /* tests of a request that say no, at most */
    atomic_int failing; /* counts down: at 0 a test fails */
    collective collectives[1024];
    letter *letters;
} world;

typedef struct member {
    world *w;
    int rank, collectives;
} member;

typedef struct request {
    atomic_bool *done;
    letter *letter; /* NULL: of a collective */
    int patience;
    world *w;
} request;

static _Thread_local member *self;
static atomic_uint draws;

static request *new_request(world *w, atomic_bool *done, letter *l, clt_request *into) {
    request *r = calloc(1, sizeof *r);
    unsigned draw = atomic_fetch_add(&draws, 1) * 2654435761u >> 8;
    *r = (request){.done = done, .letter = l, .w = w, .patience = w->slowness ? (int)(draw % (unsigned)w->slowness) : 0};
    into->word = (uint64_t)(uintptr_t)r;
    return r;
}

static int open_group(void **group, const clt_mover_options *options, int *rank, int *size) {
    *group = self;
    *rank = self->rank;
    *size = self->w->n;
    return self->w->n > options->most_ranks;
}

static void close_group(void *group, bool orderly) {
    (void)group, (void)orderly;
}

static int place_in(const int *bytes, int rank) {
    int at = 0;
    for (int r = 0; r < rank; r++) at += bytes[r];
    return at;
}

static void carry_out(world *w, collective *c) {
    int64_t most[8];
    for (int r = 0; r < w->n; r++) {
        const call *own = &c->calls[r];
        for (int from = 0; from < w->n; from++) {
            const call *other = &c->calls[from];
            if (c->kind == 'x') memcpy((char *)own->in + place_in(own->in_bytes, from), (const char *)other->out + place_in(other->out_bytes, r), (size_t)own->in_bytes[from]);
            if (c->kind == 'g') memmove((char *)own->in + place_in(own->in_bytes, from), (const char *)other->in + place_in(other->in_bytes, from), (size_t)own->in_bytes[from]);
        }
        if (c->kind == 'b' && r != own->root) memcpy(own->in, c->calls[own->root].in, (size_t)own->bytes);
    }
    for (int i = 0; c->kind == 'l' && i < c->calls[0].bytes; i++) {
        most[i] = INT64_MIN;
        for (int r = 0; r < w->n; r++) most[i] = CLT_MAX(most[i], ((const int64_t *)c->calls[r].in)[i]);
    }
    for (int r = 0; c->kind == 'l' && r < w->n; r++) memcpy(c->calls[r].in, most, (size_t)c->calls[0].bytes * sizeof *most);
    atomic_store(&c->done, true);
}

static int join(member *m, char kind, call own, clt_request *into) {
    world *w = m->w;
    collective *c = &w->collectives[m->collectives++ % 1024];
    clt_mutex_lock(&w->mutex);
    if (c->arrived == 0) atomic_store(&c->done, false);
    c->kind = kind;
    c->calls[m->rank] = own;
    new_request(w, &c->done, NULL, into);
    if (++c->arrived == w->n) {
        c->arrived = 0;
        carry_out(w, c);
    }
    clt_mutex_unlock(&w->mutex);
    return 0;
}

static int largest(void *group, int64_t *values, int n, clt_request *into) {
    return join(group, 'l', (call){.in = values, .bytes = n}, into);
}

static int exchange(void *group, const void *out, const int *out_bytes, void *in, const int *in_bytes, clt_request *into) {
    size_t bytes = (size_t)((member *)group)->w->n * sizeof(int);
    call own = {.out = out, .in = in};
    memcpy(own.out_bytes, out_bytes, bytes);
    memcpy(own.in_bytes, in_bytes, bytes);
    return join(group, 'x', own, into);
}

static int gather(void *group, void *all, const int *bytes, clt_request *into) {
    call own = {.in = all};
    memcpy(own.in_bytes, bytes, (size_t)((member *)group)->w->n * sizeof(int));
    return join(group, 'g', own, into);
}

static int broadcast(void *group, void *data, int bytes, int root, clt_request *into) {
    return join(group, 'b', (call){.in = data, .bytes = bytes, .root = root}, into);
}

static int message(void *group, bool sends, clt_lane lane, void *data, int bytes, int peer, uint32_t tag, clt_request *into) {
    member *m = group;
    letter *own = calloc(1, sizeof *own), **end = &m->w->letters;
    *own = (letter){.sends = sends, .lane = lane, .data = data, .bytes = bytes, .from = sends ? m->rank : peer, .to = sends ? peer : m->rank, .tag = tag};
    new_request(m->w, &own->done, own, into);
    clt_mutex_lock(&m->w->mutex);
    for (letter *l = m->w->letters; l && !own->matched; l = l->next) {
        if (l->matched || l->sends == sends || l->lane != lane || l->from != own->from || l->to != own->to || l->tag != tag) continue;
        letter *source = sends ? own : l, *target = sends ? l : own;
        memcpy(target->data, source->data, (size_t)CLT_MIN(source->bytes, target->bytes));
        l->matched = own->matched = true;
        atomic_store(&l->done, true);
        atomic_store(&own->done, true);
    }
    while (*end) end = &(*end)->next;
    *end = own;
    clt_mutex_unlock(&m->w->mutex);
    return 0;
}

static int test(clt_request *into, bool *done) {
    request *r = (request *)(uintptr_t)into->word;
    *done = !r;
    if (!r) return 0;
    if (atomic_load(&r->w->failing) > 0 && atomic_fetch_sub(&r->w->failing, 1) == 1) return 1;
    if (r->patience-- > 0 || !atomic_load(r->done)) return 0;
    free(r);
    into->word = 0;
    *done = true;
    return 0;
}

static bool cancel(clt_request *into) {
    request *r = (request *)(uintptr_t)into->word;
    if (!r) return true;
    if (!r->letter) return false;
    clt_mutex_lock(&r->w->mutex);
    r->letter->matched = true;
    clt_mutex_unlock(&r->w->mutex);
    free(r);
    into->word = 0;
    return true;
}

static const char *words(void) {
    return "as it was told";
}

static const clt_mover mover = {
    .abi = CLT_MOVER_ABI, .name = "threads", .open = open_group, .close = close_group, .largest = largest, .exchange = exchange, .gather = gather,
    .broadcast = broadcast, .message = message, .test = test, .cancel = cancel, .words = words,
};

/* ---- ranks ---- */

typedef struct rank_of {
    member m;
    void (*body)(clt_comm *comm, void *argument);
    void *argument;
    double timeout;
    bool fails;
    clt_thread thread;
} rank_of;

static void *run_rank(void *argument) {
    rank_of *r = argument;
    clt_comm *comm;
    self = &r->m;
    clt_status status = clt_mover_create(&comm, &mover, &(clt_mover_options){0}, 0, r->timeout);
    if (r->fails && status < 0) return NULL; /* while it met the others, or they did */
    assert_ok(status);
    assert_string_equal(clt_comm_engine(comm), "threads");
    r->body(comm, r->argument);
    clt_comm_destroy(comm);
    return NULL;
}

static void run(int n, int slowness, int failing, double timeout, void (*body)(clt_comm *, void *), void *argument) {
    static world w; /* too large for a stack */
    rank_of ranks[MOST];
    memset(&w, 0, sizeof w);
    assert_ok(clt_mutex_init(&w.mutex));
    w.n = n;
    w.slowness = slowness;
    atomic_store(&w.failing, failing);
    for (int r = 0; r < n; r++) {
        ranks[r] = (rank_of){.m = {&w, r, 0}, .body = body, .argument = argument, .timeout = timeout, .fails = failing > 0};
        assert_ok(clt_thread_start(&ranks[r].thread, run_rank, &ranks[r]));
    }
    for (int r = 0; r < n; r++) clt_thread_join(ranks[r].thread);
    while (w.letters) {
        letter *l = w.letters;
        w.letters = l->next;
        free(l);
    }
    clt_mutex_destroy(&w.mutex);
}

/* ---- what is moved ---- */

static void fill(unsigned char *data, size_t bytes, clt_dtype dtype, int rank, int round) {
    for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)((i * 7 + (size_t)rank * 31 + (size_t)round * 13) % 251);
    if (dtype == CLT_F32)
        for (size_t i = 0; i + 4 <= bytes; i += 4) memcpy(data + i, &(float){(float)((int)(i * 3 + (size_t)rank * 17) % 1001 - 500) / 7}, 4);
    for (size_t i = 1; (dtype == CLT_F16 || dtype == CLT_BF16) && i < bytes; i += 2) data[i] &= 0x3f; /* finite */
}

/* Each kind of operation, over the mover and over memory: the same bits. */
typedef struct twice {
    clt_comm *memory[MOST];
} twice;

static void all_kinds(clt_comm *comm, void *argument) {
    static const clt_dtype dtypes[] = {CLT_F32, CLT_F16, CLT_BF16, CLT_I32, CLT_U8};
    int rank = clt_comm_rank(comm), n = clt_comm_size(comm);
    clt_comm *other = ((twice *)argument)->memory[rank];
    unsigned char *a = malloc(COUNT * 4), *b = malloc(COUNT * 4);
    for (int round = 0; round < 20; round++) {
        clt_dtype dtype = dtypes[round % 5];
        size_t element = clt_dtype_bytes(dtype), count = (size_t)(round * 131 % 600) * (round % 3 != 2), counts[MOST], all = 0, own = 0;
        clt_reduction reduction = (clt_reduction)(round % 3);
        for (int r = 0; r < n; r++) counts[r] = (size_t)((r * 37 + round * 11) % 90) * (r != round % 4), all += counts[r], own += r < rank ? counts[r] : 0;
        for (int kind = 0; kind < 4; kind++) {
            fill(a, COUNT * 4, dtype, rank, round);
            memcpy(b, a, COUNT * 4);
            for (int k = 0; k < 2; k++) {
                clt_comm *c = k ? other : comm;
                void *data = k ? b : a;
                if (kind == 0) assert_ok(clt_comm_all_reduce(c, data, count, dtype, reduction, NULL));
                if (kind == 1) assert_ok(clt_comm_reduce_scatter(c, data, counts, dtype, reduction, NULL));
                if (kind == 2) assert_ok(clt_comm_all_gather(c, data, counts, dtype, NULL));
                if (kind == 3) assert_ok(clt_comm_broadcast(c, data, count, dtype, round % n, NULL));
            }
            size_t at = kind == 1 ? own * element : 0, bytes = (kind == 1 ? counts[rank] : kind == 2 ? all : count) * element;
            assert_memory_equal(a + at, b + at, bytes);
        }
    }
    free(a);
    free(b);
}

static void results_are_those_of_shared_memory(void **state) {
    (void)state;
    for (int n = 1; n <= MOST; n++) {
        twice t;
        assert_ok(clt_comm_create_local(t.memory, n, 0));
        run(n, n == 3 ? 0 : 300, 0, 60, all_kinds, &t);
        for (int r = 0; r < n; r++) clt_comm_destroy(t.memory[r]);
    }
}

static void messages(clt_comm *comm, void *argument) {
    enum { LETTERS = 20 };
    int rank = clt_comm_rank(comm), n = clt_comm_size(comm);
    static _Thread_local int32_t sent[LETTERS][3], got[LETTERS][3];
    clt_work *work[2 * LETTERS];
    (void)argument;
    for (int i = 0; i < LETTERS; i++) {
        for (int k = 0; k < 3; k++) sent[i][k] = rank * 1000 + i * 10 + k;
        assert_ok(clt_comm_send(comm, sent[i], (size_t)(i % 4), CLT_I32, (rank + 1) % n, (uint32_t)(i % 2), &work[i]));
    }
    for (int i = 0; i < LETTERS; i++) assert_ok(clt_comm_receive(comm, got[i], (size_t)(i % 4), CLT_I32, (rank + n - 1) % n, (uint32_t)(i % 2), &work[LETTERS + i]));
    for (int i = 0; i < 2 * LETTERS; i++) assert_ok(clt_work_wait(work[i]));
    for (int i = 0; i < LETTERS; i++)
        for (int k = 0; k < i % 4; k++) assert_int_equal(got[i][k], (rank + n - 1) % n * 1000 + i * 10 + k);
}

static void messages_keep_their_order(void **state) {
    (void)state;
    for (int n = 2; n <= 4; n++) run(n, 50, 0, 60, messages, NULL);
}

/* ---- what goes wrong ---- */

static void differ(clt_comm *comm, void *argument) {
    float data[8] = {0};
    bool odd = clt_comm_rank(comm) == 1;
    int what = *(const int *)argument;
    clt_status status = what == 0 ? clt_comm_all_reduce(comm, data, odd ? 3 : 4, CLT_F32, CLT_REDUCE_SUM, NULL)
                        : what == 1 ? clt_comm_all_gather(comm, data, odd ? (size_t[]){1, 3, 1} : (size_t[]){2, 2, 1}, CLT_F32, NULL)
                        : odd ? clt_comm_barrier(comm, NULL) : clt_comm_broadcast(comm, data, 4, CLT_F32, 0, NULL);
    assert_status(status, CLT_E_MISMATCH);
    assert_detail("rank 1");
    assert_status(clt_comm_barrier(comm, NULL), CLT_E_MISMATCH);
}

static void calls_that_differ_are_told(void **state) {
    (void)state;
    for (int what = 0; what < 3; what++) run(3, 20, 0, 60, differ, &what);
}

static void differ_in_a_message(clt_comm *comm, void *argument) {
    int32_t data[4] = {0};
    (void)argument;
    clt_status status = clt_comm_rank(comm) ? clt_comm_receive(comm, data, 3, CLT_I32, 0, 5, NULL) : clt_comm_send(comm, data, 4, CLT_I32, 1, 5, NULL);
    if (status == CLT_OK) status = clt_comm_barrier(comm, NULL); /* who sends may learn of it later */
    assert_status(status, CLT_E_MISMATCH);
    assert_detail("rank 1 called receive of 3 i32 from rank 0, tag 5, rank 0 send of 4 i32 to rank 1, tag 5");
}

static void messages_that_differ_are_told(void **state) {
    (void)state;
    run(2, 20, 0, 60, differ_in_a_message, NULL);
}

/* Rank 0 never calls: what the others began is given up, and no more than that. */
static void come_late(clt_comm *comm, void *argument) {
    static float data[3][1000];
    (void)argument;
    int rank = clt_comm_rank(comm);
    if (rank > 0) {
        clt_status status = clt_comm_all_reduce(comm, data[rank], 1000, CLT_F32, CLT_REDUCE_SUM, NULL);
        assert_true(status == CLT_E_TIMEOUT || status == CLT_E_PEER); /* the other was first */
        if (status == CLT_E_TIMEOUT) assert_detail("all_reduce sum of 1000 f32: not done within 0.2 s: waited for ranks that threads does not name");
    } else while (clt_comm_state(comm) == CLT_OK) sched_yield(); /* until it has heard of it */
}

static void late_ranks_end_the_group(void **state) {
    (void)state;
    run(3, 5, 0, 0.2, come_late, NULL);
}

static void abort_one(clt_comm *comm, void *argument) {
    (void)argument;
    if (clt_comm_rank(comm) == 2) clt_comm_abort(comm, "enough");
    clt_status status = clt_comm_barrier(comm, NULL);
    assert_status(status, CLT_E_ABORTED);
    assert_detail("enough");
    if (clt_comm_rank(comm) != 2) assert_detail("rank 2: enough");
}

static void an_abort_is_told(void **state) {
    (void)state;
    run(3, 5, 0, 60, abort_one, NULL);
}

static void leave_early(clt_comm *comm, void *argument) {
    (void)argument;
    assert_ok(clt_comm_barrier(comm, NULL));
    if (clt_comm_rank(comm) == 1) return;
    clt_status status = clt_comm_barrier(comm, NULL);
    assert_true(status == CLT_E_PEER);
    assert_detail("rank 1 left");
}

static void who_left_is_named(void **state) {
    (void)state;
    run(3, 5, 0, 60, leave_early, NULL);
}

/* An error of the mover, whenever it comes, is one of the group. */
static void go_on_until_it_fails(clt_comm *comm, void *argument) {
    float data[4] = {0};
    clt_status status = CLT_OK;
    (void)argument;
    for (int i = 0; i < STRANGE && status == CLT_OK; i++) status = clt_comm_all_reduce(comm, data, 4, CLT_F32, CLT_REDUCE_SUM, NULL);
    assert_true(status == CLT_OK || status == CLT_E_NETWORK || status == CLT_E_PEER || status == CLT_E_TIMEOUT);
    if (status == CLT_E_NETWORK) assert_detail("as it was told");
}

static void errors_of_the_mover_end_the_group(void **state) {
    (void)state;
    for (int failing = 1; failing < 400; failing += 61) run(3, 5, failing, 0.3, go_on_until_it_fails, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_shared_memory), cmocka_unit_test(messages_keep_their_order), cmocka_unit_test(calls_that_differ_are_told),
        cmocka_unit_test(messages_that_differ_are_told), cmocka_unit_test(late_ranks_end_the_group), cmocka_unit_test(an_abort_is_told),
        cmocka_unit_test(who_left_is_named), cmocka_unit_test(errors_of_the_mover_end_the_group),
    };
    return cmocka_run_group_tests_name("mover", tests, NULL, NULL);
}
