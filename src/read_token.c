/* One token: score every source, turn logits into the steps of the fold, mix, normalise.
 *
 * Up to ATTNRES_SOURCES_FAST sources, one group, are scored once and mixed in one sweep. More are
 * taken in groups, and since neither all logits nor a whole row of accumulators fit fixed scratch,
 * the mix is made in tiles of columns, each of which scores the rows again. Slow, but the same
 * bits: the fold does not care where it is interrupted. */
#include <math.h>
#include <string.h>

#include "convert.h"
#include "read.h"
#include "rows.h"
#include "softmax.h"

#define GROUP ATTNRES_SOURCES_FAST
#define TILE_BYTES 2048 /* of accumulators; a multiple of every block of lanes */
#define LANES_BYTES 128

/* Fetched during the mix, from the next token above all. With more than this, rows that are still
 * needed were pushed out of a 512 KiB L2 cache (docs/design.md, section 5). */
#define BYTES_AHEAD 65536
#define ROWS_AHEAD 16

struct group {
    const void *rows[GROUP];
    double logits[GROUP];
    size_t count;
};

/* The sources of a group that count, and their steps in the accumulator type. */
struct steps {
    const void *rows[GROUP];
    union {
        float f32[2 * GROUP];
        double f64[2 * GROUP];
    } pairs;
    size_t count;
};

static const void *source_row(const struct attnres_plan *plan, size_t s, size_t t)
{
    if (plan->first.data) {
        if (s == 0) {
            return attnres_row(plan->shape, plan->first, t);
        }
        s--;
    }
    if (s == plan->list_count) {
        return attnres_row(plan->shape, plan->last, t);
    }
    return attnres_row(plan->shape, plan->list ? plan->list[s] : attnres_rows_of(plan->list_out[s]),
                       t);
}

static int is_double(const struct attnres_plan *plan)
{
    return plan->shape->dtype == ATTNRES_F64;
}

static size_t accumulator_bytes(const struct attnres_plan *plan)
{
    return is_double(plan) ? sizeof(double) : sizeof(float);
}

/* (A)value, as a double. */
static double rounded_to_accumulator(const struct attnres_plan *plan, double value)
{
    return is_double(plan) ? value : (double)(float)value;
}

static void score_group(const struct attnres_plan *plan, size_t t, size_t first,
                        struct group *group)
{
    group->count = plan->count - first < GROUP ? plan->count - first : GROUP;
    for (size_t s = 0; s < group->count; s++) {
        group->rows[s] = source_row(plan, first + s, t);
    }
    if (plan->given) {
        for (size_t s = 0; s < group->count; s++) {
            group->logits[s] =
                ((const double *)
                     plan->given->data)[attnres_entry(plan->shape, plan->given, first + s, t)];
        }
        return;
    }
    attnres_logits(plan->kernels, &plan->scoring, group->rows, group->count,
                   plan->bias ? plan->bias + first : NULL, group->logits);
}

static void take_group(const struct attnres_plan *plan, const struct group *group,
                       struct attnres_fold *fold, struct steps *steps)
{
    steps->count = 0;
    for (size_t s = 0; s < group->count; s++) {
        struct attnres_step step;
        if (!attnres_fold_take(fold, group->logits[s], &step)) {
            continue;
        }
        attnres_step_pack(plan->shape->dtype, &steps->pairs, steps->count, &step);
        steps->rows[steps->count++] = group->rows[s];
    }
}

static void set_entry(const attnres_per_source *entries, const struct attnres_plan *plan,
                      attnres_dtype dtype, size_t s, size_t t, double value)
{
    attnres_set_element(dtype, entries->data, attnres_entry(plan->shape, entries, s, t), value);
}

static void write_logits(const struct attnres_plan *plan, const struct group *group, size_t first,
                         size_t t)
{
    for (size_t s = 0; plan->logits.data && s < group->count; s++) {
        set_entry(&plan->logits, plan, ATTNRES_F64, first + s, t, group->logits[s]);
    }
}

static void write_weights(const struct attnres_plan *plan, const struct group *group,
                          const struct attnres_fold *fold, size_t first, size_t t)
{
    for (size_t s = 0; plan->weights.data && s < group->count; s++) {
        set_entry(&plan->weights, plan, plan->shape->dtype, first + s, t,
                  attnres_fold_weight(fold, group->logits[s]));
    }
}

