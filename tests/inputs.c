#include "inputs.h"

#include "elements.h"

#include <math.h>
#include <stdlib.h>

const char *inputs_name(inputs_kind kind)
{
    static const char *const names[INPUTS_KINDS] = {"ordinary", "ties", "wide",
                                                    "tiny",     "huge", "special"};
    return names[kind];
}

uint64_t inputs_seed(void)
{
    const char *text = getenv("ATTNRES_TEST_SEED");
    return text ? strtoull(text, NULL, 10) : 1;
}

int inputs_quick(void)
{
    const char *text = getenv("ATTNRES_TEST_QUICK");
    return text && *text && *text != '0';
}

/* SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t inputs_next(uint64_t *stream)
{
    uint64_t z = *stream += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint64_t inputs_stream(uint64_t test, uint64_t a, uint64_t b)
{
    uint64_t stream = inputs_seed();
    const uint64_t parts[] = {test, a, b};
    for (int i = 0; i < 3; i++) {
        const uint64_t next = inputs_next(&stream);
        stream = next ^ parts[i];
    }
    return inputs_next(&stream);
}

size_t inputs_pick(uint64_t *stream, size_t count)
{
    return (size_t)(inputs_next(stream) % count);
}

double inputs_uniform(uint64_t *stream, double low, double high)
{
    return low + (high - low) * ((double)(inputs_next(stream) >> 11) * 0x1p-53);
}

double inputs_bell(uint64_t *stream)
{
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        sum += inputs_uniform(stream, -1, 1);
    }
    return sum * 0.8660254037844386; /* sqrt(3 / 4) */
}

/* One draw an expression: in which order two would be made is up to the compiler. */
static double sign(uint64_t *stream)
{
    return inputs_next(stream) % 2 ? -1.0 : 1.0;
}

static double power(uint64_t *stream, int low, int high)
{
    const double mantissa = sign(stream) * inputs_uniform(stream, 1, 2);
    return ldexp(mantissa, low + (int)inputs_pick(stream, (size_t)(high - low)));
}

static double special(attnres_dtype dtype, uint64_t *stream)
{
    const elements_format format = elements_format_of(dtype);
    switch (inputs_next(stream) % 8) {
    case 0:
    case 1:
        return 0;
    case 2:
        return elements_largest(dtype);
    case 3:
        return elements_ulp(dtype, 0);
    case 4:
        return ldexp(1, format.smallest);
    case 5:
        return ldexp(1, format.smallest) - elements_ulp(dtype, 0);
    case 6:
        return 1;
    default:
        return inputs_uniform(stream, 0, 2);
    }
}

static double magnitude_of(attnres_dtype dtype, inputs_kind kind, uint64_t *stream)
{
    const elements_format format = elements_format_of(dtype);
    const int half = format.precision / 2;
    size_t number;
    switch (kind) {
    case INPUTS_TIES:
        number = 1 + inputs_pick(stream, (size_t)1 << half);
        return ldexp((double)number, -half * (int)inputs_pick(stream, 2));
    case INPUTS_WIDE:
        return power(stream, format.smallest * 4 / 9, format.largest * 4 / 9);
    case INPUTS_TINY:
        number = inputs_pick(stream, (size_t)1 << (format.precision + 1));
        return elements_ulp(dtype, 0) * (double)number;
    case INPUTS_HUGE:
        return power(stream, format.largest - 8, format.largest);
    case INPUTS_SPECIAL:
        return special(dtype, stream);
    case INPUTS_ORDINARY:
    case INPUTS_KINDS:
        break;
    }
    return inputs_bell(stream);
}

void inputs_fill(attnres_dtype dtype, inputs_kind kind, uint64_t *stream, void *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double value = magnitude_of(dtype, kind, stream);
        elements_set(dtype, data, i, value * sign(stream));
    }
    if (kind == INPUTS_SPECIAL && inputs_next(stream) % 2) {
        static const double not_finite[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
        const size_t at = inputs_pick(stream, count);
        elements_set(dtype, data, at, not_finite[inputs_pick(stream, 3)]);
    }
}

void inputs_fill_scaled(attnres_dtype dtype, double deviation, uint64_t *stream, void *data,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        elements_set(dtype, data, i, deviation * inputs_bell(stream));
    }
}
