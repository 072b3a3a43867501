/* tar: POSIX.1-2001, section pax, and GNU's long names; blocks of 512 bytes. */
#include "runtime/data/images/tar_index.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "runtime/data/data.h"

enum { BLOCK = 512, MOST_NAME = 4096, MOST_LABEL = 32, MOST_IMAGE = 1 << 30 };

typedef struct member {
    char name[MOST_NAME];
    uint64_t header, offset, bytes;
    char type;
} member;

typedef struct walk {
    clt_tar_index *index;
    int shard;
    uint64_t at;
    bool labelled;
    char key[MOST_NAME];  /* of the sample at hand; "": none */
    clt_tar_sample sample;
    bool has_image, has_label;
} walk;

static const clt_file_view *view_of(const walk *w) {
    return &w->index->shards[w->shard];
}

static const char *path_of(const walk *w) {
    return w->index->paths[w->shard];
}

/* ---- headers ---- */

/* Octal digits, or, where the first bit is set, a number of base 256. */
static bool read_number(const unsigned char *text, size_t n, uint64_t *value) {
    size_t i = 0;
    *value = 0;
    if (text[0] & 0x80) {
        for (*value = text[0] & 0x3f, i = 1; i < n; i++) {
            if (*value >> 55) return false;
            *value = *value << 8 | text[i];
        }
        return true;
    }
    while (i < n && text[i] == ' ') i++;
    for (; i < n && text[i] >= '0' && text[i] <= '7'; i++) *value = *value << 3 | (uint64_t)(text[i] - '0');
    return i == n || text[i] == 0 || text[i] == ' ';
}

static bool is_zero(const unsigned char block[BLOCK]) {
    for (int i = 0; i < BLOCK; i++)
        if (block[i]) return false;
    return true;
}

static bool has_right_sum(const unsigned char block[BLOCK]) {
    uint64_t told, sum = 0;
    for (int i = 0; i < BLOCK; i++) sum += i >= 148 && i < 156 ? ' ' : block[i];
    return read_number(block + 148, 8, &told) && told == sum;
}

static void take_name(member *m, const unsigned char block[BLOCK]) {
    bool prefixed = !memcmp(block + 257, "ustar", 5) && block[345] && memcmp(block + 263, " \0", 2) != 0; /* not GNU's old kind */
    if (prefixed) snprintf(m->name, sizeof m->name, "%.155s/%.100s", (const char *)block + 345, (const char *)block);
    else snprintf(m->name, sizeof m->name, "%.100s", (const char *)block);
}

static clt_status fail_at(const walk *w, uint64_t at, const char *why) {
    return clt_fail(CLT_E_FORMAT, "%s: byte %llu: %s", path_of(w), (unsigned long long)at, why);
}

/* *there: false at the end of the archive. */
static clt_status read_header(walk *w, member *m, bool *there) {
    unsigned char block[BLOCK];
    uint64_t length = view_of(w)->length;
    *there = false;
    if (w->at == length && w->at > 0) {
        clt_log_message(CLT_LOG_WARNING, "%s: the archive does not end with blocks of zeros: it may have been cut off", path_of(w));
        return CLT_OK;
    }
    if (length - w->at < BLOCK) return fail_at(w, w->at, "the archive ends within a header; is it a tar, and whole?");
    CLT_TRY(clt_file_view_read(view_of(w), path_of(w), w->at, block, BLOCK));
    if (is_zero(block)) return CLT_OK;
    if (!has_right_sum(block)) return fail_at(w, w->at, "no header of a tar archive: its checksum is wrong (compressed archives are to be unpacked)");
    m->header = w->at;
    m->offset = w->at + BLOCK;
    m->type = (char)block[156];
    take_name(m, block);
    if (!read_number(block + 124, 12, &m->bytes)) return fail_at(w, w->at, "the size of a member is no number");
    if (m->bytes > length - m->offset) return fail_at(w, w->at, "a member is larger than what is left of the archive");
    uint64_t padded = (m->bytes + BLOCK - 1) / BLOCK * BLOCK;
    w->at = CLT_MIN(m->offset + padded, length);
    *there = true;
    return CLT_OK;
}

