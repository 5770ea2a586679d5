/* out = (row * factor) * gain, the factor being 1 / sqrt(mean square + eps) of the row.
 *
 * Numerics: contract section 4: two multiplications, each rounded, then one narrowing. Memory:
 * reads row and gain once, writes out once; out may be the row. */
#include "lanes.h"

WORD lanes normalized(const elem *row, acc factor, const acc *gain, size_t n)
{
    lanes v = lanes_mul(lanes_load_some(row, n), lanes_set(factor));
    if (gain) {
        v = lanes_mul(v, lanes_load_acc_some(gain, n, 0));
    }
    return v;
}

WORD void normalize_groups(const elem *row, acc factor, const acc *gain, elem *out,
                           const int groups, size_t i, size_t n)
{
    lanes v[STEPS];
    UNROLLED
    for (int k = 0; k < groups; k++) {
        const size_t at = i + (size_t)k * GROUP;
        v[k] = normalized(row + at, factor, gain ? gain + at : NULL, n);
    }
    UNROLLED
    for (int k = 0; k < groups; k++) {
        lanes_store_some(out + i + k * GROUP, n, v[k]);
    }
}

void KERNEL(normalize)(const void *row, double factor, const void *gain, size_t width, void *out)
{
    size_t i = 0;
    for (; i + STEPS * GROUP <= width; i += STEPS * GROUP) {
        normalize_groups(row, (acc)factor, gain, out, STEPS, i, GROUP);
    }
    for (; i < width; i += GROUP) {
        normalize_groups(row, (acc)factor, gain, out, 1, i, group_columns(i, width));
    }
}
