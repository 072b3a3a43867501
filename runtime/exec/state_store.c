#include <string.h>

#include "runtime/exec/plan.h"

typedef struct entry {
    const clt_variable *variable; /* or NULL: a state */
    char *name;                   /* of a state */
    size_t bytes;
    clt_memory *memory;  /* NULL until it is asked for */
    int inside;          /* index of the state that a variable lies in; -1 */
    size_t offset_bytes; /* there */
} entry;

struct clt_state_store {
    clt_device *device;
    entry *entries;
    size_t n_entries, capacity;
};

clt_status clt_state_store_create(clt_device *device, clt_state_store **store) {
    clt_state_store *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_fail_memory(sizeof *s);
    s->device = device;
    *store = s;
    return CLT_OK;
}

void clt_state_store_destroy(clt_state_store *store) {
    if (!store) return;
    /* Variables inside states first: a slice goes before its parent. */
    for (size_t i = 0; i < store->n_entries; i++)
        if (store->entries[i].inside >= 0) clt_memory_destroy(store->entries[i].memory);
    for (size_t i = 0; i < store->n_entries; i++) {
        if (store->entries[i].inside < 0) clt_memory_destroy(store->entries[i].memory);
        clt_free(store->entries[i].name);
    }
    clt_free(store->entries);
    clt_free(store);
}

static int find_state(const clt_state_store *store, const char *name) {
    for (size_t i = 0; i < store->n_entries; i++)
        if (store->entries[i].name && !strcmp(store->entries[i].name, name)) return (int)i;
    return -1;
}

static int find_variable(const clt_state_store *store, const clt_variable *variable) {
    for (size_t i = 0; i < store->n_entries; i++)
        if (store->entries[i].variable == variable) return (int)i;
    return -1;
}

static clt_status add(clt_state_store *store, const clt_variable *variable, const char *name, size_t bytes, int *index) {
    CLT_TRY(clt_grow(&store->entries, &store->capacity, store->n_entries, sizeof *store->entries));
    entry *e = &store->entries[store->n_entries];
    *e = (entry){.variable = variable, .bytes = bytes, .inside = -1};
    if (name && !(e->name = clt_strdup(name))) return clt_fail_memory(strlen(name));
    *index = (int)store->n_entries++;
    return CLT_OK;
}

static clt_status make_memory(clt_state_store *store, entry *e) {
    if (e->memory) return CLT_OK;
    if (e->inside >= 0) {
        entry *parent = &store->entries[e->inside];
        CLT_TRY(make_memory(store, parent));
        return clt_memory_slice(parent->memory, e->offset_bytes, e->bytes, &e->memory);
    }
    clt_memory *memory;
    CLT_TRY(clt_memory_create(store->device, e->bytes, &memory));
    clt_memory_name(memory, e->variable ? e->variable->name : e->name);
    bool constant = e->variable && e->variable->values;
    clt_status status = constant ? clt_memory_write(memory, 0, e->variable->values, e->bytes) : clt_memory_zero(memory);
    if (status < 0) clt_memory_destroy(memory);
    else e->memory = memory;
    return status;
}

static clt_status state_index(clt_state_store *store, const char *name, size_t bytes, int *index) {
    *index = find_state(store, name);
    if (*index < 0) return add(store, NULL, name, bytes, index);
    if (store->entries[*index].bytes != bytes)
        return clt_fail(CLT_E_SHAPE, "state \"%s\" has %zu bytes, not %zu", name, store->entries[*index].bytes, bytes);
    return CLT_OK;
}

clt_status clt_state_store_get(clt_state_store *store, const char *name, size_t bytes, clt_memory **memory) {
    int index;
    CLT_TRY(state_index(store, name, bytes, &index));
    CLT_TRY(make_memory(store, &store->entries[index]));
    *memory = store->entries[index].memory;
    return CLT_OK;
}

static clt_status variable_index(clt_state_store *store, const clt_variable *variable, int *index) {
    *index = find_variable(store, variable);
    if (*index >= 0) return CLT_OK;
    return add(store, variable, NULL, clt_variable_bytes(variable), index);
}

clt_status clt_state_store_variable(clt_state_store *store, const clt_variable *variable, clt_memory **memory) {
    int index;
    CLT_TRY(variable_index(store, variable, &index));
    clt_status status = make_memory(store, &store->entries[index]);
    if (status < 0) return clt_fail_context(status, "\"%s\": ", variable->name);
    *memory = store->entries[index].memory;
    return CLT_OK;
}

clt_status clt_state_store_place(clt_state_store *store, const clt_variable *variable, const char *state, size_t state_bytes,
                           size_t offset_bytes) {
    int parent, index;
    if (find_variable(store, variable) >= 0)
        return clt_fail(CLT_E_STATE, "\"%s\" has its memory already", variable->name);
    CLT_TRY(state_index(store, state, state_bytes, &parent));
    size_t bytes = clt_variable_bytes(variable);
    CLT_TRY(add(store, variable, NULL, bytes, &index));
    store->entries[index].inside = parent;
    store->entries[index].offset_bytes = offset_bytes;
    return CLT_OK;
}

clt_memory *clt_state_store_find(const clt_state_store *store, const char *name, size_t *bytes) {
    int index = find_state(store, name);
    if (index < 0) return NULL;
    *bytes = store->entries[index].bytes;
    return store->entries[index].memory;
}

/* ---- for questions ---- */

static clt_status check_size(const clt_state_store *store, const entry *e, const char *name) {
    uint64_t most = clt_device_get_info(store->device)->max_buffer_bytes;
    if (e->bytes <= most) return CLT_OK;
    return clt_fail(CLT_E_DEVICE_MEMORY, "\"%s\" of %zu bytes is larger than the device's largest buffer, %llu bytes", name, e->bytes,
                    (unsigned long long)most);
}

clt_status clt_state_store_expect(clt_state_store *store, const char *name, size_t bytes) {
    int index;
    CLT_TRY(state_index(store, name, bytes, &index));
    return check_size(store, &store->entries[index], name);
}

clt_status clt_state_store_expect_variable(clt_state_store *store, const clt_variable *variable) {
    int index;
    CLT_TRY(variable_index(store, variable, &index));
    return check_size(store, &store->entries[index], variable->name);
}

uint64_t clt_state_store_bytes(const clt_state_store *store) {
    uint64_t bytes = 0;
    size_t alignment = clt_device_alignment(store->device);
    for (size_t i = 0; i < store->n_entries; i++)
        if (store->entries[i].inside < 0) bytes += (CLT_MAX(store->entries[i].bytes, 1) + alignment - 1) / alignment * alignment;
    return bytes;
}