/* The value of "path" among pax's records, "LENGTH KEY=VALUE\n". */
static void find_path(const char *records, size_t bytes, char *name) {
    for (size_t at = 0; at < bytes;) {
        size_t length = 0, i = at;
        for (; i < bytes && records[i] >= '0' && records[i] <= '9' && length < 1u << 20; i++) length = 10 * length + (size_t)(records[i] - '0');
        if (i == at || i >= bytes || records[i] != ' ' || length > bytes - at || length < i - at + 2) return;
        const char *value = records + i + 1, *end = records + at + length - 1;
        if (end - value > 5 && !memcmp(value, "path=", 5) && end - value - 5 < MOST_NAME) snprintf(name, MOST_NAME, "%.*s", (int)(end - value - 5), value + 5);
        at += length;
    }
}

/* Of members that tell of the next one: its long name. */
static clt_status read_long_name(walk *w, const member *m, char name[MOST_NAME]) {
    enum { MOST = 1 << 16 };
    if (m->bytes > MOST) return fail_at(w, m->header, "a member's name, or what is told of it, is too long");
    char *text = clt_calloc((size_t)m->bytes + 1, 1);
    if (!text) return clt_fail_memory((size_t)m->bytes);
    clt_status status = clt_file_view_read(view_of(w), path_of(w), m->offset, text, (size_t)m->bytes);
    if (status == CLT_OK && m->type == 'x') find_path(text, (size_t)m->bytes, name);
    else if (status == CLT_OK) snprintf(name, MOST_NAME, "%s", text);
    clt_free(text);
    return status;
}

/* The next file; what is between is passed over. */
static clt_status next_member(walk *w, member *m, bool *there) {
    char name[MOST_NAME] = "";
    for (;;) {
        CLT_TRY(read_header(w, m, there));
        if (!*there) return CLT_OK;
        if (m->type == 'L' || m->type == 'x') CLT_TRY(read_long_name(w, m, name));
        else if (m->type == '0' || m->type == 0 || m->type == '7') break;
    }
    if (name[0]) snprintf(m->name, sizeof m->name, "%s", name);
    return CLT_OK;
}

/* ---- samples ---- */

static clt_status end_sample(walk *w) {
    clt_tar_index *x = w->index;
    char shown[CLT_SHOWN_TEXT];
    if (!w->key[0]) return CLT_OK;
    if (!w->has_image) return x->ignored++, CLT_OK;
    if (w->labelled && !w->has_label) return clt_fail(CLT_E_FORMAT, "%s: sample '%s' has an image, but no label: no member '%s.cls'", path_of(w), clt_show(w->key, shown), shown);
    CLT_TRY(clt_grow(&x->samples, &x->capacity, x->n, sizeof *x->samples));
    w->sample.name = x->names.length;
    w->sample.shard = w->shard;
    clt_text_add_bytes(&x->names, w->key, strlen(w->key) + 1);
    x->samples[x->n++] = w->sample;
    if (w->labelled) x->classes = CLT_MAX(x->classes, w->sample.label + 1);
    return x->names.status;
}

static clt_status read_label(walk *w, const member *m) {
    char text[MOST_LABEL + 1] = "", shown[CLT_SHOWN_TEXT], name[CLT_SHOWN_TEXT];
    int64_t label = 0;
    if (m->bytes > 0 && m->bytes <= MOST_LABEL) CLT_TRY(clt_file_view_read(view_of(w), path_of(w), m->offset, text, (size_t)m->bytes));
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; i < digits && label < CLT_MOST_CLASSES; i++) label = 10 * label + (text[i] - '0');
    if (!digits || text[digits + strspn(text + digits, " \t\r\n")] || label >= CLT_MOST_CLASSES)
        return clt_fail(CLT_E_FORMAT, "%s: %s: '%s' is not a class: expected a whole number from 0, below %d", path_of(w), clt_show(m->name, name), clt_show(text, shown), CLT_MOST_CLASSES);
    w->sample.label = (int32_t)label;
    w->has_label = true;
    return CLT_OK;
}

