#define _GNU_SOURCE /* realpath */
#include "runtime/data/images/listing.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MOST_DEPTH = 32 };

/* ---- the entries of one folder ---- */

typedef struct entry {
    char *name;
    bool folder;
} entry;

typedef struct entries {
    entry *items;
    size_t n, capacity;
} entries;

static void free_entries(entries *e) {
    for (size_t i = 0; i < e->n; i++) clt_free(e->items[i].name);
    clt_free(e->items);
    *e = (entries){0};
}

static clt_status add_entry(entries *e, const char *name, bool folder) {
    CLT_TRY(clt_grow(&e->items, &e->capacity, e->n, sizeof *e->items));
    char *copy = clt_strdup(name);
    if (!copy) return clt_fail_memory(strlen(name) + 1);
    e->items[e->n++] = (entry){copy, folder};
    return CLT_OK;
}

/* Files first, then folders; each by the order of their bytes. */
static int compare_entries(const void *a, const void *b) {
    const entry *x = a, *y = b;
    return x->folder != y->folder ? x->folder - y->folder : strcmp(x->name, y->name);
}

/* A link may lead to a file inside the root alone: a data set that was unpacked must not read what lies elsewhere. */
static clt_status check_link(const char *root, const char *path, struct stat *facts) {
    char shown[CLT_SHOWN_TEXT];
    char *whole = realpath(root, NULL), *real = realpath(path, NULL);
    size_t length = whole ? strlen(whole) : 0;
    bool inside = whole && real && !strncmp(real, whole, length) && (real[length] == '/' || length == 1);
    bool broken = !real, folder = inside && stat(real, facts) == 0 && S_ISDIR(facts->st_mode);
    free(whole);
    free(real);
    clt_show(path + strlen(root) + 1, shown);
    if (broken) return clt_fail(CLT_E_FORMAT, "%s: %s: a link that leads nowhere", root, shown);
    if (!inside) return clt_fail(CLT_E_FORMAT, "%s: %s: a link that leads out of the folder; put the file itself there", root, shown);
    return folder ? clt_fail(CLT_E_FORMAT, "%s: %s: a link to a folder; put the folder itself there", root, shown) : CLT_OK;
}

static bool is_image(const char *name) {
    static const char *const ends[] = {".jpg", ".jpeg", ".png"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i]);
        if (length > end && !strcasecmp(name + length - end, ends[i])) return true;
    }
    return false;
}

static clt_status look_at(const char *root, const char *folder, const char *name, entries *e) {
    clt_text path = {0};
    struct stat facts;
    char shown[CLT_SHOWN_TEXT];
    clt_text_add(&path, "%s/%s", folder, name);
    clt_status status = path.status;
    if (status == CLT_OK && lstat(path.data, &facts) != 0) status = clt_fail(CLT_E_IO, "%s: %s: %s", root, clt_show(path.data + strlen(root) + 1, shown), strerror(errno));
    if (status == CLT_OK && S_ISLNK(facts.st_mode)) status = check_link(root, path.data, &facts);
    bool below = strcmp(folder, root) != 0; /* a class may have any name */
    if (status == CLT_OK && (S_ISREG(facts.st_mode) || (S_ISDIR(facts.st_mode) && !(below && is_image(name))))) status = add_entry(e, name, S_ISDIR(facts.st_mode));
    else if (status == CLT_OK && is_image(name)) status = clt_fail(CLT_E_FORMAT, "%s: %s: named as an image, but no regular file", root, clt_show(path.data + strlen(root) + 1, shown));
    clt_text_free(&path);
    return status;
}

/* Without those whose names begin with a dot. */
static clt_status read_entries(const char *root, const char *folder, entries *e) {
    char shown[CLT_SHOWN_TEXT];
    DIR *open = opendir(folder);
    if (!open) return clt_fail(CLT_E_IO, "%s: %s", clt_show(folder, shown), strerror(errno));
    clt_status status = CLT_OK;
    struct dirent *one;
    while (status == CLT_OK && (errno = 0, one = readdir(open)))
        if (one->d_name[0] != '.') status = look_at(root, folder, one->d_name, e);
    if (status == CLT_OK && errno) status = clt_fail(CLT_E_IO, "%s: %s", clt_show(folder, shown), strerror(errno));
    closedir(open);
    if (e->n) qsort(e->items, e->n, sizeof *e->items, compare_entries);
    return status;
}

/* ---- the files of a class ---- */

