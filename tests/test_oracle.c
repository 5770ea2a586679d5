/* The oracle: that it is right, that results keep its bounds, and that it would notice if not. */
#include "allocate.h"
#include "elements.h"
#include "levels.h"
#include "oracle.h"
#include "plain.h"
#include "problem.h"
#include "suites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Real numbers ---------------------------------------------------------------------- */

START_TEST(real_functions_are_accurate)
{
    /* e, e^-1, e^-10 and the roots of 2, 3 and 10^300 in two doubles each. */
    static const double exponentials[][3] = {{1, 0x1.5bf0a8b145769p+1, 0x1.4d57ee2b1013ap-53},
                                             {-1, 0x1.78b56362cef38p-2, -0x1.ca8a4270fadf5p-57},
                                             {-10, 0x1.7cd79b5647c9bp-15, -0x1.8e936e2abd9dep-69}};
    static const double roots[][3] = {{2, 0x1.6a09e667f3bcdp+0, -0x1.bdd3413b26456p-54},
                                      {3, 0x1.bb67ae8584caap+0, 0x1.cec95d0b5c1e3p-54}};
    for (int i = 0; i < 3; i++) {
        const real exact = (real)exponentials[i][1] + (real)exponentials[i][2];
        const real error = real_abs(real_exp((real)exponentials[i][0]) - exact) / exact;
        ck_assert_msg(error < (real)0x1p-60, "exp(%g): %g", exponentials[i][0], (double)error);
    }
    for (int i = 0; i < 2; i++) {
        const real exact = (real)roots[i][1] + (real)roots[i][2];
        const real error = real_abs(real_sqrt((real)roots[i][0]) - exact) / exact;
        ck_assert_msg(error < (real)0x1p-60, "sqrt(%g): %g", roots[i][0], (double)error);
    }
    for (int exponent = -2000; exponent <= 2000; exponent += 100) { /* beyond double's range */
        real x = 3;
        for (int i = 0; i < abs(exponent); i++) {
            x = exponent < 0 ? x / 2 : x * 2;
        }
        const real root = real_sqrt(x);
        ck_assert(real_abs(root * root - x) <= x * (real)0x1p-60);
    }
    ck_assert(real_exp(0) == 1);
    ck_assert(real_sqrt(0) == 0);
    ck_assert(real_exp(-20000) == 0);
}
END_TEST

/* ---- A read worked out by hand ---------------------------------------------------------- */

/* Sources 5, 6, 4 of width 1: every row normalises to 1 (eps 0), so all logits are equal. */
START_TEST(worked_example)
{
    const double five = 5, six = 6, four = 4, query = 0.5;
    const void *rows[] = {&five, &six, &four};
    const reading in = {
        .dtype = ATTNRES_F64, .width = 1, .count = 3, .rows = rows, .query = &query};
    oracle judge;
    oracle_open(&judge, &in);
    for (int s = 0; s < 3; s++) {
        ck_assert(judge.logits[s] == (real)0.5);
        ck_assert(real_abs(judge.weights[s] - (real)1 / 3) < (real)0x1p-60);
    }
    ck_assert(real_abs(judge.mix[0] - 5) < (real)0x1p-58);
    ck_assert(real_abs(judge.normed[0] - 1) < (real)0x1p-58);
    oracle_close(&judge);
}
END_TEST

/* Logits ln 1, ln 2 and ln 4 by their biases: weights 1/7, 2/7, 4/7; the last source is removed. */
START_TEST(worked_example_with_bias)
{
    const double rows_of[4][2] = {{1, 0}, {0, 7}, {14, 0}, {100, 100}};
    const double query[2] = {0, 0};
    const double bias[4] = {0, 0.6931471805599453, 1.3862943611198906, -(double)INFINITY};
    const void *rows[] = {rows_of[0], rows_of[1], rows_of[2], rows_of[3]};
    const reading in = {.dtype = ATTNRES_F64,
                        .width = 2,
                        .count = 4,
                        .rows = rows,
                        .query = query,
                        .eps = 1,
                        .bias = bias};
    oracle judge;
    oracle_open(&judge, &in);
    ck_assert(real_abs(judge.weights[2] - (real)4 / 7) < (real)1e-15);
    ck_assert(judge.weights[3] == 0);
    ck_assert(real_abs(judge.mix[0] - (real)57 / 7) < (real)1e-14);
    ck_assert(real_abs(judge.mix[1] - 2) < (real)1e-15);
    oracle_close(&judge);
}
END_TEST

/* ---- It notices ------------------------------------------------------------------------- */

/* Zero query and few sources: the bounds are a few ulp. */
static void open_calm(problem *it, attnres_dtype dtype, uint64_t number)
{
    const problem_size size = {dtype, 1, 33, 3, INPUTS_ORDINARY};
    problem_open(it, size, inputs_stream(12, (uint64_t)dtype, number));
    memset(it->query, 0, size.width * sizeof(double));
}

