/* src/half.h and src/convert.h against elements.h. */
#include "elements.h"
#include "inputs.h"
#include "suites.h"

#include "convert.h"
#include "half.h"

#include <math.h>
#include <string.h>

static const attnres_dtype halves[] = {ATTNRES_F16, ATTNRES_BF16};

static float widen(attnres_dtype dtype, uint16_t half)
{
    return dtype == ATTNRES_F16 ? attnres_f16_to_float(half) : attnres_bf16_to_float(half);
}

static uint16_t narrow(attnres_dtype dtype, float value)
{
    return dtype == ATTNRES_F16 ? attnres_float_to_f16(value) : attnres_float_to_bf16(value);
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int same(attnres_dtype dtype, uint16_t a, uint16_t b)
{
    return elements_compare(dtype, &a, &b, 1) == 1;
}

START_TEST(every_half_widens_exactly)
{
    const attnres_dtype dtype = halves[_i];
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        const uint16_t half = (uint16_t)bits;
        const float found = widen(dtype, half);
        const float expected = (float)elements_get(dtype, &half, 0); /* exact */
        if (elements_compare(ATTNRES_F32, &found, &expected, 1) != 1) {
            ck_abort_msg("%s %#x: %a, expected %a", elements_name(dtype), bits, (double)found,
                         (double)expected);
        }
        if (!same(dtype, narrow(dtype, found), half)) {
            ck_abort_msg("%s %#x does not come back", elements_name(dtype), bits);
        }
        ck_assert(!isnan(found) || isnan(widen(dtype, narrow(dtype, found))));
    }
}
END_TEST

static void check_narrow(attnres_dtype dtype, uint32_t bits)
{
    const float value = float_of(bits);
    const uint16_t found = narrow(dtype, value);
    uint16_t expected;
    elements_set(dtype, &expected, 0, (double)value);
    if (!same(dtype, found, expected)) {
        ck_abort_msg("%a to %s: %#x, expected %#x", (double)value, elements_name(dtype), found,
                     expected);
    }
}

/* All upper halves with the lower halves that decide: at, around and half-way between the numbers
 * of either type. */
START_TEST(floats_narrow_to_nearest_even)
{
    static const uint32_t low[] = {0,      1,      0x7fff, 0x8000, 0x8001, 0xffff, 0x0fff, 0x1000,
                                   0x1001, 0x2fff, 0x3000, 0x3001, 0xefff, 0xf000, 0xf001, 0x1fff};
    const attnres_dtype dtype = halves[_i];
    const uint32_t step = inputs_quick() ? 5 : 1;
    for (uint32_t upper = 0; upper < 0x10000; upper += step) {
        for (size_t i = 0; i < sizeof low / sizeof *low; i++) {
            check_narrow(dtype, upper << 16 | low[i]);
        }
    }
    uint64_t stream = inputs_stream(2, (uint64_t)_i, 0);
    for (int i = 0; i < 300000 / (int)step; i++) {
        check_narrow(dtype, (uint32_t)inputs_next(&stream));
    }
}
END_TEST

static void check_from_double(attnres_dtype dtype, double value)
{
    double found = 0, expected = 0; /* room for any dtype */
    attnres_set_element(dtype, &found, 0, value);
    elements_set(dtype, &expected, 0, value);
    elements_check(dtype, &found, &expected, 1, "%a", value);
}

/* Weights are double and become halves. Through float that would be two roundings. */
START_TEST(doubles_narrow_with_one_rounding)
{
    const attnres_dtype dtype = halves[_i];
    uint64_t stream = inputs_stream(3, (uint64_t)_i, 0);
    for (unsigned bits = 0; bits < 0x8000; bits++) { /* around each half-way point */
        const uint16_t here = (uint16_t)bits, next = (uint16_t)(bits + 1);
        const double a = elements_get(dtype, &here, 0), b = elements_get(dtype, &next, 0);
        if (!isfinite(b)) {
            break;
        }
        const double middle = a + (b - a) / 2; /* exact */
        check_from_double(dtype, middle);
        check_from_double(dtype, -middle);
        check_from_double(dtype, nextafter(middle, b));
        check_from_double(dtype, nextafter(middle, a));
        check_from_double(dtype, middle * (1 + 0x1p-30));
        check_from_double(dtype, -middle * (1 - 0x1p-30));
    }
    for (int i = 0; i < 300000; i++) {
        const uint64_t bits = inputs_next(&stream);
        double value;
        memcpy(&value, &bits, sizeof value);
        check_from_double(dtype, value);
        check_from_double(dtype, ldexp(inputs_uniform(&stream, -1, 1), -(i % 150)));
    }
}
END_TEST

/* Published: half-rs issue 116. */
START_TEST(known_double_rounding_is_avoided)
{
    double half = 0; /* room for any dtype */
    attnres_set_element(ATTNRES_F16, &half, 0, 2047.4999999850988);
    ck_assert_uint_eq(elements_bits(ATTNRES_F16, &half, 0), 0x67ff);
    ck_assert_uint_eq(attnres_float_to_f16((float)2047.4999999850988), 0x6800);
}
END_TEST

START_TEST(double_to_float_odd_keeps_what_is_exact)
{
    static const double exact[] = {0, -0.0, 1, -1.5, 0x1p-149, 0x1.fffffep127, 0x1p-126};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        const float found = attnres_double_to_float_odd(exact[i]);
        const float expected = (float)exact[i];
        elements_check(ATTNRES_F32, &found, &expected, 1, "exact number %zu", i);
    }
    ck_assert(isnan(attnres_double_to_float_odd((double)NAN)));
    ck_assert(isinf(attnres_double_to_float_odd((double)INFINITY)));
    ck_assert(attnres_double_to_float_odd(1e300) == 0x1.fffffep127f); /* its last bit is set */
    ck_assert(attnres_double_to_float_odd(1 + 0x1p-40) == 1 + 0x1p-23f);
    ck_assert(attnres_double_to_float_odd(-1 - 0x1p-40) == -1 - 0x1p-23f);
    ck_assert(attnres_double_to_float_odd(1e-300) == 0x1p-149f);
}
END_TEST

/* The converters of tests and library agree on how single elements are read. */
START_TEST(elements_are_read_exactly)
{
    uint64_t stream = inputs_stream(4, 0, 0);
    double memory[8];
    for (int i = 0; i < ELEMENTS_DTYPES; i++) {
        const attnres_dtype dtype = elements_dtype(i);
        for (int kind = 0; kind < INPUTS_KINDS; kind++) {
            inputs_fill(dtype, (inputs_kind)kind, &stream, memory, 8);
            for (size_t n = 0; n < 8; n++) {
                const double found = attnres_element(dtype, memory, n);
                const double expected = elements_get(dtype, memory, n);
                elements_check(ATTNRES_F64, &found, &expected, 1, "%s", elements_name(dtype));
            }
        }
    }
}
END_TEST

Suite *half_suite(void)
{
    Suite *suite = suite_create("half");
    TCase *conversions = tcase_create("conversions");
    tcase_set_timeout(conversions, 60);
    tcase_add_loop_test(conversions, every_half_widens_exactly, 0, 2);
    tcase_add_loop_test(conversions, floats_narrow_to_nearest_even, 0, 2);
    tcase_add_loop_test(conversions, doubles_narrow_with_one_rounding, 0, 2);
    tcase_add_test(conversions, known_double_rounding_is_avoided);
    tcase_add_test(conversions, double_to_float_odd_keeps_what_is_exact);
    tcase_add_test(conversions, elements_are_read_exactly);
    suite_add_tcase(suite, conversions);
    return suite;
}
