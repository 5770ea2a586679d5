/* The numerics contract (docs/design.md) word by word: one element after the other, one operation
 * per line, lanes as arrays, the C library's fma and fmaf, elements.h for conversions. Slow, and
 * independent of everything in src/ but attnres_exp, which test_exp.c looks after. What every level
 * must reproduce bit for bit. */
#ifndef ATTNRES_TESTS_PLAIN_H
#define ATTNRES_TESTS_PLAIN_H

#include <attnres.h>

#include "reading.h"

#define PLAIN_LANES_MAX 32

/* Accumulator arithmetic: each operation rounded to double for f64, to float for the others. */
double plain_add(attnres_dtype dtype, double a, double b);
double plain_multiply(attnres_dtype dtype, double a, double b);
double plain_fma(attnres_dtype dtype, double a, double b, double c);
double plain_rounded(attnres_dtype dtype, double a);

int plain_lanes(attnres_dtype dtype);

/* Section 1. out = narrow(rows[0] + rows[1] + ...) */
void plain_sum(attnres_dtype dtype, const void *const *rows, size_t count, size_t width, void *out);

/* Section 2. Sums of one row, its logit (without scale and bias), and whether the wide path was
 * taken. */
void plain_score(const reading *in, size_t s, double *squares, double *dot);
double plain_logit(const reading *in, size_t s, int *is_wide);

/* Section 3, the state of a fold; mix holds accumulators. */
typedef struct plain_state {
    double max, sum;
    double *mix;
} plain_state;

void plain_clear(plain_state *state);

/* Takes one source with its logit (scaled and biased). */
void plain_take(const reading *in, plain_state *state, const void *row, double logit);

/* What a read gives. Any pointer may be NULL. */
typedef struct plain_results {
    void *retrieved, *normed; /* [width] in the dtype */
    void *weights;            /* [count] in the dtype */
    double *logits;           /* [count] */
} plain_results;

/* All of it, from `state` on if there is one (weights are wrong then). */
void plain_read(const reading *in, const plain_state *state, const plain_results *out);

/* The logits of a reading, scaled and biased. */
void plain_logits(const reading *in, double *logits);

#endif
