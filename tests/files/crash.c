#define _POSIX_C_SOURCE 200809L
#include "tests/files/crash.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTOR = 512, NOTHING = -1, BEFORE = -2 }; /* what a name stands for: no file, that of before, or a file's number */

static uint64_t next(uint64_t *seed) { /* splitmix64 */
    uint64_t z = (*seed += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static size_t below(uint64_t *seed, size_t n) {
    return n ? (size_t)(next(seed) % n) : 0;
}

static void *must(void *memory) {
    if (memory) return memory;
    fprintf(stderr, "no memory for a power cut\n");
    abort();
}

/* ---- bytes ---- */

/* All that was written to a file, and how much of it was synced. */
static unsigned char *gather(const layer_journal *j, int events, int file, size_t *length, size_t *synced) {
    unsigned char *bytes = must(malloc(1));
    *length = *synced = 0;
    for (int i = 0; i < events; i++) {
        const layer_event *e = &j->events[i];
        if (e->file != file) continue;
        if (e->kind == LAYER_SYNC) *synced = *length;
        if (e->kind != LAYER_WRITE) continue;
        bytes = must(realloc(bytes, *length + e->length + 1));
        memcpy(bytes + *length, e->bytes, e->length);
        *length += e->length;
    }
    return bytes;
}

/* What becomes of the bytes from `synced` on. */
static void tear(unsigned char *bytes, size_t *length, size_t synced, uint64_t *seed) {
    uint64_t how = next(seed);
    if (how % 4 == 0) *length = synced + below(seed, *length - synced + 1); /* of any size between */
    if (how % 4 == 1) *length = synced;                                    /* none of it */
    size_t at = synced;
    while (at < *length) {
        size_t end = (at / SECTOR + 1) * SECTOR;
        end = end < *length ? end : *length;
        uint64_t fate = next(seed) % (how >> 8 & 1 ? 2 : 8); /* often, or seldom, lost */
        for (size_t i = at; i < end && fate == 0; i++) bytes[i] = how >> 9 & 1 ? 0 : (unsigned char)next(seed);
        at = end;
    }
}

/* ---- names ---- */

typedef struct name {
    const char *text;
    int *values; /* what it stood for: when the folder was last synced, and after each change since */
    int n;
} name;

typedef struct names {
    name *items;
    int n, changes; /* since the last sync */
} names;

static name *find_name(names *all, const char *text, int value) {
    for (int i = 0; i < all->n; i++)
        if (!strcmp(all->items[i].text, text)) return &all->items[i];
    all->items = must(realloc(all->items, (size_t)(all->n + 1) * sizeof *all->items));
    name *made = &all->items[all->n++];
    *made = (name){.text = text};
    /* As many values as there were changes of any name, so that they can be cut at one place. */
    made->values = must(calloc((size_t)all->changes + 2, sizeof *made->values));
    for (made->n = 0; made->n <= all->changes; made->n++) made->values[made->n] = value;
    return made;
}

/* All names go on by one change, of which one becomes another. */
static void change(names *all, const char *text, int value, const crash_state *before) {
    int was = crash_find(before, text) ? BEFORE : NOTHING;
    find_name(all, text, was);
    all->changes++;
    for (int i = 0; i < all->n; i++) {
        name *one = &all->items[i];
        one->values = must(realloc(one->values, (size_t)(one->n + 1) * sizeof *one->values));
        one->values[one->n] = strcmp(one->text, text) ? one->values[one->n - 1] : value;
        one->n++;
    }
}

static void sync_names(names *all) {
    for (int i = 0; i < all->n; i++) {
        all->items[i].values[0] = all->items[i].values[all->items[i].n - 1];
        all->items[i].n = 1;
    }
    all->changes = 0;
}

static names follow(const layer_journal *j, int events, const crash_state *before) {
    names all = {.n = 0};
    for (int i = 0; i < before->n; i++) find_name(&all, before->files[i].name, BEFORE);
    for (int i = 0; i < events; i++) {
        const layer_event *e = &j->events[i];
        if (e->kind == LAYER_CREATE) change(&all, e->name, e->file, before);
        if (e->kind == LAYER_UNLINK) change(&all, e->name, NOTHING, before);
        if (e->kind == LAYER_SYNC_FOLDER) sync_names(&all);
        if (e->kind != LAYER_RENAME) continue;
        name *from = find_name(&all, e->name, NOTHING);
        int moved = from->values[from->n - 1];
        change(&all, e->to, moved, before);
        change(&all, e->name, NOTHING, before);
        /* One step of a journal, though two names. */
        for (int k = 0; k < all.n; k++) {
            name *one = &all.items[k];
            one->values[one->n - 2] = one->values[one->n - 1];
            one->n--;
        }
        all.changes--;
    }
    return all;
}

static void free_names(names *all) {
    for (int i = 0; i < all->n; i++) free(all->items[i].values);
    free(all->items);
}

/* ---- states ---- */

void crash_add(crash_state *state, const char *name_, const void *bytes, size_t length) {
    state->files = must(realloc(state->files, (size_t)(state->n + 1) * sizeof *state->files));
    crash_file *made = &state->files[state->n++];
    *made = (crash_file){.name = name_, .bytes = must(malloc(length + 1)), .length = length};
    if (length) memcpy(made->bytes, bytes, length);
}

const crash_file *crash_find(const crash_state *state, const char *name_) {
    for (int i = 0; i < state->n; i++)
        if (!strcmp(state->files[i].name, name_)) return &state->files[i];
    return NULL;
}

void crash_free(crash_state *state) {
    for (int i = 0; i < state->n; i++) free(state->files[i].bytes);
    free(state->files);
    *state = (crash_state){0};
}

crash_state crash_draw(const layer_journal *journal, int events, const crash_state *before, uint64_t seed) {
    crash_state state = {0};
    names all = follow(journal, events, before);
    bool in_order = next(&seed) & 1;
    size_t cut = below(&seed, (size_t)all.changes + 1);
    for (int i = 0; i < all.n; i++) {
        const name *one = &all.items[i];
        int value = one->values[in_order ? cut : below(&seed, (size_t)one->n)];
        if (value == NOTHING) continue;
        if (value == BEFORE) {
            const crash_file *old = crash_find(before, one->text);
            crash_add(&state, one->text, old->bytes, old->length);
            continue;
        }
        size_t length, synced;
        uint64_t own = seed + 77 * (uint64_t)value; /* one file has one fate, whatever its names */
        unsigned char *bytes = gather(journal, events, value, &length, &synced);
        tear(bytes, &length, synced, &own);
        crash_add(&state, one->text, bytes, length);
        free(bytes);
    }
    free_names(&all);
    return state;
}
