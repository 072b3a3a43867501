/* Folders of images, and what becomes of their files. Whether the pixels are those of Pillow is compare_images.py's matter. */
#include "tests/data/files.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cltrain/data.h>
#include <cltrain/preprocessing.h>

#include "runtime/data/images/augment.h"

#ifdef CLT_WITH_JPEG
#include <jpeglib.h>
#endif

#if defined CLT_WITH_JPEG && defined CLT_WITH_PNG

/* ---- files ---- */

static uint8_t pixel(int x, int y, int c) {
    return (uint8_t)(x * 7 + y * 5 + c * 60);
}

static const char *make_folder(const char *name) {
    const char *path = support_path(name);
    if (mkdir(path, 0777) != 0) fail_msg("cannot make %s", path);
    return path;
}

static size_t put_chunk(unsigned char *to, const char *type, const void *data, size_t length) {
    big_endian(to, (uint32_t)length);
    memcpy(to + 4, type, 4);
    if (length) memcpy(to + 8, data, length);
    big_endian(to + 8 + length, (uint32_t)crc32(0, to + 4, (unsigned)length + 4));
    return length + 12;
}

/* A PNG file RGB; the header may tell of another size. Its bytes. */
static size_t make_png(unsigned char *file, int width, int height, uint32_t told) {
    static unsigned char rows[1 << 20], packed[1 << 20];
    unsigned char header[13] = {0};
    size_t used = 0, length = 8;
    uLongf packed_bytes = sizeof packed;
    for (int y = 0; y < height; y++) {
        rows[used++] = 0;
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++) rows[used++] = pixel(x, y, c);
    }
    assert_int_equal(compress(packed, &packed_bytes, rows, used), Z_OK);
    big_endian(header, told ? told : (uint32_t)width);
    big_endian(header + 4, told ? told : (uint32_t)height);
    header[8] = 8, header[9] = 2;
    memcpy(file, "\x89PNG\r\n\x1a\n", 8);
    length += put_chunk(file + length, "IHDR", header, sizeof header);
    length += put_chunk(file + length, "IDAT", packed, packed_bytes);
    return length + put_chunk(file + length, "IEND", NULL, 0);
}

static unsigned char file[1 << 20];

static void write_png(const char *name, int width, int height) {
    write_bytes(name, file, make_png(file, width, height, 0));
}

/* The bytes of a JPEG file, of as many scans as the format has for it where it is progressive. */
static size_t make_jpeg(int width, int height, bool progressive) {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL, row[3 * 2048];
    unsigned long length = 0;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &bytes, &length);
    jpeg.image_width = (JDIMENSION)width, jpeg.image_height = (JDIMENSION)height, jpeg.input_components = 3, jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    if (progressive) jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    for (int y = 0; y < height; y++) {
        JSAMPROW rows[] = {row};
        for (int i = 0; i < 3 * width; i++) row[i] = (unsigned char)(128 + 100 * sin(0.05 * (i / 3 + i % 3 * 20)) * cos(0.04 * y));
        jpeg_write_scanlines(&jpeg, rows, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    assert_true(length <= sizeof file);
    memcpy(file, bytes, length);
    free(bytes);
    return length;
}

static void write_jpeg(const char *name, int width, int height, bool progressive) {
    write_bytes(name, file, make_jpeg(width, height, progressive));
}

/* ---- one image ---- */

static clt_image_box all_of_it(void *user, int width, int height) {
    (void)user;
    return (clt_image_box){.width = width, .height = height, .reduction = 1};
}

static clt_image_box the_same(void *user, int width, int height) {
    (void)width, (void)height;
    return *(const clt_image_box *)user;
}

static void png_pixels_are_the_file_s(void **state) {
    clt_image image;
    size_t length = make_png(file, 37, 21, 0);
    clt_image_box box = {.x = 5, .y = 3, .width = 11, .height = 8, .reduction = 4};
    assert_ok(clt_image_decode(&image, file, length, the_same, &box));
    assert_true(image.x == 5 && image.y == 3 && image.width == 11 && image.height == 8 && image.reduction == 1 && image.whole_width == 37);
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 11; x++)
            for (int c = 0; c < 3; c++) assert_int_equal(image.rgb[(y * 11 + x) * 3 + c], pixel(x + 5, y + 3, c));
    clt_free(image.rgb);
    (void)state;
}

