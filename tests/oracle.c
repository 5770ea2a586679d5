#include "oracle.h"

#include "allocate.h"
#include "elements.h"

#include <math.h>

static real at(attnres_dtype dtype, const void *data, size_t i)
{
    return (real)elements_get(dtype, data, i);
}

static real accumulator(const reading *in, const void *data, size_t i)
{
    return at(attnres_dtype_accumulator(in->dtype), data, i);
}

/* u */
static real roundoff(attnres_dtype dtype)
{
    return dtype == ATTNRES_F64 ? (real)0x1p-53 : (real)0x1p-24;
}

/* What a rounding costs at most below the normal range. For f64 exp counts as 0 there. */
static real underflow(attnres_dtype dtype)
{
    return dtype == ATTNRES_F64 ? (real)0x1p-1022 : (real)0x1p-150;
}

static int is_removed(const reading *in, size_t s)
{
    return in->bias && in->bias[s] == -(double)INFINITY;
}

/* ---- Logits ---------------------------------------------------------------------------- */

typedef struct sums {
    real squares, dot, magnitude; /* of x*x, x*q, |x*q| */
} sums;

static sums sums_of(const reading *in, const void *row)
{
    sums total = {0, 0, 0};
    for (size_t i = 0; i < in->width; i++) {
        const real x = at(in->dtype, row, i), q = accumulator(in, in->query, i);
        total.squares += x * x;
        total.dot += x * q;
        total.magnitude += real_abs(x * q);
    }
    return total;
}

static real chain(const reading *in, sums total, real mean)
{
    const int is_double = in->dtype == ATTNRES_F64;
    const size_t lanes = is_double ? 16 : 32;
    const real largest = (real)elements_largest(ATTNRES_F64) * (real)0.99;
    if (is_double && (total.squares > largest || total.magnitude > largest ||
                      mean < (real)0x1p-1022 * (real)1.01)) {
        return (real)(in->width + 2);
    }
    return (real)((in->width + lanes - 1) / lanes) + (is_double ? 4 : 5) + 2;
}

static void find_logit(oracle *judge, size_t s)
{
    const reading *in = judge->in;
    const sums total = sums_of(in, in->rows[s]);
    const real mean = total.squares / (real)in->width + (real)in->eps;
    const real scale = in->scale != 0 ? (real)in->scale : 1;
    const real rms = real_sqrt(mean);
    if (is_removed(in, s)) {
        judge->logits[s] = -(real)INFINITY;
        return;
    }
    const real logit = mean > 0 ? total.dot / rms : 0;
    const real size = mean > 0 ? total.magnitude / rms : 0;
    /* Products that underflow are off by a subnormal each. The wide path starts before that can
     * matter, unless the query is that small, too. */
    const real small = total.magnitude > 0 ? (real)in->width * underflow(in->dtype) / rms : 0;
    judge->logits[s] = logit * scale + (in->bias ? (real)in->bias[s] : 0);
    judge->logit_bounds[s] =
        real_abs(scale) *
            (chain(in, total, mean) * roundoff(in->dtype) * (size + real_abs(logit)) + small) +
        4 * (real)0x1p-53 * (real_abs(judge->logits[s]) + real_abs(logit * scale));
}

/* ---- Weights and mix ------------------------------------------------------------------- */

/* How often the maximum may grow after the first source. */
static size_t changes_of_maximum(const oracle *judge)
{
    real highest = -(real)INFINITY;
    size_t changes = 0;
    for (size_t s = 0; s < judge->in->count; s++) {
        if (is_removed(judge->in, s)) {
            continue;
        }
        changes += highest > -(real)INFINITY && judge->logits[s] + judge->logit_bounds[s] > highest;
        highest = real_max(highest, judge->logits[s] - judge->logit_bounds[s]);
    }
    return changes;
}

/* exp(bound of an exponent), the differences between logits rounded as well. */
static real exp_of_bound(const oracle *judge, size_t s)
{
    const real bound = judge->logit_bounds[s] + judge->difference_bound;
    return real_exp(bound < 1000 ? bound : 1000); /* where the weight's bound is 1 anyway */
}

/* Every exponent may be off by its bound, in either direction: the farthest that w_s can go. */
static void find_weight_bounds(oracle *judge)
{
    const size_t count = judge->in->count;
    real high = 0, low = 0; /* of the sum of exponentials, as factors */
    for (size_t s = 0; s < count; s++) {
        high += judge->weights[s] * exp_of_bound(judge, s);
        low += judge->weights[s] / exp_of_bound(judge, s);
    }
    for (size_t s = 0; s < count; s++) {
        const real up = exp_of_bound(judge, s) / low - 1;
        const real down = 1 - 1 / (exp_of_bound(judge, s) * high);
        judge->weight_bounds[s] = judge->weights[s] * real_max(up, down);
        if (judge->weight_bounds[s] > 1) {
            judge->weight_bounds[s] = 1;
        }
    }
}

