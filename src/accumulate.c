/* Folds that are kept: attnres_state_clear, attnres_accumulate, attnres_finish. */
#include <math.h>

#include "dispatch.h"
#include "read.h"
#include "rows.h"
#include "softmax.h"

/* Sources taken at once; bounds the stack. */
#define GROUP 64

struct state_regions {
    struct attnres_region mix, max, sum;
};

static attnres_status regions_of(const attnres_shape *shape, const attnres_state *state,
                                 struct state_regions *regions)
{
    if (!state->max || !state->sum) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    regions->max = attnres_region_vector(ATTNRES_F64, state->max, shape->tokens);
    regions->sum = attnres_region_vector(ATTNRES_F64, state->sum, shape->tokens);
    return attnres_region_rows(shape, attnres_dtype_accumulator(shape->dtype),
                               (attnres_rows){state->mix, state->mix_stride}, &regions->mix);
}

static int touches(const struct state_regions *state, const struct attnres_region *other)
{
    return attnres_regions_overlap(&state->mix, other) ||
           attnres_regions_overlap(&state->max, other) ||
           attnres_regions_overlap(&state->sum, other);
}

attnres_status attnres_state_clear(const attnres_shape *shape, const attnres_state *state)
{
    struct state_regions regions;
    ATTNRES_TRY(attnres_check_shape(shape));
    if (!state) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    if (shape->tokens == 0) {
        return ATTNRES_OK;
    }
    ATTNRES_TRY(regions_of(shape, state, &regions));
    const struct attnres_fold empty = attnres_fold_empty();
    for (size_t t = 0; t < shape->tokens; t++) {
        state->max[t] = empty.max;
        state->sum[t] = empty.sum;
    }
    return ATTNRES_OK;
}

/* State number i against all that the call reads, and against the states after it. */
static attnres_status check_state(const attnres_shape *shape, const attnres_accumulate_args *args,
                                  size_t i)
{
    const attnres_dtype accumulator = attnres_dtype_accumulator(shape->dtype);
    struct state_regions state, next;
    struct attnres_region other;

    ATTNRES_TRY(regions_of(shape, &args->states[i], &state));
    if (attnres_regions_overlap(&state.max, &state.sum) ||
        attnres_regions_overlap(&state.mix, &state.max) ||
        attnres_regions_overlap(&state.mix, &state.sum)) {
        return ATTNRES_ERROR_OVERLAP;
    }
    for (size_t s = 0; s < args->source_count; s++) {
        ATTNRES_TRY(attnres_region_rows(shape, shape->dtype, args->sources[s], &other));
        if (touches(&state, &other)) {
            return ATTNRES_ERROR_OVERLAP;
        }
    }
    for (size_t k = 0; k < args->query_count; k++) {
        other = attnres_region_vector(accumulator, args->queries[k], shape->width);
        if (!args->queries[k]) {
            return ATTNRES_ERROR_ARGUMENT;
        }
        if (touches(&state, &other)) {
            return ATTNRES_ERROR_OVERLAP;
        }
    }
    other = attnres_region_vector(ATTNRES_F64, args->bias, args->source_count);
    if (touches(&state, &other)) {
        return ATTNRES_ERROR_OVERLAP;
    }
    for (size_t k = i + 1; k < args->query_count; k++) {
        ATTNRES_TRY(regions_of(shape, &args->states[k], &next));
        if (touches(&state, &next.mix) || touches(&state, &next.max) ||
            touches(&state, &next.sum)) {
            return ATTNRES_ERROR_OVERLAP;
        }
    }
    return ATTNRES_OK;
}

/* Logits of query i against everything else. */
static attnres_status check_logits(const attnres_shape *shape, const attnres_accumulate_args *args,
                                   size_t i)
{
    struct attnres_region logits, other;
    struct state_regions state;

    ATTNRES_TRY(attnres_region_per_source(args->source_count, shape->tokens, ATTNRES_F64,
                                          &args->logits[i], &logits));
    for (size_t s = 0; s < args->source_count; s++) {
        ATTNRES_TRY(attnres_region_rows(shape, shape->dtype, args->sources[s], &other));
        if (attnres_regions_overlap(&logits, &other)) {
            return ATTNRES_ERROR_OVERLAP;
        }
    }
    for (size_t k = 0; k < args->query_count; k++) {
        ATTNRES_TRY(regions_of(shape, &args->states[k], &state));
        other = attnres_region_vector(attnres_dtype_accumulator(shape->dtype), args->queries[k],
                                      shape->width);
        if (touches(&state, &logits) || attnres_regions_overlap(&logits, &other)) {
            return ATTNRES_ERROR_OVERLAP;
        }
        ATTNRES_TRY(attnres_region_per_source(args->source_count, shape->tokens, ATTNRES_F64,
                                              &args->logits[k], &other));
        if (k != i && attnres_regions_overlap(&logits, &other)) {
            return ATTNRES_ERROR_OVERLAP;
        }
    }
    other = attnres_region_vector(ATTNRES_F64, args->bias, args->source_count);
    return attnres_regions_overlap(&logits, &other) ? ATTNRES_ERROR_OVERLAP : ATTNRES_OK;
}