static bool is_image(const char *end) {
    return !strcasecmp(end, ".jpg") || !strcasecmp(end, ".jpeg") || !strcasecmp(end, ".png");
}

static clt_status take_member(walk *w, const member *m) {
    const char *slash = strrchr(m->name, '/'), *dot = strchr(slash ? slash : m->name, '.');
    if (!dot || dot == m->name || dot[-1] == '/') return CLT_OK; /* no sample's */
    size_t length = (size_t)(dot - m->name);
    if (strncmp(w->key, m->name, length) != 0 || w->key[length]) {
        CLT_TRY(end_sample(w));
        memcpy(w->key, m->name, length);
        w->key[length] = 0;
        w->sample = (clt_tar_sample){0};
        w->has_image = w->has_label = false;
    }
    if (!strcmp(dot, ".cls") && w->labelled) return read_label(w, m);
    if (!is_image(dot) || w->has_image) return CLT_OK;
    if (m->bytes > MOST_IMAGE) return fail_at(w, m->header, "an image of more than 1 GiB");
    w->sample.offset = m->offset;
    w->sample.bytes = (uint32_t)m->bytes;
    w->has_image = true;
    return CLT_OK;
}

static clt_status read_shard(walk *w, member *m) {
    bool there = true;
    w->at = 0;
    w->key[0] = 0;
    while (there) {
        CLT_TRY(next_member(w, m, &there));
        if (there) CLT_TRY(take_member(w, m));
    }
    return end_sample(w);
}

static clt_status open_shards(clt_tar_index *x, const char *const *paths, int n) {
    x->shards = clt_calloc((size_t)n, sizeof *x->shards);
    x->paths = clt_calloc((size_t)n, sizeof *x->paths);
    if (!x->shards || !x->paths) return clt_fail_memory((size_t)n * sizeof *x->shards);
    for (; x->n_shards < n; x->n_shards++) {
        clt_file_view *view = &x->shards[x->n_shards];
        clt_status status = clt_file_view_open(view, paths[x->n_shards]);
        x->paths[x->n_shards] = status == CLT_OK ? clt_strdup(paths[x->n_shards]) : NULL;
        if (status == CLT_OK && !x->paths[x->n_shards]) status = clt_fail_memory(strlen(paths[x->n_shards]) + 1);
        if (status < 0) return clt_file_view_close(view), status;
    }
    return CLT_OK;
}

static clt_status count_absent(clt_tar_index *x) {
    bool *there = clt_calloc((size_t)x->classes, sizeof *there);
    if (!there) return clt_fail_memory((size_t)x->classes);
    for (size_t i = 0; i < x->n; i++) there[x->samples[i].label] = true;
    for (int c = 0; c < x->classes; c++) x->absent += !there[c];
    clt_free(there);
    return CLT_OK;
}

clt_status clt_tar_read(clt_tar_index *x, const char *const *paths, int n, bool labelled) {
    CLT_TRY(open_shards(x, paths, n));
    walk *w = clt_calloc(1, sizeof *w);
    member *m = clt_calloc(1, sizeof *m);
    clt_status status = w && m ? CLT_OK : clt_fail_memory(sizeof *w);
    if (status == CLT_OK) w->index = x, w->labelled = labelled;
    for (int i = 0; status == CLT_OK && i < n; i++) {
        w->shard = i;
        status = read_shard(w, m);
    }
    clt_free(w);
    clt_free(m);
    if (status == CLT_OK && !x->n) status = clt_fail(CLT_E_FORMAT, "%s: no image: no member .jpg, .jpeg or .png%s", paths[0], n > 1 ? ", nor in the other archives" : "");
    if (status == CLT_OK && labelled) status = count_absent(x);
    return status;
}

void clt_tar_free(clt_tar_index *x) {
    for (int i = 0; i < x->n_shards; i++) {
        clt_file_view_close(&x->shards[i]);
        clt_free(x->paths[i]);
    }
    clt_free(x->shards);
    clt_free(x->paths);
    clt_free(x->samples);
    clt_text_free(&x->names);
    *x = (clt_tar_index){0};
}
