/* float fused multiply-add from double arithmetic.
 *
 * The product of two floats is exact in double. Adding c rounds to 53 bits, going to float rounds
 * again to 24, and two roundings differ from one only if the first lands exactly half-way between
 * two floats. In the normal range of float that is a pattern in the low 29 bits, which is tested
 * for; below it the half-way points lie elsewhere, so all results there count as suspect.
 * Suspects are summed once more with the error of the double addition: rounding to odd (Boldo and
 * Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
 * odd", 2008) makes the second rounding harmless. */
#ifndef ATTNRES_FMA_F32_H
#define ATTNRES_FMA_F32_H

/* Unrolled, the loop below spills more than it gains. */
#if defined(__clang__)
#define ROLLED _Pragma("clang loop vectorize(enable) unroll(disable)")
#else
#define ROLLED _Pragma("GCC unroll 1")
#endif

static inline float attnres_fma_f32_exact(float a, float b, float c)
{
    double product = (double)a * (double)b;
    double sum = product + (double)c;
    double c_part = sum - product;
    double error = (product - (sum - c_part)) + ((double)c - c_part);
    uint64_t bits = attnres_double_bits(sum);
    if ((error > 0 || error < 0) && (bits & 1) == 0) {
        bits = (error > 0) == (sum > 0) ? bits + 1 : bits - 1;
    }
    return (float)attnres_bits_double(bits);
}

/* c[j] = a[j] * b[j] + c[j] for 32 lanes. Results of 0 are taken for suspects, too: telling them
 * apart costs more. A function of its own: inlined into a kernel, neither gcc nor clang keeps the
 * loop in vector registers. */
static __attribute__((noinline)) void attnres_fma_f32(const float *a, const float *b, float *c)
{
    float result[32];
    uint32_t suspect = 0; /* top bit */
    ROLLED
    for (int j = 0; j < 32; j++) {
        const double sum = (double)a[j] * (double)b[j] + (double)c[j];
        const uint32_t low = (uint32_t)attnres_double_bits(sum);
        const float rounded = (float)sum;
        suspect |= ((low & 0x1fffffff) ^ 0x10000000) - 1;                   /* half-way */
        suspect |= (attnres_float_bits(rounded) & 0x7fffffff) - 0x00800001; /* not above 2^-126 */
        result[j] = rounded;
    }
    if (__builtin_expect(suspect >> 31 == 0, 1)) {
        memcpy(c, result, sizeof result);
        return;
    }
    for (int j = 0; j < 32; j++) {
        c[j] = attnres_fma_f32_exact(a[j], b[j], c[j]);
    }
}

#endif
