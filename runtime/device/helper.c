/*
 * A second process that compiles kernels of a plan while this one compiles others (tools/cltrain-compile).
 *
 * PoCL compiles a kernel when it is first launched, which takes some tenths of a second, one after the other in a process, and keeps it in its cache on
 * disk. Whatever goes wrong with the helper, this process compiles all by itself.
 */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/install.h"
#include "runtime/device/catalog.h"
#include "runtime/device/cl.h"
#include "runtime/device/settings.h"

/* Fewer kernels are compiled before a helper has begun. A grid that is this wide has a kernel of its own in PoCL. */
enum { FEWEST_KERNELS = 8, LARGE_GRID = 65535, SEND_SECONDS = 5 };

typedef struct hash_list {
    char (*hashes)[CLT_HASH_TEXT];
    size_t n, capacity;
} hash_list;

struct clt_helper {
    int socket; /* -1: it has ended */
    clt_text batch;
    hash_list programs; /* keys of those that it has, in its order */
    hash_list kernels;  /* with the sizes that matter */
};

bool clt_helper_serves(const clt_device *device) {
    const char *compiler = device->settings.compiler;
    return (!compiler[0] || !strcmp(compiler, "auto")) && clt_settings_driver_caches(device->info.platform) && clt_processor_count() > 1;
}

static clt_status open_sockets(int sockets[2]) {
    struct timeval limit = {.tv_sec = SEND_SECONDS};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets)) return clt_fail(CLT_E_SYSTEM, "no socket: %s", strerror(errno));
    setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return CLT_OK;
}

static int spawn(const char *path, const clt_device *device, int input) {
    const char *const arguments[] = {"cltrain-compile", device->info.platform, device->info.name, clt_build_options, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    if (posix_spawn_file_actions_init(&actions)) return ENOMEM;
    int error = posix_spawn_file_actions_adddup2(&actions, input, 0);
    for (int file = 1; file <= 2 && !error; file++) error = posix_spawn_file_actions_addopen(&actions, file, "/dev/null", O_WRONLY, 0);
    if (!error) error = posix_spawn(&child, path, &actions, NULL, (char *const *)(uintptr_t)arguments, clt_settings_environment());
    posix_spawn_file_actions_destroy(&actions);
    /* It goes on in a process of its own, which is nobody's child. */
    while (!error && waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
    return error;
}

static clt_status spawn_any(const clt_device *device, int input) {
    char path[4096];
    int error = ENOENT;
    for (int i = 0; error && clt_install_path(i, "cltrain-compile", path, sizeof path); i++) error = spawn(path, device, input);
    return error ? clt_fail(CLT_E_SYSTEM, "cltrain-compile: %s", strerror(error)) : CLT_OK;
}

static clt_status start(clt_device *device) {
    int sockets[2];
    clt_helper *h = clt_calloc(1, sizeof *h);
    if (!h) return clt_fail_memory(sizeof *h);
    clt_status status = open_sockets(sockets);
    if (status < 0) {
        clt_free(h);
        return status;
    }
    status = spawn_any(device, sockets[1]);
    close(sockets[1]);
    h->socket = sockets[0];
    device->helper = h;
    return status;
}

/* It says nothing: there is something to read when it has ended. */
static bool is_there(const clt_helper *h) {
    char byte;
    return h && h->socket >= 0 && recv(h->socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void clt_helper_start(clt_device *device, size_t kernels) {
    if (kernels < FEWEST_KERNELS || !clt_helper_serves(device) || is_there(device->helper)) return;
    clt_helper_end(device);
    if (start(device) >= 0) return;
    clt_log_message(CLT_LOG_DEBUG, "no second process compiles: %s", clt_error_detail());
    clt_helper_end(device);
}

void clt_helper_end(clt_device *device) {
    clt_helper *h = device->helper;
    if (!h) return;
    if (h->socket >= 0) close(h->socket);
    clt_text_free(&h->batch);
    clt_free(h->programs.hashes);
    clt_free(h->kernels.hashes);
    clt_free(h);
    device->helper = NULL;
}

/* ---- what it is told ---- */

/* SIZE_MAX: it is not there. */
static size_t find_hash(const hash_list *list, const char *hash) {
    for (size_t i = 0; i < list->n; i++)
        if (!memcmp(list->hashes[i], hash, CLT_HASH_TEXT)) return i;
    return SIZE_MAX;
}

static clt_status add_hash(hash_list *list, const char *hash) {
    CLT_TRY(clt_grow(&list->hashes, &list->capacity, list->n, sizeof *list->hashes));
    memcpy(list->hashes[list->n++], hash, CLT_HASH_TEXT);
    return CLT_OK;
}

clt_status clt_helper_add_program(clt_device *device, const char *key, const clt_text *source) {
    clt_helper *h = device->helper;
    if (!h || find_hash(&h->programs, key) != SIZE_MAX) return CLT_OK;
    CLT_TRY(add_hash(&h->programs, key));
    clt_text_add(&h->batch, "program %zu\n", source->length);
    clt_text_add_bytes(&h->batch, source->data, source->length);
    return h->batch.status;
}

bool clt_helper_has_program(const clt_device *device, const char *key) {
    return device->helper && find_hash(&device->helper->programs, key) != SIZE_MAX;
}

clt_status clt_helper_add_kernel(clt_device *device, const char *program, const char *name, const clt_text *arguments, int dims, const size_t *global,
                                 const size_t *local) {
    clt_helper *h = device->helper;
    size_t index = find_hash(&h->programs, program), sizes[2][3] = {{1, 1, 1}, {1, 1, 1}};
    char key[CLT_HASH_TEXT] = "";
    memcpy(sizes[0], global, (size_t)dims * sizeof *global);
    memcpy(sizes[1], local, (size_t)dims * sizeof *local);
    bool wide = sizes[0][0] >= LARGE_GRID || sizes[0][1] >= LARGE_GRID || sizes[0][2] >= LARGE_GRID;
    clt_hash_add(key, &index, sizeof index);
    clt_hash_add(key, name, strlen(name));
    clt_hash_add(key, sizes[1], sizeof sizes[1]);
    clt_hash_add(key, &wide, sizeof wide);
    if (index == SIZE_MAX || find_hash(&h->kernels, key) != SIZE_MAX) return CLT_OK;
    CLT_TRY(add_hash(&h->kernels, key));
    clt_text_add(&h->batch, "kernel %zu %s %d %zu %zu %zu %zu %zu %zu\n%s", index, name, dims, sizes[0][0], sizes[0][1], sizes[0][2], sizes[1][0], sizes[1][1],
                 sizes[1][2], clt_text_data(arguments));
    return h->batch.status;
}

static bool send_all(int socket, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = send(socket, bytes, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

void clt_device_compile_beside(clt_device *device) {
    clt_helper *h = device->helper;
    char line[64];
    if (!h || !h->batch.length) return;
    int length = snprintf(line, sizeof line, "batch %zu\n", h->batch.length);
    if (h->socket >= 0 && !(send_all(h->socket, line, (size_t)length) && send_all(h->socket, h->batch.data, h->batch.length))) {
        close(h->socket);
        h->socket = -1;
    }
    clt_text_free(&h->batch);
}
