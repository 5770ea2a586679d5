/* The two halves of a read: attnres_score and attnres_mix. */
#include "dispatch.h"
#include "read.h"
#include "rows.h"

/* Rows scored by one kernel call; bounds the stack. */
#define GROUP 32

static attnres_status check_score(const attnres_shape *shape, const attnres_score_args *args)
{
    struct attnres_region squares, dots, source;
    const size_t count = args->source_count;

    if ((count && !args->sources) || !args->query || !args->squares.data || !args->dots.data) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    ATTNRES_TRY(
        attnres_region_per_source(count, shape->tokens, ATTNRES_F64, &args->squares, &squares));
    ATTNRES_TRY(attnres_region_per_source(count, shape->tokens, ATTNRES_F64, &args->dots, &dots));
    const struct attnres_region query =
        attnres_region_vector(attnres_dtype_accumulator(shape->dtype), args->query, shape->width);
    if (attnres_regions_overlap(&squares, &dots) || attnres_regions_overlap(&squares, &query) ||
        attnres_regions_overlap(&dots, &query)) {
        return ATTNRES_ERROR_OVERLAP;
    }
    for (size_t s = 0; s < count; s++) {
        ATTNRES_TRY(attnres_region_rows(shape, shape->dtype, args->sources[s], &source));
        if (attnres_regions_overlap(&squares, &source) || attnres_regions_overlap(&dots, &source)) {
            return ATTNRES_ERROR_OVERLAP;
        }
    }
    return ATTNRES_OK;
}

attnres_status attnres_score(const attnres_shape *shape, const attnres_score_args *args)
{
    ATTNRES_TRY(attnres_check_shape(shape));
    if (!args) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    if (shape->tokens == 0 || args->source_count == 0) {
        return ATTNRES_OK;
    }
    ATTNRES_TRY(check_score(shape, args));

    const struct attnres_kernels *kernels = &attnres_dispatch()->of[shape->dtype];
    const struct attnres_scoring scoring = {shape->dtype,
                                            shape->width,
                                            args->query,
                                            0,
                                            1,
                                            attnres_from_memory(shape, args->source_count)};
    const void *rows[GROUP];
    double squares[GROUP], dots[GROUP];
    for (size_t t = 0; t < shape->tokens; t++) {
        for (size_t first = 0; first < args->source_count; first += GROUP) {
            const size_t rest = args->source_count - first, n = rest < GROUP ? rest : GROUP;
            for (size_t r = 0; r < n; r++) {
                rows[r] = attnres_row(shape, args->sources[first + r], t);
            }
            kernels->score(rows, n, args->query, shape->width, scoring.from_memory, squares, dots);
            for (size_t r = 0; r < n; r++) {
                attnres_partial_sums(&scoring, rows[r], &squares[r], &dots[r]);
                ((double *)args->squares.data)[attnres_entry(shape, &args->squares, first + r, t)] =
                    squares[r];
                ((double *)args->dots.data)[attnres_entry(shape, &args->dots, first + r, t)] =
                    dots[r];
            }
        }
    }
    return ATTNRES_OK;
}

static attnres_status check_mix(const attnres_shape *shape, const attnres_mix_args *args)
{
    const size_t count = args->source_count;
    const int same_row = count <= ATTNRES_SOURCES_FAST;
    struct attnres_region retrieved, weights, logits, source;

    if (count == 0 || !args->sources || !args->logits.data) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    ATTNRES_TRY(
        attnres_region_rows(shape, shape->dtype, attnres_rows_of(args->retrieved), &retrieved));
    ATTNRES_TRY(
        attnres_region_per_source(count, shape->tokens, shape->dtype, &args->weights, &weights));
    ATTNRES_TRY(
        attnres_region_per_source(count, shape->tokens, ATTNRES_F64, &args->logits, &logits));
    if (attnres_regions_overlap(&retrieved, &weights) ||
        attnres_regions_overlap(&retrieved, &logits) ||
        attnres_regions_overlap(&weights, &logits)) {
        return ATTNRES_ERROR_OVERLAP;
    }
    for (size_t s = 0; s < count; s++) {
        ATTNRES_TRY(attnres_region_rows(shape, shape->dtype, args->sources[s], &source));
        if (attnres_regions_overlap(&weights, &source) ||
            (attnres_regions_overlap(&retrieved, &source) &&
             !(same_row && attnres_regions_equal(&retrieved, &source)))) {
            return ATTNRES_ERROR_OVERLAP;
        }
    }
    return ATTNRES_OK;
}

attnres_status attnres_mix(const attnres_shape *shape, const attnres_mix_args *args)
{
    ATTNRES_TRY(attnres_check_shape(shape));
    if (!args) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    if (shape->tokens == 0) {
        return ATTNRES_OK;
    }
    ATTNRES_TRY(check_mix(shape, args));

    const struct attnres_plan plan = {
        .shape = shape,
        .kernels = &attnres_dispatch()->of[shape->dtype],
        .list = args->sources,
        .list_count = args->source_count,
        .count = args->source_count,
        .retrieved = args->retrieved,
        .weights = args->weights,
        .given = &args->logits,
    };
    for (size_t t = 0; t < shape->tokens; t++) {
        attnres_read_token(&plan, t);
    }
    return ATTNRES_OK;
}
