/* The rules of the read, one by one, at every level for every dtype. */
#include "allocate.h"
#include "elements.h"
#include "levels.h"
#include "problem.h"
#include "suites.h"

#include <math.h>
#include <string.h>

/* _i is level and dtype in every loop test here. */
static attnres_dtype begin(int i)
{
    levels_use(i / ELEMENTS_DTYPES);
    return elements_dtype(i % ELEMENTS_DTYPES);
}

static size_t row_bytes(const problem *it)
{
    return it->shape.width * attnres_dtype_size(it->shape.dtype);
}

static void *result(const problem *it, size_t token)
{
    return elements_at(it->shape.dtype, it->retrieved, token * it->shape.width);
}

static double weight(const problem *it, size_t source, size_t token)
{
    return elements_get(it->shape.dtype, it->weights, source * it->shape.tokens + token);
}

static void copy_row(const problem *it, size_t to, size_t from, size_t token)
{
    memcpy(problem_row(it, to, token), problem_row(it, from, token), row_bytes(it));
}

/* ---- One source, equal sources, zero sources ---------------------------------------------- */

START_TEST(one_source_is_copied)
{
    static const inputs_kind kinds[] = {INPUTS_ORDINARY, INPUTS_TIES, INPUTS_WIDE, INPUTS_TINY,
                                        INPUTS_HUGE};
    const attnres_dtype dtype = begin(_i);
    for (size_t n = 0; n < 40; n++) {
        problem it;
        const problem_size size = {dtype, 2, n == 39 ? 7186 : 1 + n * 5, 1, kinds[n % 5]};
        problem_open(&it, size, inputs_stream(22, n, (uint64_t)_i));
        inputs_fill_scaled(attnres_dtype_accumulator(dtype), 0.2, &(uint64_t){n}, it.query,
                           size.width);
        elements_set(dtype, problem_row(&it, 0, 1), n % size.width, -0.0);
        elements_set(dtype, problem_row(&it, 0, 0), n % size.width, -elements_ulp(dtype, 0));
        it.args.eps = n % 3 ? 1e-6 : 0;
        it.args.scale = n % 4 ? 0 : -3;
        it.args.bias = n % 2 ? it.bias : NULL;
        problem_run(&it);
        for (size_t t = 0; t < 2; t++) {
            ck_assert_mem_eq(result(&it, t), problem_row(&it, 0, t), row_bytes(&it));
            ck_assert(weight(&it, 0, t) == 1);
        }
        problem_close(&it);
    }
}
END_TEST

/* Identical rows: identical weights, the nearest to 1/S. The result is the row where the fold's
 * sums are exact: two rows, or any number of a 16-bit dtype. */
START_TEST(equal_rows_have_equal_weights)
{
    const attnres_dtype dtype = begin(_i);
    for (size_t count = 1; count <= 17; count++) {
        problem it;
        const problem_size size = {dtype, 1, 45, count, INPUTS_ORDINARY};
        problem_open(&it, size, inputs_stream(23, count, (uint64_t)_i));
        for (size_t s = 1; s < count; s++) {
            copy_row(&it, s, 0, 0);
        }
        problem_run(&it);
        for (size_t s = 0; s < count; s++) {
            ck_assert(weight(&it, s, 0) == elements_round(dtype, 1.0 / (double)count));
        }
        if (count <= 2 || attnres_dtype_size(dtype) == 2) {
            ck_assert_mem_eq(it.retrieved, problem_row(&it, 0, 0), row_bytes(&it));
        }
        problem_close(&it);
    }
}
END_TEST

START_TEST(zero_query_averages)
{
    const attnres_dtype dtype = begin(_i);
    problem it;
    const problem_size size = {dtype, 1, 70, 4, INPUTS_WIDE};
    problem_open(&it, size, inputs_stream(24, 0, (uint64_t)_i));
    memset(it.query, 0, size.width * sizeof(double));
    it.args.eps = 0;
    problem_run(&it);
    for (size_t s = 0; s < 4; s++) {
        ck_assert(it.logits[s] == 0);
        ck_assert(weight(&it, s, 0) == 0.25);
    }
    problem_close(&it);
}
END_TEST

