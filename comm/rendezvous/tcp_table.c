/* Keys and values of the tcp store: chains by hash, bounded in number and size. */
#include "comm/rendezvous/tcp_server.h"

#include <string.h>

enum { BUCKETS = 4096, MOST_KEYS = 65536, MOST_BYTES = 64 << 20 };

typedef struct entry {
    struct entry *next;
    size_t key_bytes, value_bytes;
    char data[]; /* the key, the value */
} entry;

struct clt_tcp_table {
    size_t keys, bytes;
    entry *buckets[BUCKETS];
};

clt_status clt_tcp_table_create(clt_tcp_table **table) {
    *table = clt_calloc(1, sizeof **table);
    return *table ? CLT_OK : clt_fail_memory(sizeof **table);
}

void clt_tcp_table_destroy(clt_tcp_table *table) {
    for (size_t i = 0; table && i < BUCKETS; i++)
        for (entry *e = table->buckets[i], *next; e; e = next) {
            next = e->next;
            clt_free(e);
        }
    clt_free(table);
}

/* The link that leads to the key's entry, or the end of its chain. (FNV-1a) */
static entry **find(const clt_tcp_table *table, const char *key, size_t key_bytes) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < key_bytes; i++) hash = (hash ^ (unsigned char)key[i]) * 1099511628211u;
    entry **link = (entry **)(uintptr_t)&table->buckets[hash % BUCKETS];
    while (*link && ((*link)->key_bytes != key_bytes || memcmp((*link)->data, key, key_bytes))) link = &(*link)->next;
    return link;
}

static size_t size_of(const entry *e) {
    return sizeof *e + e->key_bytes + e->value_bytes;
}

clt_status clt_tcp_table_set(clt_tcp_table *table, const char *key, size_t key_bytes, const void *value, size_t bytes) {
    entry **link = find(table, key, key_bytes), *old = *link;
    size_t before = old ? size_of(old) : 0, after = sizeof(entry) + key_bytes + bytes;
    if ((!old && table->keys >= MOST_KEYS) || table->bytes - before + after > MOST_BYTES)
        return clt_fail(CLT_E_RANGE, "the store is full: %zu keys, %zu bytes", table->keys, table->bytes);
    entry *e = clt_alloc(after);
    if (!e) return clt_fail_memory(after);
    *e = (entry){old ? old->next : NULL, key_bytes, bytes};
    memcpy(e->data, key, key_bytes);
    if (bytes) memcpy(e->data + key_bytes, value, bytes);
    *link = e;
    table->keys += !old;
    table->bytes = table->bytes - before + after;
    clt_free(old);
    return CLT_OK;
}

const void *clt_tcp_table_find(const clt_tcp_table *table, const char *key, size_t key_bytes, size_t *bytes) {
    const entry *e = *find(table, key, key_bytes);
    if (!e) return NULL;
    *bytes = e->value_bytes;
    return e->data + e->key_bytes;
}

void clt_tcp_table_remove(clt_tcp_table *table, const char *key, size_t key_bytes) {
    entry **link = find(table, key, key_bytes), *e = *link;
    if (!e) return;
    *link = e->next;
    table->keys--;
    table->bytes -= size_of(e);
    clt_free(e);
}
