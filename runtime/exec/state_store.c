#include <string.h>

#include "runtime/exec/plan.h"

/* A state of one owner of plans. */
typedef struct state {
    char *name;
    size_t bytes;
    clt_memory *memory; /* NULL until it is asked for */
    bool holds;         /* variables lie in it */
    bool in_host;       /* in the host's memory */
} state;

/* A variable, of all stores that share it. */
typedef struct entry {
    const clt_variable *variable;
    size_t bytes;
    clt_memory *memory;     /* NULL until it is asked for */
    clt_state_store *owner; /* of the state that it lies in; NULL: memory of its own, or that store is gone */
    int inside;             /* index of that state; -1 */
    size_t offset_bytes;    /* there */
    bool begun;             /* it has first values */
    bool in_host;           /* that state is in the host's memory, or was while there was its owner */
} entry;

typedef struct variables {
    int references, moves, averages, lent;
    entry *entries;
    size_t n, capacity;
    clt_memory **left; /* of states in which variables lie, of stores that are gone */
    size_t n_left, left_capacity;
} variables;

struct clt_state_store {
    clt_device *device;
    char *folder; /* with a file for each state in the host's memory; NULL: those lie in memory */
    variables *variables;
    state *states;
    size_t n_states, capacity;
};

static clt_status store_new(clt_device *device, variables *shared, clt_state_store **store) {
    clt_state_store *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_fail_memory(sizeof *s);
    s->device = device;
    s->variables = shared;
    shared->references++;
    *store = s;
    return CLT_OK;
}

clt_status clt_state_store_create(clt_device *device, clt_state_store **store) {
    variables *own = clt_calloc(1, sizeof *own);
    if (!own) return clt_fail_memory(sizeof *own);
    own->lent = 1;
    clt_status status = store_new(device, own, store);
    if (status < 0) clt_free(own);
    return status;
}

clt_status clt_state_store_set_folder(clt_state_store *store, const char *folder) {
    clt_memory *attempt;
    CLT_TRY(clt_memory_create_host(store->device, 1, folder, &attempt)); /* that it cannot be written to is not to be found out late */
    clt_memory_destroy(attempt);
    store->folder = clt_strdup(folder);
    return store->folder ? CLT_OK : clt_fail_memory(strlen(folder) + 1);
}

clt_status clt_state_store_share(clt_state_store *with, clt_state_store **store) {
    return store_new(with->device, with->variables, store);
}

int clt_state_store_moves(const clt_state_store *store) {
    return store->variables->moves;
}

int clt_state_store_lent(const clt_state_store *store) {
    return store->variables->lent;
}

/* Slices go before their parents. */
static void free_variables(variables *v) {
    for (size_t i = 0; i < v->n; i++) clt_memory_destroy(v->entries[i].memory);
    for (size_t i = 0; i < v->n_left; i++) clt_memory_destroy(v->left[i]);
    clt_free(v->entries);
    clt_free(v->left);
    clt_free(v);
}

/* The others go on with the variables that lie in the store's states. */
static void leave_states(clt_state_store *store) {
    variables *v = store->variables;
    for (size_t i = 0; i < v->n; i++)
        if (v->entries[i].owner == store) {
            v->entries[i].owner = NULL;
            v->entries[i].inside = -1;
            v->entries[i].in_host &= v->entries[i].memory != NULL;
        }
    for (size_t i = 0; i < store->n_states; i++) {
        if (!store->states[i].holds || !store->states[i].memory) continue;
        v->left[v->n_left++] = store->states[i].memory; /* there is room: clt_state_store_place */
        store->states[i].memory = NULL;
    }
}

void clt_state_store_destroy(clt_state_store *store) {
    if (!store) return;
    if (--store->variables->references > 0) leave_states(store);
    else free_variables(store->variables);
    for (size_t i = 0; i < store->n_states; i++) {
        clt_memory_destroy(store->states[i].memory);
        clt_free(store->states[i].name);
    }
    clt_free(store->folder);
    clt_free(store->states);
    clt_free(store);
}

static int find_state(const clt_state_store *store, const char *name) {
    for (size_t i = 0; i < store->n_states; i++)
        if (!strcmp(store->states[i].name, name)) return (int)i;
    return -1;
}

