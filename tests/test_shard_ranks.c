/* A read whose width is sharded over ranks, against the read in one piece.
 *
 * With e_s the oracle's bound of a logit (oracle.h), which has a chain of k >= 7 roundings, the
 * logit of R ranks has a chain of at most k + R: a part is no wider than the whole, and its sums
 * are added up by R - 1 roundings. So two such logits differ by at most
 *
 *     delta_s = e_s + (1 + R / 7) * e_s
 *
 * and with delta = max (delta_s + the rounding of differences of logits), the weights by at most a
 * factor exp(2 delta). Both mixes are off by c * eps(A) * sum_s w_s |x_s| from their logits' exact
 * ones, so elements differ by at most
 *
 *     (exp(2 delta) - 1 + 2 c * eps(A)) * exp(2 delta) * sum_s w_s |x_s| + what underflow costs
 *
 * and, for f16 and bf16, one ulp. From the same logits, the mix of a part of the columns has the
 * bits of the whole one's. */
#include "allocate.h"
#include "elements.h"
#include "levels.h"
#include "oracle.h"
#include "problem.h"
#include "shard_parts.h"
#include "suites.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RANKS_MAX = 4 };

typedef struct sharding {
    problem it;
    size_t ranks, first[RANKS_MAX + 1]; /* columns */
    double *squares, *dots;             /* added up; then squares holds logits */
    void *retrieved, *weights, *together;
} sharding;

static void must(attnres_status status)
{
    ck_assert_msg(status == ATTNRES_OK, "%s", attnres_status_string(status));
}

static void open_sharding(sharding *sharded, problem_size size, size_t ranks, uint64_t *stream)
{
    const size_t entries = size.count * size.tokens, elements = size.tokens * size.width;
    *sharded = (sharding){.ranks = ranks};
    problem_open(&sharded->it, size, inputs_next(stream));
    sharded->squares = allocate(entries, sizeof(double));
    sharded->dots = allocate(entries, sizeof(double));
    sharded->retrieved = allocate(elements, sizeof(double));
    sharded->weights = allocate(entries, sizeof(double));
    sharded->together = allocate(elements, sizeof(double));
    for (size_t r = 0; r <= ranks; r++) { /* at least one column each */
        const size_t shift = r == 0 || r == ranks ? 0 : inputs_pick(stream, size.width / ranks);
        sharded->first[r] = r * size.width / ranks + (shift < 1 ? 0 : shift - 1);
    }
}

static void close_sharding(sharding *sharded)
{
    problem_close(&sharded->it);
    free(sharded->squares);
    free(sharded->dots);
    free(sharded->retrieved);
    free(sharded->weights);
    free(sharded->together);
}

/* The columns of rank r, as that rank would see them. */
static attnres_shape shape_of(const sharding *sharded, size_t r)
{
    attnres_shape shape = sharded->it.shape;
    shape.width = sharded->first[r + 1] - sharded->first[r];
    return shape;
}

static void sources_of(const sharding *sharded, size_t r, attnres_rows *sources)
{
    const problem *it = &sharded->it;
    for (size_t s = 0; s < it->count; s++) {
        sources[s] = it->sources[s];
        sources[s].data = elements_at(it->shape.dtype, problem_row(it, s, 0), sharded->first[r]);
    }
}

/* Every rank scores; the sums are added up in the order of ranks, and made logits of. */
static void score(sharding *sharded, attnres_rows *sources)
{
    problem *it = &sharded->it;
    const size_t entries = it->count * it->shape.tokens;
    double *squares = allocate(entries, sizeof *squares), *dots = allocate(entries, sizeof *dots);
    memset(sharded->squares, 0, entries * sizeof(double));
    memset(sharded->dots, 0, entries * sizeof(double));
    for (size_t r = 0; r < sharded->ranks; r++) {
        const attnres_shape shape = shape_of(sharded, r);
        sources_of(sharded, r, sources);
        const attnres_score_args args = {
            .sources = sources,
            .source_count = it->count,
            .query = elements_at(attnres_dtype_accumulator(it->shape.dtype), it->query,
                                 sharded->first[r]),
            .squares = {.data = squares},
            .dots = {.data = dots},
        };
        must(attnres_score(&shape, &args));
        for (size_t i = 0; i < entries; i++) {
            sharded->squares[i] += squares[i];
            sharded->dots[i] += dots[i];
        }
    }
    for (size_t i = 0; i < entries; i++) {
        sharded->squares[i] =
            attnres_combine(sharded->squares[i], sharded->dots[i], it->shape.width, it->args.eps);
        if (it->args.bias) {
            sharded->squares[i] += it->args.bias[i / it->shape.tokens];
        }
    }
    free(squares);
    free(dots);
}

