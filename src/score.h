/* Logits of rows: the score kernel, and the wide path for the rows it cannot do. */
#ifndef ATTNRES_SCORE_H
#define ATTNRES_SCORE_H

#include <attnres.h>

#include "kernels.h"

/* What the rows of one call are scored with. */
struct attnres_scoring {
    attnres_dtype dtype;
    size_t width;
    const void *query;
    double eps;
    double scale;    /* never 0 here */
    int from_memory; /* rows are not expected in any cache */
};

/* Whether a call over this many sources is expected to take its rows from memory. What a cache
 * holds is not known here; a call over more bytes than most last-level caches give to one core is
 * taken for one that streams. */
int attnres_from_memory(const attnres_shape *shape, size_t sources);

/* The logit of a row whose sums in the accumulator type are squares and dot, without scale and
 * bias. Scores it again in wider arithmetic if those went out of range: contract section 2. */
double attnres_logit(const struct attnres_scoring *scoring, const void *row, double squares,
                     double dot);

/* The same, scaled and, unless bias is NULL, biased. */
double attnres_biased_logit(const struct attnres_scoring *scoring, const void *row, double squares,
                            double dot, const double *bias);

/* logits[count] of rows[count], scaled and, unless bias is NULL, biased. */
void attnres_logits(const struct attnres_kernels *kernels, const struct attnres_scoring *scoring,
                    const void *const *rows, size_t count, const double *bias, double *logits);

/* Replaces the sums of part of a row by wider ones, if they left the accumulator's range. */
void attnres_partial_sums(const struct attnres_scoring *scoring, const void *row, double *squares,
                          double *dot);

#endif
