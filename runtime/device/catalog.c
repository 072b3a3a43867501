#include "runtime/device/catalog.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/device/kernel_source.h"

enum { MOST_LIST = 1 << 21, MOST_SOURCE = 1 << 24, HASH = CLT_HASH_TEXT - 1 };

void clt_catalog_free(clt_catalog *catalog) {
    clt_free(catalog->entries);
    *catalog = (clt_catalog){0};
}

/* ---- the list ---- */

static clt_status list_path(const clt_device *device, clt_text *path) {
    char hash[CLT_HASH_TEXT];
    const char *prelude = clt_kernel_source_find(device, CLT_PRELUDE); /* is part of each, and of no module */
    clt_program_key(device, prelude ? prelude : "", prelude ? strlen(prelude) : 0, hash);
    CLT_TRY(clt_file_cache_folder(device->settings.cache_folder, "programs", path));
    clt_text_add(path, "/%s.list", hash);
    return path->status;
}

static clt_status source_path(const clt_device *device, const char *key, clt_text *path) {
    CLT_TRY(clt_file_cache_folder(device->settings.cache_folder, "programs", path));
    clt_text_add(path, "/%s.cl", key);
    return path->status;
}

static bool is_hash(const char *text) {
    for (int i = 0; i < HASH; i++)
        if (!isxdigit((unsigned char)text[i])) return false;
    return true;
}

/* "KEY MODULE KERNEL", or "KEY MODULE -" of a whole module. */
static bool parse_line(const char *line, size_t length, clt_catalog_entry *entry) {
    enum { NAME = 2 * HASH + 2 };
    *entry = (clt_catalog_entry){0};
    if (length <= NAME || length - NAME >= sizeof entry->part.kernel || !is_hash(line) || line[HASH] != ' ' || !is_hash(line + HASH + 1) || line[NAME - 1] != ' ') return false;
    memcpy(entry->key, line, HASH);
    memcpy(entry->part.module, line + HASH + 1, HASH);
    memcpy(entry->part.kernel, line + NAME, length - NAME);
    if (!strcmp(entry->part.kernel, "-")) entry->part.kernel[0] = 0;
    for (const char *c = entry->part.kernel; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_') return false;
    return true;
}

clt_status clt_catalog_parse(clt_catalog *catalog, const char *text, size_t length) {
    for (const char *line = text, *end = text + length, *next; line < end; line = next + 1) {
        clt_catalog_entry entry;
        next = memchr(line, '\n', (size_t)(end - line));
        if (!next) break; /* written half */
        if (!parse_line(line, (size_t)(next - line), &entry)) continue;
        CLT_TRY(clt_grow(&catalog->entries, &catalog->capacity, catalog->n, sizeof *catalog->entries));
        catalog->entries[catalog->n++] = entry;
    }
    return CLT_OK;
}

void clt_catalog_read(clt_device *device) {
    clt_text path = {0};
    void *bytes = NULL;
    size_t length;
    if (device->catalog.read) return;
    device->catalog.read = true;
    if (list_path(device, &path) == CLT_OK && clt_file_read(path.data, MOST_LIST, &bytes, &length) == CLT_OK && clt_catalog_parse(&device->catalog, bytes, length) < 0)
        clt_catalog_free(&device->catalog), device->catalog.read = true;
    clt_free(bytes);
    clt_text_free(&path);
}

/* ---- choosing ---- */

static size_t count_parts(const clt_catalog *catalog, size_t from) {
    size_t n = 1;
    while (from + n < catalog->n && !strcmp(catalog->entries[from].key, catalog->entries[from + n].key)) n++;
    return n;
}

static bool has(clt_catalog_choice choice, const clt_program_part *part) {
    for (size_t i = 0; i < choice.n; i++)
        if (clt_part_serves(&choice.parts[i].part, part->module, part->kernel)) return true;
    return false;
}

bool clt_catalog_choose(const clt_catalog *catalog, const clt_program_part *parts, const bool *marked, size_t n, clt_catalog_choice *choice) {
    size_t most = 0;
    for (size_t from = 0, count; from < catalog->n; from += count) {
        clt_catalog_choice one = {&catalog->entries[from], count = count_parts(catalog, from)};
        size_t found = 0;
        for (size_t i = 0; !catalog->entries[from].gone && i < n; i++) found += !marked[i] && has(one, &parts[i]);
        if (!found || found < most || (found == most && one.n >= choice->n)) continue;
        most = found;
        *choice = one;
    }
    return most > 0;
}

bool clt_catalog_source(clt_device *device, clt_catalog_choice choice, clt_text *source) {
    clt_text path = {0};
    void *bytes = NULL;
    size_t length = 0;
    char key[CLT_HASH_TEXT] = "";
    if (source_path(device, choice.parts->key, &path) == CLT_OK && clt_file_read(path.data, MOST_SOURCE, &bytes, &length) == CLT_OK) clt_program_key(device, bytes, length, key);
    bool whole = !strcmp(key, choice.parts->key);
    if (whole) clt_text_add_bytes(source, bytes, length);
    else device->catalog.entries[choice.parts - device->catalog.entries].gone = true;
    clt_free(bytes);
    clt_text_free(&path);
    return whole && source->status == CLT_OK;
}

/* ---- adding ---- */

static void add_lines(const char *path, const clt_program *program) {
    clt_text lines = {0};
    for (size_t i = 0; i < program->n_parts; i++)
        clt_text_add(&lines, "%s %s %s\n", program->key, program->parts[i].module, program->parts[i].kernel[0] ? program->parts[i].kernel : "-");
    int file = lines.status == CLT_OK ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (file >= 0 && lseek(file, 0, SEEK_END) + (off_t)lines.length <= MOST_LIST && write(file, lines.data, lines.length) < 0)
        clt_log_message(CLT_LOG_DEBUG, "%s cannot be written", path);
    if (file >= 0) close(file);
    clt_text_free(&lines);
}

static bool is_listed(const clt_catalog *catalog, const char *key) {
    for (size_t i = 0; i < catalog->n; i++)
        if (!strcmp(catalog->entries[i].key, key)) return !catalog->entries[i].gone;
    return false;
}

void clt_catalog_add(clt_device *device, const clt_program *program, const clt_text *source) {
    clt_text list = {0}, path = {0};
    if (is_listed(&device->catalog, program->key)) return;
    if (list_path(device, &list) == CLT_OK && source_path(device, program->key, &path) == CLT_OK && clt_file_write(path.data, source->data, source->length) == CLT_OK)
        add_lines(list.data, program);
    clt_text_free(&list);
    clt_text_free(&path);
}