/* Every element of every result moved by some ulp, in both directions, is found out. */
START_TEST(small_errors_are_noticed)
{
    const attnres_dtype dtype = elements_dtype(_i);
    const int is_half = attnres_dtype_size(dtype) == 2;
    const int steps = is_half ? 1 : 16;
    problem it;
    for (uint64_t number = 0; number < 20; number++) {
        open_calm(&it, dtype, number);
        problem_run(&it);
        const attnres_read_args args = problem_args(&it);
        const reading in = problem_reading(&it, &args, 0);
        oracle judge;
        oracle_open(&judge, &in);
        ck_assert(oracle_retrieved(&judge, it.retrieved) <= 1);
        ck_assert(oracle_normed(&judge, it.normed) <= 1);
        ck_assert(oracle_weights(&judge, it.weights) <= 1);
        for (size_t i = 0; i < it.shape.width; i++) {
            /* Where terms cancel an ulp of the sum is less than one of a term. */
            const double size = fabs(elements_get(dtype, it.retrieved, i));
            if (size < 0.9 * (double)judge.magnitudes[i]) {
                continue;
            }
            for (int sign = -1; sign <= 1; sign += 2) {
                elements_move(dtype, it.retrieved, i, sign * 2 * steps);
                ck_assert_msg(oracle_retrieved(&judge, it.retrieved) > 1, "%s: element %zu",
                              elements_name(dtype), i);
                elements_move(dtype, it.retrieved, i, -sign * 2 * steps);
                elements_move(dtype, it.normed, i, sign * 8 * steps);
                ck_assert_msg(oracle_normed(&judge, it.normed) > 1, "%s: normed %zu",
                              elements_name(dtype), i);
                elements_move(dtype, it.normed, i, -sign * 8 * steps);
            }
        }
        for (size_t s = 0; s < it.count; s++) {
            elements_move(dtype, it.weights, s, dtype == ATTNRES_F64 ? 64 : 1);
            ck_assert(oracle_weights(&judge, it.weights) > 1);
            elements_move(dtype, it.weights, s, dtype == ATTNRES_F64 ? -64 : -1);
        }
        oracle_close(&judge);
        problem_close(&it);
    }
}
END_TEST

typedef enum mistake {
    NO_MISTAKE,
    WRONG_EPS,
    NO_SCALE,
    NO_BIAS,
    SWAPPED,
    FORGOTTEN,
    MISTAKES
} mistake;

static void make_mistake(mistake kind, reading *in)
{
    const void *const *rows = in->rows;
    switch (kind) {
    case WRONG_EPS:
        in->eps = 1e-4;
        break;
    case NO_SCALE:
        in->scale = 0;
        break;
    case NO_BIAS:
        in->bias = NULL;
        break;
    case SWAPPED:
        ((const void **)(size_t)in->rows)[0] = rows[1];
        break;
    case FORGOTTEN:
        in->count--;
        break;
    case NO_MISTAKE:
    case MISTAKES:
        break;
    }
}

/* A read that is right, but of something else. */
START_TEST(other_formulas_are_noticed)
{
    const attnres_dtype dtype = elements_dtype(_i / MISTAKES);
    const mistake kind = (mistake)(_i % MISTAKES);
    const problem_size size = {dtype, 1, 40, 5, INPUTS_ORDINARY};
    problem it;
    problem_open(&it, size, 13); /* for any seed: not every input shows every mistake */
    inputs_fill_scaled(attnres_dtype_accumulator(dtype), 1, &(uint64_t){7}, it.query, size.width);
    for (size_t s = 0; s < size.count; s++) { /* mean squares near eps, so that eps counts */
        void *row = problem_row(&it, s, 0);
        for (size_t i = 0; i < size.width; i++) {
            elements_set(dtype, row, i, 2e-3 * elements_get(dtype, row, i));
        }
    }
    it.bias[2] = 2;
    it.args.scale = 0.25;
    it.args.bias = it.bias;
    reading in = problem_reading(&it, &it.args, 0);
    oracle judge;
    oracle_open(&judge, &in);
    reading mistaken = in;
    make_mistake(kind, &mistaken);
    plain_results out = {it.retrieved, it.normed, it.weights, it.logits};
    plain_read(&mistaken, NULL, &out);
    const double ratio = oracle_retrieved(&judge, it.retrieved);
    ck_assert_msg((ratio > 1) == (kind != NO_MISTAKE), "%s, mistake %d: ratio %g",
                  elements_name(dtype), kind, ratio);
    ck_assert((oracle_normed(&judge, it.normed) > 1) == (kind != NO_MISTAKE));
    ck_assert((oracle_weights(&judge, it.weights) > 1) == (kind != NO_MISTAKE));
    oracle_close(&judge);
    problem_close(&it);
}
END_TEST

/* ---- Results keep the bounds ------------------------------------------------------------- */

