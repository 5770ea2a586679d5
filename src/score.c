#include "score.h"

#include <float.h>
#include <limits.h>
#include <math.h>

#include "convert.h"
#include "softmax.h"
#include "strict.h"

/* Rows scored by one kernel call; bounds the stack. */
#define GROUP_ROWS 32

int attnres_from_memory(const attnres_shape *shape, size_t sources)
{
    const double bytes = (double)shape->tokens * (double)shape->width * (double)sources *
                         (double)attnres_dtype_size(shape->dtype);
    return bytes > 0x1p24; /* 16 MiB */
}

/* f32, f16, bf16: double holds every product exactly and cannot overflow or underflow. */
static void wide_sums_float(const struct attnres_scoring *scoring, const void *row,
                            double *squares_out, double *dot_out)
{
    const float *query = scoring->query;
    double squares = 0, dot = 0;
    for (size_t i = 0; i < scoring->width; i++) {
        const double x = attnres_element(scoring->dtype, row, i);
        squares += x * x;
        dot += x * (double)query[i];
    }
    *squares_out = squares;
    *dot_out = dot;
}

double attnres_combine(double squares, double dot, size_t width, double eps)
{
    if (squares + eps == 0) {
        return dot; /* a row of zeros: 0, or NaN if the query holds NaN or Inf */
    }
    return attnres_logit_of(squares, dot, width, eps);
}

void attnres_partial_sums(const struct attnres_scoring *scoring, const void *row, double *squares,
                          double *dot)
{
    if (scoring->dtype != ATTNRES_F64 &&
        !(isfinite(*squares) && isfinite(*dot) && *squares >= (double)FLT_MIN)) {
        wide_sums_float(scoring, row, squares, dot);
    }
}

/* The exponent of the largest magnitude; INT_MIN if all are 0, INT_MAX if one is NaN or Inf. */
static int largest_exponent(const double *values, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) {
            return INT_MAX;
        }
        largest = fabs(values[i]) > largest ? fabs(values[i]) : largest;
    }
    return largest == 0 ? INT_MIN : ilogb(largest);
}

/* f64: row and query are scaled by powers of two, so that the largest magnitude (for the row:
 * sqrt(eps), if that is larger) becomes 1 to 2. */
static double wide_logit_double(const struct attnres_scoring *scoring, const double *row)
{
    const double *query = scoring->query;
    int row_exponent = largest_exponent(row, scoring->width);
    int query_exponent = largest_exponent(query, scoring->width);
    double squares = 0, dot = 0;

    if (row_exponent == INT_MAX) {
        return (double)NAN;
    }
    if (row_exponent == INT_MIN && query_exponent != INT_MAX) {
        return 0.0;
    }
    if (query_exponent == INT_MIN || query_exponent == INT_MAX) {
        query_exponent = 0; /* zeros, NaN and Inf need no scaling */
    }
    if (row_exponent == INT_MIN) {
        row_exponent = 0;
    }
    if (scoring->eps > 0 && ilogb(scoring->eps) / 2 > row_exponent) {
        row_exponent = ilogb(scoring->eps) / 2;
    }
    for (size_t i = 0; i < scoring->width; i++) {
        const double x = scalbn(row[i], -row_exponent);
        squares = fma(x, x, squares);
        dot = fma(x, scalbn(query[i], -query_exponent), dot);
    }
    const double logit =
        attnres_logit_of(squares, dot, scoring->width, scalbn(scoring->eps, -2 * row_exponent));
    return scalbn(logit, query_exponent);
}

double attnres_logit(const struct attnres_scoring *scoring, const void *row, double squares,
                     double dot)
{
    const int is_double = scoring->dtype == ATTNRES_F64;
    const double smallest_normal = is_double ? DBL_MIN : (double)FLT_MIN;
    const double mean = squares / (double)scoring->width + scoring->eps;

    if (isfinite(squares) && isfinite(dot) && mean >= smallest_normal) {
        return dot / sqrt(mean);
    }
    if (is_double) {
        return wide_logit_double(scoring, row);
    }
    wide_sums_float(scoring, row, &squares, &dot);
    return attnres_combine(squares, dot, scoring->width, scoring->eps);
}

double attnres_biased_logit(const struct attnres_scoring *scoring, const void *row, double squares,
                            double dot, const double *bias)
{
    const double logit = attnres_logit(scoring, row, squares, dot) * scoring->scale;
    if (!bias) {
        return logit;
    }
    /* A source removed by its bias is gone, whatever its row holds. */
    return *bias == -(double)INFINITY ? *bias : logit + *bias;
}

void attnres_logits(const struct attnres_kernels *kernels, const struct attnres_scoring *scoring,
                    const void *const *rows, size_t count, const double *bias, double *logits)
{
    double squares[GROUP_ROWS], dots[GROUP_ROWS];

    for (size_t first = 0; first < count; first += GROUP_ROWS) {
        const size_t n = count - first < GROUP_ROWS ? count - first : GROUP_ROWS;
        kernels->score(rows + first, n, scoring->query, scoring->width, scoring->from_memory,
                       squares, dots);
        for (size_t r = 0; r < n; r++) {
            const size_t s = first + r;
            logits[s] =
                attnres_biased_logit(scoring, rows[s], squares[r], dots[r], bias ? &bias[s] : NULL);
        }
    }
}
