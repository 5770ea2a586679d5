/* total = start + rows[0] + rows[1] + ..., in that order; out = copy = narrow(total).
 *
 * Numerics: contract section 1: widened, added in the accumulator type one after the other,
 * rounded once. Without a start the first row starts. Memory: reads every row once, side by side,
 * writes each result once; a result may be one of the rows. */
#include "lanes.h"

struct sum {
    const void *const *rows;
    size_t count;
    const acc *start;
    acc *total;
    elem *out, *copy;
};

WORD void sum_groups(const struct sum *sum, const int groups, size_t i, size_t n)
{
    lanes v[STEPS];
    size_t s = sum->start ? 0 : 1;
    UNROLLED
    for (int k = 0; k < groups; k++) {
        v[k] = sum->start ? lanes_load_acc_some(sum->start + i + k * GROUP, n, 0)
                          : lanes_load_some((const elem *)sum->rows[0] + i + k * GROUP, n);
    }
    for (; s < sum->count; s++) {
        const elem *x = (const elem *)sum->rows[s] + i;
        UNROLLED
        for (int k = 0; k < groups; k++) {
            v[k] = lanes_add(v[k], lanes_load_some(x + k * GROUP, n));
        }
    }
    UNROLLED
    for (int k = 0; k < groups; k++) {
        const size_t at = i + (size_t)k * GROUP;
        if (sum->total) {
            lanes_store_acc_some(sum->total + at, n, v[k]);
        }
        if (sum->out) {
            lanes_store_some(sum->out + at, n, v[k]);
        }
        if (sum->copy) {
            lanes_store_some(sum->copy + at, n, v[k]);
        }
    }
}

void KERNEL(sum)(const void *const *rows, size_t count, size_t width, const void *start,
                 void *total, void *out, void *copy)
{
    const struct sum sum = {rows, count, start, total, out, copy};
    size_t i = 0;
    for (; i + STEPS * GROUP <= width; i += STEPS * GROUP) {
        sum_groups(&sum, STEPS, i, GROUP);
    }
    for (; i < width; i += GROUP) {
        sum_groups(&sum, 1, i, group_columns(i, width));
    }
}
