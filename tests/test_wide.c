/* Rows whose sums leave the accumulator's range: the logit is as good as double can make it. */
#include "allocate.h"
#include "elements.h"
#include "inputs.h"
#include "levels.h"
#include "oracle.h"
#include "plain.h"
#include "suites.h"

#include <attnres.h>

#include <math.h>

typedef struct extreme {
    const char *name;
    double row, query; /* sizes */
    double eps;
    int f32, f64, bf16, f16; /* whether the wide path is needed; -1: not a number of the dtype */
} extreme;

/* Sizes are used times numbers between 1 and 2 of either sign. */
static const extreme extremes[] = {
    {"squares overflow float", 1e30, 1, 1e-6, 1, 0, 1, -1},
    {"squares overflow float by a little", 0x1p64, 1, 1e-6, 1, 0, 1, -1},
    {"near the largest float", 0x1p126, 1, 1e-6, 1, 0, 1, -1},
    {"products overflow float, squares do not", 1e10, 1e35, 1e-6, 1, 0, 1, -1},
    {"squares underflow float, no eps", 1e-30, 1, 0, 1, 0, 1, -1},
    {"squares underflow float, tiny eps", 1e-30, 1, 1e-60, 1, 0, 1, -1},
    {"tiny eps above tiny squares", 1e-30, 1, 1e-45, 1, 0, 1, -1},
    {"subnormal floats, no eps", 0x1p-135, 1, 0, 1, 0, -1, -1},
    {"subnormal bf16, no eps", 0x1p-129, 1, 0, 1, 0, 1, -1},
    {"mean square just below the smallest float", 0x1p-64, 1, 0, 1, 0, 1, -1},
    {"mean square above the smallest float", 0x1p-62, 1, 0, 0, 0, 0, -1},
    {"ordinary", 1, 1, 1e-6, 0, 0, 0, 0},
    {"ordinary, no eps", 1, 1, 0, 0, 0, 0, 0},
    {"large f16", 30000, 1, 1e-6, 0, 0, 0, 0},
    {"large f16 and a large query", 30000, 1e35, 1e-6, 1, 0, 1, 1},
    {"subnormal f16, no eps", 0x1p-20, 1, 0, 0, 0, 0, 0},
    {"squares overflow double", 1e200, 1, 1e-6, -1, 1, -1, -1},
    {"near the largest double", 0x1p1022, 1, 1e-6, -1, 1, -1, -1},
    {"products overflow double, squares do not", 1e20, 1e300, 1e-6, -1, 1, -1, -1},
    {"both overflow double", 1e250, 1e250, 1e-6, -1, 1, -1, -1},
    {"squares underflow double, no eps", 1e-200, 1, 0, -1, 1, -1, -1},
    {"squares underflow double, subnormal eps", 1e-200, 1, 5e-324, -1, 1, -1, -1},
    {"row far below the root of a subnormal eps", 0x1p-1070, 1e300, 5e-324, -1, 1, -1, -1},
    {"squares underflow double, tiny eps", 1e-160, 1, 1e-310, -1, 1, -1, -1},
    {"squares underflow double, ordinary eps", 1e-200, 1, 1e-6, -1, 0, -1, -1},
    {"subnormal doubles, no eps", 0x1p-1070, 1, 0, -1, 1, -1, -1},
    {"tiny row, huge query", 1e-300, 1e300, 0, -1, 1, -1, -1},
    {"huge row, tiny query", 1e300, 1e-300, 1e-6, -1, 1, -1, -1},
};

static int need(const extreme *one, attnres_dtype dtype)
{
    switch (dtype) {
    case ATTNRES_F32:
        return one->f32;
    case ATTNRES_F64:
        return one->f64;
    case ATTNRES_F16:
        return one->f16;
    case ATTNRES_BF16:
        return one->bf16;
    }
    return -1;
}

static void fill(attnres_dtype dtype, double size, uint64_t *stream, void *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double sign = inputs_next(stream) % 2 ? -1 : 1;
        elements_set(dtype, data, i, sign * size * inputs_uniform(stream, 1, 2));
    }
}

/* In the ordinary path sums have the accumulator's roundings; in the wide path double's. */
static double allowed(const reading *in, const oracle *judge, int is_wide)
{
    if (!is_wide) {
        return (double)judge->logit_bounds[0];
    }
    real size = 0, squares = 0;
    for (size_t i = 0; i < in->width; i++) {
        const real x = (real)elements_get(in->dtype, in->rows[0], i);
        const real q = (real)elements_get(attnres_dtype_accumulator(in->dtype), in->query, i);
        size += real_abs(x * q);
        squares += x * x;
    }
    size /= real_sqrt(squares / (real)in->width + (real)in->eps);
    return ((double)in->width + 4) * 0x1p-53 * ((double)size + fabs((double)judge->logits[0]));
}

