/* e^x = 2^k * e^r with k = round(x / ln 2) and r = x - k * ln 2, so |r| <= ln(2) / 2.
 *
 * ln 2 is split so that k times its upper part is exact; the rounding error of r is kept in
 * r_low and put back in at the end. e^r is its Taylor polynomial, whose first left-out term,
 * r^14 / 14!, is below 2^-57. The two leading terms are added last, so their roundings are nearly
 * all of the error: tests/test_exp.c finds at most 0.88 ulp and bounds it by 1.
 */
#include "exp.h"

#include "half.h"
#include "strict.h"

#define LN2_HIGH 0x1.62e42feep-1      /* upper 32 bits of ln 2: k * LN2_HIGH is exact */
#define LN2_LOW 0x1.a39ef35793c76p-33 /* the rest */
#define LOG2_E 0x1.71547652b82fep+0   /* 1 / ln 2 */
#define TO_INTEGER 0x1.8p52           /* adding and taking it away rounds to an integer */
#define SMALLEST_NORMAL_LOG -0x1.6232bdd7abcd2p+9 /* ln of 2^-1022 */

double attnres_exp(double x)
{
    if (!(x >= SMALLEST_NORMAL_LOG)) {
        return x != x ? x : 0.0;
    }
    const double k = (x * LOG2_E + TO_INTEGER) - TO_INTEGER;
    const double r_high = x - k * LN2_HIGH;
    const double r = r_high - k * LN2_LOW;
    const double r_low = (r_high - r) - k * LN2_LOW;

    double tail = 1.0 / 6227020800.0; /* 1 / 13! */
    static const double inverse_factorial[] = {1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                                               1.0 / 362880.0,    1.0 / 40320.0,    1.0 / 5040.0,
                                               1.0 / 720.0,       1.0 / 120.0,      1.0 / 24.0,
                                               1.0 / 6.0,         1.0 / 2.0};
    for (int i = 0; i < (int)(sizeof inverse_factorial / sizeof *inverse_factorial); i++) {
        tail = tail * r + inverse_factorial[i];
    }
    const double e_r = 1.0 + (r + (r * r * tail + r_low));
    /* k is at least -1022 here and e_r * 2^k is normal; 2^-1022 * e_r with e_r < 1 is not, and
     * counts as 0 like everything below the smallest normal. */
    const double power = attnres_bits_double((uint64_t)((int64_t)k + 1023) << 52);
    const double result = e_r * power;
    return result < 0x1p-1022 ? 0.0 : result;
}
