/* The two halves of a read by themselves: attnres_score and attnres_mix against the contract, and
 * one after the other against attnres_read. */
#include "allocate.h"
#include "elements.h"
#include "levels.h"
#include "plain.h"
#include "problem.h"
#include "shard_parts.h"
#include "suites.h"

#include "exp.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void must(attnres_status status)
{
    ck_assert_msg(status == ATTNRES_OK, "%s", attnres_status_string(status));
}

/* ---- Score --------------------------------------------------------------------------------- */

/* The sums of section 2; outside of float's normal range plain sums in double. */
static void literal_sums(const reading *in, size_t s, double *squares, double *dot)
{
    plain_score(in, s, squares, dot);
    if (in->dtype == ATTNRES_F64 ||
        (isfinite(*squares) && isfinite(*dot) && *squares >= (double)FLT_MIN)) {
        return;
    }
    *squares = *dot = 0;
    for (size_t i = 0; i < in->width; i++) {
        const double x = elements_get(in->dtype, in->rows[s], i);
        const double square = x * x, product = x * elements_get(ATTNRES_F32, in->query, i);
        *squares = *squares + square;
        *dot = *dot + product;
    }
}

static void check_score(problem_size size, uint64_t number)
{
    enum { MOST = 40 * 3 };
    double squares[MOST + 3], dots[2 * MOST], square, dot;
    problem it;
    problem_open(&it, size, inputs_stream(63, number, (uint64_t)size.dtype));
    const attnres_score_args args = {
        .sources = it.sources,
        .source_count = size.count,
        .query = it.query,
        .squares = {.data = squares, .source_stride = 1, .token_stride = (ptrdiff_t)size.count + 1},
        .dots = {.data = dots, .token_stride = 2},
    };
    memset(squares, 0x5a, sizeof squares);
    memset(dots, 0x5a, sizeof dots);
    const double pattern = squares[0];
    must(attnres_score(&it.shape, &args));
    for (size_t t = 0; t < size.tokens; t++) {
        const reading in = problem_reading(&it, &it.args, t);
        for (size_t s = 0; s < size.count; s++) {
            literal_sums(&in, s, &square, &dot);
            elements_check(ATTNRES_F64, &squares[t * (size.count + 1) + s], &square, 1,
                           "squares, case %llu", (unsigned long long)number);
            elements_check(ATTNRES_F64, &dots[2 * (s * size.tokens + t)], &dot, 1,
                           "dot product, case %llu", (unsigned long long)number);
            ck_assert(dots[2 * (s * size.tokens + t) + 1] == pattern);
        }
        ck_assert(squares[t * (size.count + 1) + size.count] == pattern);
    }
    problem_close(&it);
}

/* All kinds of numbers, also NaN. _i is level and dtype. */
START_TEST(sums_are_the_contracts)
{
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t n = 0; n < 200; n += inputs_quick() ? 7 : 1) {
        const problem_size size = {.dtype = elements_dtype(_i % ELEMENTS_DTYPES),
                                   .tokens = 1 + n % 3,
                                   .width = n % 20 == 19 ? 1000 + n : 1 + n * 7 % 131,
                                   .count = n % 7 == 6 ? 31 + n % 10 : 1 + n % 7,
                                   .kind = (inputs_kind)(n % INPUTS_KINDS)};
        check_score(size, n);
    }
}
END_TEST

/* ---- Mix ----------------------------------------------------------------------------------- */

/* Section 3 from given logits. */
static void literal_mix(const reading *in, const double *logits, void *retrieved, void *weights)
{
    plain_state state = {.mix = allocate(in->width, sizeof *state.mix)};
    int is_nan = 0;
    plain_clear(&state);
    for (size_t s = 0; s < in->count; s++) {
        is_nan |= isnan(logits[s]) || logits[s] == (double)INFINITY;
        plain_take(in, &state, in->rows[s], logits[s]);
    }
    is_nan |= state.sum == 0;
    const double r = plain_rounded(in->dtype, 1.0 / state.sum);
    for (size_t i = 0; i < in->width; i++) {
        elements_set(in->dtype, retrieved, i,
                     is_nan ? (double)NAN : plain_multiply(in->dtype, state.mix[i], r));
    }
    for (size_t s = 0; s < in->count; s++) {
        elements_set(in->dtype, weights, s,
                     is_nan ? (double)NAN : attnres_exp(logits[s] - state.max) / state.sum);
    }
    free(state.mix);
}