static entry *find_variable(const clt_state_store *store, const clt_variable *variable) {
    for (size_t i = 0; i < store->variables->n; i++)
        if (store->variables->entries[i].variable == variable) return &store->variables->entries[i];
    return NULL;
}

/* Zeroed, or with the values of a constant. */
static clt_status make_memory(const clt_state_store *store, size_t bytes, const char *name, const void *values, bool in_host, clt_memory **memory) {
    clt_memory *made;
    CLT_TRY(in_host ? clt_memory_create_host(store->device, bytes, store->folder, &made) : clt_memory_create(store->device, bytes, &made));
    clt_memory_name(made, name);
    bool is_zero = in_host && store->folder;
    clt_status status = values ? clt_memory_write(made, 0, values, bytes) : is_zero ? CLT_OK : clt_memory_zero(made);
    if (status < 0) clt_memory_destroy(made);
    else *memory = made;
    return status;
}

static clt_status make_state(clt_state_store *store, state *s) {
    return s->memory ? CLT_OK : make_memory(store, s->bytes, s->name, NULL, s->in_host, &s->memory);
}

static clt_status make_variable(clt_state_store *store, entry *e) {
    if (e->memory) return CLT_OK;
    if (!e->owner) return make_memory(store, e->bytes, e->variable->name, e->variable->values, false, &e->memory);
    state *parent = &e->owner->states[e->inside];
    CLT_TRY(make_state(e->owner, parent));
    return clt_memory_slice(parent->memory, e->offset_bytes, e->bytes, &e->memory);
}

static clt_status state_index(clt_state_store *store, const char *name, size_t bytes, int *index) {
    *index = find_state(store, name);
    if (*index < 0) {
        CLT_TRY(clt_grow(&store->states, &store->capacity, store->n_states, sizeof *store->states));
        char *copy = clt_strdup(name);
        if (!copy) return clt_fail_memory(strlen(name) + 1);
        *index = (int)store->n_states++;
        store->states[*index] = (state){.name = copy, .bytes = bytes};
    }
    if (store->states[*index].bytes != bytes)
        return clt_fail(CLT_E_SHAPE, "state \"%s\" has %zu bytes, not %zu", name, store->states[*index].bytes, bytes);
    return CLT_OK;
}

clt_status clt_state_store_get(clt_state_store *store, const char *name, size_t bytes, clt_memory **memory) {
    int index;
    CLT_TRY(state_index(store, name, bytes, &index));
    CLT_TRY(make_state(store, &store->states[index]));
    *memory = store->states[index].memory;
    store->variables->lent += store->states[index].holds;
    return CLT_OK;
}

clt_status clt_state_store_get_host(clt_state_store *store, const char *name, size_t bytes, clt_memory **memory) {
    CLT_TRY(clt_state_store_expect_host(store, name, bytes));
    return clt_state_store_get(store, name, bytes, memory);
}

static clt_status entry_of(clt_state_store *store, const clt_variable *variable, entry **e) {
    variables *v = store->variables;
    *e = find_variable(store, variable);
    if (*e) return CLT_OK;
    CLT_TRY(clt_grow(&v->entries, &v->capacity, v->n, sizeof *v->entries));
    *e = &v->entries[v->n++];
    **e = (entry){.variable = variable, .bytes = clt_variable_bytes(variable), .inside = -1};
    return CLT_OK;
}

clt_status clt_state_store_variable(clt_state_store *store, const clt_variable *variable, clt_memory **memory) {
    entry *e;
    CLT_TRY(entry_of(store, variable, &e));
    clt_status status = make_variable(store, e);
    if (status < 0) return clt_fail_context(status, "\"%s\": ", variable->name);
    store->variables->lent += e->inside >= 0;
    *memory = e->memory;
    return CLT_OK;
}

clt_status clt_state_store_begin(clt_state_store *store, const clt_variable *variable, bool *first) {
    entry *e;
    CLT_TRY(entry_of(store, variable, &e));
    *first = !e->begun;
    e->begun = true;
    return CLT_OK;
}

void clt_state_store_forget(clt_state_store *store, const clt_variable *variable) {
    entry *e = find_variable(store, variable);
    if (e) e->begun = false;
}

int *clt_state_store_averages(clt_state_store *store) {
    return &store->variables->averages;
}

bool clt_state_store_has_begun(const clt_state_store *store, const clt_variable *variable) {
    const entry *e = find_variable(store, variable);
    return e && e->begun;
}