static clt_status add_file(clt_listing *l, const char *folder, const char *name, int32_t label) {
    CLT_TRY(clt_grow(&l->files, &l->capacity, l->n, sizeof *l->files));
    l->files[l->n++] = (clt_listed){.path = l->paths.length, .label = label};
    clt_text_add_bytes(&l->paths, folder, strlen(folder));
    clt_text_add_bytes(&l->paths, name, strlen(name) + 1);
    return l->paths.status;
}

/* `folder` counts from the root, and ends with a slash unless it is "". */
static clt_status read_class(clt_listing *l, const char *folder, int32_t label, int depth) {
    char shown[CLT_SHOWN_TEXT];
    entries e = {0};
    clt_text path = {0}, deeper = {0};
    clt_text_add(&path, "%s/%s", l->root, folder);
    clt_status status = path.status;
    if (status == CLT_OK) path.data[path.length - 1] = 0; /* the slash */
    if (status == CLT_OK && depth > MOST_DEPTH) status = clt_fail(CLT_E_FORMAT, "%s: more than %d folders inside each other", clt_show(path.data, shown), MOST_DEPTH);
    if (status == CLT_OK) status = read_entries(l->root, path.data, &e);
    for (size_t i = 0; status == CLT_OK && i < e.n; i++) {
        if (!e.items[i].folder) {
            if (is_image(e.items[i].name)) status = add_file(l, folder, e.items[i].name, label);
            else l->ignored++;
            continue;
        }
        clt_text_free(&deeper);
        deeper = (clt_text){0};
        clt_text_add(&deeper, "%s%s/", folder, e.items[i].name);
        status = deeper.status;
        if (status == CLT_OK) status = read_class(l, deeper.data, label, depth + 1);
    }
    clt_text_free(&deeper);
    clt_text_free(&path);
    free_entries(&e);
    return status;
}

/* ---- classes ---- */

static clt_status name_classes(clt_listing *l, const entries *e, const clt_names *like) {
    if (like) return clt_names_copy(&l->classes, like->items, like->n);
    char **names = clt_alloc((e->n + 1) * sizeof *names);
    if (!names) return clt_fail_memory((e->n + 1) * sizeof *names);
    int64_t n = 0;
    for (size_t i = 0; i < e->n; i++)
        if (e->items[i].folder) names[n++] = e->items[i].name;
    clt_status status = clt_names_copy(&l->classes, names, n);
    clt_free(names);
    return status;
}

static int64_t find_class(const clt_names *classes, const char *name) {
    for (int64_t i = 0; i < classes->n; i++)
        if (!strcmp(classes->items[i], name)) return i;
    return -1;
}

static clt_status read_classes(clt_listing *l, const entries *e) {
    char shown[CLT_SHOWN_TEXT], known[CLT_NAMES_TEXT];
    for (size_t i = 0; i < e->n; i++) {
        if (!e->items[i].folder) continue;
        int64_t label = find_class(&l->classes, e->items[i].name);
        size_t before = l->n;
        clt_show(e->items[i].name, shown);
        if (label < 0) return clt_fail(CLT_E_MISMATCH, "%s: class '%s': the classes of the model are %s", l->root, shown, clt_names_text(&l->classes, known));
        clt_text folder = {0};
        clt_text_add(&folder, "%s/", e->items[i].name);
        clt_status status = folder.status;
        if (status == CLT_OK) status = read_class(l, folder.data, (int32_t)label, 0);
        clt_text_free(&folder);
        CLT_TRY(status);
        if (l->n == before) return clt_fail(CLT_E_FORMAT, "%s: class '%s' has no image: no file .jpg, .jpeg or .png", l->root, shown);
    }
    return l->n ? CLT_OK : clt_fail(CLT_E_FORMAT, "%s: no folder: expected one for each class, with its images", l->root);
}

clt_status clt_listing_read(clt_listing *l, const char *root, const clt_names *like, bool flat) {
    entries e = {0};
    clt_status status;
    l->root = clt_strdup(root);
    if (!l->root) return clt_fail_memory(strlen(root) + 1);
    if (flat) {
        CLT_TRY_GOTO(read_class(l, "", 0, 0));
        return l->n ? CLT_OK : clt_fail(CLT_E_FORMAT, "%s: no image: no file .jpg, .jpeg or .png", root);
    }
    CLT_TRY_GOTO(read_entries(root, root, &e));
    CLT_TRY_GOTO(name_classes(l, &e, like));
    CLT_TRY_GOTO(read_classes(l, &e));
fail:
    free_entries(&e);
    return status;
}

void clt_listing_free(clt_listing *l) {
    clt_free(l->root);
    clt_names_free(&l->classes);
    clt_text_free(&l->paths);
    clt_free(l->files);
    *l = (clt_listing){0};
}