/* One in eight -Inf; in one case of eight a NaN or +Inf, or nothing but -Inf. */
static void make_logits(double *logits, size_t count, uint64_t number, uint64_t *stream)
{
    for (size_t i = 0; i < count; i++) {
        logits[i] = inputs_pick(stream, 8) ? 4 * inputs_bell(stream) : -(double)INFINITY;
        if (number % 16 == 13) {
            logits[i] = -(double)INFINITY;
        }
    }
    if (number % 8 == 3) {
        logits[inputs_pick(stream, count)] = number % 16 == 3 ? (double)NAN : (double)INFINITY;
    }
}

static void check_mix(problem_size size, uint64_t number)
{
    uint64_t stream = inputs_stream(64, number, (uint64_t)size.dtype);
    const size_t entries = size.count * size.tokens, bytes = attnres_dtype_size(size.dtype);
    double *logits = allocate(entries, sizeof *logits), *own = allocate(size.count, sizeof *own);
    void *retrieved = allocate(size.width, sizeof(double));
    void *weights = allocate(size.count, sizeof(double));
    problem it;
    problem_open(&it, size, inputs_next(&stream));
    make_logits(logits, entries, number, &stream);
    const attnres_mix_args args = {
        .sources = it.sources,
        .source_count = size.count,
        .logits = {.data = logits},
        .retrieved = {it.retrieved, 0},
        .weights = {.data = number % 3 ? it.weights : NULL},
    };
    must(attnres_mix(&it.shape, &args));
    for (size_t t = 0; t < size.tokens; t++) {
        const reading in = problem_reading(&it, &it.args, t);
        for (size_t s = 0; s < size.count; s++) {
            own[s] = logits[s * size.tokens + t];
        }
        literal_mix(&in, own, retrieved, weights);
        elements_check(size.dtype, elements_at(size.dtype, it.retrieved, t * size.width), retrieved,
                       size.width, "mix, case %llu", (unsigned long long)number);
        for (size_t s = 0; args.weights.data && s < size.count; s++) {
            elements_check(size.dtype, elements_at(size.dtype, it.weights, s * size.tokens + t),
                           (char *)weights + s * bytes, 1, "weight, case %llu",
                           (unsigned long long)number);
        }
    }
    problem_close(&it);
    free(logits);
    free(own);
    free(retrieved);
    free(weights);
}

/* _i is level and dtype. */
START_TEST(mixes_are_the_contracts)
{
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t n = 0; n < 160; n += inputs_quick() ? 7 : 1) {
        const problem_size size = {.dtype = elements_dtype(_i % ELEMENTS_DTYPES),
                                   .tokens = 1 + n % 3,
                                   .width = 1 + n * 7 % 131,
                                   .count = n % 40 == 39 ? 190 + n / 20 : 1 + n % 11,
                                   .kind = (inputs_kind)(n % INPUTS_KINDS)};
        check_mix(size, n);
    }
}
END_TEST

/* ---- Both ---------------------------------------------------------------------------------- */

/* What a host does between the halves, with nothing sharded. */
static void combine(const problem *it, double *squares, const double *dots)
{
    const size_t tokens = it->shape.tokens;
    for (size_t i = 0; i < it->count * tokens; i++) {
        const double *bias = it->args.bias ? &it->args.bias[i / tokens] : NULL;
        double logit = attnres_combine(squares[i], dots[i], it->shape.width, it->args.eps);
        logit = it->args.scale != 0 ? logit * it->args.scale : logit;
        logit = bias ? logit + *bias : logit;
        squares[i] = bias && *bias == -(double)INFINITY ? *bias : logit;
    }
}

