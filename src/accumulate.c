/* Folds that are kept: attnres_state_clear, attnres_accumulate, attnres_finish. */
#include <math.h>

#include "dispatch.h"
#include "read.h"
#include "rows.h"
#include "softmax.h"

/* Rows and queries scored at once; bound the stack. */
#define TILE_ROWS 16
#define TILE_QUERIES 24

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
    const void *counted[TILE_ROWS];
    union {
        float f32[2 * TILE_ROWS];
        double f64[2 * TILE_ROWS];
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

/* A few sources of a few tokens, which all queries are scored against before the next: rows of
 * token t stand at (t - first_token) * sources. */
struct tile {
    const void *rows[TILE_ROWS];
    double squares[TILE_ROWS];
    size_t first_source, sources, first_token, tokens;
};

static void store_logits(const attnres_shape *shape, const attnres_per_source *entries,
                         const struct tile *tile, size_t t, const double *logits)
{
    double *data = entries->data;
    for (size_t s = 0; data && s < tile->sources; s++) {
        data[attnres_entry(shape, entries, tile->first_source + s, t)] = logits[s];
    }
}

/* Extends the state of query i by a tile; dots are those of its rows. */
static void take_tile(const attnres_shape *shape, const attnres_accumulate_args *args,
                      const struct attnres_kernels *kernels, struct attnres_scoring scoring,
                      const struct tile *tile, size_t i, const double *dots)
{
    double logits[TILE_ROWS];
    scoring.query = args->queries[i];
    for (size_t k = 0; k < tile->tokens; k++) {
        const size_t t = tile->first_token + k, from = k * tile->sources;
        for (size_t s = 0; s < tile->sources; s++) {
            logits[s] = attnres_biased_logit(
                &scoring, tile->rows[from + s], tile->squares[from + s], dots[from + s],
                args->bias ? &args->bias[tile->first_source + s] : NULL);
        }
        extend_state(shape, kernels, &args->states[i], t, tile->rows + from, logits, tile->sources);
        if (args->logits) {
            store_logits(shape, &args->logits[i], tile, t, logits);
        }
    }
}

/* The first query's scores bring the sums of squares, which serve the others, too. */
static void score_tile(const attnres_shape *shape, const attnres_accumulate_args *args,
                       const struct attnres_kernels *kernels, const struct attnres_scoring *scoring,
                       struct tile *tile)
{
    const size_t rows = tile->tokens * tile->sources;
    double dots[TILE_QUERIES * TILE_ROWS];

    for (size_t r = 0; r < rows; r++) {
        tile->rows[r] = attnres_row(shape, args->sources[tile->first_source + r % tile->sources],
                                    tile->first_token + r / tile->sources);
    }
    kernels->score(tile->rows, rows, args->queries[0], shape->width, 0, tile->squares, dots);
    take_tile(shape, args, kernels, *scoring, tile, 0, dots);
    for (size_t first = 1; first < args->query_count; first += TILE_QUERIES) {
        const size_t rest = args->query_count - first;
        const size_t n = rest < TILE_QUERIES ? rest : TILE_QUERIES;
        kernels->dots(tile->rows, rows, args->queries + first, n, shape->width, dots);
        for (size_t i = 0; i < n; i++) {
            take_tile(shape, args, kernels, *scoring, tile, first + i, dots + i * rows);
        }
    }
}

attnres_status attnres_accumulate(const attnres_shape *shape, const attnres_accumulate_args *args)
{
    ATTNRES_TRY(check(shape, args));
    if (args->query_count == 0 || args->source_count == 0) {
        return ATTNRES_OK;
    }
    const struct attnres_kernels *kernels = &attnres_dispatch()->of[shape->dtype];
    const struct attnres_scoring scoring = {
        shape->dtype, shape->width, NULL, args->eps, args->scale != 0 ? args->scale : 1, 0};
    const size_t sources = args->source_count < TILE_ROWS ? args->source_count : TILE_ROWS;
    const size_t tokens = TILE_ROWS / sources;
    struct tile tile;

    for (size_t t = 0; t < shape->tokens; t += tokens) {
        for (size_t s = 0; s < args->source_count; s += sources) {
            tile.first_source = s;
            tile.sources = args->source_count - s < sources ? args->source_count - s : sources;
            tile.first_token = t;
            tile.tokens = shape->tokens - t < tokens ? shape->tokens - t : tokens;
            score_tile(shape, args, kernels, &scoring, &tile);
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