static void find_weights(oracle *judge)
{
    const reading *in = judge->in;
    const size_t changes = changes_of_maximum(judge);
    real highest = -(real)INFINITY, total = 0, largest = 0;
    for (size_t s = 0; s < in->count; s++) {
        highest = real_max(highest, judge->logits[s]);
        largest = real_max(largest, is_removed(in, s) ? 0 : real_abs(judge->logits[s]));
    }
    for (size_t s = 0; s < in->count; s++) {
        judge->weights[s] = is_removed(in, s) ? 0 : real_exp(judge->logits[s] - highest);
        total += judge->weights[s];
    }
    for (size_t s = 0; s < in->count; s++) {
        judge->weights[s] /= total;
    }
    judge->largest_exponential = total;
    judge->difference_bound = (real)(2 * changes + 2) * largest * (real)0x1p-53;
    judge->fold_factor = in->dtype == ATTNRES_F64 ? (real)(in->count + 3 * changes + 4)
                                                  : (real)(in->count + 2 * changes + 3) / 2;
    find_weight_bounds(judge);
}

static void find_mix(oracle *judge, size_t i)
{
    const reading *in = judge->in;
    const real eps = 2 * roundoff(in->dtype), small = underflow(in->dtype);
    real mix = 0, bound = 0, magnitude = 0, absolute = 0;
    for (size_t s = 0; s < in->count; s++) {
        if (is_removed(in, s)) {
            continue;
        }
        const real x = at(in->dtype, in->rows[s], i);
        mix += judge->weights[s] * x;
        magnitude += judge->weights[s] * real_abs(x);
        bound += judge->weight_bounds[s] * real_abs(x);
        /* A factor below the normal range, on this row or on all before it; a sum that is. */
        absolute += small * (2 * real_abs(x) * (real)in->count + 2);
    }
    judge->mix[i] = mix;
    judge->magnitudes[i] = magnitude;
    judge->mix_bounds[i] = (bound + judge->fold_factor * eps * magnitude + absolute) * (real)1.01;
}

/* y = v / rms(v) * gain; v is off by b_i (and half an ulp, if it is rounded first). */
static void find_normed(oracle *judge)
{
    const reading *in = judge->in;
    const int rounds = in->norm_policy == ATTNRES_NORM_REFERENCE && in->dtype != ATTNRES_F32 &&
                       in->dtype != ATTNRES_F64;
    real squares = 0, bounds = 0;
    for (size_t i = 0; i < in->width; i++) {
        const real half = rounds ? (real)elements_ulp(in->dtype, (double)judge->mix[i]) / 2 : 0;
        judge->normed_bounds[i] = judge->mix_bounds[i] + half;
        squares += judge->mix[i] * judge->mix[i];
        bounds += judge->normed_bounds[i] * judge->normed_bounds[i];
    }
    const real mean = squares / (real)in->width + (real)in->norm_eps;
    const real rms = real_sqrt(mean), u = roundoff(in->dtype);
    const sums none = {squares, 0, 0};
    /* Relative error of the root: by Minkowski's inequality, and by its own roundings. */
    const real relative = real_sqrt(bounds / (real)in->width) / rms + (chain(in, none, 1) + 4) * u;
    for (size_t i = 0; i < in->width; i++) {
        const real gain = in->norm_gain ? accumulator(in, in->norm_gain, i) : 1;
        judge->normed[i] = judge->mix[i] / rms * gain;
        judge->normed_bounds[i] =
            (real_abs(gain) * judge->normed_bounds[i] / rms * (1 + relative) +
             relative * real_abs(judge->normed[i]) + 4 * underflow(in->dtype)) *
            (real)1.01;
    }
}

/* ---- The whole thing ------------------------------------------------------------------- */

void oracle_open(oracle *judge, const reading *in)
{
    const size_t count = in->count, width = in->width;
    real *memory = allocate(4 * count + 5 * width, sizeof *memory);
    *judge = (oracle){.in = in, .logits = memory};
    judge->logit_bounds = judge->logits + count;
    judge->weights = judge->logit_bounds + count;
    judge->weight_bounds = judge->weights + count;
    judge->mix = judge->weight_bounds + count;
    judge->mix_bounds = judge->mix + width;
    judge->magnitudes = judge->mix_bounds + width;
    judge->normed = judge->magnitudes + width;
    judge->normed_bounds = judge->normed + width;
    for (size_t s = 0; s < count; s++) {
        find_logit(judge, s);
    }
    find_weights(judge);
    for (size_t i = 0; i < width; i++) {
        find_mix(judge, i);
    }
    find_normed(judge);
}

