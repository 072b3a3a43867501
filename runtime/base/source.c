#include "runtime/base/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/zlib_memory.h"

#include "runtime/base/file.h"

enum { BUFFER_BYTES = 1 << 16, GZIP_WINDOW_BITS = 15 + 16 };

/* Deflate cannot expand further: 258 bytes from 2 bits. */
enum { DEFLATE_MOST_RATIO = 1032 };

struct clt_source {
    char *path;
    FILE *file;                /* NULL: all input is at `next` from the start */
    uint64_t stored_bytes;     /* of the file or block */
    uint64_t position, limit;  /* in what is read, decompressed */
    const unsigned char *next; /* input at hand */
    size_t available;
    bool compressed, ended;
    z_stream stream;
    unsigned char buffer[BUFFER_BYTES];
};

/* Input at hand is used up: gets more, if there is any. */
static clt_status refill(clt_source *source) {
    if (source->available > 0 || !source->file) return CLT_OK;
    source->next = source->buffer;
    source->available = fread(source->buffer, 1, BUFFER_BYTES, source->file);
    if (ferror(source->file))
        return clt_fail(CLT_E_IO, "%s: cannot be read: %s", source->path, strerror(errno));
    return CLT_OK;
}

static bool gzip_begins(const clt_source *source) {
    return source->available >= 2 && source->next[0] == 0x1f && source->next[1] == 0x8b;
}

static clt_status detect_compression(clt_source *source) {
    CLT_TRY(refill(source));
    if (!gzip_begins(source)) return CLT_OK;
    source->stream.zalloc = clt_zlib_alloc;
    source->stream.zfree = clt_zlib_free;
    if (inflateInit2(&source->stream, GZIP_WINDOW_BITS) != Z_OK)
        return clt_fail(CLT_E_NO_MEMORY, "%s: no memory for decompression", source->path);
    source->compressed = true;
    return CLT_OK;
}

static clt_status make(clt_source **source, const char *name) {
    clt_source *s = clt_alloc(sizeof *s);
    if (!s) return clt_fail_memory(sizeof *s);
    memset(s, 0, offsetof(clt_source, buffer));
    s->limit = UINT64_MAX;
    s->path = clt_strdup(name);
    if (!s->path) {
        clt_free(s);
        return clt_fail_memory(strlen(name) + 1);
    }
    *source = s;
    return CLT_OK;
}

