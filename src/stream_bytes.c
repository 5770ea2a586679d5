/* A stream as bytes: what the next pipeline stage needs, and no more. */
#include <string.h>

#include "rows.h"
#include "stream_state.h"

/* First in the bytes; then the used slots, then the total if there is one. */
struct header {
    uint64_t magic, dtype, rounding, tokens, width, bank_count, has_prefix;
};

static size_t used_rows_bytes(const attnres_stream *stream, size_t bank_count, int has_prefix)
{
    return (bank_count + (has_prefix != 0)) * stream->slot_bytes;
}

static size_t used_total_bytes(const attnres_stream *stream, int has_prefix)
{
    return has_prefix ? stream->total_bytes : 0;
}

size_t attnres_stream_export_size(const attnres_stream *stream)
{
    if (attnres_stream_check(stream, 1) != ATTNRES_OK) {
        return 0;
    }
    return sizeof(struct header) + used_rows_bytes(stream, stream->bank_count, stream->has_prefix) +
           used_total_bytes(stream, stream->has_prefix);
}

attnres_status attnres_stream_export(const attnres_stream *stream, void *bytes, size_t size)
{
    ATTNRES_TRY(attnres_stream_check(stream, 1));
    if (!bytes) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    if (size < attnres_stream_export_size(stream)) {
        return ATTNRES_ERROR_SIZE;
    }
    const struct attnres_region own = {stream->memory, stream->bytes, stream->bytes, 1};
    const struct attnres_region out = {bytes, size, size, 1};
    if (attnres_regions_overlap(&own, &out)) {
        return ATTNRES_ERROR_OVERLAP;
    }
    const struct header header = {ATTNRES_STREAM_MAGIC,        stream->config.shape.dtype,
                                  stream->config.rounding,     stream->config.shape.tokens,
                                  stream->config.shape.width,  stream->bank_count,
                                  (uint64_t)stream->has_prefix};
    const size_t rows = used_rows_bytes(stream, stream->bank_count, stream->has_prefix);
    unsigned char *to = bytes;
    memcpy(to, &header, sizeof header);
    memcpy(to + sizeof header, stream->rows, rows);
    if (stream->total && stream->has_prefix) {
        memcpy(to + sizeof header + rows, stream->total, stream->total_bytes);
    }
    return ATTNRES_OK;
}

attnres_status attnres_stream_import(attnres_stream *stream, const void *bytes, size_t size)
{
    struct header header;

    ATTNRES_TRY(attnres_stream_check(stream, 0));
    if (!bytes || size < sizeof header) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    memcpy(&header, bytes, sizeof header);
    if (header.magic != ATTNRES_STREAM_MAGIC || header.has_prefix > 1 ||
        header.bank_count + header.has_prefix == 0) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    if (header.dtype != (uint64_t)stream->config.shape.dtype ||
        header.rounding != (uint64_t)stream->config.rounding ||
        header.tokens != stream->config.shape.tokens ||
        header.width != stream->config.shape.width || header.bank_count > stream->config.capacity) {
        return ATTNRES_ERROR_SIZE;
    }
    const size_t rows = used_rows_bytes(stream, (size_t)header.bank_count, (int)header.has_prefix);
    const size_t total = used_total_bytes(stream, (int)header.has_prefix);
    if (size != sizeof header + rows + total) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    const struct attnres_region own = {stream->memory, stream->bytes, stream->bytes, 1};
    const struct attnres_region from = {bytes, size, size, 1};
    if (attnres_regions_overlap(&own, &from)) {
        return ATTNRES_ERROR_OVERLAP;
    }
    const unsigned char *at = (const unsigned char *)bytes + sizeof header;
    memcpy(stream->rows, at, rows);
    if (total > 0) {
        memcpy(stream->total, at + rows, total);
    }
    stream->bank_count = (size_t)header.bank_count;
    stream->has_prefix = (int)header.has_prefix;
    stream->begun = 1;
    return ATTNRES_OK;
}
