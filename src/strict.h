/* The promise of equal bits needs IEEE arithmetic as written. */
#ifndef ATTNRES_STRICT_H
#define ATTNRES_STRICT_H

#include <float.h>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ != 0)
#error "attnres cannot be built with -ffast-math, -Ofast or -ffinite-math-only"
#endif

#if FLT_EVAL_METHOD != 0
#error "attnres needs float and double arithmetic without excess precision (x86: -mfpmath=sse)"
#endif

#endif
