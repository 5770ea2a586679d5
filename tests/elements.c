#include "elements.h"

#include <check.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

attnres_dtype elements_dtype(int i)
{
    static const attnres_dtype dtypes[ELEMENTS_DTYPES] = {ATTNRES_F32, ATTNRES_F64, ATTNRES_F16,
                                                          ATTNRES_BF16};
    return dtypes[i];
}

const char *elements_name(attnres_dtype dtype)
{
    static const char *const names[] = {"?", "f32", "f64", "f16", "bf16"};
    return names[dtype];
}

elements_format elements_format_of(attnres_dtype dtype)
{
    static const elements_format formats[] = {
        [ATTNRES_F32] = {24, -126, 127},
        [ATTNRES_F64] = {53, -1022, 1023},
        [ATTNRES_F16] = {11, -14, 15},
        [ATTNRES_BF16] = {8, -126, 127},
    };
    return formats[dtype];
}

static double decode(attnres_dtype dtype, unsigned bits)
{
    const elements_format format = elements_format_of(dtype);
    const unsigned fractions = 1u << (format.precision - 1);
    const unsigned fraction = bits % fractions;
    const int exponent = (int)((bits & 0x7fff) / fractions);
    const int last = format.smallest - format.precision + 1; /* 2^last: smallest subnormal */
    double value;
    if (exponent == format.largest - format.smallest + 2) {
        value = fraction ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        value = ldexp(fraction, last);
    } else {
        value = ldexp(fractions + fraction, last + exponent - 1);
    }
    return bits & 0x8000 ? -value : value;
}

/* value is a number of the dtype, Inf or NaN. */
static unsigned encode(attnres_dtype dtype, double value)
{
    const elements_format format = elements_format_of(dtype);
    const unsigned fractions = 1u << (format.precision - 1);
    const unsigned infinity = (unsigned)(format.largest - format.smallest + 2) * fractions;
    const unsigned sign = signbit(value) ? 0x8000 : 0;
    int exponent = 0;
    if (isnan(value)) {
        return infinity + fractions / 2;
    }
    if (isinf(value)) {
        return sign | infinity;
    }
    frexp(value, &exponent); /* |value| >= 2^(exponent - 1) */
    if (value == 0 || exponent - 1 < format.smallest) {
        return sign | (unsigned)ldexp(fabs(value), format.precision - 1 - format.smallest);
    }
    /* The fraction's leading 1 counts as one step of the exponent. */
    return sign | ((unsigned)(exponent - 1 - format.smallest) * fractions +
                   (unsigned)ldexp(fabs(value), format.precision - exponent));
}

double elements_get(attnres_dtype dtype, const void *data, size_t i)
{
    if (dtype == ATTNRES_F64) {
        return ((const double *)data)[i];
    }
    if (dtype == ATTNRES_F32) {
        return (double)((const float *)data)[i];
    }
    return decode(dtype, ((const uint16_t *)data)[i]);
}

static double largest(elements_format format)
{
    return ldexp(2 - ldexp(1, 1 - format.precision), format.largest);
}

double elements_largest(attnres_dtype dtype)
{
    return largest(elements_format_of(dtype));
}

/* The exponent of the last place of numbers around value. */
static int last_place(elements_format format, double value)
{
    int exponent = format.smallest;
    if (value != 0) {
        frexp(value, &exponent);
        exponent--;
    }
    return (exponent < format.smallest ? format.smallest : exponent) - format.precision + 1;
}

double elements_ulp(attnres_dtype dtype, double value)
{
    return ldexp(1, last_place(elements_format_of(dtype), value));
}

double elements_round(attnres_dtype dtype, double value)
{
    const elements_format format = elements_format_of(dtype);
    if (dtype == ATTNRES_F64 || value == 0 || !isfinite(value)) {
        return value;
    }
    const int last = last_place(format, value);
    const double rounded = ldexp(nearbyint(ldexp(value, -last)), last);
    return fabs(rounded) > largest(format) ? copysign((double)INFINITY, value) : rounded;
}

void elements_set(attnres_dtype dtype, void *data, size_t i, double value)
{
    const double rounded = elements_round(dtype, value);
    if (dtype == ATTNRES_F64) {
        ((double *)data)[i] = value;
    } else if (dtype == ATTNRES_F32) {
        ((float *)data)[i] = (float)rounded;
    } else {
        ((uint16_t *)data)[i] = (uint16_t)encode(dtype, rounded);
    }
}

void elements_move(attnres_dtype dtype, void *data, size_t i, int steps)
{
    if (dtype == ATTNRES_F64) {
        uint64_t bits;
        memcpy(&bits, (double *)data + i, sizeof bits);
        bits += (uint64_t)(int64_t)steps;
        memcpy((double *)data + i, &bits, sizeof bits);
    } else if (dtype == ATTNRES_F32) {
        uint32_t bits;
        memcpy(&bits, (float *)data + i, sizeof bits);
        bits += (uint32_t)steps;
        memcpy((float *)data + i, &bits, sizeof bits);
    } else {
        ((uint16_t *)data)[i] = (uint16_t)(((uint16_t *)data)[i] + steps);
    }
}

void *elements_at(attnres_dtype dtype, void *data, size_t i)
{
    return (char *)data + i * attnres_dtype_size(dtype);
}

uint64_t elements_bits(attnres_dtype dtype, const void *data, size_t i)
{
    uint64_t bits = 0;
    if (dtype == ATTNRES_F64) {
        memcpy(&bits, (const double *)data + i, sizeof bits);
    } else if (dtype == ATTNRES_F32) {
        uint32_t half;
        memcpy(&half, (const float *)data + i, sizeof half);
        bits = half;
    } else {
        bits = ((const uint16_t *)data)[i];
    }
    return bits;
}

size_t elements_compare(attnres_dtype dtype, const void *a, const void *b, size_t count)
{
    if (memcmp(a, b, count * attnres_dtype_size(dtype)) == 0) {
        return count;
    }
    for (size_t i = 0; i < count; i++) {
        const int same = elements_bits(dtype, a, i) == elements_bits(dtype, b, i);
        if (!same && !(isnan(elements_get(dtype, a, i)) && isnan(elements_get(dtype, b, i)))) {
            return i;
        }
    }
    return count;
}

void elements_check(attnres_dtype dtype, const void *found, const void *expected, size_t count,
                    const char *what, ...)
{
    const size_t i = elements_compare(dtype, found, expected, count);
    if (i == count) {
        return;
    }
    char text[256];
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(text, sizeof text, what, arguments);
    va_end(arguments);
    ck_abort_msg("%s, %s element %zu of %zu: found %.17g (%#llx), expected %.17g (%#llx)", text,
                 elements_name(dtype), i, count, elements_get(dtype, found, i),
                 (unsigned long long)elements_bits(dtype, found, i),
                 elements_get(dtype, expected, i),
                 (unsigned long long)elements_bits(dtype, expected, i));
}
