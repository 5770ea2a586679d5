#include "plain.h"

#include "allocate.h"
#include "elements.h"

#include "exp.h"

#include <float.h>
#include <math.h>

double plain_rounded(attnres_dtype dtype, double a)
{
    return dtype == ATTNRES_F64 ? a : (double)(float)a;
}

double plain_add(attnres_dtype dtype, double a, double b)
{
    return dtype == ATTNRES_F64 ? a + b : (double)((float)a + (float)b);
}

double plain_multiply(attnres_dtype dtype, double a, double b)
{
    return dtype == ATTNRES_F64 ? a * b : (double)((float)a * (float)b);
}

double plain_fma(attnres_dtype dtype, double a, double b, double c)
{
    return dtype == ATTNRES_F64 ? fma(a, b, c) : (double)fmaf((float)a, (float)b, (float)c);
}

int plain_lanes(attnres_dtype dtype)
{
    return dtype == ATTNRES_F64 ? 16 : 32;
}

static double accumulator(const reading *in, const void *data, size_t i)
{
    return elements_get(attnres_dtype_accumulator(in->dtype), data, i);
}

/* ---- 1. Block sum ---------------------------------------------------------------------- */

void plain_sum(attnres_dtype dtype, const void *const *rows, size_t count, size_t width, void *out)
{
    for (size_t i = 0; i < width; i++) {
        double sum = elements_get(dtype, rows[0], i);
        for (size_t r = 1; r < count; r++) {
            sum = plain_add(dtype, sum, elements_get(dtype, rows[r], i));
        }
        elements_set(dtype, out, i, sum);
    }
}

/* ---- 2. Score -------------------------------------------------------------------------- */

static double folded_in_halves(attnres_dtype dtype, double *lanes)
{
    for (int distance = plain_lanes(dtype) / 2; distance >= 1; distance /= 2) {
        for (int j = 0; j < distance; j++) {
            lanes[j] = plain_add(dtype, lanes[j], lanes[j + distance]);
        }
    }
    return lanes[0];
}

void plain_score(const reading *in, size_t s, double *squares, double *dot)
{
    const size_t lanes = (size_t)plain_lanes(in->dtype);
    double square_lanes[PLAIN_LANES_MAX] = {0}, dot_lanes[PLAIN_LANES_MAX] = {0};
    for (size_t i = 0; i < in->width; i++) {
        const size_t j = i % lanes;
        const double x = elements_get(in->dtype, in->rows[s], i);
        const double q = accumulator(in, in->query, i);
        square_lanes[j] = plain_fma(in->dtype, x, x, square_lanes[j]);
        dot_lanes[j] = plain_fma(in->dtype, x, q, dot_lanes[j]);
    }
    *squares = folded_in_halves(in->dtype, square_lanes);
    *dot = folded_in_halves(in->dtype, dot_lanes);
}

static double logit_of(double squares, double dot, size_t width, double eps)
{
    return dot / sqrt(squares / (double)width + eps);
}

/* Accumulator f32: plain order, sums in double. */
static double wide_logit_float(const reading *in, const void *row)
{
    double squares = 0, dot = 0;
    for (size_t i = 0; i < in->width; i++) {
        const double x = elements_get(in->dtype, row, i);
        const double square = x * x;
        const double product = x * accumulator(in, in->query, i);
        squares = squares + square;
        dot = dot + product;
    }
    return logit_of(squares, dot, in->width, in->eps);
}

static double largest_magnitude(const double *values, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(values[i]));
    }
    return largest;
}

/* f64: plain order, one fma per element, on values scaled by powers of two so that the largest of
 * the query, and the larger of the row's largest and sqrt(eps), is between 1 and 2. */
static double wide_logit_double(const reading *in, const double *row)
{
    const double *query = in->query;
    const double root = sqrt(in->eps), largest = largest_magnitude(row, in->width);
    const double row_size = root > largest ? root : largest;
    const int row_exponent = row_size > 0 ? ilogb(row_size) : 0;
    const double largest_query = largest_magnitude(query, in->width);
    const int query_exponent =
        largest_query > 0 && isfinite(largest_query) ? ilogb(largest_query) : 0;
    double squares = 0, dot = 0;
    for (size_t i = 0; i < in->width; i++) {
        const double x = ldexp(row[i], -row_exponent);
        const double q = ldexp(query[i], -query_exponent);
        squares = fma(x, x, squares);
        dot = fma(x, q, dot);
    }
    const double logit = logit_of(squares, dot, in->width, ldexp(in->eps, -2 * row_exponent));
    return ldexp(logit, query_exponent);
}

double plain_logit(const reading *in, size_t s, int *is_wide)
{
    const double smallest_normal = in->dtype == ATTNRES_F64 ? DBL_MIN : (double)FLT_MIN;
    double squares, dot;
    int is_zero = 1, is_finite = 1, query_is_finite = 1;
    for (size_t i = 0; i < in->width; i++) {
        is_zero &= elements_get(in->dtype, in->rows[s], i) == 0;
        is_finite &= isfinite(elements_get(in->dtype, in->rows[s], i)) != 0;
        query_is_finite &= isfinite(accumulator(in, in->query, i)) != 0;
    }
    *is_wide = 0;
    if (!is_finite) {
        return (double)NAN;
    }
    if (is_zero && query_is_finite) {
        return 0;
    }
    plain_score(in, s, &squares, &dot);
    if (isfinite(squares) && isfinite(dot) &&
        squares / (double)in->width + in->eps >= smallest_normal) {
        return logit_of(squares, dot, in->width, in->eps);
    }
    *is_wide = 1;
    return in->dtype == ATTNRES_F64 ? wide_logit_double(in, in->rows[s])
                                    : wide_logit_float(in, in->rows[s]);
}

