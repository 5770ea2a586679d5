/* Numbers for the oracle: 113 bits where the compiler has them (x86-64: software, AArch64: long
 * double), else long double. With its own exp and square root, so that no library but the
 * compiler's own is needed, and none is trusted. */
#ifndef ATTNRES_TESTS_REAL_H
#define ATTNRES_TESTS_REAL_H

#include <float.h>

#if defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 real;
#define REAL_BITS 113
#else
typedef long double real;
#define REAL_BITS LDBL_MANT_DIG
#endif

/* |error| below 2^-60 relative in any case, below 2^-100 with 113 bits. */
real real_exp(real x);  /* for |x| < 11000; 0 below */
real real_sqrt(real x); /* for x >= 0 */

static inline real real_abs(real x)
{
    return x < 0 ? -x : x;
}

static inline real real_max(real a, real b)
{
    return a > b ? a : b;
}

#endif
