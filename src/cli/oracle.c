#include "oracle.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

double attnres_cli_value(attnres_dtype dtype, const void *data, size_t i)
{
    const unsigned char *p = (const unsigned char *)data + i * attnres_dtype_size(dtype);
    double number;
    float single;
    uint32_t word;
    uint16_t half;
    switch (dtype) {
    case ATTNRES_F64:
        memcpy(&number, p, sizeof number);
        return number;
    case ATTNRES_F32:
        memcpy(&single, p, sizeof single);
        return (double)single;
    case ATTNRES_BF16:
        memcpy(&half, p, sizeof half);
        word = (uint32_t)half << 16;
        memcpy(&single, &word, sizeof single);
        return (double)single;
    case ATTNRES_F16:
        break;
    }
    memcpy(&half, p, sizeof half);
    const int exponent = half >> 10 & 31, mantissa = half & 1023;
    number = exponent == 31  ? (mantissa ? (double)NAN : (double)INFINITY)
             : exponent == 0 ? ldexp(mantissa, -24)
                             : ldexp(1024 + mantissa, exponent - 25);
    return half >> 15 ? -number : number;
}

void attnres_cli_oracle_read(attnres_dtype dtype, size_t width, const void *const *rows,
                             size_t count, const void *query, double eps, double *result,
                             double *weights, double *magnitude)
{
    const attnres_dtype accumulator = attnres_dtype_accumulator(dtype);
    double largest = -(double)INFINITY, total = 0;

    for (size_t s = 0; s < count; s++) {
        double squares = 0, dot = 0;
        for (size_t i = 0; i < width; i++) {
            const double x = attnres_cli_value(dtype, rows[s], i);
            squares += x * x;
            dot += x * attnres_cli_value(accumulator, query, i);
        }
        weights[s] = dot / sqrt(squares / (double)width + eps);
        largest = fmax(largest, weights[s]);
    }
    for (size_t s = 0; s < count; s++) {
        weights[s] = exp(weights[s] - largest);
        total += weights[s];
    }
    memset(result, 0, width * sizeof *result);
    memset(magnitude, 0, width * sizeof *magnitude);
    for (size_t s = 0; s < count; s++) {
        weights[s] /= total;
        for (size_t i = 0; i < width; i++) {
            const double part = weights[s] * attnres_cli_value(dtype, rows[s], i);
            result[i] += part;
            magnitude[i] += fabs(part);
        }
    }
}

/* Half a unit in the last place of the dtype at this value. */
static double half_unit(attnres_dtype dtype, double value)
{
    const int digits = dtype == ATTNRES_F64   ? 53
                       : dtype == ATTNRES_F32 ? 24
                       : dtype == ATTNRES_F16 ? 11
                                              : 8;
    const int lowest = dtype == ATTNRES_F64 ? -1022 : dtype == ATTNRES_F16 ? -14 : -126;
    const int exponent = value == 0 ? lowest : ilogb(value);
    return ldexp(0.5, (exponent > lowest ? exponent : lowest) - digits + 1);
}

double attnres_cli_oracle_error(attnres_dtype dtype, size_t width, size_t count, const void *row,
                                const double *result, const double *magnitude)
{
    const double unit = dtype == ATTNRES_F64 ? 0x1p-53 : 0x1p-24;
    const double factor = unit * (8 + (double)count + 4 * sqrt((double)width));
    double worst = 0;
    for (size_t i = 0; i < width; i++) {
        const double error = fabs(attnres_cli_value(dtype, row, i) - result[i]);
        const double allowed = half_unit(dtype, result[i]) + factor * magnitude[i];
        const double ratio = error == 0 ? 0 : error / allowed;
        worst = !(ratio <= worst) ? ratio : worst;
    }
    return isnan(worst) ? 1e300 : worst;
}
