/* Open addressing with linear probing. */
#define XXH_INLINE_ALL
#include "runtime/base/table.h"

#include <xxhash.h>

uint64_t clt_table_key(const void *bytes, size_t length) {
    return XXH3_64bits(bytes, length);
}

/* Finalizer of MurmurHash3, for keys that are pairs of ids. */
static size_t place(const clt_table *table, uint64_t key) {
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccdULL;
    key ^= key >> 33;
    key *= 0xc4ceb9fe1a85ec53ULL;
    return (size_t)(key ^ key >> 33) & (table->capacity - 1);
}

clt_status clt_table_reserve(clt_table *table, size_t count) {
    size_t capacity = 16;
    while (capacity / 2 < count) capacity *= 2;
    table->entries = clt_alloc(capacity * sizeof *table->entries);
    if (!table->entries) return clt_fail_memory(capacity * sizeof *table->entries);
    table->capacity = capacity;
    table->count = 0;
    for (size_t i = 0; i < capacity; i++) table->entries[i].value = -1;
    return CLT_OK;
}

static const clt_table_entry *search(const clt_table *table, size_t at, uint64_t key) {
    for (;; at = (at + 1) & (table->capacity - 1)) {
        const clt_table_entry *entry = &table->entries[at];
        if (entry->value < 0) return NULL;
        if (entry->key == key) return entry;
    }
}

const clt_table_entry *clt_table_find(const clt_table *table, uint64_t key) {
    return table->capacity ? search(table, place(table, key), key) : NULL;
}

const clt_table_entry *clt_table_next(const clt_table *table, const clt_table_entry *entry) {
    return search(table, (size_t)(entry - table->entries + 1) & (table->capacity - 1), entry->key);
}

void clt_table_put(clt_table *table, uint64_t key, int32_t value, int32_t extra) {
    size_t at = place(table, key);
    while (table->entries[at].value >= 0) at = (at + 1) & (table->capacity - 1);
    table->entries[at] = (clt_table_entry){key, value, extra};
    table->count++;
}

void clt_table_free(clt_table *table) {
    clt_free(table->entries);
    *table = (clt_table){0};
}