/* Zeros have logit 0 whatever eps is, and their weight is what that makes of it. */
START_TEST(zero_rows_have_logit_zero)
{
    static const double eps[] = {0, 5e-324, 1e-300, 1e-6};
    const attnres_dtype dtype = begin(_i);
    for (size_t n = 0; n < 4; n++) {
        problem it;
        const problem_size size = {dtype, 2, 50, 3, INPUTS_ORDINARY};
        problem_open(&it, size, inputs_stream(25, n, (uint64_t)_i));
        inputs_fill_scaled(attnres_dtype_accumulator(dtype), 0.2, &(uint64_t){n}, it.query,
                           size.width);
        for (size_t s = 0; s < 3; s++) { /* token 0: all rows; token 1: the middle one */
            memset(problem_row(&it, s, 0), 0, row_bytes(&it));
        }
        memset(problem_row(&it, 1, 1), 0, row_bytes(&it));
        elements_set(dtype, problem_row(&it, 1, 1), 7, -0.0);
        it.args.eps = eps[n];
        problem_run(&it);
        for (size_t s = 0; s < 3; s++) {
            ck_assert(it.logits[s * 2] == 0);
            ck_assert(weight(&it, s, 0) == weight(&it, 0, 0));
        }
        ck_assert(it.logits[1 * 2 + 1] == 0);
        ck_assert(it.logits[0 * 2 + 1] != 0);
        for (size_t i = 0; i < size.width; i++) {
            ck_assert(elements_get(dtype, it.retrieved, i) == 0);
            ck_assert(isfinite(elements_get(dtype, result(&it, 1), i)));
        }
        problem_close(&it);
    }
}
END_TEST

/* ---- Not a number -------------------------------------------------------------------------- */

static void check_all_nan(const problem *it, size_t token)
{
    for (size_t i = 0; i < it->shape.width; i++) {
        ck_assert(isnan(elements_get(it->shape.dtype, result(it, token), i)));
    }
    for (size_t s = 0; s < it->count; s++) {
        ck_assert(isnan(weight(it, s, token)));
    }
}

/* A NaN or Inf at any place of any source spoils its token, all of it, and no other. */
START_TEST(nan_stays_in_its_token)
{
    static const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    const attnres_dtype dtype = begin(_i);
    problem it, good;
    const problem_size size = {dtype, 3, 67, 4, INPUTS_ORDINARY};
    const uint64_t stream = inputs_stream(26, 0, (uint64_t)_i);
    problem_open(&good, size, stream);
    problem_run(&good);
    problem_open(&it, size, stream);
    for (size_t n = 0; n < size.width * size.count; n++) {
        const size_t s = n % size.count, i = n / size.count;
        void *row = problem_row(&it, s, 1);
        elements_set(dtype, row, i, bad[n % 3]);
        problem_run(&it);
        check_all_nan(&it, 1);
        elements_check(dtype, result(&it, 0), result(&good, 0), size.width, "token before");
        elements_check(dtype, result(&it, 2), result(&good, 2), size.width, "token after");
        for (size_t other = 0; other < size.count; other++) {
            ck_assert(weight(&it, other, 0) == weight(&good, other, 0));
            ck_assert(weight(&it, other, 2) == weight(&good, other, 2));
            ck_assert(isnan(it.logits[other * 3 + 1]) == (other == s));
        }
        memcpy(row, problem_row(&good, s, 1), row_bytes(&it));
    }
    problem_close(&it);
    problem_close(&good);
}
END_TEST

START_TEST(single_source_with_nan_is_nan)
{
    const attnres_dtype dtype = begin(_i);
    problem it;
    const problem_size size = {dtype, 2, 40, 1, INPUTS_ORDINARY};
    problem_open(&it, size, inputs_stream(27, 0, (uint64_t)_i));
    elements_set(dtype, problem_row(&it, 0, 0), 39, (double)NAN);
    elements_set(dtype, problem_row(&it, 0, 1), 0, -(double)INFINITY);
    problem_run(&it);
    check_all_nan(&it, 0);
    check_all_nan(&it, 1);
    problem_close(&it);
}
END_TEST

