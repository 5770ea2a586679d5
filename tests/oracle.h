/* The exact read, and how far a result may be from it.
 *
 * The oracle evaluates the formula of attnres.h in `real` arithmetic over the rows as they are
 * stored, and derives each bound from the input at hand. With u = 2^-24 (f64: 2^-53), the unit
 * roundoff of the accumulator, and k = ceil(width / LANES) + log2(LANES) + 2, the longest chain of
 * roundings in a sum of section 2 of the contract (plus slack for products that underflow):
 *
 *   logits   e_s = |scale| * k*u * (a_s + |l_s|) + 4 * 2^-53 * |logit_s|
 *            with l_s the logit before scale and bias and a_s = sum |x_i q_i| / rms. The first part
 *            is the error of the dot product, the second that of the mean square.
 *            (f64, wide path: one plain sum, k = width + 2. The oracle says whether that can be.)
 *   weights  with f_s = e_s + (2m + 2) * 2^-53 * max |logit|, for the differences of logits:
 *            d_s = w_s * max(exp(f_s) / sum_t w_t exp(-f_t) - 1, 1 - exp(-f_s) / sum_t w_t
 * exp(f_t)), about w_s * (f_s + sum_t w_t f_t); + w_s * 3 * (S + 1) * 2^-53, then half an ulp
 *   result   sum_s d_s |x_s|                                          from the logits
 *            + c * eps(A) * sum_s w_s |x_s|                           from the fold
 *            + what underflow costs, then, for f16 and bf16, half an ulp of the dtype
 *   normed   the error of the result, its effect on the norm, k*u for the squares, half an ulp
 *
 *   c = (S + 2m + 3) / 2    for S sources (one fma each), m changes of the maximum (two roundings
 *                           each), and one rounding each of p, 1/z and the last product
 *   c = S + 3m + 4          for f64, where exp has an error (1 ulp) and z as many roundings as o
 *
 * These are worst cases (a factor 1.01 covers products of roundoffs), not fits: with small logits
 * and few sources the result's bound is a handful of ulp, and it grows only where the logits
 * themselves cannot be known better. Elements whose unnormalised mix may overflow are not judged:
 * that is a documented limit. */
#ifndef ATTNRES_TESTS_ORACLE_H
#define ATTNRES_TESTS_ORACLE_H

#include <attnres.h>

#include "reading.h"
#include "real.h"

typedef struct oracle {
    const reading *in;
    real *logits, *logit_bounds;   /* [count]; -Inf stands for removed */
    real *weights, *weight_bounds; /* [count], before rounding to the dtype */
    real *mix, *mix_bounds;        /* [width], before rounding to a 16-bit dtype */
    real *magnitudes;              /* [width] sum_s w_s |x_s| */
    real *normed, *normed_bounds;  /* [width], likewise */
    real fold_factor;              /* c */
    real difference_bound;         /* f_s - e_s */
    real largest_exponential;      /* z: how much larger the unnormalised mix is */
} oracle;

/* All rows must be finite and at least one source not removed. */
void oracle_open(oracle *judge, const reading *in);
void oracle_close(oracle *judge);

/* The worst |error| / bound of these results: at most 1 is right. */
double oracle_logits(const oracle *judge, const double *logits);
double oracle_weights(const oracle *judge, const void *weights);
double oracle_retrieved(const oracle *judge, const void *retrieved);
double oracle_normed(const oracle *judge, const void *normed);

/* The c that the result would have needed if logits were free of error: |error|, less half an ulp
 * for 16-bit dtypes, over eps(A) * sum w |x|. For the report only. */
double oracle_needed(const oracle *judge, const void *retrieved);

/* Likewise, a sum of rows in chronological order: (count - 1) roundings, then one to the dtype. */
double oracle_sum(attnres_dtype dtype, const void *const *rows, size_t count, size_t width,
                  const void *sum);

#endif