typedef struct worst {
    double logits, weights, retrieved, normed, needed, allowed;
} worst;

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static void judge_token(const problem *it, size_t t, worst *so_far)
{
    const size_t width = it->shape.width, tokens = it->shape.tokens;
    const attnres_dtype dtype = it->shape.dtype;
    const attnres_read_args args = problem_args(it);
    const reading in = problem_reading(it, &args, t);
    double *logits = allocate(it->count, sizeof *logits);
    double *weights = allocate(it->count, sizeof *weights); /* of any dtype */
    oracle judge;
    for (size_t s = 0; s < it->count; s++) {
        logits[s] = it->logits[s * tokens + t];
        elements_set(dtype, weights, s, elements_get(dtype, it->weights, s * tokens + t));
    }
    oracle_open(&judge, &in);
    const worst here = {
        oracle_logits(&judge, logits),
        oracle_weights(&judge, weights),
        oracle_retrieved(&judge, elements_at(dtype, it->retrieved, t * width)),
        oracle_normed(&judge, elements_at(dtype, it->normed, t * width)),
        oracle_needed(&judge, elements_at(dtype, it->retrieved, t * width)),
        (double)judge.fold_factor,
    };
    ck_assert_msg(here.logits <= 1, "logits, width %zu: ratio %g", width, here.logits);
    ck_assert_msg(here.weights <= 1, "weights, width %zu: ratio %g", width, here.weights);
    ck_assert_msg(here.retrieved <= 1, "result, width %zu: ratio %g", width, here.retrieved);
    ck_assert_msg(here.normed <= 1, "normed, width %zu: ratio %g", width, here.normed);
    so_far->logits = larger(so_far->logits, here.logits);
    so_far->weights = larger(so_far->weights, here.weights);
    so_far->retrieved = larger(so_far->retrieved, here.retrieved);
    so_far->normed = larger(so_far->normed, here.normed);
    if (judge.logits[0] == 0) { /* a query of zeros: logits are exact, c is all there is */
        so_far->needed = larger(so_far->needed, here.needed);
        so_far->allowed = larger(so_far->allowed, here.allowed);
    }
    oracle_close(&judge);
    free(logits);
    free(weights);
}

/* Squares that overflow in the norm, and what is not a number, are other tests' business. */
static const inputs_kind kinds[] = {INPUTS_ORDINARY, INPUTS_TIES, INPUTS_WIDE, INPUTS_TINY};
enum { KINDS = sizeof kinds / sizeof *kinds };

START_TEST(results_keep_their_bounds)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    static const size_t widths[] = {1, 2, 3, 7, 16, 31, 33, 64, 100, 129, 384, 1000, 2304};
    const size_t count = sizeof widths / sizeof *widths - (inputs_quick() ? 3 : 0);
    worst so_far = {0};
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t n = 0; n < count * 12; n += inputs_quick() ? 5 : 1) {
        problem it;
        const problem_size size = {dtype, 1 + n % 2, widths[n % count], 1 + n / count,
                                   kinds[n / 3 % KINDS]};
        problem_open(&it, size, inputs_stream(14, n, (uint64_t)dtype));
        it.args.eps = n % 5 ? 1e-6 : 0;
        it.args.bias = n % 4 ? NULL : it.bias;
        /* Logits that are numbers; now and then exactly 0. */
        inputs_fill_scaled(attnres_dtype_accumulator(dtype), n % 4 == 1 ? 0 : 0.3, &(uint64_t){n},
                           it.query, size.width);
        it.args.scale = n % 7 ? 0 : -1.25;
        it.args.norm_policy = n % 2 ? ATTNRES_NORM_FUSED : ATTNRES_NORM_REFERENCE;
        problem_run(&it);
        for (size_t t = 0; t < size.tokens; t++) {
            judge_token(&it, t, &so_far);
        }
        problem_close(&it);
    }
    printf("oracle: %-6s %-4s worst error / bound: logits %.2f, weights %.2f, result %.2f, normed "
           "%.2f; c needed with exact logits: %.2f of %.1f\n",
           levels_name(_i / ELEMENTS_DTYPES), elements_name(dtype), so_far.logits, so_far.weights,
           so_far.retrieved, so_far.normed, so_far.needed, so_far.allowed);
}
END_TEST

Suite *oracle_suite(void)
{
    Suite *suite = suite_create("oracle");
    TCase *itself = tcase_create("itself");
    tcase_add_test(itself, real_functions_are_accurate);
    tcase_add_test(itself, worked_example);
    tcase_add_test(itself, worked_example_with_bias);
    tcase_add_loop_test(itself, small_errors_are_noticed, 0, ELEMENTS_DTYPES);
    tcase_add_loop_test(itself, other_formulas_are_noticed, 0, ELEMENTS_DTYPES * MISTAKES);
    tcase_set_timeout(itself, 60);
    suite_add_tcase(suite, itself);

    TCase *bounds = tcase_create("bounds");
    tcase_add_checked_fixture(bounds, levels_save, levels_restore);
    tcase_add_loop_test(bounds, results_keep_their_bounds, 0, ELEMENTS_DTYPES * levels_count());
    tcase_set_timeout(bounds, 120);
    suite_add_tcase(suite, bounds);
    return suite;
}
