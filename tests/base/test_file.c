#define _XOPEN_SOURCE 700 /* symlink, mkfifo */
#include "tests/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/file.h"

static void assert_file_is(const char *path, const char *wanted) {
    void *bytes;
    size_t length;
    assert_ok(clt_file_read(path, 1 << 20, &bytes, &length));
    assert_int_equal(length, strlen(wanted));
    assert_string_equal(bytes, wanted);
    clt_free(bytes);
}

/* Files in the test's folder whose name ends in .tmp. */
static int temporaries(void) {
    DIR *folder = opendir(support_folder());
    assert_non_null(folder);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name);
        count += length > 4 && !strcmp(entry->d_name + length - 4, ".tmp");
    }
    closedir(folder);
    return count;
}

/* ---- reading ---- */

static void test_read(void **state) {
    (void)state;
    const char *path = support_path("read");
    support_write(path, "four", 4);
    char *bytes;
    size_t length;
    uint64_t size;
    assert_ok(clt_file_read(path, 4, (void **)&bytes, &length));
    assert_int_equal(length, 4);
    assert_memory_equal(bytes, "four", 5); /* a NUL follows */
    clt_free(bytes);
    assert_ok(clt_file_size(path, &size));
    assert_int_equal(size, 4);
    assert_status(clt_file_read(path, 3, (void **)&bytes, &length), CLT_E_FORMAT);
    assert_detail(path);
    support_write(path, "", 0);
    assert_ok(clt_file_read(path, 0, (void **)&bytes, &length));
    assert_int_equal(length, 0);
    assert_string_equal(bytes, "");
    clt_free(bytes);
}

static void test_read_of_what_cannot_be_read(void **state) {
    (void)state;
    void *bytes;
    size_t length;
    uint64_t size;
    assert_status(clt_file_read(support_path("absent"), 10, &bytes, &length), CLT_E_IO);
    assert_detail("absent");
    assert_detail(strerror(ENOENT));
    assert_status(clt_file_size(support_path("absent"), &size), CLT_E_IO);
    assert_status(clt_file_read(support_folder(), 10, &bytes, &length), CLT_E_IO);
    assert_detail("regular file");
    assert_status(clt_file_size("/dev/zero", &size), CLT_E_IO);
    assert_status(clt_file_size("", &size), CLT_E_IO);
    assert_detail("path is empty");
    assert_status(clt_file_read("", 10, &bytes, &length), CLT_E_IO);
    assert_detail("path is empty");
}

/* The size is met before memory is taken: a file of 1 TiB (with no blocks) asks for none. */
static void test_read_of_a_file_too_large(void **state) {
    (void)state;
    const char *path = support_path("sparse");
    support_write(path, "", 0);
    if (truncate(path, (off_t)1 << 40)) skip(); /* the file system has no such files */
    void *bytes;
    size_t length;
    assert_status(clt_file_read(path, 1 << 20, &bytes, &length), CLT_E_FORMAT);
    assert_detail("1099511627776");
    unlink(path);
}

/* ---- writing ---- */

static void test_write(void **state) {
    (void)state;
    const char *path = support_path("written");
    assert_ok(clt_file_write(path, "new", 3));
    assert_file_is(path, "new");
    assert_ok(clt_file_write(path, "newer", 5));
    assert_file_is(path, "newer");
    assert_ok(clt_file_write(path, "", 0));
    assert_file_is(path, "");
    assert_int_equal(temporaries(), 0);
}

static void test_old_file_until_commit(void **state) {
    (void)state;
    const char *path = support_path("kept");
    support_write(path, "old", 3);
    clt_file_writer *writer;
    assert_ok(clt_file_writer_open(&writer, path));
    assert_ok(clt_file_writer_write(writer, "ne", 2));
    assert_file_is(path, "old");
    assert_int_equal(temporaries(), 1);
    clt_file_writer_abort(writer);
    assert_file_is(path, "old");
    assert_int_equal(temporaries(), 0);
    assert_ok(clt_file_writer_open(&writer, path));
    assert_ok(clt_file_writer_write(writer, "ne", 2));
    assert_ok(clt_file_writer_write(writer, "w", 1));
    assert_ok(clt_file_writer_commit(writer));
    assert_file_is(path, "new");
    clt_file_writer_abort(NULL);
}