/* A part of a JPEG file has the pixels that all of it has there. */
static void jpeg_parts_are_those_of_the_whole(void **state) {
    for (int progressive = 0; progressive < 2; progressive++) {
        clt_image whole, part;
        size_t length = make_jpeg(203, 131, progressive);
        assert_ok(clt_image_decode(&whole, file, length, all_of_it, NULL));
        assert_true(whole.width == 203 && whole.height == 131);
        for (int i = 0; i < 40; i++) {
            clt_image_box box = {.x = i * 29 % 150, .y = i * 17 % 100, .width = 1 + i * 13 % 53, .height = 1 + i * 7 % 31, .reduction = 1};
            assert_ok(clt_image_decode(&part, file, length, the_same, &box));
            assert_true(part.x <= box.x && part.x + part.width >= box.x + box.width);
            assert_true(part.y <= box.y && part.y + part.height >= box.y + box.height);
            for (int y = box.y; y < box.y + box.height; y++)
                assert_memory_equal(part.rgb + 3 * ((y - part.y) * part.width + box.x - part.x), whole.rgb + 3 * (y * 203 + box.x), 3 * (size_t)box.width);
            clt_free(part.rgb);
        }
        clt_free(whole.rgb);
    }
    (void)state;
}

static void jpeg_becomes_smaller(void **state) {
    size_t length = make_jpeg(320, 200, false);
    for (int reduction = 1; reduction <= 8; reduction *= 2) {
        clt_image image;
        clt_image_box box = {.width = 320, .height = 200, .reduction = reduction};
        assert_ok(clt_image_decode(&image, file, length, the_same, &box));
        assert_true(image.reduction == reduction && image.width == 320 / reduction && image.height == 200 / reduction);
        for (int i = 0; i < 5; i++) { /* smooth: a pixel is about what lies there in the whole */
            int x = i * 7 * 8 / reduction, y = i * 4 * 8 / reduction;
            double wanted = 128 + 100 * sin(0.05 * ((x + 0.5) * reduction)) * cos(0.04 * (y + 0.5) * reduction);
            assert_true(fabs(image.rgb[3 * (y * image.width + x)] - wanted) < 25);
        }
        clt_free(image.rgb);
    }
    (void)state;
}

/* Wherever a file ends early, and whatever byte is another: an error, or pixels; never more. */
static void damaged_files_are_errors(void **state) {
    clt_image image;
    for (int kind = 0; kind < 3; kind++) {
        size_t length = kind == 0 ? make_png(file, 40, 30, 0) : make_jpeg(40, 30, kind == 2);
        for (size_t n = 0; n < length - 2; n += 1 + n / 40) {
            clt_status status = clt_image_decode(&image, file, n, all_of_it, NULL);
            if (status == CLT_OK) assert_true(n + 20 > length); /* all pixels were there */
            else assert_int_equal(status, CLT_E_FORMAT);
            clt_free(image.rgb);
        }
        for (size_t at = 2; at < length; at++) {
            unsigned char kept = file[at];
            file[at] ^= 0x55;
            clt_image_decode(&image, file, length, all_of_it, NULL);
            clt_free(image.rgb);
            file[at] = kept;
        }
    }
    assert_status(clt_image_decode(&image, "GIF89a", 6, all_of_it, NULL), CLT_E_FORMAT);
    assert_detail("expected JPEG or PNG");
    (void)state;
}

/* A few bytes that tell of 3.6 thousand million pixels take no memory. */
static void bombs_are_refused(void **state) {
    clt_image image;
    size_t length = make_png(file, 8, 8, 60000);
    watch_begin(-1);
    assert_status(clt_image_decode(&image, file, length, all_of_it, NULL), CLT_E_FORMAT);
    assert_true(watch_end() < 1 << 20);
    assert_detail("60000 x 60000 pixels");
    length = make_jpeg(16, 16, false);
    for (size_t i = 2; i + 9 < length; i++)
        if (file[i] == 0xff && file[i + 1] == 0xc0) memset(file + i + 5, 0xea, 4); /* height and width */
    watch_begin(-1);
    assert_status(clt_image_decode(&image, file, length, all_of_it, NULL), CLT_E_FORMAT);
    assert_true(watch_end() < 1 << 20);
    assert_detail("more than the 100 million");
    (void)state;
}

static void survives_failing_memory(void **state) {
    for (int kind = 0; kind < 2; kind++) {
        size_t length = kind ? make_jpeg(40, 30, false) : make_png(file, 40, 30, 0);
        clt_status status = CLT_E_NO_MEMORY;
        for (long at = 0; status != CLT_OK; at++) {
            clt_image image;
            watch_begin(at);
            status = clt_image_decode(&image, file, length, all_of_it, NULL);
            clt_free(image.rgb);
            watch_end();
            if (status != CLT_OK) assert_int_equal(status, CLT_E_NO_MEMORY);
        }
    }
    (void)state;
}

