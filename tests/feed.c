#include "feed.h"

#include "allocate.h"
#include "elements.h"
#include "inputs.h"

#include <math.h>
#include <string.h>

enum { SHIFT_MAX = 64 };

void feed_open(feed *it, attnres_stream_config config, size_t shift)
{
    const size_t bytes = attnres_stream_size(&config);
    ck_assert_uint_gt(bytes, 0);
    *it = (feed){.config = config};
    buffer_open(&it->memory, bytes + SHIFT_MAX);
    void *memory = buffer_array(&it->memory, BUFFER_AT_END, shift % SHIFT_MAX, bytes);
    FEED_TRY(attnres_stream_init(&config, memory, bytes, &it->stream));
    ck_assert_ptr_nonnull(it->stream);
}

void feed_close(feed *it)
{
    ck_assert_msg(buffer_is_untouched(&it->memory, 0), "written beside the stream's memory");
    buffer_close(&it->memory);
}

unsigned char *feed_bytes(const feed *it, size_t *size)
{
    *size = attnres_stream_export_size(it->stream);
    unsigned char *bytes = allocate(*size, 1);
    if (*size > 0) {
        FEED_TRY(attnres_stream_export(it->stream, bytes, *size));
    }
    return bytes;
}

void feed_check_same(const feed *it, const feed *other, const char *what)
{
    enum { SOURCES_MAX = 64 };
    const attnres_shape *shape = &it->config.shape;
    attnres_rows mine[SOURCES_MAX], theirs[SOURCES_MAX];
    const size_t count = attnres_stream_sources(it->stream, mine, SOURCES_MAX);
    ck_assert_uint_eq(attnres_stream_sources(other->stream, theirs, SOURCES_MAX), count);
    ck_assert_uint_eq(attnres_stream_export_size(it->stream),
                      attnres_stream_export_size(other->stream));
    for (size_t s = 0; s < count; s++) {
        elements_check(shape->dtype, mine[s].data, theirs[s].data, shape->tokens * shape->width,
                       "%s, source %zu", what, s);
    }
}

void feed_rows_open(feed_rows *it, attnres_shape shape, size_t count, size_t spread,
                    uint64_t stream)
{
    const size_t elements = shape.tokens * (shape.width + spread);
    *it = (feed_rows){.shape = shape, .stride = shape.width + spread};
    it->data = allocate(count * elements, attnres_dtype_size(shape.dtype));
    it->sets = allocate(count, sizeof *it->sets);
    for (size_t i = 0; i < count * elements; i++) {
        elements_set(shape.dtype, it->data, i, (double)NAN);
    }
    for (size_t k = 0; k < count; k++) {
        it->sets[k] =
            (attnres_rows){elements_at(shape.dtype, it->data, k * elements), (ptrdiff_t)it->stride};
        for (size_t t = 0; t < shape.tokens; t++) {
            const inputs_kind kind = inputs_pick(&stream, 4) ? INPUTS_ORDINARY : INPUTS_TIES;
            inputs_fill(shape.dtype, kind, &stream, feed_row(it, k, t), shape.width);
        }
    }
}

void feed_rows_close(feed_rows *it)
{
    free(it->data);
    free(it->sets);
}

void *feed_row(const feed_rows *it, size_t set, size_t t)
{
    return elements_at(it->shape.dtype, it->data, (set * it->shape.tokens + t) * it->stride);
}
