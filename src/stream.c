/* The state of a layer loop, in memory of the caller. */
#include "stream_state.h"

#include <string.h>

#include "dispatch.h"
#include "read.h"
#include "rows.h"

#define ALIGNMENT 64

struct layout {
    size_t slots, rows, total, bytes; /* offsets from an aligned address; all of it */
    size_t slot_bytes, total_bytes;
};

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static attnres_status plan_layout(const attnres_stream_config *config, struct layout *layout)
{
    size_t elements, list, rows;

    if (!config) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    ATTNRES_TRY(attnres_check_shape(&config->shape));
    if (config->rounding != ATTNRES_ROUND_EACH && config->rounding != ATTNRES_ROUND_ONCE) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    if (config->capacity == 0 || config->capacity == SIZE_MAX) {
        return ATTNRES_ERROR_SIZE;
    }
    /* The total is at most 4 times a slot, so these bounds keep every sum below from wrapping. */
    const size_t slots = config->capacity + 1;
    if (attnres_multiply(config->shape.tokens, config->shape.width, &elements) ||
        attnres_multiply(elements, attnres_dtype_size(config->shape.dtype), &layout->slot_bytes) ||
        attnres_multiply(slots, layout->slot_bytes, &rows) ||
        attnres_multiply(slots, sizeof(attnres_rows), &list) || rows > PTRDIFF_MAX / 8 ||
        list > PTRDIFF_MAX / 8) {
        return ATTNRES_ERROR_OVERFLOW;
    }
    layout->total_bytes =
        config->rounding == ATTNRES_ROUND_ONCE
            ? elements * attnres_dtype_size(attnres_dtype_accumulator(config->shape.dtype))
            : 0;
    layout->slots = aligned(sizeof(struct attnres_stream));
    layout->rows = layout->slots + aligned(list);
    layout->total = layout->rows + aligned(rows);
    layout->bytes = layout->total + layout->total_bytes + ALIGNMENT - 1;
    return ATTNRES_OK;
}

size_t attnres_stream_size(const attnres_stream_config *config)
{
    struct layout layout;
    return plan_layout(config, &layout) == ATTNRES_OK ? layout.bytes : 0;
}

attnres_status attnres_stream_init(const attnres_stream_config *config, void *memory, size_t bytes,
                                   attnres_stream **stream)
{
    struct layout layout;
    ATTNRES_TRY(plan_layout(config, &layout));
    if (!memory || !stream) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    if (bytes < layout.bytes) {
        return ATTNRES_ERROR_SIZE;
    }
    unsigned char *base = (unsigned char *)memory;
    base += (ALIGNMENT - (uintptr_t)base % ALIGNMENT) % ALIGNMENT;
    attnres_stream *made = (attnres_stream *)(void *)base;
    *made = (attnres_stream){
        .magic = ATTNRES_STREAM_MAGIC,
        .config = *config,
        .memory = memory,
        .bytes = bytes,
        .slots = (attnres_rows *)(void *)(base + layout.slots),
        .rows = base + layout.rows,
        .slot_bytes = layout.slot_bytes,
        .total = layout.total_bytes ? base + layout.total : NULL,
        .total_bytes = layout.total_bytes,
    };
    for (size_t s = 0; s <= config->capacity; s++) {
        made->slots[s] = (attnres_rows){made->rows + s * layout.slot_bytes, 0};
    }
    *stream = made;
    return ATTNRES_OK;
}

attnres_status attnres_stream_check(const attnres_stream *stream, int begun)
{
    if (!stream || stream->magic != ATTNRES_STREAM_MAGIC) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    return begun && !stream->begun ? ATTNRES_ERROR_STATE : ATTNRES_OK;
}

static attnres_rows_out prefix_slot(const attnres_stream *stream)
{
    const attnres_rows_out slot = {stream->rows + stream->bank_count * stream->slot_bytes, 0};
    return slot;
}

/* Whether rows of the caller keep out of the stream. */
static attnres_status check_apart(const attnres_stream *stream, attnres_rows rows)
{
    const struct attnres_region own = {stream->memory, stream->bytes, stream->bytes, 1};
    struct attnres_region other;
    if (stream->config.shape.tokens == 0) {
        return ATTNRES_OK;
    }
    ATTNRES_TRY(
        attnres_region_rows(&stream->config.shape, stream->config.shape.dtype, rows, &other));
    return attnres_regions_overlap(&own, &other) ? ATTNRES_ERROR_OVERLAP : ATTNRES_OK;
}

/* prefix = prefix (if `grow`) + rows, kept and rounded as configured. */
static void add_to_prefix(attnres_stream *stream, attnres_rows rows, int grow)
{
    const attnres_shape *shape = &stream->config.shape;
    const struct attnres_kernels *kernels = &attnres_dispatch()->of[shape->dtype];
    const size_t total_row =
        shape->width * attnres_dtype_size(attnres_dtype_accumulator(shape->dtype));

    for (size_t t = 0; t < shape->tokens; t++) {
        void *prefix = attnres_row_out(shape, prefix_slot(stream), t);
        const void *row = attnres_row(shape, rows, t);
        if (stream->total) {
            void *total = (unsigned char *)stream->total + t * total_row;
            kernels->sum(&row, 1, shape->width, grow ? total : NULL, total, prefix, NULL);
        } else {
            const void *both[2] = {grow ? prefix : row, row};
            kernels->sum(both, grow ? 2 : 1, shape->width, NULL, NULL, prefix, NULL);
        }
    }
    stream->has_prefix = 1;
}