/* ---- changes ---- */

/* Areas of 0.08 to 1 evenly, shapes of 3:4 to 4:3, places anywhere. */
static void crops_are_distributed(void **state) {
    enum { N = 20000, W = 500, H = 375 };
    double area = 0, ratio = 0, left = 0;
    int small = 0;
    for (int i = 0; i < N; i++) {
        clt_random random;
        clt_random_init(&random, 7, (uint64_t)i);
        clt_image_box box = clt_augment_crop(&random, W, H);
        assert_true(box.x >= 0 && box.y >= 0 && box.x + box.width <= W && box.y + box.height <= H);
        double own = (double)box.width * box.height / (W * H), shape = (double)box.width / box.height;
        assert_true(own > 0.078 && own <= 1 && shape > 0.72 && shape < 1.39);
        area += own / N, ratio += log(shape) / N, small += own < 0.2;
        if (box.width < W) left += (double)box.x / (W - box.width) / N;
    }
    /* What torchvision 0.29's RandomResizedCrop.get_params gives: large areas of some shapes do not fit. */
    assert_true(fabs(area - 0.433) < 0.006 && fabs(ratio - 0.031) < 0.005);
    assert_true(fabs((double)small / N - 0.176) < 0.01 && fabs(left - 0.503) < 0.03);
    clt_random random;
    clt_random_init(&random, 1, 1);
    clt_image_box box = clt_augment_crop(&random, 1000, 10); /* nothing fits */
    assert_true(box.height == 10 && box.width == 13 && box.x == 493);
    (void)state;
}

static void jitter_and_erasing_change_what_they_say(void **state) {
    enum { SIZE = 32, PIXELS = SIZE * SIZE };
    uint8_t planes[3 * PIXELS], same[3 * PIXELS];
    int erased = 0;
    for (int i = 0; i < 3 * PIXELS; i++) same[i] = (uint8_t)(100 + i % 50);
    for (int seed = 0; seed < 200; seed++) {
        clt_random random;
        clt_random_init(&random, (uint64_t)seed, 0);
        memcpy(planes, same, sizeof same);
        clt_augment_jitter(&random, 0, planes, PIXELS);
        for (int i = 0; i < 3 * PIXELS; i++) assert_true(abs(planes[i] - same[i]) <= 1); /* factors of 1 */
        memcpy(planes, same, sizeof same);
        clt_augment_erase(&random, 0.5f, planes, SIZE);
        int changed = 0;
        for (int i = 0; i < 3 * PIXELS; i++) changed += planes[i] != same[i];
        assert_true(changed <= 0.4 * 3 * PIXELS);
        erased += changed > 0;
    }
    assert_true(erased > 70 && erased < 130);
    (void)state;
}

/* ---- folders ---- */

/* cat: 3 files, one in a folder of its own; dog: 2. And what is none of them. */
static const char *make_set(const char *name) {
    static char root[64];
    char path[128];
    static const char *const folders[] = {"", "/dog", "/cat", "/cat/more", "/.hidden"};
    static const char *const files[] = {"/dog/b.png", "/dog/a.PNG", "/cat/2.png", "/cat/10.png", "/cat/more/1.png"};
    snprintf(root, sizeof root, "%s", name);
    for (int i = 0; i < 5; i++) snprintf(path, sizeof path, "%s%s", root, folders[i]), make_folder(path);
    for (int i = 0; i < 5; i++) snprintf(path, sizeof path, "%s%s", root, files[i]), write_png(path, 40 + i, 30 + i);
    snprintf(path, sizeof path, "%s/cat/notes.txt", root), write_text(path, "no image");
    snprintf(path, sizeof path, "%s/README", root), write_text(path, "no class");
    return support_path(root);
}