/* Two writers of one file do not meet in one temporary; the last commit stays. */
static void test_two_writers(void **state) {
    (void)state;
    const char *path = support_path("both");
    clt_file_writer *a, *b;
    assert_ok(clt_file_writer_open(&a, path));
    assert_ok(clt_file_writer_open(&b, path));
    assert_int_equal(temporaries(), 2);
    assert_ok(clt_file_writer_write(a, "aaaa", 4));
    assert_ok(clt_file_writer_write(b, "b", 1));
    assert_ok(clt_file_writer_commit(a));
    assert_file_is(path, "aaaa");
    assert_ok(clt_file_writer_commit(b));
    assert_file_is(path, "b");
}

static void test_link_is_followed(void **state) {
    (void)state;
    const char *path = support_path("target"), *link = support_path("link");
    support_write(path, "old", 3);
    assert_int_equal(symlink(path, link), 0);
    assert_ok(clt_file_write(link, "new", 3));
    assert_file_is(path, "new");
    struct stat facts;
    assert_int_equal(lstat(link, &facts), 0);
    assert_true(S_ISLNK(facts.st_mode));
}

static unsigned mode_of(const char *path) {
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    return (unsigned)facts.st_mode & 07777;
}

static mode_t wider; /* what files were open to before they were told not to be */

/* Called by the library in place of the C library's. */
int fchmod(int file, mode_t mode) {
    struct stat facts;
    char path[64];
    if (fstat(file, &facts)) return -1;
    wider |= facts.st_mode & 0777 & ~mode;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return chmod(path, mode);
}

/* What is private stays so, also while it is being written; the umask takes nothing from what was there. */
static void permissions_are_kept(void **state) {
    (void)state;
    static const mode_t modes[] = {0600, 0640, 0666, 0444};
    const char *path = support_path("permissions"), *link = support_path("link to permissions");
    mode_t umask_before = umask(022);
    support_write(path, "old", 3);
    assert_int_equal(symlink(path, link), 0);
    for (size_t i = 0; i < CLT_COUNT_OF(modes); i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_ok(clt_file_write(i % 2 ? link : path, "new", 3));
        assert_int_equal(mode_of(path), modes[i]);
    }
    assert_int_equal(chmod(path, 0600), 0);
    umask(0);
    wider = 0;
    assert_ok(clt_file_write(path, "new", 3));
    assert_int_equal(wider, 0);
    umask(027);
    assert_ok(clt_file_write(support_path("of the umask"), "new", 3));
    assert_int_equal(mode_of(support_path("of the umask")), 0640);
    umask(umask_before);
}

static void test_relative_path(void **state) {
    (void)state;
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(support_folder()), 0);
    clt_status status = clt_file_write("relative", "r", 1);
    assert_int_equal(chdir(before), 0);
    assert_ok(status);
    assert_file_is(support_path("relative"), "r");
}

static void test_places_that_cannot_be_written(void **state) {
    (void)state;
    assert_status(clt_file_write(support_path("no/such/folder"), "x", 1), CLT_E_IO);
    assert_detail("no/such/folder");
    assert_status(clt_file_write("", "x", 1), CLT_E_IO);
    assert_detail("path is empty");
    const char *folder = support_path("folder");
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_status(clt_file_write(folder, "x", 1), CLT_E_IO);
    assert_detail(folder);
    assert_int_equal(temporaries(), 0);
}

/* A child that never exits by itself, killed while it writes: the temporary is left, the next
 * writer of that file removes it, and those of living writers and of other files stay. */
static void test_stale_temporaries(void **state) {
    (void)state;
    const char *path = support_path("stale"), *other = support_path("stale2");
    support_write(path, "old", 3);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        clt_file_writer *writer, *second;
        char done = clt_file_writer_open(&writer, path) == CLT_OK &&
                    clt_file_writer_write(writer, "half", 4) == CLT_OK &&
                    clt_file_writer_open(&second, other) == CLT_OK;
        if (write(ready[1], &done, 1) != 1) _exit(1);
        for (;;) pause();
    }
    char done = 0;
    assert_int_equal(read(ready[0], &done, 1), 1);
    assert_true(done);
    close(ready[0]);
    close(ready[1]);

    clt_file_writer *living;
    assert_ok(clt_file_writer_open(&living, path)); /* the child still lives: nothing is removed */
    assert_int_equal(temporaries(), 3);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_file_is(path, "old");

    assert_ok(clt_file_write(path, "new", 3));
    assert_file_is(path, "new");
    assert_int_equal(temporaries(), 2); /* `living` and the other file's */
    clt_file_writer_abort(living);
    assert_ok(clt_file_write(other, "x", 1));
    assert_int_equal(temporaries(), 0);
}

