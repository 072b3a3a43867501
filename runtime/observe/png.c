/* PNG: a header, all rows deflated in one chunk, and an end. */
#include "runtime/observe/observe.h"

#include <string.h>

#include "runtime/base/zlib_memory.h"

static void add_big_endian(clt_text *png, uint32_t value) {
    char bytes[4] = {(char)(value >> 24), (char)(value >> 16), (char)(value >> 8), (char)value};
    clt_text_add_bytes(png, bytes, sizeof bytes);
}

static void add_chunk(clt_text *png, const char *name, const void *data, size_t length) {
    add_big_endian(png, (uint32_t)length);
    clt_text_add_bytes(png, name, 4);
    clt_text_add_bytes(png, data, length);
    if (png->status < 0) return;
    add_big_endian(png, (uint32_t)crc32(0, (const Bytef *)png->data + png->length - length - 4, (uInt)length + 4));
}

static void add_header(clt_text *png, int height, int width, int channels) {
    enum { GRAY = 0, RGB = 2, BITS = 8 };
    clt_text header = {0};
    add_big_endian(&header, (uint32_t)width);
    add_big_endian(&header, (uint32_t)height);
    clt_text_add_bytes(&header, (char[]){BITS, channels == 1 ? GRAY : RGB, 0, 0, 0}, 5);
    if (header.status < 0) png->status = header.status;
    clt_text_add_bytes(png, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(png, "IHDR", header.data, header.length);
    clt_text_free(&header);
}

/* The output is large enough for all of them. */
static void deflate_rows(z_stream *stream, const uint8_t *pixels, int height, size_t row_bytes) {
    static Bytef no_filter = 0;
    for (int y = 0; y < height; y++) {
        stream->next_in = &no_filter, stream->avail_in = 1;
        deflate(stream, Z_NO_FLUSH);
        stream->next_in = (z_const Bytef *)(pixels + (size_t)y * row_bytes), stream->avail_in = (uInt)row_bytes;
        deflate(stream, Z_NO_FLUSH);
    }
    deflate(stream, Z_FINISH);
}

clt_status clt_png_encode(clt_text *png, const uint8_t *pixels, int height, int width, int channels) {
    z_stream stream = {.zalloc = clt_zlib_alloc, .zfree = clt_zlib_free};
    size_t row_bytes = (size_t)width * (size_t)channels;
    if (deflateInit(&stream, Z_DEFAULT_COMPRESSION) != Z_OK) return clt_fail(CLT_E_NO_MEMORY, "no memory for compression");
    size_t most = deflateBound(&stream, (uLong)((row_bytes + 1) * (size_t)height));
    unsigned char *rows = clt_alloc(most);
    if (rows) {
        stream.next_out = rows, stream.avail_out = (uInt)most;
        deflate_rows(&stream, pixels, height, row_bytes);
    }
    size_t length = stream.total_out;
    deflateEnd(&stream);
    if (!rows) return clt_fail_memory(most);
    add_header(png, height, width, channels);
    add_chunk(png, "IDAT", rows, length);
    add_chunk(png, "IEND", "", 0);
    clt_free(rows);
    return png->status;
}
