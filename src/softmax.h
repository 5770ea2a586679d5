/* The scalar side of a read: from sums to logits, and the softmax as a left fold. */
#ifndef ATTNRES_SOFTMAX_H
#define ATTNRES_SOFTMAX_H

#include <attnres.h>

/* <q, x> / sqrt(squares / width + eps), contract section 2. */
double attnres_logit_of(double squares, double dot, size_t width, double eps);

/* Running maximum and sum of exponentials over the sources taken so far. */
struct attnres_fold {
    double max, sum;
};

struct attnres_step {
    double alpha; /* factor on what was mixed so far */
    double p;     /* factor on the row */
};

/* Nothing taken yet: max -Inf, sum 0. */
struct attnres_fold attnres_fold_empty(void);

int attnres_fold_is_empty(const struct attnres_fold *fold);

/* Takes one source; contract section 3. Returns 0 if its logit is -Inf: it contributes nothing and
 * has no step. A +Inf or NaN logit makes the fold NaN. The first source's step is {0, 1}: its row
 * starts the mix. */
int attnres_fold_take(struct attnres_fold *fold, double logit, struct attnres_step *step);

/* Puts step n into an array of pairs {alpha, p} in the accumulator type of the dtype. */
void attnres_step_pack(attnres_dtype dtype, void *pairs, size_t n, const struct attnres_step *step);

/* exp(logit - max) / sum: the weight of one of the sources taken, when all are. NaN if none was. */
double attnres_fold_weight(const struct attnres_fold *fold, double logit);

#endif
