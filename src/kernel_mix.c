/* v = fold(rows) * factor, and what is wanted of it: v itself, the sum of its squares, and
 * (v * norm_factor) * gain.
 *
 * Numerics: contract sections 3 and 4. The squares are summed like those of a source: lane j takes
 * the elements i with i mod LANES == j, fused. The caller folds the lanes.
 *
 * Memory: reads every row once, all of them side by side; the score kernel has just read the same
 * rows, so they come from the cache if the rows of one token fit there. Writes each result once.
 * Mixing leaves the memory idle; rows of the next token are fetched in the meantime. */
#include "fold_groups.h"

#define CACHE_LINE 64

WORD void mix_groups(const struct attnres_mix *mix, const int groups, const int part, size_t i,
                     size_t n, lanes *squares)
{
    lanes v[STEPS];
    fold_groups(mix->rows, mix->steps, mix->count, mix->start, groups, i, n, v);
    UNROLLED
    for (int k = 0; k < groups; k++) {
        const size_t at = i + (size_t)k * GROUP;
        v[k] = lanes_mul(v[k], lanes_set((acc)mix->factor));
        if (mix->round) {
            v[k] = lanes_rounded(v[k]);
            if (mix->out) {
                lanes_store_exact_some((elem *)mix->out + at, n, v[k]);
            }
        } else if (mix->out) {
            lanes_store_some((elem *)mix->out + at, n, v[k]);
        }
        if (mix->squares) {
            squares[(part + k) % PARTS] = lanes_fma(v[k], v[k], squares[(part + k) % PARTS]);
        }
        if (mix->normed) {
            v[k] = lanes_mul(v[k], lanes_set((acc)mix->norm_factor));
            if (mix->gain) {
                v[k] = lanes_mul(v[k], lanes_load_acc_some((const acc *)mix->gain + at, n, 0));
            }
            lanes_store_some((elem *)mix->normed + at, n, v[k]);
        }
    }
}

WORD void fetch_ahead(const struct attnres_mix *mix, size_t i)
{
    for (size_t s = 0; s < mix->ahead_count; s++) {
        const char *columns = (const char *)((const elem *)mix->ahead[s] + i);
        UNROLLED
        for (size_t line = 0; line < STEPS * GROUP * sizeof(elem); line += CACHE_LINE) {
            __builtin_prefetch(columns + line);
        }
    }
}

void KERNEL(mix)(const struct attnres_mix *wanted, size_t width)
{
    const struct attnres_mix copy = *wanted, *mix = &copy; /* nothing that is written aliases it */
    lanes squares[PARTS];
    size_t i = 0;

    for (int part = 0; part < PARTS; part++) {
        squares[part] =
            mix->squares ? lanes_load_acc((acc *)mix->squares + part * GROUP) : lanes_zero();
    }
    for (; i + STEPS * GROUP <= width; i += STEPS * GROUP) {
        fetch_ahead(mix, i);
        mix_groups(mix, STEPS, 0, i, GROUP, squares);
    }
    for (; i < width; i += LANES) {
        UNROLLED
        for (int part = 0; part < PARTS; part++) {
            const size_t at = i + (size_t)part * GROUP;
            if (at < width) {
                mix_groups(mix, 1, part, at, group_columns(at, width), squares);
            }
        }
    }
    for (int part = 0; mix->squares && part < PARTS; part++) {
        lanes_store_acc((acc *)mix->squares + part * GROUP, squares[part]);
    }
}
