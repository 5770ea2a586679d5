/* f16 and bf16 to and from the wider types, in integer arithmetic: every bit the same everywhere.
 * Narrowing rounds to nearest, ties to even, once; overflow gives Inf; a NaN stays a NaN.
 * Subnormals are kept. Written without branches where a loop over it should vectorise. */
#ifndef ATTNRES_HALF_H
#define ATTNRES_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t attnres_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float attnres_bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t attnres_double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double attnres_bits_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float attnres_bf16_to_float(uint16_t half)
{
    return attnres_bits_float((uint32_t)half << 16);
}

static inline uint16_t attnres_float_to_bf16(float value)
{
    uint32_t bits = attnres_float_bits(value);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    uint32_t quiet_nan = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded);
}

/* Shifted into place, an f16 is a float whose exponent is 112 too small; the multiplication is
 * exact, subnormals included. */
static inline float attnres_f16_to_float(uint16_t half)
{
    uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13;
    uint32_t bits = attnres_float_bits(attnres_bits_float(magnitude) * 0x1p112f);
    uint32_t special = magnitude | 0x7f800000; /* Inf and NaN: all exponent bits */
    return attnres_bits_float((magnitude >= 0x0f800000 ? special : bits) | (uint32_t)(half & 0x8000)
                                                                               << 16);
}

static inline uint16_t attnres_float_to_f16(float value)
{
    uint32_t bits = attnres_float_bits(value);
    uint32_t magnitude = bits & 0x7fffffff;
    /* Normal: move the exponent, round at bit 13. Overflow runs into Inf by itself up to 2^16. */
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    /* Below 2^-14: adding 0.5 leaves the result, rounded by the hardware, in the low bits. */
    uint32_t small = attnres_float_bits(attnres_bits_float(magnitude) + 0.5f) - 0x3f000000;
    uint32_t large = magnitude > 0x7f800000 ? (magnitude >> 13 & 0x3ff) | 0x7e00 : 0x7c00;
    uint32_t finite = magnitude < 0x38800000 ? small : normal;
    return (uint16_t)((magnitude >= 0x47800000 ? large : finite) | (bits >> 16 & 0x8000));
}

/* To float, rounded to odd: inexact results get their last bit set, so that rounding once more, to
 * f16 or bf16, gives what one rounding from double would have given. */
static inline float attnres_double_to_float_odd(double value)
{
    float nearest = (float)value;
    uint32_t bits = attnres_float_bits(nearest);
    if ((bits & 0x7fffffff) > 0x7f800000 || (double)nearest == value) {
        return nearest;
    }
    /* Step back towards zero if rounding went away from it; that also turns Inf into the largest
     * float, whose last bit is set. */
    double magnitude = value < 0 ? -value : value;
    double rounded = (double)(nearest < 0 ? -nearest : nearest);
    return attnres_bits_float((rounded > magnitude ? bits - 1 : bits) | 1);
}

#endif