static void test_names_that_only_look_stale(void **state) {
    (void)state;
    char host[65] = "", name[200];
    gethostname(host, sizeof host - 1);
    static const char *const ends[] = {"999999999.0", "999999999.0.tmpx", "x.0.tmp", "-5.0.tmp",
                                       "999999999.tmp"};
    for (size_t i = 0; i < CLT_COUNT_OF(ends); i++) {
        snprintf(name, sizeof name, "looks.%s.%s", host, ends[i]);
        support_write(support_path(name), "", 0);
    }
    snprintf(name, sizeof name, "looks.%s-other.999999999.0.tmp", host);
    support_write(support_path(name), "", 0);
    assert_ok(clt_file_write(support_path("looks"), "x", 1));
    assert_int_equal(access(support_path(name), F_OK), 0);
    unlink(support_path(name));
    for (size_t i = 0; i < CLT_COUNT_OF(ends); i++) {
        snprintf(name, sizeof name, "looks.%s.%s", host, ends[i]);
        assert_int_equal(unlink(support_path(name)), 0);
    }
}

/* As long as file systems allow: the temporary's name must not be longer, and is found as stale all the same. */
static void test_longest_name(void **state) {
    (void)state;
    char host[65] = "", name[256], stale[256];
    gethostname(host, sizeof host - 1);
    memset(name, 'n', 255);
    name[255] = '\0';
    snprintf(stale, sizeof stale, "%.128s.%s.999999999.0.tmp", name, host);
    support_write(support_path(stale), "half", 4);
    assert_ok(clt_file_write(support_path(name), "old", 3));
    assert_ok(clt_file_write(support_path(name), "new", 3));
    assert_file_is(support_path(name), "new");
    assert_int_equal(temporaries(), 0);
}

/* In a container each start of a program may have the same PID: what an earlier one left is not this one's, and is removed
 * once nobody can be writing it any more. */
static void test_stale_temporaries_of_the_own_pid(void **state) {
    (void)state;
    char host[65] = "", name[200];
    gethostname(host, sizeof host - 1);
    const char *path = support_path("own");
    snprintf(name, sizeof name, "own.%s.%ld.0.tmp", host, (long)getpid());
    support_write(support_path(name), "half", 4);
    assert_ok(clt_file_write(path, "new", 3));
    assert_int_equal(temporaries(), 1); /* it may be of one that lives in another container */
    const struct timespec old[2] = {{.tv_sec = time(NULL) - 4000}, {.tv_sec = time(NULL) - 4000}};
    assert_int_equal(utimensat(AT_FDCWD, support_path(name), old, 0), 0);
    clt_file_writer *living;
    assert_ok(clt_file_writer_open(&living, path));
    assert_int_equal(temporaries(), 1); /* the living one's */
    assert_ok(clt_file_write(path, "newer", 5));
    assert_int_equal(temporaries(), 1);
    clt_file_writer_abort(living);
    assert_file_is(path, "newer");
}

/* A write that the system refuses half-way: the error says so, the old file stays whole and no
 * temporary is left. The limit on file sizes stands in for a disk that is full. */
static void test_full_disk(void **state) {
    (void)state;
    const char *path = support_path("full");
    support_write(path, "old", 3);
    static char block[100000];
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 50000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    clt_status status = clt_file_write(path, block, sizeof block);
    char detail[1000];
    snprintf(detail, sizeof detail, "%s", clt_error_detail());
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, CLT_E_IO);
    assert_non_null(strstr(detail, path));
    assert_non_null(strstr(detail, strerror(EFBIG)));
    assert_file_is(path, "old");
    assert_int_equal(temporaries(), 0);
}

/* ---- what reaches the disk, and when ---- */

static struct {
    char events[16]; /* 'f' a file synced, 'd' a folder synced, 'r' renamed */
    size_t count;
    char failing; /* the event that fails, with `error` */
    int error;
} disk;

static int disk_event(char event) {
    if (disk.count < sizeof disk.events - 1) disk.events[disk.count++] = event;
    if (event != disk.failing) return 0;
    errno = disk.error;
    return -1;
}

/* These two are called by the library in place of the C library's. */
int fsync(int file) {
    struct stat facts;
    if (fstat(file, &facts)) return -1;
    return disk_event(S_ISDIR(facts.st_mode) ? 'd' : 'f') ? -1 : fdatasync(file);
}

