/*
 * What the tests share. Include it first: it brings cmocka with what that needs.
 */
#ifndef CLT_TESTS_SUPPORT_H
#define CLT_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cltrain/status.h>

/* Time is asked for only where nothing else tells that something hangs: no machine is so slow as the first, and what would last for the
 * second must not be waited for. */
enum { WATCHDOG_SECONDS = 240, FOREVER_SECONDS = 2 * WATCHDOG_SECONDS };

/* Fails the test with the error's detail unless the call gave CLT_OK. */
#define assert_ok(expression) support_assert_status((expression), CLT_OK, #expression, __FILE__, __LINE__)
/* Fails unless the call gave that status. */
#define assert_status(expression, wanted) \
    support_assert_status((expression), (wanted), #expression, __FILE__, __LINE__)
/* Fails unless clt_error_detail() holds the words. */
#define assert_detail(words) support_assert_detail((words), __FILE__, __LINE__)

void support_assert_status(clt_status got, clt_status wanted, const char *expression, const char *file,
                           int line);
void support_assert_detail(const char *words, const char *file, int line);

/* A new empty folder below $TMPDIR, removed with all in it when the program ends. */
const char *support_folder(void);
/* "FOLDER/name" in a static ring of 8. */
const char *support_path(const char *name);
/* Writes a file whole, or fails the test. */
void support_write(const char *path, const void *bytes, size_t length);

/* The values of all of a trainer's parameters, in the order of the graph; to be freed. */
struct clt_trainer;
struct clt_graph;
float *support_parameters(struct clt_trainer *trainer, const struct clt_graph *graph, size_t *count);

/* `device`, and the pair that opens and closes it around a group of tests. */
#define SUPPORT_DEVICE                                                                             \
    static clt_device *device;                                                                     \
    static int open_device(void **state) { return (void)state, clt_device_open(&device, NULL) < 0; } \
    static int close_device(void **state) { return (void)state, clt_device_close(device), 0; }

#endif