/* Every rank mixes its columns; the weights are the same on all of them. */
static void mix(sharding *sharded, attnres_rows *sources)
{
    const problem *it = &sharded->it;
    const attnres_dtype dtype = it->shape.dtype;
    const size_t width = it->shape.width, entries = it->count * it->shape.tokens;
    void *weights = allocate(entries, sizeof(double));
    attnres_mix_args args = {.sources = it->sources,
                             .source_count = it->count,
                             .logits = {.data = sharded->squares},
                             .retrieved = {sharded->together, 0},
                             .weights = {.data = weights}};
    must(attnres_mix(&it->shape, &args));
    args.weights.data = sharded->weights;
    args.sources = sources;
    for (size_t r = 0; r < sharded->ranks; r++) {
        const attnres_shape shape = shape_of(sharded, r);
        sources_of(sharded, r, sources);
        args.retrieved = (attnres_rows_out){
            elements_at(dtype, sharded->retrieved, sharded->first[r]), (ptrdiff_t)width};
        must(attnres_mix(&shape, &args));
        elements_check(dtype, sharded->weights, weights, entries, "weights on rank %zu", r);
    }
    elements_check(dtype, sharded->retrieved, sharded->together, it->shape.tokens * width,
                   "mix of %zu parts of the columns", sharded->ranks);
    free(weights);
}

/* Logits of token t, as a multiple of their bound; *delta is what weights are then good to. */
static double logits_ratio(const sharding *sharded, const oracle *judge, size_t t, double *delta)
{
    const problem *it = &sharded->it;
    double worst = 0;
    *delta = 0;
    for (size_t s = 0; s < it->count; s++) {
        const size_t at = s * it->shape.tokens + t;
        const double bound = (double)judge->logit_bounds[s] * (2 + (double)sharded->ranks / 7);
        const double difference = fabs(sharded->squares[at] - it->logits[at]);
        worst = fmax(worst, difference == 0 ? 0 : difference / bound);
        *delta = fmax(*delta, bound + (double)judge->difference_bound);
    }
    return worst;
}

static double elements_ratio(const sharding *sharded, const oracle *judge, size_t t, double delta)
{
    const problem *it = &sharded->it;
    const attnres_dtype dtype = it->shape.dtype;
    const double eps = dtype == ATTNRES_F64 ? 0x1p-52 : 0x1p-23;
    const double smallest = dtype == ATTNRES_F64 ? 0x1p-1022 : 0x1p-150;
    const double factor =
        (expm1(2 * delta) + 2 * (double)judge->fold_factor * eps) * exp(2 * delta) * 1.01;
    double worst = 0;
    for (size_t i = t * it->shape.width; i < (t + 1) * it->shape.width; i++) {
        const double found = elements_get(dtype, sharded->retrieved, i);
        const double expected = elements_get(dtype, it->retrieved, i);
        const double magnitude = (double)judge->magnitudes[i - t * it->shape.width];
        double bound = factor * magnitude + 4 * smallest * (magnitude + (double)it->count);
        if (attnres_dtype_size(dtype) == 2) {
            bound += elements_ulp(dtype, fabs(expected) + bound);
        }
        worst = fmax(worst, found == expected ? 0 : fabs(found - expected) / bound);
    }
    return worst;
}

