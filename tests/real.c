#include "real.h"

#include <math.h>

/* ln 2 in three doubles. */
static const double LN2[] = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56, 0x1.7b57a079a1934p-111};

static real power_of_two(int exponent)
{
    real result = 1, factor = exponent < 0 ? (real)0.5 : (real)2;
    for (unsigned n = (unsigned)(exponent < 0 ? -exponent : exponent); n > 0; n /= 2) {
        result = n % 2 ? result * factor : result;
        factor = n > 1 ? factor * factor : factor;
    }
    return result;
}

real real_exp(real x)
{
    if (x < -11000) {
        return 0;
    }
    const double k = nearbyint((double)x / LN2[0]);
    real r = x;
    for (int i = 0; i < 3; i++) {
        r -= (real)k * (real)LN2[i];
    }
    r /= 16; /* below 0.022: 20 terms leave 2^-170 */
    real sum = 0;
    for (int n = 20; n >= 0; n--) {
        sum = 1 + sum * r / (n + 1);
    }
    for (int i = 0; i < 4; i++) {
        sum *= sum;
    }
    return sum * power_of_two((int)k);
}

real real_sqrt(real x)
{
    real factor = 1;
    if (x <= 0) {
        return 0;
    }
    for (; x >= (real)0x1p200; x *= (real)0x1p-200) {
        factor *= (real)0x1p100;
    }
    for (; x < (real)0x1p-200; x *= (real)0x1p200) {
        factor *= (real)0x1p-100;
    }
    real root = (real)sqrt((double)x); /* 53 bits, doubled by each Newton step */
    root = (root + x / root) / 2;
    root = (root + x / root) / 2;
    return root * factor;
}
