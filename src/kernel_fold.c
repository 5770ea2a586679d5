/* end = fold(rows), left in the accumulator type so that it can be gone on with.
 *
 * Numerics: contract section 3; stopping after any source and going on later is the same
 * computation. Memory: reads every row and `start` once, writes `end` once; they may be one. */
#include "fold_groups.h"

WORD void fold_to_end(const void *const *rows, const void *steps, size_t count, const void *start,
                      acc *end, const int groups, size_t i, size_t n)
{
    lanes o[STEPS];
    fold_groups(rows, steps, count, start, groups, i, n, o);
    UNROLLED
    for (int k = 0; k < groups; k++) {
        lanes_store_acc_some(end + i + k * GROUP, n, o[k]);
    }
}

void KERNEL(fold)(const void *const *rows, const void *steps, size_t count, const void *start,
                  void *end, size_t width)
{
    size_t i = 0;
    for (; i + STEPS * GROUP <= width; i += STEPS * GROUP) {
        fold_to_end(rows, steps, count, start, end, STEPS, i, GROUP);
    }
    for (; i < width; i += GROUP) {
        fold_to_end(rows, steps, count, start, end, 1, i, group_columns(i, width));
    }
}