static void check_row(const extreme *one, attnres_dtype dtype, size_t width, uint64_t stream)
{
    const attnres_dtype accumulator = attnres_dtype_accumulator(dtype);
    void *row = allocate(width, attnres_dtype_size(dtype));
    void *query = allocate(width, sizeof(double)), *out = allocate(width, sizeof(double));
    const attnres_shape shape = {dtype, 1, width};
    const attnres_rows source = {row, 0};
    const void *rows[] = {row};
    double logit = 0, squares, dot;
    int is_wide = 0;
    fill(dtype, one->row, &stream, row, width);
    fill(accumulator, one->query, &stream, query, width);
    const reading in = {
        .dtype = dtype, .width = width, .count = 1, .rows = rows, .query = query, .eps = one->eps};
    const attnres_read_args args = {.sources = &source,
                                    .source_count = 1,
                                    .query = query,
                                    .eps = one->eps,
                                    .retrieved = {out, 0},
                                    .logits = {.data = &logit}};
    ck_assert_int_eq(attnres_read(&shape, &args), ATTNRES_OK);
    plain_score(&in, 0, &squares, &dot);
    plain_logit(&in, 0, &is_wide);
    ck_assert_msg(is_wide == need(one, dtype), "%s, width %zu: squares %g, dot %g", one->name,
                  width, squares, dot);
    oracle judge;
    oracle_open(&judge, &in);
    const double error = fabs((double)((real)logit - judge.logits[0]));
    ck_assert_msg(error <= allowed(&in, &judge, is_wide), "%s, %s, width %zu: %.17g, exact %.17g",
                  one->name, elements_name(dtype), width, logit, (double)judge.logits[0]);
    ck_assert_mem_eq(out, row, width * attnres_dtype_size(dtype)); /* one source: a copy */
    oracle_close(&judge);
    free(row);
    free(query);
    free(out);
}

/* _i is level and dtype. */
START_TEST(every_finite_row_has_its_logit)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    static const size_t widths[] = {1, 2, 15, 16, 33, 67, 130, 1000};
    levels_use(_i / ELEMENTS_DTYPES);
    int checked = 0;
    for (size_t n = 0; n < sizeof extremes / sizeof *extremes; n++) {
        if (need(&extremes[n], dtype) < 0) {
            continue;
        }
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            check_row(&extremes[n], dtype, widths[w], inputs_stream(34, n * 16 + w, (uint64_t)_i));
            checked++;
        }
    }
    ck_assert_int_ge(checked, 32);
}
END_TEST

/* One large element among small ones, one small among large ones: scaling by the largest must not
 * lose what counts. */
START_TEST(uneven_rows_have_their_logit)
{
    const double rows[][3] = {{1e200, 1e-200, 1},
                              {1e-200, 1e-210, 1e-190},
                              {1e308, 1, 1e308},
                              {5e-324, 5e-324, 1e-320},
                              {1e154, 1e154, 1e154}};
    const double query[3] = {1e-3, 3, 0.5};
    const attnres_shape shape = {ATTNRES_F64, 1, 3};
    levels_use(_i);
    for (size_t n = 0; n < 5; n++) {
        const attnres_rows source = {rows[n], 0};
        const void *pointers[] = {rows[n]};
        double logit = 0;
        const attnres_read_args args = {
            .sources = &source, .source_count = 1, .query = query, .logits = {.data = &logit}};
        const reading in = {
            .dtype = ATTNRES_F64, .width = 3, .count = 1, .rows = pointers, .query = query};
        ck_assert_int_eq(attnres_read(&shape, &args), ATTNRES_OK);
        oracle judge;
        oracle_open(&judge, &in);
        const double exact = (double)judge.logits[0];
        ck_assert_msg(fabs(logit - exact) <= 1e-15 * fabs(exact), "row %zu: %.17g, exact %.17g", n,
                      logit, exact);
        oracle_close(&judge);
    }
}
END_TEST

/* An infinite query is not a finite row's fault: +Inf makes NaN, -Inf removes. */
START_TEST(infinite_logits)
{
    const float rows[2][2] = {{1, 0.5f}, {-1, 0.5f}}, query[2] = {INFINITY, 0};
    const attnres_rows sources[] = {{rows[0], 0}, {rows[1], 0}};
    const attnres_shape shape = {ATTNRES_F32, 1, 2};
    float out[2], weights[2];
    double logits[2];
    attnres_read_args args = {.sources = sources,
                              .source_count = 2,
                              .query = query,
                              .retrieved = {out, 0},
                              .weights = {.data = weights},
                              .logits = {.data = logits}};
    levels_use(_i);
    ck_assert_int_eq(attnres_read(&shape, &args), ATTNRES_OK);
    ck_assert(isinf(logits[0]) && logits[0] > 0);
    ck_assert(isinf(logits[1]) && logits[1] < 0);
    ck_assert(isnan(out[0]) && isnan(out[1]) && isnan(weights[0]) && isnan(weights[1]));
    args.sources = sources + 1; /* only the one with -Inf: nothing left */
    args.source_count = 1;
    ck_assert_int_eq(attnres_read(&shape, &args), ATTNRES_OK);
    ck_assert(isnan(out[0]) && isnan(weights[0]));
}
END_TEST

Suite *wide_suite(void)
{
    Suite *suite = suite_create("wide");
    TCase *logits = tcase_create("logits");
    tcase_add_checked_fixture(logits, levels_save, levels_restore);
    tcase_set_timeout(logits, 60);
    tcase_add_loop_test(logits, every_finite_row_has_its_logit, 0,
                        ELEMENTS_DTYPES * levels_count());
    tcase_add_loop_test(logits, uneven_rows_have_their_logit, 0, levels_count());
    tcase_add_loop_test(logits, infinite_logits, 0, levels_count());
    suite_add_tcase(suite, logits);
    return suite;
}
