#include "softmax.h"

#include <math.h>

#include "exp.h"
#include "strict.h"

double attnres_logit_of(double squares, double dot, size_t width, double eps)
{
    return dot / sqrt(squares / (double)width + eps);
}

struct attnres_fold attnres_fold_empty(void)
{
    const struct attnres_fold empty = {-(double)INFINITY, 0.0};
    return empty;
}

int attnres_fold_is_empty(const struct attnres_fold *fold)
{
    return fold->sum == 0.0 && fold->max == -(double)INFINITY;
}

int attnres_fold_take(struct attnres_fold *fold, double logit, struct attnres_step *step)
{
    if (logit == -(double)INFINITY) {
        return 0;
    }
    if (logit == (double)INFINITY) {
        logit = (double)NAN; /* Inf - Inf, as softmax has it */
    }
    if (attnres_fold_is_empty(fold)) {
        *step = (struct attnres_step){0.0, 1.0};
        fold->max = logit;
        fold->sum = logit == logit ? 1.0 : logit;
        return 1;
    }
    *step = (struct attnres_step){1.0, 1.0};
    if (logit > fold->max) {
        step->alpha = attnres_exp(fold->max - logit);
        fold->max = logit;
    } else {
        step->p = attnres_exp(logit - fold->max);
    }
    fold->sum = fold->sum * step->alpha + step->p;
    return 1;
}

void attnres_step_pack(attnres_dtype dtype, void *pairs, size_t n, const struct attnres_step *step)
{
    if (dtype == ATTNRES_F64) {
        ((double *)pairs)[2 * n] = step->alpha;
        ((double *)pairs)[2 * n + 1] = step->p;
    } else {
        ((float *)pairs)[2 * n] = (float)step->alpha;
        ((float *)pairs)[2 * n + 1] = (float)step->p;
    }
}

double attnres_fold_weight(const struct attnres_fold *fold, double logit)
{
    return attnres_exp(logit - fold->max) / fold->sum;
}