void oracle_close(oracle *judge)
{
    free(judge->logits);
}

/* |found - exact| over bound plus half an ulp of the dtype around the exact value. */
static real ratio(attnres_dtype rounded_to, double found, real exact, real bound)
{
    if (rounded_to != 0) {
        /* At the edge of a binade the larger spacing counts: the bound may reach across it. */
        const double edge = (double)(real_abs(exact) + bound);
        bound += (real)elements_ulp(rounded_to, edge) / 2;
    }
    if (!isfinite(found)) {
        return (real)INFINITY;
    }
    const real error = real_abs((real)found - exact);
    return error == 0 ? 0 : error / bound;
}

static attnres_dtype if_16_bit(attnres_dtype dtype)
{
    return attnres_dtype_size(dtype) == 2 ? dtype : (attnres_dtype)0;
}

double oracle_logits(const oracle *judge, const double *logits)
{
    real worst = 0;
    for (size_t s = 0; s < judge->in->count; s++) {
        const real found = is_removed(judge->in, s)
                               ? (real)(logits[s] == -(double)INFINITY ? 0 : 2)
                               : ratio(0, logits[s], judge->logits[s], judge->logit_bounds[s]);
        worst = real_max(worst, found);
    }
    return (double)worst;
}

double oracle_weights(const oracle *judge, const void *weights)
{
    const attnres_dtype dtype = judge->in->dtype;
    real worst = 0;
    for (size_t s = 0; s < judge->in->count; s++) {
        /* The sum of exponentials has at most three roundings a source, all in double. */
        const real sum = (real)(3 * judge->in->count + 3) * (real)0x1p-53 * judge->weights[s];
        const real bound = (judge->weight_bounds[s] + sum) * (real)1.01 + (real)0x1p-1022;
        worst = real_max(worst,
                         ratio(dtype, elements_get(dtype, weights, s), judge->weights[s], bound));
    }
    return (double)worst;
}

static int may_overflow(const oracle *judge, size_t i)
{
    const attnres_dtype accumulator_type = attnres_dtype_accumulator(judge->in->dtype);
    return judge->magnitudes[i] * judge->largest_exponential * (real)1.001 >
           (real)elements_largest(accumulator_type);
}

double oracle_retrieved(const oracle *judge, const void *retrieved)
{
    const attnres_dtype dtype = judge->in->dtype;
    real worst = 0;
    for (size_t i = 0; i < judge->in->width; i++) {
        if (!may_overflow(judge, i)) {
            worst = real_max(worst, ratio(if_16_bit(dtype), elements_get(dtype, retrieved, i),
                                          judge->mix[i], judge->mix_bounds[i]));
        }
    }
    return (double)worst;
}

double oracle_needed(const oracle *judge, const void *retrieved)
{
    const attnres_dtype dtype = judge->in->dtype;
    real worst = 0;
    for (size_t i = 0; i < judge->in->width; i++) {
        const double found = elements_get(dtype, retrieved, i);
        real error = real_abs((real)found - judge->mix[i]);
        if (if_16_bit(dtype)) {
            error -= (real)elements_ulp(dtype, found) / 2;
        }
        if (judge->magnitudes[i] > (real)elements_ulp(dtype, 0) * 0x1p60 &&
            !may_overflow(judge, i)) {
            worst = real_max(worst, error / (2 * roundoff(dtype) * judge->magnitudes[i]));
        }
    }
    return (double)worst;
}

double oracle_normed(const oracle *judge, const void *normed)
{
    const attnres_dtype dtype = judge->in->dtype;
    real worst = 0;
    for (size_t i = 0; i < judge->in->width; i++) {
        worst = real_max(worst, ratio(if_16_bit(dtype), elements_get(dtype, normed, i),
                                      judge->normed[i], judge->normed_bounds[i]));
    }
    return (double)worst;
}

double oracle_sum(attnres_dtype dtype, const void *const *rows, size_t count, size_t width,
                  const void *sum)
{
    real worst = 0;
    for (size_t i = 0; i < width; i++) {
        real exact = 0, magnitude = 0;
        for (size_t r = 0; r < count; r++) {
            exact += at(dtype, rows[r], i);
            magnitude += real_abs(at(dtype, rows[r], i));
        }
        const real bound = (real)(count - 1) * roundoff(dtype) * magnitude * (real)1.01;
        worst = real_max(worst, ratio(if_16_bit(dtype), elements_get(dtype, sum, i), exact, bound));
    }
    return (double)worst;
}
