/* Seeded inputs: the same numbers on every machine for the same seed. ATTNRES_TEST_SEED sets it
 * (default 1), ATTNRES_TEST_QUICK=1 thins the biggest loops out, for emulators. */
#ifndef ATTNRES_TESTS_INPUTS_H
#define ATTNRES_TESTS_INPUTS_H

#include <attnres.h>

#include <stddef.h>
#include <stdint.h>

typedef enum inputs_kind {
    INPUTS_ORDINARY, /* about normally distributed */
    INPUTS_TIES,     /* few significant bits at a few sizes: sums often lie half-way */
    INPUTS_WIDE,     /* exponents all over the range whose squares are numbers */
    INPUTS_TINY,     /* subnormal, or nearly */
    INPUTS_HUGE,     /* squares overflow, sums may */
    INPUTS_SPECIAL,  /* zeros of both signs, extremes; every other row with NaN or Inf */
    INPUTS_KINDS
} inputs_kind;

const char *inputs_name(inputs_kind kind);

uint64_t inputs_seed(void);
int inputs_quick(void);

/* The start of a stream of random numbers for one case of a test. */
uint64_t inputs_stream(uint64_t test, uint64_t a, uint64_t b);

uint64_t inputs_next(uint64_t *stream);
double inputs_uniform(uint64_t *stream, double low, double high);

/* Roughly normal, standard deviation 1. */
double inputs_bell(uint64_t *stream);

void inputs_fill(attnres_dtype dtype, inputs_kind kind, uint64_t *stream, void *data, size_t count);

/* Bell-shaped numbers of this standard deviation. */
void inputs_fill_scaled(attnres_dtype dtype, double deviation, uint64_t *stream, void *data,
                        size_t count);

/* An index below `count`, to pick something. */
size_t inputs_pick(uint64_t *stream, size_t count);

#endif