void plain_logits(const reading *in, double *logits)
{
    for (size_t s = 0; s < in->count; s++) {
        int is_wide;
        double logit = plain_logit(in, s, &is_wide);
        if (in->scale != 0) {
            logit = logit * in->scale;
        }
        if (in->bias) {
            /* Removed is removed, also a row of NaN. */
            logit = in->bias[s] == -(double)INFINITY ? in->bias[s] : logit + in->bias[s];
        }
        logits[s] = logit;
    }
}

/* ---- 3. Softmax and mix ---------------------------------------------------------------- */

void plain_clear(plain_state *state)
{
    state->max = -(double)INFINITY;
    state->sum = 0;
}

void plain_take(const reading *in, plain_state *state, const void *row, double logit)
{
    if (logit == -(double)INFINITY) {
        return;
    }
    if (logit == (double)INFINITY) {
        logit = (double)NAN; /* Inf - Inf */
    }
    if (state->max == -(double)INFINITY && state->sum == 0) {
        for (size_t i = 0; i < in->width; i++) {
            state->mix[i] = elements_get(in->dtype, row, i);
        }
        state->max = logit;
        state->sum = isnan(logit) ? logit : 1;
        return;
    }
    double alpha = 1, p = 1;
    if (logit > state->max) {
        alpha = attnres_exp(state->max - logit);
        state->max = logit;
    } else {
        p = attnres_exp(logit - state->max);
    }
    state->sum = state->sum * alpha;
    state->sum = state->sum + p;
    const double alpha_rounded = plain_rounded(in->dtype, alpha);
    const double p_rounded = plain_rounded(in->dtype, p);
    for (size_t i = 0; i < in->width; i++) {
        const double scaled = plain_multiply(in->dtype, state->mix[i], alpha_rounded);
        const double x = elements_get(in->dtype, row, i);
        state->mix[i] = plain_fma(in->dtype, p_rounded, x, scaled);
    }
}

/* ---- 4. What follows the mix ----------------------------------------------------------- */

static void normalize(const reading *in, const double *v, void *normed)
{
    const size_t lanes = (size_t)plain_lanes(in->dtype);
    double square_lanes[PLAIN_LANES_MAX] = {0};
    for (size_t i = 0; i < in->width; i++) {
        const size_t j = i % lanes;
        square_lanes[j] = plain_fma(in->dtype, v[i], v[i], square_lanes[j]);
    }
    const double mean = folded_in_halves(in->dtype, square_lanes) / (double)in->width;
    const double r = plain_rounded(in->dtype, 1.0 / sqrt(mean + in->norm_eps));
    for (size_t i = 0; i < in->width; i++) {
        const double scaled = plain_multiply(in->dtype, v[i], r);
        const double gain = in->norm_gain ? accumulator(in, in->norm_gain, i) : 1;
        elements_set(in->dtype, normed, i, plain_multiply(in->dtype, scaled, gain));
    }
}

static void write_results(const reading *in, const plain_state *state, int is_nan,
                          const plain_results *out)
{
    const int reference = in->norm_policy == ATTNRES_NORM_REFERENCE;
    const double r = is_nan ? (double)NAN : plain_rounded(in->dtype, 1.0 / state->sum);
    double *v = allocate(in->width, sizeof *v);
    for (size_t i = 0; i < in->width; i++) {
        v[i] = is_nan ? (double)NAN : plain_multiply(in->dtype, state->mix[i], r);
        if (out->retrieved) {
            elements_set(in->dtype, out->retrieved, i, v[i]);
        }
        if (reference) {
            v[i] = elements_round(in->dtype, v[i]);
        }
    }
    if (out->normed) {
        normalize(in, v, out->normed);
    }
    free(v);
}

void plain_read(const reading *in, const plain_state *start, const plain_results *out)
{
    double *logits = allocate(in->count, sizeof *logits);
    plain_state state = {.mix = allocate(in->width, sizeof *state.mix)};
    plain_clear(&state);
    if (start) {
        state.max = start->max;
        state.sum = start->sum;
        for (size_t i = 0; i < in->width; i++) {
            state.mix[i] = start->mix[i];
        }
    }
    plain_logits(in, logits);
    int is_nan = isnan(state.max) || isnan(state.sum);
    for (size_t s = 0; s < in->count; s++) {
        is_nan |= isnan(logits[s]) || logits[s] == (double)INFINITY;
        plain_take(in, &state, in->rows[s], logits[s]);
    }
    is_nan |= state.sum == 0; /* none left */
    for (size_t s = 0; s < in->count; s++) {
        if (out->logits) {
            out->logits[s] = logits[s];
        }
        if (out->weights) {
            elements_set(in->dtype, out->weights, s,
                         is_nan ? (double)NAN : attnres_exp(logits[s] - state.max) / state.sum);
        }
    }
    write_results(in, &state, is_nan, out);
    free(state.mix);
    free(logits);
}