START_TEST(query_with_nan_is_nan)
{
    const attnres_dtype dtype = begin(_i);
    problem it;
    const problem_size size = {dtype, 1, 40, 2, INPUTS_ORDINARY};
    problem_open(&it, size, inputs_stream(28, 0, (uint64_t)_i));
    elements_set(attnres_dtype_accumulator(dtype), it.query, 33, (double)NAN);
    problem_run(&it);
    check_all_nan(&it, 0);
    problem_close(&it);
}
END_TEST

/* ---- Bias and scale ------------------------------------------------------------------------ */

/* Any subset removed, their rows full of NaN: the same bits as if they were not there. */
START_TEST(bias_removes_sources)
{
    const attnres_dtype dtype = begin(_i);
    for (unsigned kept = 1; kept < 16; kept++) {
        problem it, less;
        const problem_size size = {dtype, 2, 35, 4, INPUTS_ORDINARY};
        const uint64_t stream = inputs_stream(29, 0, (uint64_t)_i);
        problem_open(&it, size, stream);
        problem_open(&less, size, stream);
        it.args.bias = it.bias;
        less.args.bias = less.bias;
        less.count = 0;
        for (size_t s = 0; s < 4; s++) {
            if (kept >> s & 1) {
                less.bias[less.count] = it.bias[s];
                less.sources[less.count++] = less.sources[s];
                continue;
            }
            it.bias[s] = -(double)INFINITY;
            for (size_t t = 0; s % 2 && t < 2; t++) {
                elements_set(dtype, problem_row(&it, s, t), 11, (double)NAN);
            }
        }
        problem_run(&it);
        problem_run(&less);
        elements_check(dtype, it.retrieved, less.retrieved, 2 * size.width, "kept %#x", kept);
        elements_check(dtype, it.normed, less.normed, 2 * size.width, "kept %#x, normed", kept);
        for (size_t s = 0, n = 0; s < 4; s++) {
            for (size_t t = 0; t < 2; t++) {
                const int is_kept = kept >> s & 1;
                ck_assert(weight(&it, s, t) == (is_kept ? weight(&less, n, t) : 0));
                ck_assert(it.logits[s * 2 + t] ==
                          (is_kept ? less.logits[n * 2 + t] : -(double)INFINITY));
            }
            n += kept >> s & 1;
        }
        problem_close(&it);
        problem_close(&less);
    }
}
END_TEST

START_TEST(nothing_left_is_nan)
{
    static const size_t counts[] = {1, 2, 5, 192, 193, 400};
    const attnres_dtype dtype = begin(_i);
    for (size_t n = 0; n < 6; n++) {
        problem it;
        const problem_size size = {dtype, 1, 21, counts[n], INPUTS_ORDINARY};
        problem_open(&it, size, inputs_stream(30, n, (uint64_t)_i));
        for (size_t s = 0; s < size.count; s++) {
            it.bias[s] = -(double)INFINITY;
        }
        it.args.bias = it.bias;
        problem_run(&it);
        check_all_nan(&it, 0);
        ck_assert(isnan(elements_get(dtype, it.normed, 20)));
        problem_close(&it);
    }
}
END_TEST

/* Scale multiplies, bias is added afterwards, both in double; 0 is "no scale". */
START_TEST(scale_and_bias_make_the_logit)
{
    static const double scales[] = {0, 1, 0.5, -2.25, 1e-3};
    const attnres_dtype dtype = begin(_i);
    problem it, bare;
    const problem_size size = {dtype, 2, 64, 3, INPUTS_ORDINARY};
    const uint64_t stream = inputs_stream(31, 0, (uint64_t)_i);
    problem_open(&it, size, stream);
    problem_open(&bare, size, stream);
    problem_run(&bare);
    for (size_t n = 0; n < 10; n++) {
        const double scale = scales[n / 2];
        it.args.scale = scale;
        it.args.bias = n % 2 ? it.bias : NULL;
        problem_run(&it);
        for (size_t s = 0; s < 3; s++) {
            const double scaled = bare.logits[s * 2] * (scale == 0 ? 1 : scale);
            ck_assert(it.logits[s * 2] == (n % 2 ? scaled + it.bias[s] : scaled));
        }
        if (n < 4 && n % 2 == 0) {
            elements_check(dtype, it.retrieved, bare.retrieved, 2 * size.width, "scale %g", scale);
        }
    }
    problem_close(&it);
    problem_close(&bare);
}
END_TEST

