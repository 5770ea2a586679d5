/* double fused multiply-add from double arithmetic.
 *
 * The product is split into two doubles (Veltkamp, Dekker), the sum of the three parts is formed
 * exactly but for one addition, and that one is rounded to odd, which makes the final rounding the
 * only one (Boldo and Melquiond 2008, algorithm Fma). Valid while nothing overflows and the
 * product's low half does not underflow; operands outside those bounds go to the C library's fma,
 * which is exact and slow. */
#ifndef ATTNRES_FMA_F64_H
#define ATTNRES_FMA_F64_H

#include <math.h>

static inline double attnres_abs(double x)
{
    return attnres_bits_double(attnres_double_bits(x) & 0x7fffffffffffffff);
}

static inline double attnres_fma_f64_inside(double a, double b, double c)
{
    double product = a * b;
    double a_shifted = a * 0x1.0000002p27, b_shifted = b * 0x1.0000002p27;
    double a_high = a_shifted - (a_shifted - a), a_low = a - a_high;
    double b_high = b_shifted - (b_shifted - b), b_low = b - b_high;
    double product_low =
        ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;

    double low = c + product_low; /* c + product_low = low + low_error, exactly */
    double low_part = low - c;
    double low_error = (c - (low - low_part)) + (product_low - low_part);

    double high = product + low; /* product + low = high + high_error, exactly */
    double high_part = high - product;
    double high_error = (product - (high - high_part)) + (low - high_part);

    double rest = high_error + low_error; /* the inexact one: round it to odd */
    double rest_part = rest - high_error;
    double error = (high_error - (rest - rest_part)) + (low_error - rest_part);
    uint64_t bits = attnres_double_bits(rest);
    uint64_t step = (error > 0) == (rest > 0) ? 1 : (uint64_t)-1;
    bits += error != 0 && (bits & 1) == 0 ? step : 0;
    /* A zero product has no halves, but a sign that the sum with c = -0 needs. */
    return product == 0 ? product + c : high + attnres_bits_double(bits);
}

/* c[j] = a[j] * b[j] + c[j] for 16 lanes. */
static __attribute__((noinline)) void attnres_fma_f64(const double *a, const double *b, double *c)
{
    double sum[16];
    int outside = 0;
    for (int j = 0; j < 16; j++) {
        const double product = attnres_abs(a[j] * b[j]);
        outside |= attnres_abs(a[j]) >= 0x1p990;
        outside |= attnres_abs(b[j]) >= 0x1p990;
        outside |= attnres_abs(c[j]) >= 0x1p1000;
        outside |= product >= 0x1p1000;
        outside |= a[j] * b[j] + c[j] != a[j] * b[j] + c[j]; /* NaN */
        outside |= product <= 0x1p-900 && a[j] != 0 && b[j] != 0;
    }
    if (__builtin_expect(outside, 0)) {
        for (int j = 0; j < 16; j++) {
            c[j] = fma(a[j], b[j], c[j]);
        }
        return;
    }
    for (int j = 0; j < 16; j++) {
        sum[j] = attnres_fma_f64_inside(a[j], b[j], c[j]);
    }
    memcpy(c, sum, sizeof sum);
}

#endif
