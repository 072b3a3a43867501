/* Event files, read back by a small reader of records and messages. */
#define _GNU_SOURCE /* setitimer, pipe2 */
#include "tests/data/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cltrain/ops.h>

#include "runtime/base/bytes.h"
#include "runtime/base/file.h"
#include "runtime/observe/observe.h"

/* ---- the reader ---- */

typedef struct part {
    const unsigned char *bytes;
    size_t length;
} part;

static uint32_t masked(const void *bytes, size_t length) {
    uint32_t crc = clt_crc32c(bytes, length);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* The next record's data; false where what is left is none, as a reader stops there. */
static bool next_record(part *file, part *data) {
    if (file->length < 12 || masked(file->bytes, 8) != clt_bytes_get(file->bytes + 8, 4)) return false;
    uint64_t length = clt_bytes_get(file->bytes, 8);
    if (file->length - 12 < length || file->length - 12 - length < 4) return false;
    *data = (part){file->bytes + 12, (size_t)length};
    if (masked(data->bytes, data->length) != clt_bytes_get(data->bytes + length, 4)) return false;
    file->bytes += 16 + length, file->length -= 16 + length;
    return true;
}

static uint64_t varint(part *from) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(from->length > 0 && shift < 64);
        unsigned char byte = *from->bytes++;
        from->length--;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

/* The nth of the message's fields of that number, from 0; a varint's value becomes *number. .bytes NULL: there is none. */
static part field(part message, int number, int nth, uint64_t *value) {
    while (message.length > 0) {
        uint64_t key = varint(&message), v = 0;
        size_t length = key % 8 == 1 ? 8 : key % 8 == 5 ? 4 : 0;
        part found = message;
        if (key % 8 == 0) v = varint(&message);
        if (key % 8 == 2) length = (size_t)varint(&message), found.bytes = message.bytes;
        assert_true(message.length >= length && key % 8 != 3 && key % 8 != 4);
        message.bytes += length, message.length -= length;
        found.length = length;
        if (key / 8 != (uint64_t)number || nth-- > 0) continue;
        if (value) *value = v;
        return found;
    }
    return (part){NULL, 0};
}

static part inner(part message, int number) {
    return field(message, number, 0, NULL);
}

static uint64_t number_in(part message, int number) {
    uint64_t value = 0;
    assert_non_null(field(message, number, 0, &value).bytes);
    return value;
}

static double as_double(part p, size_t at) {
    double value;
    assert_true(p.bytes && p.length >= 8 * (at + 1));
    uint64_t bits = clt_bytes_get(p.bytes + 8 * at, 8);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float as_float(part p, size_t at) {
    float value;
    assert_true(p.bytes && p.length >= 4 * (at + 1));
    uint32_t bits = (uint32_t)clt_bytes_get(p.bytes + 4 * at, 4);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void assert_text(part p, const char *wanted) {
    assert_non_null(p.bytes);
    assert_int_equal(p.length, strlen(wanted));
    assert_memory_equal(p.bytes, wanted, p.length);
}

/* ---- files ---- */

/* The path of the only file in the folder. */
static const char *only_file(const char *folder) {
    static char path[9000];
    DIR *entries = opendir(folder);
    int count = 0;
    assert_non_null(entries);
    for (struct dirent *e; (e = readdir(entries));)
        if (e->d_name[0] != '.') snprintf(path, sizeof path, "%s/%s", folder, e->d_name), count++;
    closedir(entries);
    assert_int_equal(count, 1);
    return path;
}

static clt_events *open_events(const char *folder) {
    clt_events *events = NULL;
    assert_ok(clt_events_open(&events, folder));
    return events;
}

/* All of the only file; to be freed. */
static part read_whole(const char *folder) {
    void *bytes;
    size_t length;
    assert_ok(clt_file_read(only_file(folder), 1 << 30, &bytes, &length));
    return (part){bytes, length};
}

/* The value `at` of the only record behind the first one. */
static part value_of(part file, int at) {
    part data, more;
    assert_true(next_record(&file, &data));
    assert_true(next_record(&file, &data));
    assert_false(next_record(&file, &more));
    assert_int_equal(file.length, 0);
    return field(inner(data, EVENT_SUMMARY), SUMMARY_VALUE, at, NULL);
}

static int count_records(part file) {
    part data;
    int count = 0;
    while (next_record(&file, &data)) count++;
    return count;
}

/* What does not become smaller by compression. */
static void fill_with_noise(uint8_t *bytes, size_t length) {
    uint32_t state = 1;
    for (size_t i = 0; i < length; i++) state = state * 1664525u + 1013904223u, bytes[i] = (uint8_t)(state >> 24);
}

static void release(part file) {
    clt_free((void *)file.bytes);
}

/* ---- what is written ---- */

static void crc_is_castagnolis(void **state) {
    static const unsigned char zeros[32];
    assert_int_equal(clt_crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(clt_crc32c("", 0), 0);
    assert_int_equal(clt_crc32c(zeros, sizeof zeros), 0x8a9136aa); /* RFC 3720, B.4 */
    (void)state;
}

static void messages_have_known_bytes(void **state) {
    static const char wanted[] = "\x08\x96\x01\x12\x09\x0a\x02hi\x1d\x00\x00\x80\x3f\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    clt_text text = {0};
    clt_proto_varint(&text, 1, 150);
    size_t place = clt_proto_begin(&text, 2);
    clt_proto_text(&text, 1, "hi");
    clt_proto_float(&text, 3, 1);
    clt_proto_end(&text, place);
    clt_proto_varint(&text, 3, (uint64_t)-1);
    assert_int_equal(text.length, sizeof wanted - 1);
    assert_memory_equal(text.data, wanted, text.length);
    clt_text_free(&text);
    place = clt_proto_begin(&text, 15);
    for (int i = 0; i < 40; i++) clt_proto_float(&text, 1, 1); /* 200 bytes: a length of two */
    clt_proto_end(&text, place);
    assert_int_equal(text.length, 203);
    assert_memory_equal(text.data, "\x7a\xc8\x01\x0d\x00\x00\x80\x3f\x0d", 9);
    clt_text_free(&text);
    (void)state;
}

static void begins_with_its_version(void **state) {
    const char *folder = support_path("begin/with/parents");
    time_t before = time(NULL);
    clt_events *events = open_events(folder);
    part file = read_whole(folder), left = file, data;
    long long seconds;
    long pid;
    char host[300];
    assert_int_equal(sscanf(strrchr(only_file(folder), '/'), "/events.out.tfevents.%10lld.%299[^.].%ld.", &seconds, host, &pid), 3);
    assert_int_equal(pid, getpid());
    assert_true(seconds >= before && seconds <= time(NULL));
    assert_true(next_record(&left, &data));
    assert_int_equal(left.length, 0);
    assert_text(inner(data, EVENT_FILE_VERSION), "brain.Event:2");
    assert_true(as_double(inner(data, EVENT_WALL_TIME), 0) >= (double)before);
    assert_true(as_double(inner(data, EVENT_WALL_TIME), 0) <= (double)time(NULL) + 1);
    release(file);
    assert_ok(clt_events_close(events));
    (void)state;
}

static void each_has_a_file_of_its_own(void **state) {
    const char *folder = support_path("many");
    clt_events *events[20];
    for (int i = 0; i < 20; i++) events[i] = open_events(folder);
    DIR *entries = opendir(folder);
    int count = 0;
    for (struct dirent *e; (e = readdir(entries));) count += e->d_name[0] != '.';
    closedir(entries);
    assert_int_equal(count, 20);
    for (int i = 0; i < 20; i++) assert_ok(clt_events_close(events[i]));
    (void)state;
}

/* The name that would come next is taken, by now and for the seconds to come. */
static void no_file_is_replaced(void **state) {
    enum { SECONDS = 30 };
    char folder[9000], taken[SECONDS][9400];
    long long seconds;
    unsigned number;
    int after_seconds, before_number;
    snprintf(folder, sizeof folder, "%s", support_path("taken"));
    clt_events *first = open_events(folder), *second;
    const char *path = only_file(folder), *name = strrchr(path, '/');
    assert_int_equal(sscanf(name, "/events.out.tfevents.%lld%n", &seconds, &after_seconds), 1);
    before_number = (int)(strrchr(name, '.') - name) + 1;
    assert_int_equal(sscanf(name + before_number, "%u", &number), 1);
    for (int i = 0; i < SECONDS; i++) {
        snprintf(taken[i], sizeof taken[i], "%s/events.out.tfevents.%010lld%.*s%u", folder, seconds + i, before_number - after_seconds,
                 name + after_seconds, number + 1);
        support_write(taken[i], "mine", 4);
    }
    second = open_events(folder);
    for (int i = 0; i < SECONDS; i++) {
        struct stat facts;
        assert_int_equal(stat(taken[i], &facts), 0);
        assert_int_equal(facts.st_size, 4);
    }
    assert_ok(clt_events_close(first));
    assert_ok(clt_events_close(second));
    (void)state;
}

static void scalars_are_f32(void **state) {
    static const double values[] = {0.1, -0.0, 1e300, NAN, -INFINITY, 1e-40, FLT_MAX};
    static const int64_t steps[] = {0, 1, -1, INT64_MAX, INT64_MIN, 127, 128};
    const char *folder = support_path("scalars");
    clt_events *events = open_events(folder);
    for (size_t i = 0; i < CLT_COUNT_OF(values); i++) assert_ok(clt_events_scalar(events, "loss/träin", steps[i], values[i]));
    assert_ok(clt_events_flush(events));
    part file = read_whole(folder), left = file, data;
    assert_true(next_record(&left, &data));
    for (size_t i = 0; i < CLT_COUNT_OF(values); i++) {
        assert_true(next_record(&left, &data));
        part value = inner(inner(data, EVENT_SUMMARY), SUMMARY_VALUE);
        assert_true((int64_t)number_in(data, EVENT_STEP) == steps[i]);
        assert_text(inner(value, VALUE_TAG), "loss/träin");
        float got = as_float(inner(value, VALUE_SIMPLE), 0), wanted = (float)values[i];
        assert_true(isnan(wanted) ? isnan(got) : got == wanted && !signbit(got) == !signbit(wanted));
    }
    assert_int_equal(left.length, 0);
    release(file);
    assert_ok(clt_events_close(events));
    (void)state;
}

static void texts_are_tensors(void **state) {
    const char *folder = support_path("texts");
    clt_events *events = open_events(folder);
    assert_ok(clt_events_text(events, "notes", 3, "## über\n"));
    part file = read_whole(folder), value = value_of(file, 0), plugin = inner(inner(value, VALUE_METADATA), METADATA_PLUGIN);
    assert_text(inner(plugin, PLUGIN_NAME), "text");
    assert_int_equal(number_in(inner(value, VALUE_TENSOR), TENSOR_DTYPE), DTYPE_STRING);
    assert_text(inner(inner(value, VALUE_TENSOR), TENSOR_STRINGS), "## über\n");
    release(file);
    assert_ok(clt_events_close(events));
    (void)state;
}

static part write_histogram(const char *folder, const float *values, size_t n) {
    clt_events *events = open_events(folder);
    assert_ok(clt_events_histogram(events, "w", 1, values, n));
    assert_ok(clt_events_close(events));
    return read_whole(folder);
}

static void histograms_count_all(void **state) {
    enum { N = 10000 };
    static float values[N];
    static uint8_t noise[N];
    double sum = 0, squares = 0, counted = 0;
    fill_with_noise(noise, sizeof noise);
    for (int i = 0; i < N; i++) values[i] = ((float)noise[i] - 100.1f) / 255.0f * (i % 7 ? (float)i : 1e-6f);
    for (int i = 0; i < N; i++) sum += values[i], squares += (double)values[i] * values[i];
    part file = write_histogram(support_path("histogram"), values, N), h = inner(value_of(file, 0), VALUE_HISTOGRAM);
    part limits = inner(h, HISTOGRAM_LIMITS), buckets = inner(h, HISTOGRAM_BUCKETS);
    size_t n = buckets.length / 8;
    assert_int_equal(limits.length, buckets.length);
    assert_true(as_double(buckets, 0) > 0 && as_double(buckets, n - 1) > 0);
    assert_true(as_double(inner(h, HISTOGRAM_SUM), 0) == sum && as_double(inner(h, HISTOGRAM_SQUARES), 0) == squares);
    for (size_t b = 0; b < n; b++) {
        double below = b ? as_double(limits, b - 1) : -DBL_MAX, above = as_double(limits, b), count = 0;
        for (int i = 0; i < N; i++) count += values[i] >= below && values[i] < above;
        assert_true(as_double(buckets, b) == count);
        assert_false(b && count == 0 && as_double(buckets, b - 1) == 0);
        counted += count;
    }
    assert_true(counted == N && as_double(inner(h, HISTOGRAM_NUM), 0) == N);
    release(file);
    (void)state;
}

static void histograms_have_tensorflows_limits(void **state) {
    static const float values[] = {0, 5e-13f, 1, FLT_MAX, -FLT_MAX};
    part file = write_histogram(support_path("limits"), values, CLT_COUNT_OF(values)), h = inner(value_of(file, 0), VALUE_HISTOGRAM);
    part limits = inner(h, HISTOGRAM_LIMITS), buckets = inner(h, HISTOGRAM_BUCKETS);
    static const double counts[] = {1, 0, 2, 0, 1, 0, 1};
    double v = 1e-12, last = v;
    while (v < 1e20) last = v, v *= 1.1;
    assert_int_equal(buckets.length, sizeof counts);
    for (size_t i = 0; i < CLT_COUNT_OF(counts); i++) assert_true(as_double(buckets, i) == counts[i]);
    assert_true(as_double(limits, 0) == -last && as_double(limits, 1) == 0 && as_double(limits, 2) == 1e-12);
    assert_true(as_double(limits, 4) > 1 && as_double(limits, 4) <= 1.1 * as_double(limits, 3) * (1 + 1e-15) && as_double(limits, 3) <= 1);
    assert_true(as_double(limits, 5) == last && as_double(limits, 6) == DBL_MAX);
    assert_true(as_double(inner(h, HISTOGRAM_MIN), 0) == -FLT_MAX && as_double(inner(h, HISTOGRAM_MAX), 0) == FLT_MAX);
    release(file);
    (void)state;
}

static void histograms_leave_out_what_is_not_finite(void **state) {
    part file = write_histogram(support_path("nonfinite"), (float[]){NAN, 2, INFINITY, 3, -INFINITY}, 5);
    part h = inner(value_of(file, 0), VALUE_HISTOGRAM);
    assert_true(as_double(inner(h, HISTOGRAM_NUM), 0) == 2 && as_double(inner(h, HISTOGRAM_SUM), 0) == 5);
    assert_true(as_double(inner(h, HISTOGRAM_MIN), 0) == 2 && as_double(inner(h, HISTOGRAM_MAX), 0) == 3);
    assert_text(inner(value_of(file, 1), VALUE_TAG), "w/nonfinite");
    assert_true(as_float(inner(value_of(file, 1), VALUE_SIMPLE), 0) == 3);
    release(file);
    file = write_histogram(support_path("none-finite"), (float[]){NAN}, 1);
    h = inner(value_of(file, 0), VALUE_HISTOGRAM);
    assert_true(as_double(inner(h, HISTOGRAM_NUM), 0) == 0 && inner(h, HISTOGRAM_LIMITS).length == 0);
    assert_true(as_float(inner(value_of(file, 1), VALUE_SIMPLE), 0) == 1);
    release(file);
    file = write_histogram(support_path("finite"), (float[]){1}, 1);
    assert_null(value_of(file, 1).bytes);
    release(file);
    (void)state;
}

static void images_are_png(void **state) {
    enum { HEIGHT = 5, WIDTH = 7 };
    for (int channels = 1; channels <= 3; channels += 2) {
        uint8_t pixels[HEIGHT * WIDTH * 3], rows[HEIGHT * (WIDTH * 3 + 1)];
        const char *folder = support_path(channels == 1 ? "gray" : "rgb");
        clt_events *events = open_events(folder);
        for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * 37);
        assert_ok(clt_events_image(events, "i", 0, pixels, HEIGHT, WIDTH, channels));
        assert_ok(clt_events_close(events));
        part file = read_whole(folder), image = inner(value_of(file, 0), VALUE_IMAGE), png = inner(image, IMAGE_ENCODED);
        assert_int_equal(number_in(image, IMAGE_HEIGHT), HEIGHT);
        assert_int_equal(number_in(image, IMAGE_WIDTH), WIDTH);
        assert_int_equal(number_in(image, IMAGE_COLORSPACE), channels);
        assert_memory_equal(png.bytes, "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\7\0\0\0\5\x08", 25);
        assert_int_equal(png.bytes[25], channels == 1 ? 0 : 2);
        uLongf length = sizeof rows;
        size_t row = (size_t)WIDTH * (size_t)channels;
        assert_memory_equal(png.bytes + 37, "IDAT", 4);
        assert_int_equal(uncompress(rows, &length, png.bytes + 41, png.length - 41 - 16), Z_OK);
        assert_int_equal(length, HEIGHT * (row + 1));
        for (size_t y = 0; y < HEIGHT; y++) assert_memory_equal(rows + y * (row + 1) + 1, pixels + y * row, row);
        assert_memory_equal(png.bytes + png.length - 12, "\0\0\0\0IEND\xae\x42\x60\x82", 12);
        release(file);
    }
    (void)state;
}

static void curves_count_at_thresholds(void **state) {
    enum { N = 3000 };
    static float scores[N];
    static uint8_t labels[N];
    static const int thresholds[] = {2, 3, 11, 23, 201, 1000};
    static const float special[] = {-1, NAN, 0, -0.0f, 1, 2, INFINITY, -INFINITY, 0.1f, 0.7f, 0.9f};
    for (int i = 0; i < N; i++) labels[i] = i % 3 == 0 ? 7 : 0, scores[i] = (float)((i * 7919) % 1000) / 999.0f;
    for (int i = 0; i < N; i += 2) scores[i] = (float)(i % 23) / 22.0f; /* thresholds, whose products are rounded down in part */
    for (int i = 0; i < N; i += 4) scores[i] = nextafterf(scores[i], 0);
    memcpy(scores, special, sizeof special);
    for (size_t t = 0; t < CLT_COUNT_OF(thresholds); t++) {
        char name[32];
        int count = thresholds[t];
        snprintf(name, sizeof name, "curve-%d", count);
        const char *folder = support_path(name);
        clt_events *events = open_events(folder);
        assert_ok(clt_events_pr_curve(events, "pr", 4, labels, scores, N, count));
        assert_ok(clt_events_close(events));
        part file = read_whole(folder), value = value_of(file, 0), tensor = inner(value, VALUE_TENSOR);
        part plugin = inner(inner(value, VALUE_METADATA), METADATA_PLUGIN);
        part got = inner(tensor, TENSOR_CONTENT), shape = inner(tensor, TENSOR_SHAPE);
        assert_text(inner(plugin, PLUGIN_NAME), "pr_curves");
        assert_int_equal(number_in(inner(plugin, PLUGIN_CONTENT), 2), count);
        assert_int_equal(number_in(field(shape, SHAPE_DIM, 0, NULL), DIM_SIZE), 6);
        assert_int_equal(number_in(field(shape, SHAPE_DIM, 1, NULL), DIM_SIZE), count);
        assert_int_equal(got.length, 24 * count);
        for (int k = 0; k < count; k++) {
            float threshold = (float)k / (float)(count - 1), c[2][2] = {{0, 0}, {0, 0}};
            for (int i = 0; i < N; i++) c[scores[i] >= threshold][labels[i] != 0]++;
            float wanted[6] = {c[1][1], c[1][0], c[0][0], c[0][1], c[1][1] / fmaxf(1, c[1][1] + c[1][0]), c[1][1] / fmaxf(1, c[1][1] + c[0][1])};
            for (int row = 0; row < 6; row++) assert_true(fabsf(as_float(got, (size_t)(row * count + k)) - wanted[row]) <= (row < 4 ? 0.0f : 1e-6f));
        }
        release(file);
    }
    (void)state;
}

static void hparams_are_in_metadata(void **state) {
    const char *folder = support_path("hparams");
    clt_events *events = open_events(folder);
    clt_hparam hparams[] = {{.name = "lr", .number = 0.5}, {.name = "optimizer", .text = "adam"}};
    const char *metrics[] = {"loss"};
    assert_ok(clt_events_hparams(events, hparams, 2, metrics, 1));
    part file = read_whole(folder);
    for (int i = 0; i < 2; i++) {
        part plugin = inner(inner(value_of(file, i), VALUE_METADATA), METADATA_PLUGIN), content = inner(plugin, PLUGIN_CONTENT);
        assert_text(inner(value_of(file, i), VALUE_TAG), i ? "_hparams_/session_start_info" : "_hparams_/experiment");
        assert_text(inner(plugin, PLUGIN_NAME), "hparams");
        part list = inner(content, i ? 3 : 2);
        assert_text(inner(field(list, i ? 1 : 4, 1, NULL), 1), "optimizer");
        if (i) assert_text(inner(inner(field(list, 1, 1, NULL), 2), 3), "adam");
        if (i) assert_true(as_double(inner(inner(field(list, 1, 0, NULL), 2), 2), 0) == 0.5);
        if (!i) assert_text(inner(inner(inner(list, 5), 1), 2), "loss");
    }
    release(file);
    assert_ok(clt_events_session_end(events, true));
    assert_ok(clt_events_close(events));
    (void)state;
}

/* ---- what is refused, and what fails ---- */

static const char *name_of(part node) {
    static char names[8][64];
    static int next;
    part name = inner(node, 1);
    char *text = names[next++ % 8];
    assert_true(name.length < sizeof names[0]);
    memcpy(text, name.bytes, name.length);
    text[name.length] = 0;
    return text;
}

/* Boxes by the names of parameters; further results by their number; what the result does not depend on is left out. */
static void graphs_have_boxes_for_layers(void **state) {
    clt_graph *graph;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3)), *h = clt_relu(clt_linear(x, "block.0.fc", 4));
    clt_linear(x, "unread", 5);
    assert_ok(clt_graph_status(graph));
    clt_events *events = open_events(support_path("graph"));
    assert_ok(clt_events_graph(events, h));
    assert_ok(clt_events_close(events));
    part file = read_whole(support_path("graph")), rest = file, data;
    assert_true(next_record(&rest, &data) && next_record(&rest, &data));
    part content = inner(data, 4);
    static const char *const names[] = {"x", "block/0/fc/weight", "block/0/fc/bias"};
    int n = 0, boxed = 0;
    for (part node; (node = field(content, 1, n, NULL)).bytes; n++) {
        if (n < 3) assert_string_equal(name_of(node), names[n]);
        boxed += !strncmp(name_of(node), "block/0/fc/", 11);
        assert_null(strstr(name_of(node), "unread"));
        for (int k = 0; field(node, 3, k, NULL).bytes; k++) { /* operands are nodes */
            part operand = field(node, 3, k, NULL);
            bool found = false;
            for (int i = 0; i < n; i++) {
                part name = inner(field(content, 1, i, NULL), 1);
                found |= name.length == operand.length && !memcmp(name.bytes, operand.bytes, name.length);
            }
            assert_true(found);
        }
        part shape = inner(inner(inner(inner(node, 5), 2), 1), 7);
        assert_int_equal(number_in(field(shape, 2, 0, NULL), 1), n == 0 ? 2 : n <= 2 ? 4 : 2);
    }
    assert_int_equal(boxed, n - 1); /* the ReLU lies in the box of what it reads */
    assert_true(n >= 5);
    release(file);
    assert_status(clt_events_graph(NULL, h), CLT_E_INVALID);
    assert_status(clt_events_graph(events, NULL), CLT_E_INVALID);
    clt_graph_destroy(graph);
    (void)state;
}

static void refuses_bad_arguments(void **state) {
    const char *folder = support_path("bad");
    clt_events *events = NULL, *e = open_events(folder);
    const uint8_t pixel[3] = {0};
    const float one[] = {1};
    const char *no_metric[] = {NULL}, *bad_metric[] = {"\xff"};
    assert_status(clt_events_open(NULL, folder), CLT_E_INVALID);
    assert_status(clt_events_open(&events, NULL), CLT_E_INVALID);
    assert_status(clt_events_scalar(NULL, "x", 0, 1), CLT_E_INVALID);
    assert_status(clt_events_scalar(e, NULL, 0, 1), CLT_E_INVALID);
    assert_status(clt_events_scalar(e, "", 0, 1), CLT_E_INVALID);
    assert_detail("clt_events_scalar: the tag is empty");
    assert_status(clt_events_scalar(e, "a\xc0\x80", 0, 1), CLT_E_INVALID);
    assert_detail("not UTF-8");
    assert_status(clt_events_scalar(e, "\xed\xa0\x80", 0, 1), CLT_E_INVALID);
    assert_status(clt_events_text(e, "x", 0, NULL), CLT_E_INVALID);
    assert_status(clt_events_text(e, "x", 0, "\x80"), CLT_E_INVALID);
    assert_status(clt_events_histogram(e, "x", 0, NULL, 1), CLT_E_INVALID);
    assert_status(clt_events_histogram(e, "x", 0, one, 0), CLT_E_INVALID);
    assert_status(clt_events_image(e, "x", 0, NULL, 1, 1, 1), CLT_E_INVALID);
    assert_status(clt_events_image(e, "x", 0, pixel, 1, 1, 2), CLT_E_INVALID);
    assert_status(clt_events_image(e, "x", 0, pixel, 0, 1, 1), CLT_E_RANGE);
    assert_status(clt_events_image(e, "x", 0, pixel, 1, -1, 1), CLT_E_RANGE);
    assert_status(clt_events_image(e, "x", 0, pixel, INT32_MAX, INT32_MAX, 3), CLT_E_RANGE);
    assert_status(clt_events_pr_curve(e, "x", 0, NULL, one, 1, 2), CLT_E_INVALID);
    assert_status(clt_events_pr_curve(e, "x", 0, pixel, NULL, 1, 2), CLT_E_INVALID);
    assert_status(clt_events_pr_curve(e, "x", 0, pixel, one, 0, 2), CLT_E_INVALID);
    assert_status(clt_events_pr_curve(e, "x", 0, pixel, one, 1, 1), CLT_E_RANGE);
    assert_status(clt_events_pr_curve(e, "x", 0, pixel, one, 1, 65537), CLT_E_RANGE);
    assert_status(clt_events_hparams(NULL, NULL, 0, NULL, 0), CLT_E_INVALID);
    assert_status(clt_events_hparams(e, NULL, 1, NULL, 0), CLT_E_INVALID);
    assert_status(clt_events_hparams(e, NULL, 0, NULL, 1), CLT_E_INVALID);
    assert_status(clt_events_hparams(e, NULL, 0, no_metric, 1), CLT_E_INVALID);
    assert_status(clt_events_hparams(e, NULL, 0, bad_metric, 1), CLT_E_INVALID);
    assert_status(clt_events_hparams(e, (clt_hparam[]){{.name = ""}}, 1, NULL, 0), CLT_E_INVALID);
    assert_status(clt_events_hparams(e, (clt_hparam[]){{.name = "a", .text = "\xff"}}, 1, NULL, 0), CLT_E_INVALID);
    assert_status(clt_events_hparams(e, (clt_hparam[]){{.name = "a", .number = NAN}}, 1, NULL, 0), CLT_E_RANGE);
    assert_status(clt_events_hparams(e, (clt_hparam[]){{.name = "a"}, {.name = "a"}}, 2, NULL, 0), CLT_E_INVALID);
    assert_status(clt_events_session_end(NULL, true), CLT_E_INVALID);
    assert_status(clt_events_flush(NULL), CLT_E_INVALID);
    assert_ok(clt_events_close(NULL));
    assert_ok(clt_events_close(e));
    part file = read_whole(folder);
    assert_int_equal(count_records(file), 1);
    release(file);
    (void)state;
}

static void names_the_folder_that_cannot_be_made(void **state) {
    clt_events *events = NULL;
    const char *path = write_text("a-file", "x");
    char below[9000];
    snprintf(below, sizeof below, "%s/folder", path);
    assert_status(clt_events_open(&events, below), CLT_E_IO);
    assert_detail(below);
    assert_status(clt_events_open(&events, path), CLT_E_IO); /* a file where the folder is to be */
    assert_detail(path);
    assert_status(clt_events_open(&events, ""), CLT_E_IO);
    assert_status(clt_events_open(&events, "/proc/no"), CLT_E_IO);
    assert_null(events);
    (void)state;
}

static clt_status write_all_kinds(clt_events *e) {
    static const float values[] = {1, NAN, 0.25f};
    static const uint8_t bytes[] = {0, 1, 2};
    const char *metrics[] = {"loss"};
    CLT_TRY(clt_events_scalar(e, "a", 1, 2));
    CLT_TRY(clt_events_text(e, "b", 1, "text"));
    CLT_TRY(clt_events_histogram(e, "c", 1, values, 3));
    CLT_TRY(clt_events_image(e, "d", 1, bytes, 1, 1, 3));
    CLT_TRY(clt_events_pr_curve(e, "e", 1, bytes, values, 3, 3));
    CLT_TRY(clt_events_hparams(e, (clt_hparam[]){{.name = "lr", .number = 1}, {.name = "o", .text = "sgd"}}, 2, metrics, 1));
    return clt_events_session_end(e, false);
}

static void survives_failing_memory(void **state) {
    enum { RECORDS = 8 };
    long at = 0;
    for (;; at++) {
        char name[32];
        snprintf(name, sizeof name, "memory-%ld", at);
        const char *folder = support_path(name);
        clt_events *events = NULL;
        watch_begin(at);
        clt_status status = clt_events_open(&events, folder);
        if (status == CLT_OK) status = write_all_kinds(events);
        watch_fail_at = -1;
        if (events) assert_ok(clt_events_scalar(events, "after", 0, 0));
        assert_ok(clt_events_close(events));
        watch_end();
        if (events) {
            part file = read_whole(folder), left = file, data;
            int count = 0;
            while (next_record(&left, &data)) count++;
            assert_int_equal(left.length, 0);
            assert_true(status == CLT_OK ? count == RECORDS + 1 : count <= RECORDS);
            release(file);
        }
        if (status == CLT_OK) break;
        assert_int_equal(status, CLT_E_NO_MEMORY);
    }
    assert_true(at > 20);
    (void)state;
}

/* What fits stays whole; what does not is taken off, and there is room for something smaller. */
static void a_full_disk_leaves_whole_records(void **state) {
    const char *folder = support_path("full");
    clt_events *events = open_events(folder);
    struct rlimit old, limit;
    char text[1000];
    memset(text, 'x', sizeof text - 1), text[999] = 0;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old, limit.rlim_cur = 2500;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    clt_status status[5] = {clt_events_text(events, "t", 0, text), clt_events_text(events, "t", 1, text), clt_events_text(events, "t", 2, text)};
    char path[9000];
    snprintf(path, sizeof path, "%s", only_file(folder));
    assert_detail(path);
    assert_detail(strerror(EFBIG));
    status[3] = clt_events_scalar(events, "s", 2, 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    status[4] = clt_events_text(events, "t", 3, text);
    for (int i = 0; i < 5; i++) assert_int_equal(status[i], i == 2 ? CLT_E_IO : CLT_OK);
    assert_ok(clt_events_close(events));
    part file = read_whole(folder), left = file, data;
    int count = 0;
    while (next_record(&left, &data)) count++;
    assert_int_equal(count, 5);
    assert_int_equal(left.length, 0);
    release(file);
    (void)state;
}

/* The descriptor of the only file in the folder. */
static int descriptor_of(const char *folder) {
    struct stat wanted, facts;
    assert_int_equal(stat(only_file(folder), &wanted), 0);
    for (int file = 3; file < 256; file++)
        if (!fstat(file, &facts) && facts.st_ino == wanted.st_ino && facts.st_dev == wanted.st_dev) return file;
    fail_msg("the file is not open");
    return -1;
}

static void a_device_without_room_is_an_error(void **state) {
    const char *folder = support_path("dev-full");
    clt_events *events = open_events(folder);
    int file = descriptor_of(folder), full = open("/dev/full", O_WRONLY);
    assert_true(full >= 0 && dup2(full, file) == file);
    close(full);
    for (int i = 0; i < 2; i++) {
        assert_status(clt_events_scalar(events, "x", i, 1), CLT_E_IO);
        assert_detail(strerror(ENOSPC));
        assert_detail(only_file(folder));
    }
    assert_ok(clt_events_flush(events)); /* nor is it a file of which fsync knows */
    assert_ok(clt_events_close(events));
    (void)state;
}

static void interrupt(int signal) {
    (void)signal;
}

/* Where a part cannot be taken off, as from a pipe, nothing is written behind it. */
static void nothing_follows_a_torn_record(void **state) {
    enum { SIDE = 300 };
    static uint8_t pixels[SIDE * SIDE * 3];
    const char *folder = support_path("torn");
    clt_events *events = open_events(folder);
    int file = descriptor_of(folder), ends[2];
    fill_with_noise(pixels, sizeof pixels);
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    assert_int_equal(dup2(ends[1], file), file);
    close(ends[1]);
    assert_status(clt_events_image(events, "i", 0, pixels, SIDE, SIDE, 3), CLT_E_IO);
    assert_detail(strerror(EAGAIN));
    while (read(ends[0], pixels, sizeof pixels) > 0) {}
    assert_status(clt_events_scalar(events, "x", 0, 1), CLT_E_IO);
    assert_detail("cannot be taken off");
    assert_ok(clt_events_close(events));
    close(ends[0]);
    (void)state;
}

/* The reader of a pipe that is slow, in a process of its own: gives 0 if it got whole records. */
static void read_slowly(int from) {
    static unsigned char bytes[1 << 20];
    size_t length = 0;
    for (ssize_t n; (n = read(from, bytes + length, 10000)) != 0;) {
        if (n > 0) length += (size_t)n;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    part left = {bytes, length}, data;
    int count = 0;
    while (next_record(&left, &data)) count++;
    _exit(count == 2 && left.length == 0 ? 0 : 1);
}

static void interrupted_writes_go_on(void **state) {
    enum { SIDE = 300 };
    static uint8_t pixels[SIDE * SIDE * 3];
    const char *folder = support_path("interrupted");
    clt_events *events = open_events(folder);
    int file = descriptor_of(folder), ends[2], status;
    fill_with_noise(pixels, sizeof pixels);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(dup2(ends[1], file), file);
    close(ends[1]);
    pid_t child = fork();
    if (child == 0) {
        close(file);
        read_slowly(ends[0]);
    }
    close(ends[0]);
    struct sigaction action = {.sa_handler = interrupt};
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &(struct itimerval){{0, 1500}, {0, 1500}}, NULL), 0);
    clt_status first = clt_events_image(events, "i", 0, pixels, SIDE, SIDE, 3), second = clt_events_scalar(events, "x", 0, 1);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    assert_ok(first);
    assert_ok(second);
    assert_ok(clt_events_close(events));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    (void)state;
}

static void a_file_that_is_cut_keeps_what_is_before(void **state) {
    const char *folder = support_path("cut");
    clt_events *events = open_events(folder);
    assert_ok(write_all_kinds(events));
    assert_ok(clt_events_close(events));
    part file = read_whole(folder), left = file, data;
    size_t ends[16];
    int records = 0;
    while (next_record(&left, &data)) ends[records++] = file.length - left.length;
    assert_int_equal(records, 8);
    for (size_t length = 0; length <= file.length; length++) {
        int whole = 0;
        while (whole < records && ends[whole] <= length) whole++;
        unsigned char *copy = malloc(length + 1); /* so that a sanitizer sees what is read behind it */
        memcpy(copy, file.bytes, length);
        assert_int_equal(count_records((part){copy, length}), whole);
        free(copy);
    }
    release(file);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_is_castagnolis),
        cmocka_unit_test(messages_have_known_bytes),
        cmocka_unit_test(begins_with_its_version),
        cmocka_unit_test(each_has_a_file_of_its_own),
        cmocka_unit_test(no_file_is_replaced),
        cmocka_unit_test(scalars_are_f32),
        cmocka_unit_test(texts_are_tensors),
        cmocka_unit_test(histograms_count_all),
        cmocka_unit_test(histograms_have_tensorflows_limits),
        cmocka_unit_test(histograms_leave_out_what_is_not_finite),
        cmocka_unit_test(images_are_png),
        cmocka_unit_test(curves_count_at_thresholds),
        cmocka_unit_test(hparams_are_in_metadata),
        cmocka_unit_test(graphs_have_boxes_for_layers),
        cmocka_unit_test(refuses_bad_arguments),
        cmocka_unit_test(names_the_folder_that_cannot_be_made),
        cmocka_unit_test(survives_failing_memory),
        cmocka_unit_test(a_full_disk_leaves_whole_records),
        cmocka_unit_test(a_device_without_room_is_an_error),
        cmocka_unit_test(nothing_follows_a_torn_record),
        cmocka_unit_test(interrupted_writes_go_on),
        cmocka_unit_test(a_file_that_is_cut_keeps_what_is_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
