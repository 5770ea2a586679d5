/* src/exp.c against the C library's long double exp (and that against the oracle's). */
#include "inputs.h"
#include "real.h"
#include "suites.h"

#include "exp.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double smallest_log = -0x1.6232bdd7abcd2p+9; /* exp is the smallest normal double */

/* Much better than double, and fast where that is possible. */
static long double exact_exp(double x)
{
#if LDBL_MANT_DIG >= 64
    return expl((long double)x);
#else
    return (long double)real_exp((real)x);
#endif
}

/* |attnres_exp(x) - e^x| in units of the last place of a double around e^x. */
static double error_in_ulp(double x)
{
    const long double exact = exact_exp(x);
    const long double found = (long double)attnres_exp(x);
    int exponent;
    frexpl(exact, &exponent);
    return (double)(fabsl(found - exact) / ldexpl(1, exponent - DBL_MANT_DIG));
}

static double worst;

static void check_error(double x)
{
    const double error = error_in_ulp(x);
    worst = error > worst ? error : worst;
    if (!(error < 1)) {
        ck_abort_msg("exp(%a) = %a is off by %.3f ulp", x, attnres_exp(x), error);
    }
}

START_TEST(error_is_below_one_ulp)
{
    uint64_t stream = inputs_stream(5, 0, 0);
    const int count = inputs_quick() ? 20000 : 1000000;
    worst = 0;
    for (int i = 0; i < count; i++) {
        check_error(inputs_uniform(&stream, smallest_log, 0));
        check_error(inputs_uniform(&stream, -8, 0)); /* where softmax weights matter */
        if (i % 4 == 0) {
            check_error(-ldexp(inputs_uniform(&stream, 1, 2), -(i / 4 % 80)));
        }
    }
    /* Where the argument is reduced to both ends of its interval: odd multiples of ln(2) / 2. */
    for (int k = 0; k <= 1021; k++) {
        double x = -(k + 0.5) * 0.6931471805599453;
        for (int i = 0; i < 20; i++, x = nextafter(x, 0)) {
            check_error(x);
        }
    }
    printf("exp: largest error %.6f ulp over %d arguments\n", worst, count * 9 / 4 + 20440);
}
END_TEST

START_TEST(library_and_oracle_agree)
{
    uint64_t stream = inputs_stream(6, 0, 0);
    for (int i = 0; i < 2000; i++) {
        const double x = inputs_uniform(&stream, smallest_log, 0);
        const real exact = real_exp((real)x);
        /* The C library's own error, or the oracle's where it is no better. */
        const real difference = real_abs((real)exact_exp(x) - exact) / exact;
        ck_assert_msg(difference < (real)0x1p-58, "at %a: %g", x, (double)difference);
    }
}
END_TEST

START_TEST(exact_values)
{
    ck_assert(attnres_exp(0.0) == 1.0);
    ck_assert(attnres_exp(-0.0) == 1.0);
    ck_assert(attnres_exp(-DBL_TRUE_MIN) == 1.0);
    ck_assert(attnres_exp(-0x1p-60) == 1.0);
    ck_assert(attnres_exp(-1.0) == 0x1.78b56362cef38p-2);
    ck_assert(isnan(attnres_exp((double)NAN)));
    ck_assert(attnres_exp(-(double)INFINITY) == 0.0);
    ck_assert(!signbit(attnres_exp(-(double)INFINITY)));
    ck_assert(attnres_exp(-DBL_MAX) == 0.0);
}
END_TEST

/* The bits themselves, on every machine and with every compiler: a digest of many of them. Another
 * algorithm may be as accurate, but has other bits, which breaks the promise of equal results
 * between versions: to be changed knowingly only. */
START_TEST(bits_are_those_of_every_machine)
{
    uint64_t digest = 0xcbf29ce484222325, x = 1; /* FNV-1a; a stream of its own, for any seed */
    for (int i = 0; i < 20000; i++) {
        const double found = attnres_exp(inputs_uniform(&x, i % 2 ? smallest_log : -2, 0));
        uint64_t bits;
        memcpy(&bits, &found, sizeof bits);
        digest = (digest ^ bits) * 0x100000001b3;
    }
    ck_assert_msg(digest == 0x6cc8d16491502be7, "digest %#llx", (unsigned long long)digest);
}
END_TEST

/* No subnormal result, no jump before the end of the normal ones. */
START_TEST(underflow_ends_at_the_smallest_normal)
{
    double x = smallest_log;
    for (int i = 0; i < 100000; i++, x = nextafter(x, -DBL_MAX)) {
        const double found = attnres_exp(x);
        if (found != 0 && found < DBL_MIN) {
            ck_abort_msg("exp(%a) = %a is subnormal", x, found);
        }
    }
    ck_assert(attnres_exp(x) == 0.0);
    ck_assert(attnres_exp(-708.3965) == 0.0);
    ck_assert(attnres_exp(-709.0) == 0.0);
    ck_assert(attnres_exp(-745.2) == 0.0);
    ck_assert(attnres_exp(-1e4) == 0.0);
    ck_assert(attnres_exp(-708.3964) > DBL_MIN);
    ck_assert(attnres_exp(smallest_log) >= DBL_MIN || attnres_exp(smallest_log) == 0.0);
    ck_assert(attnres_exp(nextafter(smallest_log, 0)) >= DBL_MIN);
}
END_TEST

START_TEST(never_decreases)
{
    uint64_t stream = inputs_stream(7, 0, 0);
    const int runs = inputs_quick() ? 500 : 20000;
    for (int run = 0; run < runs; run++) {
        double x = run % 2 ? inputs_uniform(&stream, smallest_log, 0)
                           : -(run / 2 % 1021 + 0.5) * 0.6931471805599453;
        double previous = attnres_exp(x);
        for (int i = 0; i < 20; i++) {
            x = nextafter(x, 0);
            const double next = attnres_exp(x);
            if (next < previous) {
                ck_abort_msg("exp falls at %a: %a, then %a", x, previous, next);
            }
            previous = next;
        }
        ck_assert(previous <= 1);
    }
}
END_TEST

Suite *exp_suite(void)
{
    Suite *suite = suite_create("exp");
    TCase *accuracy = tcase_create("accuracy");
    tcase_set_timeout(accuracy, 60);
    tcase_add_test(accuracy, error_is_below_one_ulp);
    tcase_add_test(accuracy, library_and_oracle_agree);
    tcase_add_test(accuracy, exact_values);
    tcase_add_test(accuracy, bits_are_those_of_every_machine);
    tcase_add_test(accuracy, underflow_ends_at_the_smallest_normal);
    tcase_add_test(accuracy, never_decreases);
    suite_add_tcase(suite, accuracy);
    return suite;
}