clt_status clt_source_open(clt_source **source, const char *path) {
    if (!path) return clt_fail(CLT_E_INVALID, "a data file's path is NULL");
    clt_source *s;
    CLT_TRY(make(&s, path));
    clt_status status;
    CLT_TRY_GOTO(clt_file_size(path, &s->stored_bytes));
    s->file = fopen(path, "rb");
    if (!s->file) {
        status = clt_fail(CLT_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
        goto fail;
    }
    setvbuf(s->file, NULL, _IONBF, 0);
    CLT_TRY_GOTO(detect_compression(s));
    *source = s;
    return CLT_OK;
fail:
    clt_source_close(s);
    return status;
}

clt_status clt_source_open_memory(clt_source **source, const char *name, const void *bytes,
                                  size_t length) {
    clt_source *s;
    CLT_TRY(make(&s, name));
    s->next = bytes;
    s->available = length;
    s->stored_bytes = length;
    clt_status status = detect_compression(s);
    if (status < 0) clt_source_close(s);
    else *source = s;
    return status;
}

void clt_source_close(clt_source *source) {
    if (!source) return;
    if (source->compressed) inflateEnd(&source->stream);
    if (source->file) fclose(source->file);
    clt_free(source->path);
    clt_free(source);
}

const char *clt_source_path(const clt_source *source) {
    return source->path;
}

bool clt_source_left(const clt_source *source, uint64_t *bytes) {
    if (source->compressed) return false;
    *bytes = source->stored_bytes - CLT_MIN(source->position, source->stored_bytes);
    return true;
}

void clt_source_limit(clt_source *source, uint64_t bytes) {
    source->limit = bytes;
}

static clt_status read_plain(clt_source *source, unsigned char *to, size_t wanted, size_t *got) {
    while (*got < wanted) {
        CLT_TRY(refill(source));
        size_t n = CLT_MIN(source->available, wanted - *got);
        if (n == 0) return CLT_OK;
        memcpy(to + *got, source->next, n);
        source->next += n;
        source->available -= n;
        *got += n;
    }
    return CLT_OK;
}

/* A gzip file may be several, one behind the other. */
static clt_status end_member(clt_source *source) {
    CLT_TRY(refill(source));
    if (source->available == 0) {
        source->ended = true;
        return CLT_OK;
    }
    /* A lone first byte of the next member stays for inflate to judge. */
    if (source->next[0] != 0x1f)
        return clt_fail(CLT_E_FORMAT, "%s: other bytes follow the compressed data", source->path);
    inflateReset(&source->stream);
    return CLT_OK;
}

static clt_status inflate_some(clt_source *source, unsigned char *to, size_t wanted, size_t *got) {
    z_stream *z = &source->stream;
    CLT_TRY(refill(source));
    if (source->available == 0)
        return clt_fail(CLT_E_FORMAT, "%s: the compressed data ends too early", source->path);
    z->next_in = (Bytef *)source->next; /* zlib does not write there */
    z->avail_in = (uInt)CLT_MIN(source->available, (size_t)BUFFER_BYTES);
    z->next_out = to;
    z->avail_out = (uInt)CLT_MIN(wanted, (size_t)1 << 30);
    int result = inflate(z, Z_NO_FLUSH);
    source->available -= (size_t)(z->next_in - source->next);
    source->next = z->next_in;
    *got = (size_t)(z->next_out - to);
    if (result == Z_STREAM_END) return end_member(source);
    if (result == Z_MEM_ERROR) return clt_fail(CLT_E_NO_MEMORY, "%s: decompression", source->path);
    if (result != Z_OK)
        return clt_fail(CLT_E_FORMAT, "%s: the compressed data is damaged: %s", source->path,
                        z->msg ? z->msg : "it needs a dictionary");
    return CLT_OK;
}

static clt_status read_compressed(clt_source *source, unsigned char *to, size_t wanted, size_t *got) {
    while (*got < wanted && !source->ended) {
        size_t some = 0;
        CLT_TRY(inflate_some(source, to + *got, wanted - *got, &some));
        *got += some;
        if (some > source->limit - source->position)
            return clt_fail(CLT_E_FORMAT, "%s: expands to more than the %llu bytes that are read here",
                            source->path, (unsigned long long)source->limit);
        source->position += some;
    }
    return CLT_OK;
}

clt_status clt_source_read(clt_source *source, void *to, size_t wanted, size_t *got) {
    *got = 0;
    if (source->compressed) return read_compressed(source, to, wanted, got);
    CLT_TRY(read_plain(source, to, wanted, got));
    source->position += *got;
    return CLT_OK;
}

clt_status clt_source_read_exactly(clt_source *source, void *to, size_t wanted, const char *what) {
    size_t got;
    CLT_TRY(clt_source_read(source, to, wanted, &got));
    if (got < wanted)
        return clt_fail(CLT_E_FORMAT, "%s: ends at byte %llu, inside %s", source->path,
                        (unsigned long long)source->position, what);
    return CLT_OK;
}

clt_status clt_source_expect_end(clt_source *source) {
    unsigned char byte;
    size_t got;
    CLT_TRY(clt_source_read(source, &byte, 1, &got));
    if (got)
        return clt_fail(CLT_E_FORMAT, "%s: more bytes follow the %llu that its header tells of",
                        source->path, (unsigned long long)source->position - 1);
    return CLT_OK;
}

static clt_status check_claim(const clt_source *source, uint64_t count, size_t item_bytes) {
    uint64_t bytes, left;
    if (__builtin_mul_overflow(count, (uint64_t)item_bytes, &bytes))
        return clt_fail(CLT_E_FORMAT, "%s: its header tells of %llu items of %zu bytes", source->path,
                        (unsigned long long)count, item_bytes);
    if (clt_source_left(source, &left)) {
        if (bytes > left)
            return clt_fail(CLT_E_FORMAT, "%s: its header tells of %llu bytes, but %llu follow it",
                            source->path, (unsigned long long)bytes, (unsigned long long)left);
    } else if (bytes / DEFLATE_MOST_RATIO > source->stored_bytes) {
        return clt_fail(
            CLT_E_FORMAT, "%s: its header tells of %llu bytes, but %llu cannot expand to those",
            source->path, (unsigned long long)bytes, (unsigned long long)source->stored_bytes);
    }
    return CLT_OK;
}

/* The whole array at once for a file whose size was checked, else double what is filled. */
static clt_status grow_array(const clt_source *source, void **array, uint64_t count, uint64_t filled,
                             uint64_t *capacity, size_t out_bytes) {
    if (filled < *capacity) return CLT_OK;
    uint64_t grown = count;
    if (source->compressed) grown = CLT_MIN(count, CLT_MAX(2 * filled, (uint64_t)BUFFER_BYTES));
    size_t bytes;
    if (grown > SIZE_MAX || !clt_mul_size((size_t)grown, out_bytes, &bytes))
        return clt_fail_memory(SIZE_MAX);
    void *memory = clt_realloc(*array, bytes);
    if (!memory) return clt_fail_memory(bytes);
    *array = memory;
    *capacity = grown;
    return CLT_OK;
}

clt_status clt_source_read_array(clt_source *source, uint64_t count, size_t item_bytes, size_t out_bytes,
                                 clt_convert *convert, void **array) {
    unsigned char chunk[8192];
    void *out = NULL;
    uint64_t filled = 0, capacity = 0;
    clt_status status;
    CLT_TRY(check_claim(source, count, item_bytes));
    while (filled < count) {
        CLT_TRY_GOTO(grow_array(source, &out, count, filled, &capacity, out_bytes));
        size_t n = (size_t)CLT_MIN(capacity - filled, sizeof chunk / item_bytes);
        CLT_TRY_GOTO(clt_source_read_exactly(source, chunk, n * item_bytes, "its data"));
        size_t good = convert(chunk, n, (char *)out + (size_t)filled * out_bytes);
        filled += good;
        if (good < n) {
            status = clt_fail(CLT_E_RANGE, "%s: item %llu is out of range", source->path,
                              (unsigned long long)filled);
            goto fail;
        }
    }
    *array = out;
    return CLT_OK;
fail:
    clt_free(out);
    return status;
}