attnres_status attnres_stream_begin(attnres_stream *stream, attnres_rows embedding)
{
    ATTNRES_TRY(attnres_stream_check(stream, 0));
    ATTNRES_TRY(check_apart(stream, embedding));
    stream->bank_count = 0;
    stream->begun = 1;
    add_to_prefix(stream, embedding, 0);
    return ATTNRES_OK;
}

attnres_status attnres_stream_add(attnres_stream *stream, attnres_rows output)
{
    ATTNRES_TRY(attnres_stream_check(stream, 1));
    ATTNRES_TRY(check_apart(stream, output));
    add_to_prefix(stream, output, stream->has_prefix);
    return ATTNRES_OK;
}

attnres_status attnres_stream_push(attnres_stream *stream)
{
    ATTNRES_TRY(attnres_stream_check(stream, 1));
    if (!stream->has_prefix || stream->bank_count == stream->config.capacity) {
        return ATTNRES_ERROR_STATE;
    }
    stream->bank_count++;
    stream->has_prefix = 0;
    return ATTNRES_OK;
}

size_t attnres_stream_sources(const attnres_stream *stream, attnres_rows *list, size_t capacity)
{
    if (attnres_stream_check(stream, 1) != ATTNRES_OK) {
        return 0;
    }
    const size_t count = stream->bank_count + (stream->has_prefix != 0);
    for (size_t s = 0; list && s < count && s < capacity; s++) {
        list[s] = stream->slots[s];
    }
    return count;
}

/* The read as one call of attnres_read on the stream's rows. */
static attnres_read_args read_args(const attnres_stream *stream,
                                   const attnres_stream_read_args *args)
{
    const attnres_rows none = {NULL, 0};
    attnres_read_args read = {
        .sources = stream->slots,
        .source_count = stream->bank_count,
        .prefix = stream->has_prefix ? stream->slots[stream->bank_count] : none,
        .deltas = args->outputs,
        .delta_count = args->output_count,
        .query = args->query,
        .eps = args->eps,
        .scale = args->scale,
        .bias = args->bias,
        .retrieved = args->retrieved,
        .normed = args->normed,
        .norm_gain = args->norm_gain,
        .norm_eps = args->norm_eps,
        .norm_policy = args->norm_policy,
        .weights = args->weights,
        .logits = args->logits,
    };
    if (args->output_count > 0) {
        read.prefix_out = prefix_slot(stream);
    }
    return read;
}

static attnres_status check_results_apart(const attnres_stream *stream,
                                          const attnres_stream_read_args *args)
{
    const attnres_rows_out results[] = {args->retrieved, args->normed};
    const attnres_per_source *tables[] = {&args->weights, &args->logits};
    const struct attnres_region own = {stream->memory, stream->bytes, stream->bytes, 1};
    const size_t count = stream->bank_count + 1;
    struct attnres_region table;

    for (int i = 0; i < 2; i++) {
        if (results[i].data) {
            ATTNRES_TRY(check_apart(stream, attnres_rows_of(results[i])));
        }
        ATTNRES_TRY(attnres_region_per_source(count, stream->config.shape.tokens,
                                              i ? ATTNRES_F64 : stream->config.shape.dtype,
                                              tables[i], &table));
        if (attnres_regions_overlap(&own, &table)) {
            return ATTNRES_ERROR_OVERLAP;
        }
    }
    for (size_t i = 0; i < args->output_count; i++) {
        ATTNRES_TRY(check_apart(stream, args->outputs[i]));
    }
    return ATTNRES_OK;
}

attnres_status attnres_stream_read(attnres_stream *stream, const attnres_stream_read_args *args)
{
    ATTNRES_TRY(attnres_stream_check(stream, 1));
    if (!args || (args->output_count && !args->outputs)) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    if (args->push && ((!stream->has_prefix && args->output_count == 0) ||
                       stream->bank_count == stream->config.capacity)) {
        return ATTNRES_ERROR_STATE;
    }
    attnres_read_args read = read_args(stream, args);
    ATTNRES_TRY(attnres_read_check(&stream->config.shape, &read));
    ATTNRES_TRY(check_results_apart(stream, args));

    if (stream->total) { /* the running total is the stream's business, not the read's */
        for (size_t i = 0; i < args->output_count; i++) {
            add_to_prefix(stream, args->outputs[i], stream->has_prefix);
        }
        read = read_args(stream, args);
        read.delta_count = 0;
        read.prefix_out = (attnres_rows_out){NULL, 0};
    }
    if (stream->config.shape.tokens > 0) {
        attnres_read_run(&stream->config.shape, &read);
    }
    stream->has_prefix = !args->push && (stream->has_prefix || args->output_count > 0);
    stream->bank_count += args->push != 0;
    return ATTNRES_OK;
}