static void a_folder_is_classes_of_files(void **state) {
    static const char *const names[] = {"cat/10.png", "cat/2.png", "cat/more/1.png", "dog/a.PNG", "dog/b.png"};
    clt_dataset *d = NULL;
    clt_preprocessing *facts = NULL;
    assert_ok(clt_dataset_image_folder(&d, make_set("set"), &(clt_image_folder_options){.size = 16}));
    assert_int_equal(clt_dataset_samples(d), 5);
    assert_int_equal(clt_dataset_classes(d), 2);
    assert_int_equal(clt_dataset_dtype(d, 0), CLT_U8);
    assert_int_equal(clt_dataset_shape(d, 0).dims[2], 16);
    assert_ok(clt_preprocessing_of(&facts, d));
    assert_string_equal(clt_preprocessing_class(facts, 1), "dog");
    uint8_t x[3 * 16 * 16];
    int32_t y;
    for (int64_t i = 0; i < 5; i++) {
        assert_string_equal(clt_dataset_sample_name(d, i), names[i]);
        assert_ok(clt_dataset_fetch(d, &(clt_sample){.index = i}, (void *[]){x, &y}));
        assert_int_equal(y, i > 2);
    }
    assert_null(clt_dataset_sample_name(d, 5));
    clt_dataset_destroy(d);
    /* Classes by the model's names, which may be others, in another order. */
    assert_ok(clt_dataset_image_folder(&d, support_path("set"), &(clt_image_folder_options){.size = 16, .like = facts, .floats = true}));
    float floats[3 * 16 * 16];
    assert_ok(clt_dataset_fetch(d, &(clt_sample){.index = 4}, (void *[]){floats, &y}));
    for (int i = 0; i < 3; i++) {
        static const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
        assert_true(fabs((double)floats[256 * i + 7] - (x[256 * i + 7] / 255.0 - mean[i]) / deviation[i]) < 1e-5);
    }
    clt_dataset_destroy(d);
    assert_ok(clt_dataset_image_folder(&d, support_path("set"), &(clt_image_folder_options){.no_label = true}));
    assert_int_equal(clt_dataset_fields(d), 1);
    assert_int_equal(clt_dataset_samples(d), 5);
    assert_int_equal(clt_dataset_shape(d, 0).dims[1], 224);
    clt_dataset_destroy(d);
    make_folder("set/owl");
    write_png("set/owl/1.png", 20, 20);
    assert_status(clt_dataset_image_folder(&d, support_path("set"), &(clt_image_folder_options){.like = facts}), CLT_E_MISMATCH);
    assert_detail("class 'owl': the classes of the model are cat, dog");
    clt_preprocessing_destroy(facts);
    (void)state;
}

/* Augmented, by any number of threads; other epochs and seeds have others. */
static void threads_do_not_change_a_pixel(void **state) {
    enum { BYTES = 3 * 24 * 24, N = 5 };
    static uint8_t wanted[3][N * BYTES];
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_image_folder(&d, make_set("threads"), &(clt_image_folder_options){.size = 24, .augment = true, .jitter = 0.3f, .erase = 0.5f}));
    for (int threads = 1; threads <= 8; threads++) {
        clt_loader *loader = NULL;
        clt_batch batch;
        assert_ok(clt_loader_create(&loader, d, &(clt_loader_options){.batch = 5, .threads = threads, .seed = threads == 8 ? 3 : 2}));
        for (int epoch = 0; epoch < 2; epoch++) {
            assert_ok(clt_loader_next(loader, &batch));
            if (threads == 1) memcpy(wanted[epoch], batch.fields[0].data, sizeof wanted[0]);
            else if (threads < 8) assert_memory_equal(batch.fields[0].data, wanted[epoch], sizeof wanted[0]);
            else assert_memory_not_equal(batch.fields[0].data, wanted[epoch], sizeof wanted[0]);
            assert_int_equal(clt_loader_next(loader, &batch), CLT_END);
        }
        clt_loader_destroy(loader);
    }
    for (int i = 0; i < N; i++) assert_memory_not_equal(wanted[0] + i * BYTES, wanted[1] + i * BYTES, BYTES);
    clt_dataset_destroy(d);
    (void)state;
}