static void check_ranks(problem_size size, size_t ranks, uint64_t number)
{
    uint64_t stream = inputs_stream(67, number, (uint64_t)size.dtype);
    attnres_rows *sources = allocate(size.count, sizeof *sources);
    sharding sharded;
    double delta;
    open_sharding(&sharded, size, ranks, &stream);
    problem *it = &sharded.it;
    if (size.kind == INPUTS_ORDINARY) { /* and no query of another kind, as some are */
        inputs_fill_scaled(attnres_dtype_accumulator(size.dtype), 1.5 / sqrt((double)size.width),
                           &stream, it->query, size.width);
    }
    it->args.eps = 1e-6;
    it->args.bias = number % 2 ? it->bias : NULL;
    problem_run(it);
    score(&sharded, sources);
    mix(&sharded, sources);
    for (size_t t = 0; t < size.tokens; t++) {
        const reading in = problem_reading(it, &it->args, t);
        oracle judge;
        oracle_open(&judge, &in);
        const double logits = logits_ratio(&sharded, &judge, t, &delta);
        const double elements = elements_ratio(&sharded, &judge, t, delta);
        ck_assert_msg(logits <= 1 && elements <= 1,
                      "%s, %s, case %llu, width %zu, %zu ranks: logits at %g, elements at %g of "
                      "their bounds",
                      elements_name(size.dtype), inputs_name(size.kind), (unsigned long long)number,
                      size.width, ranks, logits, elements);
        /* A bound that large would say nothing. */
        ck_assert(size.kind != INPUTS_ORDINARY || delta < 1e-2);
        oracle_close(&judge);
    }
    close_sharding(&sharded);
    free(sources);
}

/* _i is level and dtype. f64 has no wider sums for rows beyond its normal range. */
START_TEST(ranks_are_within_the_bound)
{
    static const size_t widths[] = {4, 7, 33, 64, 130, 257, 1000, 2304, 7168};
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    const size_t kinds = dtype == ATTNRES_F64 ? INPUTS_TINY : INPUTS_SPECIAL;
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t n = 0; n < 45; n += inputs_quick() ? 7 : 1) {
        const size_t width = widths[n % 9];
        const problem_size size = {.dtype = dtype,
                                   .tokens = width > 200 ? 1 : 1 + n % 3,
                                   .width = width,
                                   .count = width > 2000 ? 3 : 1 + n % 10,
                                   .kind = (inputs_kind)(n / 9 % kinds)};
        check_ranks(size, 2 + n % 3, n);
    }
}
END_TEST

/* Rows whose squares leave float's range on every rank, eps 0: all that counts are the ratios.
 * Every logit is sqrt(width) times the query's sum over width, exactly but for rounding. */
START_TEST(sizes_beyond_the_range)
{
    static const double sizes[] = {1e30, 1e-30, 0x1p-149, 1, 1e-25, 3e38};
    enum { WIDTH = 96, COUNT = sizeof sizes / sizeof *sizes };
    float rows[COUNT][WIDTH], query[WIDTH];
    double squares[COUNT] = {0}, dots[COUNT] = {0}, part_squares[COUNT], part_dots[COUNT];
    double sum = 0;
    levels_use(_i);
    for (int i = 0; i < WIDTH; i++) {
        query[i] = (float)(i % 7) - 1.5f;
        sum += (double)query[i];
        for (int s = 0; s < COUNT; s++) {
            rows[s][i] = (float)sizes[s];
        }
    }
    for (int r = 0; r < 3; r++) {
        const attnres_shape shape = {ATTNRES_F32, 1, WIDTH / 3};
        attnres_rows sources[COUNT];
        for (int s = 0; s < COUNT; s++) {
            sources[s] = (attnres_rows){rows[s] + r * WIDTH / 3, 0};
        }
        const attnres_score_args args = {
            sources, COUNT, query + r * WIDTH / 3, {.data = part_squares}, {.data = part_dots}};
        must(attnres_score(&shape, &args));
        for (int s = 0; s < COUNT; s++) {
            squares[s] += part_squares[s];
            dots[s] += part_dots[s];
        }
    }
    for (int s = 0; s < COUNT; s++) {
        const double logit = attnres_combine(squares[s], dots[s], WIDTH, 0);
        ck_assert_msg(fabs(logit - sum) <= 1e-6 * sum, "rows of %g: %.17g, not %.17g", sizes[s],
                      logit, sum);
    }
}
END_TEST

TCase *shard_ranks_case(void)
{
    TCase *ranks = tcase_create("ranks");
    tcase_add_checked_fixture(ranks, levels_save, levels_restore);
    tcase_set_timeout(ranks, 60);
    tcase_add_loop_test(ranks, ranks_are_within_the_bound, 0, ELEMENTS_DTYPES * levels_count());
    tcase_add_loop_test(ranks, sizes_beyond_the_range, 0, levels_count());
    return ranks;
}