/* The values go into the state, and the memory that they had. */
static clt_status move(clt_state_store *store, entry *e, state *parent, size_t offset_bytes) {
    clt_memory *slice;
    CLT_TRY(make_state(store, parent));
    CLT_TRY(clt_memory_slice(parent->memory, offset_bytes, e->bytes, &slice));
    clt_status status = clt_memory_copy(e->memory, 0, slice, e->bytes);
    if (status < 0) {
        clt_memory_destroy(slice);
        return status;
    }
    clt_memory_destroy(e->memory);
    e->memory = slice;
    store->variables->moves++;
    return CLT_OK;
}

clt_status clt_state_store_place(clt_state_store *store, const clt_variable *variable, const char *name, size_t state_bytes,
                           size_t offset_bytes) {
    variables *v = store->variables;
    int index;
    entry *e = find_variable(store, variable);
    if (e && e->inside >= 0) return clt_fail(CLT_E_STATE, "\"%s\" has its memory already: another trainer trains it", variable->name);
    if (e && e->memory && v->references == 1) return clt_fail(CLT_E_STATE, "\"%s\" has its memory already", variable->name);
    CLT_TRY(state_index(store, name, state_bytes, &index));
    CLT_TRY(clt_grow(&v->left, &v->left_capacity, v->n_left + v->n + 1, sizeof *v->left));
    CLT_TRY(entry_of(store, variable, &e));
    if (e->memory) CLT_TRY(move(store, e, &store->states[index], offset_bytes));
    store->states[index].holds = true;
    e->owner = store;
    e->inside = index;
    e->offset_bytes = offset_bytes;
    e->in_host = store->states[index].in_host;
    return CLT_OK;
}

bool clt_state_store_is_in_host(const clt_state_store *store, const clt_variable *variable) {
    const entry *e = find_variable(store, variable);
    return e && e->in_host;
}

clt_memory *clt_state_store_find(const clt_state_store *store, const char *name, size_t *bytes) {
    int index = find_state(store, name);
    if (index < 0) return NULL;
    *bytes = store->states[index].bytes;
    store->variables->lent += store->states[index].holds;
    return store->states[index].memory;
}

/* ---- for questions ---- */

static clt_status check_size(const clt_state_store *store, size_t bytes, const char *name) {
    uint64_t most = clt_device_get_info(store->device)->max_buffer_bytes;
    if (bytes <= most) return CLT_OK;
    return clt_fail(CLT_E_DEVICE_MEMORY, "\"%s\" of %zu bytes is larger than the device's largest buffer, %llu bytes", name, bytes,
                    (unsigned long long)most);
}

clt_status clt_state_store_expect(clt_state_store *store, const char *name, size_t bytes) {
    int index;
    CLT_TRY(state_index(store, name, bytes, &index));
    return check_size(store, bytes, name);
}

clt_status clt_state_store_expect_host(clt_state_store *store, const char *name, size_t bytes) {
    int index;
    CLT_TRY(state_index(store, name, bytes, &index));
    if (!store->states[index].memory) store->states[index].in_host = true;
    return CLT_OK;
}

clt_status clt_state_store_expect_variable(clt_state_store *store, const clt_variable *variable) {
    entry *e;
    CLT_TRY(entry_of(store, variable, &e));
    return check_size(store, e->bytes, variable->name);
}

const char *clt_state_store_folder(const clt_state_store *store) {
    return store->folder;
}

static uint64_t rounded(size_t bytes, size_t alignment) {
    return (CLT_MAX(bytes, 1) + alignment - 1) / alignment * alignment;
}

uint64_t clt_state_store_bytes(const clt_state_store *store) {
    uint64_t bytes = 0;
    size_t alignment = clt_device_alignment(store->device);
    for (size_t i = 0; i < store->n_states; i++)
        if (!store->states[i].in_host) bytes += rounded(store->states[i].bytes, alignment);
    for (size_t i = 0; i < store->variables->n; i++)
        if (store->variables->entries[i].inside < 0) bytes += rounded(store->variables->entries[i].bytes, alignment);
    return bytes;
}

uint64_t clt_state_store_host_bytes(const clt_state_store *store) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < store->n_states; i++)
        if (store->states[i].in_host) bytes += store->states[i].bytes;
    return bytes;
}
