/* One token's read, spelled out: what the contract's literal version and the oracle work on. */
#ifndef ATTNRES_TESTS_READING_H
#define ATTNRES_TESTS_READING_H

#include <attnres.h>

typedef struct reading {
    attnres_dtype dtype;
    size_t width, count;
    const void *const *rows; /* [count] */
    const void *query;       /* [width] in the accumulator type */
    double eps, scale;       /* scale 0 means 1 */
    const double *bias;      /* [count] or NULL */
    const void *norm_gain;   /* [width] in the accumulator type, or NULL */
    double norm_eps;
    attnres_norm_policy norm_policy;
} reading;

#endif
