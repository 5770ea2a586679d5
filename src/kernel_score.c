/* squares = sum of x_i * x_i, dot = sum of x_i * q_i, for each of a few rows.
 *
 * Numerics: contract section 2. Lane j sums the elements i with i mod LANES == j, in increasing i,
 * by fused multiply-adds from +0; then the lanes are folded in halves. Beyond the end of a row its
 * elements are +0 and the query is -0: fma(+0, -0, v) is v for every v, also for v = -0.
 *
 * Memory: each row is read once, ROWS rows side by side. The query is as long as two rows of a
 * 16-bit dtype, so it does not stay in the L1 cache by itself: a chunk of columns is scored in all
 * rows before the next chunk. Where rows come from memory, the caller asks for one chunk, whole
 * rows, which the hardware's prefetchers follow better. With two PARTS, a chunk is visited once for
 * each half of the lanes, since the sums of all of them do not fit the registers. */
#include "lanes.h"

/* Rows whose sums are kept at a time; bounds the stack. */
#define BATCH 16

/* The running sums of one row. Parked in memory while other rows and parts have their turn: a
 * compiler that is left to choose keeps some of the wrong ones in registers. */
struct sums {
    lanes squares[PARTS], dots[PARTS];
};
#define PARK(sums) __asm__ volatile("" : "+m"(sums))

/* Adds the columns i .. i + n - 1 to the lanes of their group. */
WORD void score_group(const int rows, const int part, const void *const *x, lanes q, size_t i,
                      size_t n, struct sums *sums)
{
    UNROLLED
    for (int r = 0; r < rows; r++) {
        const lanes v = lanes_load_some((const elem *)x[r] + i, n);
        sums[r].squares[part] = lanes_square(v, sums[r].squares[part]);
        sums[r].dots[part] = lanes_fma(v, q, sums[r].dots[part]);
    }
}

/* Sweeps over the columns begin .. end - 1, whole blocks of LANES: some rows, some parts of the
 * lanes, both numbers constant. `query` is the query of these columns, sorted. */
WORD void score_sweep(const int rows, const int first, const int parts, const void *const *x,
                      const acc *query, size_t begin, size_t end, struct sums *parked)
{
    struct sums sums[ROWS];
    UNROLLED
    for (int r = 0; r < rows; r++) {
        sums[r] = parked[r];
    }
    for (size_t i = begin; i < end; i += LANES) {
        UNROLLED
        for (int part = first; part < first + parts; part++) {
            const size_t at = i + (size_t)part * GROUP;
            score_group(rows, part, x, lanes_load_sorted(query + (at - begin)), at, GROUP, sums);
        }
    }
    UNROLLED
    for (int r = 0; r < rows; r++) {
        UNROLLED
        for (int part = first; part < first + parts; part++) {
            parked[r].squares[part] = sums[r].squares[part];
            parked[r].dots[part] = sums[r].dots[part];
        }
        PARK(parked[r]);
    }
}

/* One chunk of all rows of a batch. Sorting the query is done once for all of them. */
WORD void score_chunk(const void *const *x, size_t count, const acc *query, size_t begin,
                      size_t end, struct sums *sums)
{
    acc sorted[SORTED ? CHUNK : 1];
    size_t r = 0;
    query += begin;
    if (SORTED) {
        for (size_t i = 0; i < end - begin; i += GROUP) {
            lanes_store_sorted(sorted + i, lanes_load_acc(query + i));
        }
        query = sorted;
    }
    for (; r + ROWS <= count; r += ROWS) {
        UNROLLED
        for (int part = 0; part < PARTS; part += PARTS_AT_ONCE) {
            score_sweep(ROWS, part, PARTS_AT_ONCE, x + r, query, begin, end, sums + r);
        }
    }
    for (; r < count; r++) {
        score_sweep(1, 0, PARTS, x + r, query, begin, end, sums + r);
    }
}

static void KERNEL(score_batch)(const void *const *x, size_t count, const acc *query, size_t width,
                                size_t chunk, double *squares, double *dots)
{
    const size_t blocks_end = width - width % LANES;
    struct sums sums[BATCH];

    for (size_t r = 0; r < count; r++) {
        for (int part = 0; part < PARTS; part++) {
            sums[r].squares[part] = sums[r].dots[part] = lanes_zero();
        }
        PARK(sums[r]);
    }
    for (size_t begin = 0; begin < blocks_end; begin += chunk) {
        score_chunk(x, count, query, begin, blocks_end - begin > chunk ? begin + chunk : blocks_end,
                    sums);
    }
    for (size_t r = 0; r < count; r++) {
        UNROLLED
        for (int part = 0; part < PARTS; part++) {
            const size_t i = blocks_end + (size_t)part * GROUP;
            if (i < width) {
                const size_t n = group_columns(i, width);
                score_group(1, part, x + r, lanes_load_acc_some(query + i, n, -(acc)0), i, n,
                            sums + r);
            }
        }
        squares[r] = (double)lanes_fold(sums[r].squares);
        dots[r] = (double)lanes_fold(sums[r].dots);
    }
}

void KERNEL(score)(const void *const *rows, size_t count, const void *query, size_t width,
                   int from_memory, double *squares, double *dots)
{
    const size_t chunk = from_memory ? CHUNK_FROM_MEMORY : CHUNK;
    for (size_t s = 0; s < count; s += BATCH) {
        KERNEL(score_batch)
        (rows + s, count - s < BATCH ? count - s : BATCH, query, width, chunk, squares + s,
         dots + s);
    }
}
