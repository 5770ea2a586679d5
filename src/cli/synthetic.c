#include "synthetic.h"

#include <math.h>
#include <string.h>

/* Sign, exponent and mantissa of a dtype. */
typedef struct format {
    int mantissa_bits, exponent_bits;
} format;

static format format_of(attnres_dtype dtype)
{
    switch (dtype) {
    case ATTNRES_F64:
        return (format){52, 11};
    case ATTNRES_F16:
        return (format){10, 5};
    case ATTNRES_BF16:
        return (format){7, 8};
    case ATTNRES_F32:
        break;
    }
    return (format){23, 8};
}

static uint64_t get_bits(attnres_dtype dtype, const void *data, size_t i)
{
    uint64_t bits = 0;
    const size_t size = attnres_dtype_size(dtype);
    if (size == 8) {
        memcpy(&bits, (const char *)data + 8 * i, 8);
    } else if (size == 4) {
        uint32_t word;
        memcpy(&word, (const char *)data + 4 * i, 4);
        bits = word;
    } else {
        uint16_t half;
        memcpy(&half, (const char *)data + 2 * i, 2);
        bits = half;
    }
    return bits;
}

static void set_bits(attnres_dtype dtype, void *data, size_t i, uint64_t bits)
{
    const size_t size = attnres_dtype_size(dtype);
    const uint32_t word = (uint32_t)bits;
    const uint16_t half = (uint16_t)bits;
    memcpy((char *)data + size * i,
           size == 8   ? (const void *)&bits
           : size == 4 ? (const void *)&word
                       : (const void *)&half,
           size);
}

uint64_t attnres_cli_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Lowest and highest biased exponent of a kind. */
static void exponents(format f, attnres_cli_kind kind, uint64_t *lowest, uint64_t *highest)
{
    const uint64_t bias = ((uint64_t)1 << (f.exponent_bits - 1)) - 1;
    const uint64_t top = 2 * bias;
    switch (kind) {
    case ATTNRES_CLI_WIDE:
        *lowest = 0;
        *highest = top;
        return;
    case ATTNRES_CLI_TINY:
        *lowest = 0;
        *highest = 2;
        return;
    case ATTNRES_CLI_HUGE:
        *lowest = top - 3;
        *highest = top;
        return;
    default:
        *lowest = bias - 4;
        *highest = bias;
        return;
    }
}

void attnres_cli_fill(attnres_dtype dtype, attnres_cli_kind kind, uint64_t *state, void *data,
                      size_t count)
{
    const format f = format_of(dtype);
    const uint64_t mantissa_mask = ((uint64_t)1 << f.mantissa_bits) - 1;
    const uint64_t keep = kind == ATTNRES_CLI_TIES ? ~(mantissa_mask >> 3) : ~(uint64_t)0;
    uint64_t lowest, highest;

    exponents(f, kind, &lowest, &highest);
    for (size_t i = 0; i < count; i++) {
        const uint64_t random = attnres_cli_random(state);
        const uint64_t exponent = lowest + (random >> 53) % (highest - lowest + 1);
        const uint64_t sign = (random >> 52 & 1) << (f.mantissa_bits + f.exponent_bits);
        const uint64_t bits = sign | exponent << f.mantissa_bits | (random & mantissa_mask & keep);
        set_bits(dtype, data, i, kind == ATTNRES_CLI_ZERO ? sign : bits);
    }
    if (kind == ATTNRES_CLI_SPECIAL && count > 0) {
        const uint64_t random = attnres_cli_random(state);
        const uint64_t infinity = (((uint64_t)1 << f.exponent_bits) - 1) << f.mantissa_bits;
        set_bits(dtype, data, (size_t)(random % count), infinity | (random >> 63));
    }
}

uint64_t attnres_cli_digest(uint64_t digest, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++) {
        digest = (digest ^ p[i]) * 0x100000001b3u;
    }
    return digest;
}

void attnres_cli_unify_nan(attnres_dtype dtype, void *data, size_t count)
{
    const format f = format_of(dtype);
    const uint64_t infinity = (((uint64_t)1 << f.exponent_bits) - 1) << f.mantissa_bits;
    const uint64_t magnitude = ((uint64_t)1 << (f.mantissa_bits + f.exponent_bits)) - 1;
    for (size_t i = 0; i < count; i++) {
        if ((get_bits(dtype, data, i) & magnitude) > infinity) {
            set_bits(dtype, data, i, infinity | (uint64_t)1 << (f.mantissa_bits - 1));
        }
    }
}

void attnres_cli_halve_and_move(attnres_dtype dtype, const void *from, size_t count, size_t shift,
                                void *to)
{
    const format f = format_of(dtype);
    const uint64_t sign = (uint64_t)1 << (f.mantissa_bits + f.exponent_bits);
    const uint64_t one_exponent = (uint64_t)1 << f.mantissa_bits;
    for (size_t i = 0; i < count; i++) {
        const uint64_t bits =
            get_bits(dtype, from, i + shift < count ? i + shift : i + shift - count);
        const uint64_t magnitude = bits & (sign - 1);
        const uint64_t flipped = i % 3 == 0 ? sign : 0;
        const uint64_t half = magnitude >= 2 * one_exponent ? magnitude - one_exponent : 0;
        set_bits(dtype, to, i, ((bits & sign) ^ flipped) | half);
    }
}

void attnres_cli_set_sum(attnres_dtype dtype, void *data, size_t i, double a, double b)
{
    const format f = format_of(dtype);
    const double sum = a + b;
    if (dtype == ATTNRES_F64) {
        memcpy((char *)data + 8 * i, &sum, 8);
        return;
    }
    if (dtype == ATTNRES_F32) {
        /* a + b of floats in float is the definition itself. */
        const float single = (float)a + (float)b;
        memcpy((char *)data + 4 * i, &single, 4);
        return;
    }
    /* 16 bits: accumulated in float, then rounded. Both roundings are the reference's. */
    const double single = (double)((float)a + (float)b);
    const uint64_t infinity = (((uint64_t)1 << f.exponent_bits) - 1) << f.mantissa_bits;
    const uint64_t sign = (uint64_t)(signbit(single) != 0) << (f.mantissa_bits + f.exponent_bits);
    if (!isfinite(single)) {
        set_bits(dtype, data, i, sign | infinity | (isnan(single) ? 1 : 0));
        return;
    }
    const int lowest = 2 - (1 << (f.exponent_bits - 1));
    int exponent = single == 0 ? lowest : ilogb(single);
    exponent = exponent < lowest ? lowest : exponent;
    const double steps = rint(fabs(single) * ldexp(1, f.mantissa_bits - exponent));
    /* steps counts units in the last place from 0; carries run into the exponent by themselves. */
    const uint64_t bits = (uint64_t)steps + ((uint64_t)(exponent - lowest) << f.mantissa_bits);
    set_bits(dtype, data, i, sign | (bits > infinity ? infinity : bits));
}