static struct attnres_fold first_fold(const struct attnres_plan *plan, size_t t)
{
    struct attnres_fold fold = attnres_fold_empty();
    if (plan->resume) {
        fold = (struct attnres_fold){plan->resume->max[t], plan->resume->sum[t]};
    }
    return fold;
}

static const char *first_mix(const struct attnres_plan *plan, size_t t)
{
    const struct attnres_fold fold = first_fold(plan, t);
    const attnres_shape accumulators = {attnres_dtype_accumulator(plan->shape->dtype),
                                        plan->shape->tokens, plan->shape->width};
    if (attnres_fold_is_empty(&fold)) {
        return NULL;
    }
    return attnres_row(&accumulators, (attnres_rows){plan->resume->mix, plan->resume->mix_stride},
                       t);
}

/* Where the mix of a token comes from: all of it, or a tile of its columns made on demand. */
struct token {
    const struct attnres_plan *plan;
    size_t t;
    const char *start; /* mixed so far, or NULL */
    double factor;     /* 1 / sum of the exponentials */
    int one_group;
    struct steps steps; /* of that group */
};

/* Folds all groups for the columns begin .. begin + n - 1 into accumulators. */
static void fold_tile(const struct token *token, size_t begin, size_t n, void *accumulators)
{
    const struct attnres_plan *plan = token->plan;
    const size_t size = attnres_dtype_size(plan->shape->dtype);
    const size_t accumulator_size = accumulator_bytes(plan);
    struct attnres_fold fold = first_fold(plan, token->t);
    const void *start = token->start ? token->start + begin * accumulator_size : NULL;
    struct group group;
    struct steps steps;

    for (size_t first = 0; first < plan->count; first += GROUP) {
        score_group(plan, token->t, first, &group);
        take_group(plan, &group, &fold, &steps);
        for (size_t s = 0; s < steps.count; s++) {
            steps.rows[s] = (const char *)steps.rows[s] + begin * size;
        }
        if (steps.count > 0) {
            plan->kernels->fold(steps.rows, &steps.pairs, steps.count, start, accumulators, n);
            start = accumulators;
        }
    }
    if (!start) { /* nothing counts: zeros will do, the factor is NaN */
        memset(accumulators, 0, n * accumulator_size);
    } else if (start != accumulators) {
        plan->kernels->fold(NULL, NULL, 0, start, accumulators, n);
    }
}

static void *at_column(void *row, size_t column, size_t size)
{
    return row ? (char *)row + column * size : NULL;
}

/* What is wanted after this mix, in pieces as long as a row: the gain, before anything of it was
 * used, and rows of the next token. */
static size_t rows_ahead(const struct token *token, const void *rows[ROWS_AHEAD])
{
    const struct attnres_plan *plan = token->plan;
    const size_t row = plan->shape->width * attnres_dtype_size(plan->shape->dtype);
    const size_t most = BYTES_AHEAD / row < ROWS_AHEAD ? BYTES_AHEAD / row : ROWS_AHEAD;
    size_t count = 0;

    if (token->t == 0 && plan->norm_gain) {
        const size_t gain = plan->shape->width * accumulator_bytes(plan);
        for (; count < most && count * row < gain; count++) {
            rows[count] = (const char *)plan->norm_gain + count * row;
        }
    }
    if (plan->scoring.from_memory && token->t + 1 < plan->shape->tokens) {
        for (size_t s = 0; count < most && s < plan->count; s++) {
            rows[count++] = source_row(plan, s, token->t + 1);
        }
    }
    return count;
}

/* Runs the mix kernel over the whole row with what `wanted` asks for; its row pointers are those
 * of column 0. */
static void mix_token(const struct token *token, const struct attnres_mix *wanted)
{
    const struct attnres_plan *plan = token->plan;
    const size_t width = plan->shape->width, size = attnres_dtype_size(plan->shape->dtype);
    const size_t accumulator_size = accumulator_bytes(plan);
    const void *ahead[ROWS_AHEAD];
    struct attnres_mix mix = *wanted;

    mix.factor = token->factor;
    if (token->one_group) {
        mix.ahead = ahead;
        mix.ahead_count = rows_ahead(token, ahead);
        mix.rows = token->steps.rows;
        mix.steps = &token->steps.pairs;
        mix.count = token->steps.count;
        mix.start = token->start;
        plan->kernels->mix(&mix, width);
        return;
    }
    double tile[TILE_BYTES / sizeof(double)];
    const size_t tile_columns = TILE_BYTES / accumulator_size;
    mix.start = tile;
    for (size_t i = 0; i < width; i += tile_columns) {
        const size_t n = width - i < tile_columns ? width - i : tile_columns;
        fold_tile(token, i, n, tile);
        mix.out = at_column(wanted->out, i, size);
        mix.normed = at_column(wanted->normed, i, size);
        mix.gain = wanted->gain ? (const char *)wanted->gain + i * accumulator_size : NULL;
        plan->kernels->mix(&mix, n);
    }
}

