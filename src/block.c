/* attnres_block_sum and attnres_block_read. */
#include "dispatch.h"
#include "read.h"
#include "rows.h"
#include "sum_token.h"

/* Outputs begin .. end - 1 make block number b. */
static size_t block_end(size_t begin, size_t layers, size_t block_size)
{
    return layers - begin < block_size ? layers : begin + block_size;
}

/* Checks lists and counts; `extra` sources precede the sums. */
static attnres_status check_blocks(const attnres_shape *shape, const attnres_rows *outputs,
                                   size_t layers, size_t block_size, const attnres_rows_out *sums,
                                   size_t sum_count, size_t extra)
{
    ATTNRES_TRY(attnres_check_shape(shape));
    if (block_size == 0 || sum_count != attnres_source_count(layers, block_size) - 1 + extra) {
        return ATTNRES_ERROR_SIZE;
    }
    if ((layers && !outputs) || (sum_count && !sums)) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    return ATTNRES_OK;
}

/* Sums of blocks, and the layer outputs they are made of. */
struct blocks {
    const attnres_rows *outputs;
    size_t layers, block_size;
    const attnres_rows_out *results; /* those from number 0 on are checked against each other */
    size_t result_count;
};
#define NO_BLOCK SIZE_MAX

/* Result number r against all outputs and against the results after it. It is written before the
 * outputs of later blocks are read, so it may only be the same rows as an output of its own block,
 * `own`. */
static attnres_status check_result(const attnres_shape *shape, const struct blocks *blocks,
                                   size_t r, size_t own)
{
    struct attnres_region result, other;
    ATTNRES_TRY(
        attnres_region_rows(shape, shape->dtype, attnres_rows_of(blocks->results[r]), &result));
    for (size_t i = 0; i < blocks->layers; i++) {
        ATTNRES_TRY(attnres_region_rows(shape, shape->dtype, blocks->outputs[i], &other));
        if (attnres_regions_overlap(&result, &other) &&
            !(i / blocks->block_size == own && attnres_regions_equal(&result, &other))) {
            return ATTNRES_ERROR_OVERLAP;
        }
    }
    for (size_t i = r + 1; i < blocks->result_count; i++) {
        ATTNRES_TRY(
            attnres_region_rows(shape, shape->dtype, attnres_rows_of(blocks->results[i]), &other));
        if (attnres_regions_overlap(&result, &other)) {
            return ATTNRES_ERROR_OVERLAP;
        }
    }
    return ATTNRES_OK;
}

static void sum_blocks(const struct attnres_kernels *kernels, const attnres_shape *shape,
                       const attnres_rows *outputs, size_t layers, size_t block_size,
                       const attnres_rows_out *sums, size_t t)
{
    const attnres_rows none = {NULL, 0};
    for (size_t begin = 0, b = 0; begin < layers; b++) {
        const size_t end = block_end(begin, layers, block_size);
        attnres_sum_token(kernels, shape, none, outputs + begin, end - begin, t,
                          attnres_row_out(shape, sums[b], t), NULL);
        begin = end;
    }
}

attnres_status attnres_block_sum(const attnres_shape *shape, const attnres_block_sum_args *args)
{
    if (!args) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    ATTNRES_TRY(check_blocks(shape, args->outputs, args->layers, args->block_size, args->sums,
                             args->sum_count, 0));
    if (shape->tokens == 0) {
        return ATTNRES_OK;
    }
    const struct blocks blocks = {args->outputs, args->layers, args->block_size, args->sums,
                                  args->sum_count};
    for (size_t b = 0; b < args->sum_count; b++) {
        ATTNRES_TRY(check_result(shape, &blocks, b, b));
    }
    const struct attnres_kernels *kernels = &attnres_dispatch()->of[shape->dtype];
    for (size_t t = 0; t < shape->tokens; t++) {
        sum_blocks(kernels, shape, args->outputs, args->layers, args->block_size, args->sums, t);
    }
    return ATTNRES_OK;
}

