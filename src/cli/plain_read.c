#include "plain_read.h"

#include <math.h>
#include <string.h>

static void weigh(const float *copy, size_t count, const float *query, size_t width, double eps,
                  double *scores)
{
    double largest = -(double)INFINITY, sum = 0;
    for (size_t s = 0; s < count; s++) {
        const float *x = copy + s * width;
        double squares = 0, dot = 0;
        for (size_t i = 0; i < width; i++) {
            squares += (double)x[i] * (double)x[i];
            dot += (double)x[i] * (double)query[i];
        }
        scores[s] = dot / sqrt(squares / (double)width + eps);
        largest = scores[s] > largest ? scores[s] : largest;
    }
    for (size_t s = 0; s < count; s++) {
        scores[s] = exp(scores[s] - largest);
        sum += scores[s];
    }
    for (size_t s = 0; s < count; s++) {
        scores[s] /= sum;
    }
}

static double mixed(const float *copy, size_t count, size_t width, const double *scores, size_t i)
{
    double value = 0;
    for (size_t s = 0; s < count; s++) {
        value += scores[s] * (double)copy[s * width + i];
    }
    return value;
}

void attnres_cli_plain_read_f32(const float *const *rows, size_t count, const float *query,
                                size_t width, double eps, float *copy, float *out)
{
    double scores[ATTNRES_CLI_PLAIN_SOURCES];
    for (size_t s = 0; s < count; s++) {
        memcpy(copy + s * width, rows[s], width * sizeof *copy);
    }
    weigh(copy, count, query, width, eps, scores);
    for (size_t i = 0; i < width; i++) {
        out[i] = (float)mixed(copy, count, width, scores, i);
    }
}

static float widened(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t narrowed(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void attnres_cli_plain_read_bf16(const uint16_t *const *rows, size_t count, const float *query,
                                 size_t width, double eps, float *copy, uint16_t *out)
{
    double scores[ATTNRES_CLI_PLAIN_SOURCES];
    for (size_t s = 0; s < count; s++) {
        for (size_t i = 0; i < width; i++) {
            copy[s * width + i] = widened(rows[s][i]);
        }
    }
    weigh(copy, count, query, width, eps, scores);
    for (size_t i = 0; i < width; i++) {
        out[i] = narrowed((float)mixed(copy, count, width, scores, i));
    }
}
