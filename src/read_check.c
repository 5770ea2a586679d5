/* Everything that can be wrong with the arguments of a read. */
#include "read.h"

#include "rows.h"

/* What an output may be the same rows as. */
enum { SAME_SOURCE = 1, SAME_PREFIX = 2, SAME_DELTA = 4 };

struct output {
    struct attnres_region region;
    int same;
};

/* Those that are wanted: prefix, push, retrieved, normed, weights, logits at most. */
struct outputs {
    struct output list[6];
    int count;
};

size_t attnres_read_sources(const attnres_read_args *args)
{
    return args->source_count + (args->prefix.data || args->delta_count);
}

static attnres_status check_options(const attnres_shape *shape, const attnres_read_args *args)
{
    const size_t total = attnres_read_sources(args);

    ATTNRES_TRY(attnres_check_shape(shape));
    if ((args->source_count && !args->sources) || (args->delta_count && !args->deltas)) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    ATTNRES_TRY(attnres_check_scoring(args->eps, args->scale, args->bias, total));
    ATTNRES_TRY(attnres_check_scoring(args->norm_eps, 1, NULL, 0));
    if (args->norm_policy != ATTNRES_NORM_REFERENCE && args->norm_policy != ATTNRES_NORM_FUSED) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    if (total == SIZE_MAX || total < args->source_count) {
        return ATTNRES_ERROR_OVERFLOW;
    }
    if (shape->tokens == 0) {
        return ATTNRES_OK;
    }
    const int stores_prefix = args->prefix_out.data || args->push.data;
    if ((total == 0 && !args->resume) || (total > 0 && !args->query) ||
        (args->delta_count && !stores_prefix) ||
        (stores_prefix && !args->prefix.data && !args->delta_count) ||
        (args->resume &&
         (!args->resume->max || !args->resume->sum || !args->resume->mix || args->weights.data)) ||
        (!args->retrieved.data && !args->normed.data && !args->weights.data &&
         !args->logits.data)) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    return ATTNRES_OK;
}

static attnres_status add_output(struct outputs *outputs, struct attnres_region region, int same)
{
    if (region.count == 0) {
        return ATTNRES_OK;
    }
    for (int i = 0; i < outputs->count; i++) {
        if (attnres_regions_overlap(&outputs->list[i].region, &region)) {
            return ATTNRES_ERROR_OVERLAP;
        }
    }
    outputs->list[outputs->count++] = (struct output){region, same};
    return ATTNRES_OK;
}

static attnres_status add_rows(struct outputs *outputs, const attnres_shape *shape,
                               attnres_rows_out rows, int same)
{
    struct attnres_region region;
    if (!rows.data) {
        return ATTNRES_OK;
    }
    ATTNRES_TRY(attnres_region_rows(shape, shape->dtype, attnres_rows_of(rows), &region));
    return add_output(outputs, region, same);
}

static attnres_status add_table(struct outputs *outputs, const attnres_shape *shape, size_t sources,
                                attnres_dtype dtype, const attnres_per_source *table)
{
    struct attnres_region region;
    ATTNRES_TRY(attnres_region_per_source(sources, shape->tokens, dtype, table, &region));
    return add_output(outputs, region, 0);
}

static attnres_status outputs_of(const attnres_shape *shape, const attnres_read_args *args,
                                 struct outputs *outputs)
{
    const size_t total = attnres_read_sources(args);
    /* With more sources than fit one group, rows are scored again after results were written. */
    const int same_row =
        total <= ATTNRES_SOURCES_FAST ? SAME_SOURCE | SAME_PREFIX | SAME_DELTA : SAME_DELTA;

    outputs->count = 0;
    ATTNRES_TRY(add_rows(outputs, shape, args->prefix_out, SAME_PREFIX | SAME_DELTA));
    ATTNRES_TRY(add_rows(outputs, shape, args->push, 0));
    ATTNRES_TRY(add_rows(outputs, shape, args->retrieved, same_row));
    ATTNRES_TRY(add_rows(outputs, shape, args->normed, same_row));
    ATTNRES_TRY(add_table(outputs, shape, total, shape->dtype, &args->weights));
    return add_table(outputs, shape, total, ATTNRES_F64, &args->logits);
}

static attnres_status check_input(const struct outputs *outputs, const struct attnres_region *input,
                                  int same)
{
    for (int i = 0; i < outputs->count; i++) {
        const struct output *output = &outputs->list[i];
        if (attnres_regions_overlap(&output->region, input) &&
            !((output->same & same) && attnres_regions_equal(&output->region, input))) {
            return ATTNRES_ERROR_OVERLAP;
        }
    }
    return ATTNRES_OK;
}

static attnres_status check_input_rows(const attnres_shape *shape, attnres_dtype dtype,
                                       const struct outputs *outputs, attnres_rows rows, int same)
{
    struct attnres_region region;
    ATTNRES_TRY(attnres_region_rows(shape, dtype, rows, &region));
    return check_input(outputs, &region, same);
}

static attnres_status check_vector(const struct outputs *outputs, attnres_dtype dtype,
                                   const void *data, size_t length)
{
    const struct attnres_region region = attnres_region_vector(dtype, data, length);
    return check_input(outputs, &region, 0);
}

static attnres_status check_memory(const attnres_shape *shape, const attnres_read_args *args)
{
    const attnres_dtype accumulator = attnres_dtype_accumulator(shape->dtype);
    struct outputs outputs;

    ATTNRES_TRY(outputs_of(shape, args, &outputs));
    for (size_t s = 0; s < args->source_count; s++) {
        ATTNRES_TRY(check_input_rows(shape, shape->dtype, &outputs, args->sources[s], SAME_SOURCE));
    }
    for (size_t i = 0; i < args->delta_count; i++) {
        ATTNRES_TRY(check_input_rows(shape, shape->dtype, &outputs, args->deltas[i], SAME_DELTA));
    }
    if (args->prefix.data) {
        ATTNRES_TRY(check_input_rows(shape, shape->dtype, &outputs, args->prefix, SAME_PREFIX));
    }
    if (args->resume) {
        const attnres_rows mix = {args->resume->mix, args->resume->mix_stride};
        ATTNRES_TRY(check_input_rows(shape, accumulator, &outputs, mix, 0));
        ATTNRES_TRY(check_vector(&outputs, ATTNRES_F64, args->resume->max, shape->tokens));
        ATTNRES_TRY(check_vector(&outputs, ATTNRES_F64, args->resume->sum, shape->tokens));
    }
    ATTNRES_TRY(check_vector(&outputs, accumulator, args->query, shape->width));
    ATTNRES_TRY(check_vector(&outputs, accumulator, args->norm_gain, shape->width));
    return check_vector(&outputs, ATTNRES_F64, args->bias, attnres_read_sources(args));
}

attnres_status attnres_read_check(const attnres_shape *shape, const attnres_read_args *args)
{
    if (!args) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    ATTNRES_TRY(check_options(shape, args));
    return shape->tokens == 0 ? ATTNRES_OK : check_memory(shape, args);
}