static attnres_status check(const attnres_shape *shape, const attnres_accumulate_args *args)
{
    ATTNRES_TRY(attnres_check_shape(shape));
    if (!args || (args->source_count && !args->sources) ||
        (args->query_count && (!args->queries || !args->states))) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    ATTNRES_TRY(attnres_check_scoring(args->eps, args->scale, args->bias, args->source_count));
    for (size_t i = 0; shape->tokens && i < args->query_count; i++) {
        ATTNRES_TRY(check_state(shape, args, i));
    }
    for (size_t i = 0; shape->tokens && args->logits && i < args->query_count; i++) {
        ATTNRES_TRY(check_logits(shape, args, i));
    }
    return ATTNRES_OK;
}

/* Takes rows[n] of token t, already scored, into the stored fold. */
static void extend_state(const attnres_shape *shape, const struct attnres_kernels *kernels,
                         const attnres_state *state, size_t t, const void *const *rows,
                         const double *logits, size_t n)
{
    const attnres_shape accumulators = {attnres_dtype_accumulator(shape->dtype), shape->tokens,
                                        shape->width};
    const attnres_rows_out mixes = {state->mix, state->mix_stride};
    struct attnres_fold fold = {state->max[t], state->sum[t]};
    void *mix = attnres_row_out(&accumulators, mixes, t);
    const void *start = attnres_fold_is_empty(&fold) ? NULL : mix;
    const void *counted[GROUP];
    union {
        float f32[2 * GROUP];
        double f64[2 * GROUP];
    } steps;
    size_t count = 0;

    for (size_t s = 0; s < n; s++) {
        struct attnres_step step;
        if (attnres_fold_take(&fold, logits[s], &step)) {
            attnres_step_pack(shape->dtype, &steps, count, &step);
            counted[count++] = rows[s];
        }
    }
    if (count > 0) {
        kernels->fold(counted, &steps, count, start, mix, shape->width);
    }
    state->max[t] = fold.max;
    state->sum[t] = fold.sum;
}

attnres_status attnres_accumulate(const attnres_shape *shape, const attnres_accumulate_args *args)
{
    ATTNRES_TRY(check(shape, args));
    const struct attnres_kernels *kernels = &attnres_dispatch()->of[shape->dtype];
    struct attnres_scoring scoring = {
        shape->dtype, shape->width, NULL, args->eps, args->scale != 0 ? args->scale : 1, 0};
    const void *rows[GROUP];
    double logits[GROUP];

    for (size_t t = 0; t < shape->tokens; t++) {
        for (size_t first = 0; first < args->source_count; first += GROUP) {
            const size_t rest = args->source_count - first, n = rest < GROUP ? rest : GROUP;
            for (size_t s = 0; s < n; s++) {
                rows[s] = attnres_row(shape, args->sources[first + s], t);
            }
            for (size_t i = 0; i < args->query_count; i++) {
                scoring.query = args->queries[i];
                attnres_logits(kernels, &scoring, rows, n, args->bias ? args->bias + first : NULL,
                               logits);
                extend_state(shape, kernels, &args->states[i], t, rows, logits, n);
                for (size_t s = 0; args->logits && args->logits[i].data && s < n; s++) {
                    ((double *)args->logits[i]
                         .data)[attnres_entry(shape, &args->logits[i], first + s, t)] = logits[s];
                }
            }
        }
    }
    return ATTNRES_OK;
}

attnres_status attnres_finish(const attnres_shape *shape, const attnres_state *state,
                              attnres_rows_out retrieved)
{
    const attnres_read_args args = {.resume = state, .retrieved = retrieved};
    return attnres_read(shape, &args);
}