/* ---- Weights, tokens ----------------------------------------------------------------------- */

START_TEST(weights_sum_to_one)
{
    const attnres_dtype dtype = begin(_i);
    for (size_t count = 1; count < 60; count += 4) {
        problem it;
        const problem_size size = {dtype, 2, 33, count, INPUTS_ORDINARY};
        problem_open(&it, size, inputs_stream(32, count, (uint64_t)_i));
        inputs_fill_scaled(attnres_dtype_accumulator(dtype), 0.5, &(uint64_t){count}, it.query,
                           size.width);
        problem_run(&it);
        for (size_t t = 0; t < 2; t++) {
            double sum = 0, roundings = 0;
            for (size_t s = 0; s < count; s++) {
                sum += weight(&it, s, t);
                roundings += elements_ulp(dtype, weight(&it, s, t)) / 2 + 8 * 0x1p-53;
            }
            ck_assert(fabs(sum - 1) <= roundings);
        }
        problem_close(&it);
    }
}
END_TEST

/* Many tokens in one call, or each by itself. */
START_TEST(tokens_are_independent)
{
    const attnres_dtype dtype = begin(_i);
    problem it;
    const problem_size size = {dtype, 7, 90, 5, INPUTS_WIDE};
    problem_open(&it, size, inputs_stream(33, 0, (uint64_t)_i));
    problem_run(&it);
    void *alone = allocate(size.width, attnres_dtype_size(dtype));
    for (size_t t = 0; t < size.tokens; t++) {
        const attnres_shape shape = {dtype, 1, size.width};
        attnres_rows sources[5];
        for (size_t s = 0; s < 5; s++) {
            sources[s] = (attnres_rows){problem_row(&it, s, t), 0};
        }
        attnres_read_args args = it.args;
        args.sources = sources;
        args.source_count = 5;
        args.retrieved = (attnres_rows_out){alone, 0};
        ck_assert_int_eq(attnres_read(&shape, &args), ATTNRES_OK);
        elements_check(dtype, alone, result(&it, t), size.width, "token %zu alone", t);
    }
    free(alone);
    problem_close(&it);
}
END_TEST

Suite *read_suite(void)
{
    Suite *suite = suite_create("read");
    const int all = ELEMENTS_DTYPES * levels_count();
    TCase *rules = tcase_create("rules");
    tcase_add_checked_fixture(rules, levels_save, levels_restore);
    tcase_set_timeout(rules, 60);
    tcase_add_loop_test(rules, one_source_is_copied, 0, all);
    tcase_add_loop_test(rules, equal_rows_have_equal_weights, 0, all);
    tcase_add_loop_test(rules, zero_query_averages, 0, all);
    tcase_add_loop_test(rules, zero_rows_have_logit_zero, 0, all);
    tcase_add_loop_test(rules, nan_stays_in_its_token, 0, all);
    tcase_add_loop_test(rules, single_source_with_nan_is_nan, 0, all);
    tcase_add_loop_test(rules, query_with_nan_is_nan, 0, all);
    tcase_add_loop_test(rules, bias_removes_sources, 0, all);
    tcase_add_loop_test(rules, nothing_left_is_nan, 0, all);
    tcase_add_loop_test(rules, scale_and_bias_make_the_logit, 0, all);
    tcase_add_loop_test(rules, weights_sum_to_one, 0, all);
    tcase_add_loop_test(rules, tokens_are_independent, 0, all);
    suite_add_tcase(suite, rules);
    return suite;
}