static void refuses_bad_folders(void **state) {
    clt_dataset *d = NULL;
    char path[4096];
    assert_status(clt_dataset_image_folder(&d, support_path("nowhere"), NULL), CLT_E_IO);
    assert_detail("nowhere");
    make_folder("empty");
    assert_status(clt_dataset_image_folder(&d, support_path("empty"), NULL), CLT_E_FORMAT);
    assert_detail("no folder: expected one for each class");
    make_folder("empty/cl\nass");
    assert_status(clt_dataset_image_folder(&d, support_path("empty"), NULL), CLT_E_FORMAT);
    assert_detail("class 'cl\\x0aass' has no image");
    const char *root = make_set("links");
    snprintf(path, sizeof path, "%s/dog/in.png", root);
    assert_int_equal(symlink("b.png", path), 0);
    assert_ok(clt_dataset_image_folder(&d, root, NULL));
    assert_int_equal(clt_dataset_samples(d), 6);
    clt_dataset_destroy(d);
    static const struct {
        const char *to, *words;
    } bad[] = {{"/etc/hostname", "dog/out.png: a link that leads out of the folder"}, {"nothing", "dog/out.png: a link that leads nowhere"}, {"../cat", "dog/out.png: a link to a folder"}};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/dog/out.png", root);
        assert_int_equal(symlink(bad[i].to, path), 0);
        assert_status(clt_dataset_image_folder(&d, root, NULL), CLT_E_FORMAT);
        assert_detail(bad[i].words);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/dog/pipe.png", root);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_status(clt_dataset_image_folder(&d, root, NULL), CLT_E_FORMAT);
    assert_detail("dog/pipe.png: named as an image, but no regular file");
    unlink(path);
    snprintf(path, sizeof path, "%s/dog/pipe", root); /* which is no image's name */
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_ok(clt_dataset_image_folder(&d, root, NULL));
    clt_dataset_destroy(d);
    unlink(path);
    snprintf(path, sizeof path, "deep");
    make_folder(path);
    for (int i = 0; i < 40; i++) strcat(path, "/d"), make_folder(path);
    assert_status(clt_dataset_image_folder(&d, support_path("deep"), NULL), CLT_E_FORMAT);
    assert_detail("more than 32 folders");
    const clt_image_folder_options wrong[] = {{.size = -1}, {.size = 5000}, {.size = 100, .resize = 50}, {.jitter = 1.5f}, {.erase = -0.1f}, {.erase = NAN}};
    for (int i = 0; i < 6; i++) assert_status(clt_dataset_image_folder(&d, root, &wrong[i]), CLT_E_INVALID);
    (void)state;
}

/* The file is named, and what it lacks. */
static void names_the_file_that_is_damaged(void **state) {
    clt_dataset *d = NULL;
    clt_loader *loader = NULL;
    make_set("damaged");
    write_jpeg("damaged/dog/c.jpg", 60, 50, false);
    write_bytes("damaged/dog/d.jpg", file, 400);
    assert_ok(clt_dataset_image_folder(&d, support_path("damaged"), &(clt_image_folder_options){.size = 8}));
    assert_ok(clt_loader_create(&loader, d, &(clt_loader_options){.batch = 7}));
    assert_status(clt_loader_next(loader, &(clt_batch){0}), CLT_E_FORMAT);
    assert_detail("damaged/dog/d.jpg: damaged JPEG data");
    clt_loader_destroy(loader);
    assert_ok(clt_loader_create(&loader, d, &(clt_loader_options){.batch = 7, .broken = CLT_BROKEN_SKIP}));
    assert_ok(clt_loader_next(loader, &(clt_batch){0}));
    assert_int_equal(clt_loader_broken(loader), 1);
    clt_loader_destroy(loader);
    clt_dataset_destroy(d);
    (void)state;
}

static void a_folder_survives_failing_memory(void **state) {
    const char *root = make_set("memory");
    clt_status status = CLT_E_NO_MEMORY;
    uint8_t x[3 * 8 * 8];
    int32_t y;
    for (long at = 0; status != CLT_OK; at++) {
        clt_dataset *d = NULL;
        watch_begin(at);
        status = clt_dataset_image_folder(&d, root, &(clt_image_folder_options){.size = 8});
        if (status == CLT_OK) status = clt_dataset_fetch(d, &(clt_sample){.index = 1}, (void *[]){x, &y});
        clt_dataset_destroy(d);
        watch_end();
        if (status != CLT_OK) assert_int_equal(status, CLT_E_NO_MEMORY);
    }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(png_pixels_are_the_file_s),
        cmocka_unit_test(jpeg_parts_are_those_of_the_whole),
        cmocka_unit_test(jpeg_becomes_smaller),
        cmocka_unit_test(damaged_files_are_errors),
        cmocka_unit_test(bombs_are_refused),
        cmocka_unit_test(survives_failing_memory),
        cmocka_unit_test(crops_are_distributed),
        cmocka_unit_test(jitter_and_erasing_change_what_they_say),
        cmocka_unit_test(a_folder_is_classes_of_files),
        cmocka_unit_test(threads_do_not_change_a_pixel),
        cmocka_unit_test(refuses_bad_folders),
        cmocka_unit_test(names_the_file_that_is_damaged),
        cmocka_unit_test(a_folder_survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) {
    return 0; /* the library has no images */
}
#endif
