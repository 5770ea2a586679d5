/* The softmax fold over the rows of one token, for a few groups of columns: contract section 3.
 *
 *     o = widen(x_0), then for each next source s:  o = fma(p_s, widen(x_s), o * alpha_s)
 *
 * alpha and p are known before, for the logits are. alpha is 1 unless the maximum grew, and the
 * multiplication by 1 is left out. */
#ifndef ATTNRES_FOLD_GROUPS_H
#define ATTNRES_FOLD_GROUPS_H

#include "lanes.h"

/* o[groups] for the columns from i on, n in each group; n < GROUP only with one group. */
WORD void fold_groups(const void *const *rows, const acc *steps, size_t count, const acc *start,
                      const int groups, size_t i, size_t n, lanes *o)
{
    size_t s = 0;
    if (start) {
        UNROLLED
        for (int k = 0; k < groups; k++) {
            o[k] = lanes_load_acc_some(start + i + k * GROUP, n, 0);
        }
    } else {
        UNROLLED
        for (int k = 0; k < groups; k++) {
            o[k] = lanes_load_some((const elem *)rows[0] + i + k * GROUP, n);
        }
        s = 1;
    }
    for (; s < count; s++) {
        const acc alpha = steps[2 * s];
        const lanes p = lanes_set(steps[2 * s + 1]);
        const elem *x = (const elem *)rows[s] + i;
        if (alpha != 1) {
            UNROLLED
            for (int k = 0; k < groups; k++) {
                o[k] = lanes_mul(o[k], lanes_set(alpha));
            }
        }
        UNROLLED
        for (int k = 0; k < groups; k++) {
            o[k] = lanes_fma(p, lanes_load_some(x + k * GROUP, n), o[k]);
        }
    }
}

#endif
