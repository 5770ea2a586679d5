/* The query that attnres_make_query folds: one rounding, whatever the dtypes. */
#include "elements.h"
#include "inputs.h"
#include "real.h"
#include "suites.h"

#include <attnres.h>

#include <stdio.h>

/* The product of two elements, rounded once to the accumulator. */
static void set_product(attnres_dtype accumulator, void *query, size_t i, double a, double b)
{
    const real product = (real)a * (real)b; /* exact with 106 bits or more */
    if (accumulator == ATTNRES_F64) {
        ((double *)query)[i] = (double)product;
    } else {
        ((float *)query)[i] = (float)product;
    }
}

/* Every pair of dtypes. _i is the sources' dtype. */
START_TEST(query_is_gain_times_projection)
{
    const attnres_dtype dtype = elements_dtype(_i), accumulator = attnres_dtype_accumulator(dtype);
    double projection[37], gain[37], query[37], expected[37]; /* of any dtype */
    uint64_t stream = inputs_stream(39, (uint64_t)_i, 0);
    for (int n = 0; n < ELEMENTS_DTYPES * ELEMENTS_DTYPES * INPUTS_KINDS; n++) {
        const attnres_vector left = {elements_dtype(n % 4), projection, 37};
        const attnres_vector right = {elements_dtype(n / 4 % 4), gain, 37};
        const inputs_kind kind = (inputs_kind)(n / 16);
        inputs_fill(left.dtype, kind, &stream, projection, 37);
        inputs_fill(right.dtype, kind, &stream, gain, 37);
        for (size_t i = 0; i < 37; i++) {
            set_product(accumulator, expected, i, elements_get(left.dtype, projection, i),
                        elements_get(right.dtype, gain, i));
        }
        ck_assert_int_eq(attnres_make_query(dtype, 37, &left, &right, query), ATTNRES_OK);
        elements_check(accumulator, query, expected, 37, "pair %d", n);
        for (size_t i = 0; i < 37; i++) {
            set_product(accumulator, expected, i, elements_get(left.dtype, projection, i), 1);
        }
        ck_assert_int_eq(attnres_make_query(dtype, 37, &left, NULL, query), ATTNRES_OK);
        elements_check(accumulator, query, expected, 37, "projection alone, pair %d", n);
    }
}
END_TEST

/* A product of doubles just beside the middle of two floats: rounded to double it is the middle. */
START_TEST(query_is_rounded_once)
{
    const double projection[] = {1 + 0x1p-52, 1 - 0x1p-53, 1 + 0x1p-30, -(1 + 0x1p-52)};
    const double gain[] = {1 + 0x1p-24 - 0x1p-52, 1 + 0x1p-24 + 0x1p-52, 1 - 0x1p-30,
                           1 + 0x1p-24 - 0x1p-52};
    const attnres_vector left = {ATTNRES_F64, projection, 4}, right = {ATTNRES_F64, gain, 4};
    float query[4], expected[4];
    if (REAL_BITS < 106) {
        printf("SKIPPED: query_is_rounded_once, for there are no exact products to compare with\n");
        return;
    }
    for (size_t i = 0; i < 4; i++) {
        set_product(ATTNRES_F32, expected, i, projection[i], gain[i]);
    }
    ck_assert_int_eq(attnres_make_query(ATTNRES_F32, 4, &left, &right, query), ATTNRES_OK);
    elements_check(ATTNRES_F32, query, expected, 4, "query");
}
END_TEST

Suite *query_suite(void)
{
    Suite *suite = suite_create("query");
    TCase *query = tcase_create("query");
    tcase_add_loop_test(query, query_is_gain_times_projection, 0, ELEMENTS_DTYPES);
    tcase_add_test(query, query_is_rounded_once);
    suite_add_tcase(suite, query);
    return suite;
}