int rename(const char *from, const char *to) {
    return disk_event('r') ? -1 : renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static clt_status write_with_failure(const char *path, char failing, int error) {
    memset(&disk, 0, sizeof disk);
    disk.failing = failing;
    disk.error = error;
    clt_status status = clt_file_write(path, "new", 3);
    disk.failing = 0;
    return status;
}

static void test_order_of_syncs(void **state) {
    (void)state;
    const char *path = support_path("synced");
    assert_ok(write_with_failure(path, 0, 0));
    assert_string_equal(disk.events, "frd");
    assert_file_is(path, "new");
}

static void test_disk_errors(void **state) {
    (void)state;
    const char *path = support_path("erring");
    support_write(path, "old", 3);
    assert_status(write_with_failure(path, 'f', EIO), CLT_E_IO); /* not renamed: it may lack bytes */
    assert_string_equal(disk.events, "f");
    assert_detail(path);
    assert_detail(strerror(EIO));
    assert_file_is(path, "old");
    assert_status(write_with_failure(path, 'r', EACCES), CLT_E_IO);
    assert_detail(strerror(EACCES));
    assert_file_is(path, "old");
    assert_int_equal(temporaries(), 0);
    assert_status(write_with_failure(path, 'd', EIO), CLT_E_IO);
    /* Some file systems cannot sync folders, and say so. */
    assert_ok(write_with_failure(path, 'd', EINVAL));
    assert_file_is(path, "new");
    assert_int_equal(temporaries(), 0);
}

/* ---- folders ---- */

static void test_make_folder(void **state) {
    (void)state;
    assert_ok(clt_file_make_folder(support_path("a/b/c")));
    assert_ok(clt_file_make_folder(support_path("a/b/c")));
    assert_ok(clt_file_make_folder(support_path("a/b/d/")));
    assert_ok(clt_file_write(support_path("a/b/c/file"), "x", 1));
    assert_status(clt_file_make_folder(support_path("a/b/c/file/below")), CLT_E_IO);
    assert_detail("a/b/c/file");
    assert_status(clt_file_make_folder("/proc/cltrain"), CLT_E_IO);
    assert_status(clt_file_make_folder(""), CLT_E_IO);
    assert_detail("path is empty");
}

static void test_cache_folder(void **state) {
    (void)state;
    clt_text path = {0};
    assert_ok(clt_file_cache_folder(support_path("cache"), "programs", &path));
    assert_string_equal(path.data, support_path("cache/programs"));
    assert_int_equal(access(path.data, W_OK), 0);
    clt_text_free(&path);
    assert_status(clt_file_cache_folder("", "programs", &path), CLT_E_IO);
    assert_detail("neither XDG_CACHE_HOME nor HOME");
}

/* A FIFO, a folder, a device or a link to nothing is never replaced by a file. */
static void special_files_are_not_replaced(void **state) {
    (void)state;
    struct stat facts;
    assert_int_equal(mkfifo(support_path("fifo"), 0600), 0);
    assert_int_equal(symlink("nothing", support_path("dangling")), 0);
    assert_status(clt_file_write(support_path("fifo"), "x", 1), CLT_E_IO);
    assert_detail("not a regular file");
    assert_int_equal(stat(support_path("fifo"), &facts), 0);
    assert_true(S_ISFIFO(facts.st_mode));
    assert_status(clt_file_write(support_path("dangling"), "x", 1), CLT_E_IO);
    assert_int_equal(lstat(support_path("dangling"), &facts), 0);
    assert_true(S_ISLNK(facts.st_mode));
    assert_status(clt_file_write(support_folder(), "x", 1), CLT_E_IO);
}

/* ---- views ---- */

static void test_view(void **state) {
    (void)state;
    const char *path = support_path("view");
    char read[4];
    clt_file_view view;
    support_write(path, "abcdef", 6);
    assert_ok(clt_file_view_open(&view, path));
    assert_int_equal(view.length, 6);
    assert_memory_equal(view.bytes, "abcdef", 6);
    assert_ok(clt_file_view_read(&view, path, 2, read, 4));
    assert_memory_equal(read, "cdef", 4);
    assert_ok(clt_file_view_read(&view, path, 6, read, 0));
    assert_status(clt_file_view_read(&view, path, 3, read, 4), CLT_E_FORMAT);
    assert_detail(path);
    assert_status(clt_file_view_read(&view, path, UINT64_MAX, read, 2), CLT_E_FORMAT);
    assert_int_equal(truncate(path, 3), 0); /* by somebody else, meanwhile */
    assert_status(clt_file_view_read(&view, path, 2, read, 4), CLT_E_FORMAT);
    assert_detail("ends at byte 3");
    clt_file_view_close(&view);

    support_write(path, "", 0);
    assert_ok(clt_file_view_open(&view, path));
    assert_true(view.length == 0 && !view.bytes);
    clt_file_view_close(&view);
    assert_status(clt_file_view_open(&view, support_folder()), CLT_E_IO);
    clt_file_view_close(&view);
    const char *pipe = support_path("pipe-view");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_status(clt_file_view_open(&view, pipe), CLT_E_IO); /* and does not wait */
    assert_detail("not a regular file");
    clt_file_view_close(&view);
    assert_status(clt_file_view_open(&view, support_path("none")), CLT_E_IO);
    clt_file_view_close(&view);
}

static void assert_beside(const char *path, const char *relative, clt_status wanted, const char *words) {
    clt_text real = {0};
    assert_status(clt_file_beside(path, relative, &real), wanted);
    if (wanted < 0) assert_detail(words);
    else assert_true(clt_ends_with(real.data, words));
    clt_text_free(&real);
}

static void test_beside(void **state) {
    (void)state;
    char model[512], folder[512], blobs[512], hub[512], path[600];
    snprintf(model, sizeof model, "%s", support_path("beside/model"));
    snprintf(folder, sizeof folder, "%s", support_path("beside"));
    snprintf(blobs, sizeof blobs, "%s", support_path("blobs"));
    snprintf(hub, sizeof hub, "%s", support_path("hub"));
    assert_int_equal(mkdir(folder, 0700) | mkdir(blobs, 0700) | mkdir(hub, 0700), 0);
    assert_int_equal(mkdir(support_path("beside/weights"), 0700), 0);
    support_write(model, "m", 1);
    support_write(support_path("beside/data"), "d", 1);
    support_write(support_path("beside/weights/more"), "d", 1);
    support_write(support_path("outside"), "o", 1);
    support_write(support_path("beside-data"), "o", 1); /* a folder's name is not the beginning of another's */
    assert_beside(model, "data", CLT_OK, "/beside/data");
    assert_beside(model, "./weights/../data", CLT_E_FORMAT, "leads out");
    assert_beside(model, "weights/more", CLT_OK, "/beside/weights/more");
    assert_beside(model, "../outside", CLT_E_FORMAT, "leads out");
    assert_beside(model, "..", CLT_E_FORMAT, "leads out");
    assert_beside(model, "weights/..", CLT_E_FORMAT, "leads out");
    assert_beside(model, "/etc/passwd", CLT_E_FORMAT, "leads out");
    assert_beside(model, "", CLT_E_FORMAT, "nowhere");
    assert_beside(model, "none", CLT_E_IO, "cannot be found");
    assert_beside(model, "..data", CLT_E_IO, "cannot be found");
    snprintf(path, sizeof path, "%s/link", folder);
    assert_int_equal(symlink("../outside", path), 0);
    assert_beside(model, "link", CLT_E_FORMAT, "a link that leads out");
    snprintf(path, sizeof path, "%s/sibling", folder);
    assert_int_equal(symlink("../beside-data", path), 0);
    assert_beside(model, "sibling", CLT_E_FORMAT, "a link that leads out");
    snprintf(path, sizeof path, "%s/inside", folder);
    assert_int_equal(symlink("weights/more", path), 0);
    assert_beside(model, "inside", CLT_OK, "/beside/weights/more");

    /* As in a cache of models: both are links into one folder. */
    snprintf(path, sizeof path, "%s/one", blobs);
    support_write(path, "m", 1);
    snprintf(path, sizeof path, "%s/two", blobs);
    support_write(path, "d", 1);
    snprintf(path, sizeof path, "%s/data", hub);
    assert_int_equal(symlink("../blobs/two", path), 0);
    snprintf(path, sizeof path, "%s/model", hub);
    assert_int_equal(symlink("../blobs/one", path), 0);
    assert_beside(path, "data", CLT_OK, "/blobs/two");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_files_are_not_replaced),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_read_of_what_cannot_be_read),
        cmocka_unit_test(test_read_of_a_file_too_large),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_old_file_until_commit),
        cmocka_unit_test(test_two_writers),
        cmocka_unit_test(test_link_is_followed),
        cmocka_unit_test(permissions_are_kept),
        cmocka_unit_test(test_relative_path),
        cmocka_unit_test(test_places_that_cannot_be_written),
        cmocka_unit_test(test_stale_temporaries),
        cmocka_unit_test(test_names_that_only_look_stale),
        cmocka_unit_test(test_longest_name),
        cmocka_unit_test(test_stale_temporaries_of_the_own_pid),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_order_of_syncs),
        cmocka_unit_test(test_disk_errors),
        cmocka_unit_test(test_make_folder),
        cmocka_unit_test(test_cache_folder),
        cmocka_unit_test(test_view),
        cmocka_unit_test(test_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
