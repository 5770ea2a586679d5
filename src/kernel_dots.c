/* dots[q * count + r] = sum of x_i * q_i, for every row r and query q: scores of many queries over
 * the same rows. The sums of squares are the score kernel's.
 *
 * Numerics: those of the score kernel, whose dot products these are, bit for bit.
 *
 * Memory: DOT_QUERIES queries at a time, each row is read once for them, widened once, and its
 * squares are not summed again. A chunk of the queries is sorted once for all rows. */
#include "lanes.h"

/* Rows whose sums are kept at a time; bounds the stack. */
#define BATCH 16

struct dot_sums {
    lanes of[DOT_QUERIES][PARTS];
};
#define PARK(sums) __asm__ volatile("" : "+m"(sums))

/* Adds a group of columns for `rows` rows and `queries` queries, both constant. q[k] holds query
 * k's lanes. */
WORD void dot_group(const int rows, const int queries, const int part, const void *const *x,
                    const lanes *q, size_t i, size_t n, struct dot_sums *sums)
{
    UNROLLED
    for (int r = 0; r < rows; r++) {
        const lanes v = lanes_load_some((const elem *)x[r] + i, n);
        UNROLLED
        for (int k = 0; k < queries; k++) {
            sums[r].of[k][part] = lanes_fma(v, q[k], sums[r].of[k][part]);
        }
    }
}

/* Sweeps over the columns begin .. end - 1 for one part of the lanes. queries[k] is query k of
 * these columns, sorted. */
WORD void dot_sweep(const int rows, const int count, const int part, const void *const *x,
                    const acc *const *queries, size_t begin, size_t end, struct dot_sums *parked)
{
    struct dot_sums sums[DOT_ROWS];
    UNROLLED
    for (int r = 0; r < rows; r++) {
        sums[r] = parked[r];
    }
    for (size_t i = begin + (size_t)part * GROUP; i < end; i += LANES) {
        lanes q[DOT_QUERIES];
        UNROLLED
        for (int k = 0; k < count; k++) {
            q[k] = lanes_load_sorted(queries[k] + (i - begin));
        }
        dot_group(rows, count, part, x, q, i, GROUP, sums);
    }
    UNROLLED
    for (int r = 0; r < rows; r++) {
        UNROLLED
        for (int k = 0; k < count; k++) {
            parked[r].of[k][part] = sums[r].of[k][part];
        }
        PARK(parked[r]);
    }
}

/* One chunk of all rows of a batch. */
WORD void dot_chunk(const void *const *x, size_t count, const int query_count,
                    const acc *const *queries, size_t begin, size_t end, struct dot_sums *sums)
{
    acc sorted[SORTED ? DOT_QUERIES : 1][SORTED ? DOT_CHUNK : 1];
    const acc *columns[DOT_QUERIES];
    size_t r = 0;

    UNROLLED
    for (int k = 0; k < query_count; k++) {
        columns[k] = queries[k] + begin;
        if (SORTED) {
            for (size_t i = 0; i < end - begin; i += GROUP) {
                lanes_store_sorted(sorted[k] + i, lanes_load_acc(columns[k] + i));
            }
            columns[k] = sorted[k];
        }
    }
    for (; r + DOT_ROWS <= count; r += DOT_ROWS) {
        UNROLLED
        for (int part = 0; part < PARTS; part++) {
            dot_sweep(DOT_ROWS, query_count, part, x + r, columns, begin, end, sums + r);
        }
    }
    for (; r < count; r++) {
        UNROLLED
        for (int part = 0; part < PARTS; part++) {
            dot_sweep(1, query_count, part, x + r, columns, begin, end, sums + r);
        }
    }
}

WORD void dot_batch(const void *const *x, size_t count, const int query_count,
                    const void *const *queries, size_t width, double *dots, size_t stride)
{
    const size_t blocks_end = width - width % LANES;
    const acc *q[DOT_QUERIES];
    struct dot_sums sums[BATCH];

    for (int k = 0; k < query_count; k++) {
        q[k] = queries[k];
        for (size_t r = 0; r < count; r++) {
            for (int part = 0; part < PARTS; part++) {
                sums[r].of[k][part] = lanes_zero();
            }
        }
    }
    PARK(sums);
    for (size_t begin = 0; begin < blocks_end; begin += DOT_CHUNK) {
        const size_t end = blocks_end - begin > DOT_CHUNK ? begin + DOT_CHUNK : blocks_end;
        dot_chunk(x, count, query_count, q, begin, end, sums);
    }
    for (size_t r = 0; r < count; r++) {
        for (int k = 0; k < query_count; k++) {
            UNROLLED
            for (int part = 0; part < PARTS; part++) {
                const size_t i = blocks_end + (size_t)part * GROUP;
                if (i < width) {
                    const size_t n = group_columns(i, width);
                    const lanes v = lanes_load_some((const elem *)x[r] + i, n);
                    sums[r].of[k][part] = lanes_fma(v, lanes_load_acc_some(q[k] + i, n, -(acc)0),
                                                    sums[r].of[k][part]);
                }
            }
            dots[(size_t)k * stride + r] = (double)lanes_fold(sums[r].of[k]);
        }
    }
}

static void KERNEL(dots_of_several)(const void *const *x, size_t count, const void *const *queries,
                                    size_t width, double *dots, size_t stride)
{
    dot_batch(x, count, DOT_QUERIES, queries, width, dots, stride);
}

static void KERNEL(dots_of_one)(const void *const *x, size_t count, const void *const *queries,
                                size_t width, double *dots, size_t stride)
{
    dot_batch(x, count, 1, queries, width, dots, stride);
}

void KERNEL(dots)(const void *const *rows, size_t count, const void *const *queries,
                  size_t query_count, size_t width, double *dots)
{
    for (size_t s = 0; s < count; s += BATCH) {
        const size_t n = count - s < BATCH ? count - s : BATCH;
        size_t k = 0;
        for (; k + DOT_QUERIES <= query_count; k += DOT_QUERIES) {
            KERNEL(dots_of_several)(rows + s, n, queries + k, width, dots + k * count + s, count);
        }
        for (; k < query_count; k++) {
            KERNEL(dots_of_one)(rows + s, n, queries + k, width, dots + k * count + s, count);
        }
    }
}