/* The lanes added up in halves, as every kernel folds them. */
#define FOLD_LANES(lanes)                                                                          \
    for (size_t distance = sizeof(lanes) / sizeof *(lanes) / 2; distance >= 1; distance /= 2) {    \
        for (size_t j = 0; j < distance; j++) {                                                    \
            (lanes)[j] += (lanes)[j + distance];                                                   \
        }                                                                                          \
    }

/* 1 / sqrt(mean square + eps), rounded to the accumulator type, from the sums of the lanes. */
static double norm_factor(const struct attnres_plan *plan, const void *lane_squares)
{
    double lanes64[LANES_BYTES / sizeof(double)];
    float lanes32[LANES_BYTES / sizeof(float)];

    memcpy(lanes64, lane_squares, sizeof lanes64);
    memcpy(lanes32, lane_squares, sizeof lanes32);
    if (is_double(plan)) {
        FOLD_LANES(lanes64)
    } else {
        FOLD_LANES(lanes32)
    }
    const double squares = is_double(plan) ? lanes64[0] : (double)lanes32[0];
    return rounded_to_accumulator(
        plan, 1.0 / sqrt(squares / (double)plan->shape->width + plan->norm_eps));
}

/* Result and norm. With reference rounding the mix is stored, and normalised from there; otherwise
 * it is made twice, once for the sum of its squares: there is no room to keep it unrounded. */
static void write_results(const struct token *token)
{
    const struct attnres_plan *plan = token->plan;
    double lane_squares[LANES_BYTES / sizeof(double)] = {0};
    void *retrieved = attnres_row_out(plan->shape, plan->retrieved, token->t);
    void *normed = attnres_row_out(plan->shape, plan->normed, token->t);
    struct attnres_mix mix = {.out = retrieved};

    if (!normed) {
        if (retrieved) {
            mix_token(token, &mix);
        }
        return;
    }
    mix.squares = lane_squares;
    mix.round = plan->norm_rounds;
    mix.out = !plan->norm_rounds ? NULL : retrieved ? retrieved : normed;
    mix_token(token, &mix);
    mix.norm_factor = norm_factor(plan, lane_squares);
    if (plan->norm_rounds) {
        plan->kernels->normalize(mix.out, mix.norm_factor, plan->norm_gain, plan->shape->width,
                                 normed);
        return;
    }
    mix.squares = NULL;
    mix.out = retrieved;
    mix.normed = normed;
    mix.gain = plan->norm_gain;
    mix_token(token, &mix);
}

void attnres_read_token(const struct attnres_plan *plan, size_t t)
{
    struct token token; /* large: its steps are not worth clearing */
    struct group group;
    struct attnres_fold fold = first_fold(plan, t);

    token.plan = plan;
    token.t = t;
    token.start = first_mix(plan, t);
    token.one_group = plan->count <= GROUP;
    token.steps.count = 0;
    for (size_t first = 0; first < plan->count; first += GROUP) {
        score_group(plan, t, first, &group);
        write_logits(plan, &group, first, t);
        take_group(plan, &group, &fold, &token.steps);
    }
    for (size_t first = 0; plan->weights.data && first < plan->count; first += GROUP) {
        if (!token.one_group) {
            score_group(plan, t, first, &group);
        }
        write_weights(plan, &group, &fold, first, t);
    }
    token.factor = rounded_to_accumulator(plan, 1.0 / fold.sum);
    if (attnres_fold_is_empty(&fold)) {
        token.factor = (double)NAN;
        if (plan->count == 0) { /* an empty fold is finished: no row, so tiles of zeros */
            token.one_group = 0;
        } else if (token.one_group) { /* all sources were removed: any row will do */
            token.steps.rows[0] = group.rows[0];
            token.steps.count = 1;
        }
    }
    write_results(&token);
}
