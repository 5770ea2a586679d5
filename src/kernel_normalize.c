/* out = (row * factor) * gain, the factor being 1 / sqrt(mean square + eps) of the row.
 *
 * Numerics: contract section 4: two multiplications, each rounded, then one narrowing. Memory:
 * reads row and gain once, writes out once; out may be the row. */
#include "lanes.h"

WORD void normalize_group(const elem *row, acc factor, const acc *gain, elem *out, size_t i,
                          size_t n)
{
    lanes v = lanes_mul(lanes_load_some(row + i, n), lanes_set(factor));
    if (gain) {
        v = lanes_mul(v, lanes_load_acc_some(gain + i, n, 0));
    }
    lanes_store_some(out + i, n, v);
}

void KERNEL(normalize)(const void *row, double factor, const void *gain, size_t width, void *out)
{
    size_t i = 0;
    for (; i + GROUP <= width; i += GROUP) {
        normalize_group(row, (acc)factor, gain, out, i, GROUP);
    }
    if (i < width) {
        normalize_group(row, (acc)factor, gain, out, i, width - i);
    }
}