/* A result against the inputs that are not layer outputs, and against what is written elsewhere. */
static attnres_status check_apart(const struct attnres_region *result,
                                  const struct attnres_region *others, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (attnres_regions_overlap(result, &others[i])) {
            return ATTNRES_ERROR_OVERLAP;
        }
    }
    return ATTNRES_OK;
}

static attnres_status check_block_read_memory(const attnres_shape *shape,
                                              const attnres_block_read_args *args)
{
    enum { RETRIEVED, WEIGHTS, EMBEDDING, QUERY, BIAS, REGIONS };
    const attnres_dtype dtype = shape->dtype;
    struct attnres_region regions[REGIONS], region;

    ATTNRES_TRY(
        attnres_region_rows(shape, dtype, attnres_rows_of(args->retrieved), &regions[RETRIEVED]));
    ATTNRES_TRY(attnres_region_per_source(args->source_count, shape->tokens, dtype, &args->weights,
                                          &regions[WEIGHTS]));
    ATTNRES_TRY(attnres_region_rows(shape, dtype, args->embedding, &regions[EMBEDDING]));
    regions[QUERY] =
        attnres_region_vector(attnres_dtype_accumulator(dtype), args->query, shape->width);
    regions[BIAS] = attnres_region_vector(ATTNRES_F64, args->bias, args->source_count);
    ATTNRES_TRY(check_apart(&regions[RETRIEVED], regions + 1, REGIONS - 1));
    ATTNRES_TRY(check_apart(&regions[WEIGHTS], regions + 2, REGIONS - 2));
    for (size_t i = 0; i < args->layers; i++) {
        ATTNRES_TRY(attnres_region_rows(shape, dtype, args->outputs[i], &region));
        ATTNRES_TRY(check_apart(&region, regions, 2));
    }
    for (size_t s = 0; s < args->source_count; s++) {
        if (s == 0 && !args->sources[0].data) {
            continue;
        }
        ATTNRES_TRY(attnres_region_rows(shape, dtype, attnres_rows_of(args->sources[s]), &region));
        ATTNRES_TRY(check_apart(&region, regions, REGIONS));
    }
    const struct blocks blocks = {args->outputs, args->layers, args->block_size, args->sources,
                                  args->source_count};
    for (size_t r = args->sources[0].data ? 0 : 1; r < args->source_count; r++) {
        ATTNRES_TRY(check_result(shape, &blocks, r, r == 0 ? NO_BLOCK : r - 1));
    }
    return ATTNRES_OK;
}

attnres_status attnres_block_read(const attnres_shape *shape, const attnres_block_read_args *args)
{
    if (!args) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    ATTNRES_TRY(check_blocks(shape, args->outputs, args->layers, args->block_size, args->sources,
                             args->source_count, 1));
    ATTNRES_TRY(attnres_check_scoring(args->eps, args->scale, args->bias, args->source_count));
    if (shape->tokens == 0) {
        return ATTNRES_OK;
    }
    if (!args->query) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    ATTNRES_TRY(check_block_read_memory(shape, args));

    const struct attnres_plan plan = {
        .shape = shape,
        .kernels = &attnres_dispatch()->of[shape->dtype],
        .scoring = {shape->dtype, shape->width, args->query, args->eps,
                    args->scale != 0 ? args->scale : 1, 0},
        .first = args->embedding,
        .list_out = args->sources + 1,
        .list_count = args->source_count - 1,
        .count = args->source_count,
        .bias = args->bias,
        .retrieved = args->retrieved,
        .weights = args->weights,
    };
    for (size_t t = 0; t < shape->tokens; t++) {
        if (args->sources[0].data) {
            attnres_sum_token(plan.kernels, shape, args->embedding, NULL, 0, t,
                              attnres_row_out(shape, args->sources[0], t), NULL);
        }
        sum_blocks(plan.kernels, shape, args->outputs, args->layers, args->block_size,
                   args->sources + 1, t);
        attnres_read_token(&plan, t);
    }
    return ATTNRES_OK;
}