static void check_halves(problem_size size, uint64_t number)
{
    uint64_t stream = inputs_stream(65, number, (uint64_t)size.dtype);
    const size_t entries = size.count * size.tokens;
    double *squares = allocate(entries, sizeof *squares), *dots = allocate(entries, sizeof *dots);
    problem it, halves;
    problem_open(&it, size, inputs_next(&stream));
    it.args.eps = number % 3 ? 1e-6 : 0;
    it.args.scale = number % 4 ? 0 : -1.25;
    it.args.bias = number % 2 ? it.bias : NULL;
    if (size.dtype == ATTNRES_F64) { /* for which there are no wider sums: an ordinary query */
        inputs_fill_scaled(ATTNRES_F64, 1, &stream, it.query, size.width);
    }
    it.bias[inputs_pick(&stream, size.count)] = number % 6 == 1 ? -(double)INFINITY : 0.5;
    problem_run(&it);
    const attnres_score_args score = {
        it.sources, size.count, it.query, {.data = squares}, {.data = dots}};
    must(attnres_score(&it.shape, &score));
    combine(&it, squares, dots);
    halves = it;
    halves.logits = squares;
    halves.retrieved = allocate(size.tokens * size.width, sizeof(double));
    halves.weights = allocate(entries, sizeof(double));
    const attnres_mix_args mix = {.sources = it.sources,
                                  .source_count = size.count,
                                  .logits = {.data = squares},
                                  .retrieved = {halves.retrieved, 0},
                                  .weights = {.data = halves.weights}};
    must(attnres_mix(&it.shape, &mix));
    problem_check(&halves, &it, "score and mix");
    free(halves.retrieved);
    free(halves.weights);
    free(squares);
    free(dots);
    problem_close(&it);
}

/* Rows in the normal range; those beyond float's, too, for both ways sum them in double. _i is
 * level and dtype. */
START_TEST(halves_are_the_read)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    static const inputs_kind kinds[] = {INPUTS_ORDINARY, INPUTS_TIES, INPUTS_WIDE, INPUTS_HUGE};
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t n = 0; n < 150; n += inputs_quick() ? 7 : 1) {
        const problem_size size = {.dtype = dtype,
                                   .tokens = 1 + n % 4,
                                   .width = n % 50 == 24 ? 7186 : 1 + n * 7 % 131,
                                   .count = n % 50 == 49 ? 200 : 1 + n % 13,
                                   .kind = kinds[n % (dtype == ATTNRES_F64 ? 3 : 4)]};
        check_halves(size, n);
    }
}
END_TEST

START_TEST(combine_is_its_formula)
{
    const double infinity = (double)INFINITY;
    uint64_t stream = inputs_stream(66, 0, 0);
    for (size_t n = 0; n < 1000; n++) {
        const double squares = inputs_uniform(&stream, 0, 1000), dot = inputs_bell(&stream);
        const double eps = n % 2 ? 1e-6 : 0;
        const double mean = squares / (double)(n + 1) + eps;
        ck_assert(attnres_combine(squares, dot, n + 1, eps) == dot / sqrt(mean));
    }
    ck_assert(attnres_combine(0, 0, 5, 0) == 0); /* a row of zeros */
    ck_assert(attnres_combine(0, 0, 5, 1e-6) == 0);
    ck_assert(isnan(attnres_combine(0, (double)NAN, 5, 0)));
    ck_assert(isnan(attnres_combine((double)NAN, 1, 5, 1e-6)));
    ck_assert(isnan(attnres_combine(infinity, infinity, 5, 1e-6)));
}
END_TEST

Suite *shard_suite(void)
{
    Suite *suite = suite_create("shard");
    TCase *halves = tcase_create("halves");
    const int all = ELEMENTS_DTYPES * levels_count();
    tcase_add_checked_fixture(halves, levels_save, levels_restore);
    tcase_set_timeout(halves, 60);
    tcase_add_loop_test(halves, sums_are_the_contracts, 0, all);
    tcase_add_loop_test(halves, mixes_are_the_contracts, 0, all);
    tcase_add_loop_test(halves, halves_are_the_read, 0, all);
    tcase_add_test(halves, combine_is_its_formula);
    suite_add_tcase(suite, halves);
    suite_add_tcase(suite, shard_ranks_case());
    suite_add_tcase(suite, shard_refusals_case());
    return suite;
}
