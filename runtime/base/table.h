/*
 * A hash table: 64-bit keys to numbers. Two entries may have the same key, as two texts may have the same hash: the caller compares what
 * they stand for.
 */
#ifndef CLT_BASE_TABLE_H
#define CLT_BASE_TABLE_H

#include "runtime/base/base.h"

typedef struct clt_table_entry {
    uint64_t key;
    int32_t value; /* >= 0; below: the place is free */
    int32_t extra;
} clt_table_entry;

typedef struct clt_table {
    clt_table_entry *entries;
    size_t capacity, count; /* capacity is a power of two */
} clt_table;

clt_status clt_table_reserve(clt_table *table, size_t count);
/* Puts an entry into a table with room for it. */
void clt_table_put(clt_table *table, uint64_t key, int32_t value, int32_t extra);
/* The first entry of that key, and from it the next one; NULL if there is none. */
const clt_table_entry *clt_table_find(const clt_table *table, uint64_t key);
const clt_table_entry *clt_table_next(const clt_table *table, const clt_table_entry *entry);
void clt_table_free(clt_table *table);

/* A key of bytes: XXH3. */
uint64_t clt_table_key(const void *bytes, size_t length);

#endif
