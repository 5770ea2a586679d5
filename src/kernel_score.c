/* squares = sum of x_i * x_i, dot = sum of x_i * q_i, for each of a few rows.
 *
 * Numerics: contract section 2. Lane j sums the elements i with i mod LANES == j, in increasing i,
 * by fused multiply-adds from +0; then the lanes are folded in halves. Beyond the end of a row its
 * elements are +0 and the query is -0: fma(+0, -0, v) is v for every v, also for v = -0.
 *
 * Memory: each row is read once, ROWS rows side by side to have more loads in flight; the query is
 * read once per ROWS rows and stays in the L1 cache. With two PARTS, a chunk of columns is visited
 * twice, each time for half of the lanes, since the sums of all of them do not fit the registers.
 */
#include "lanes.h"

WORD void score_side_by_side(const int rows, const void *const *x, const acc *query, size_t width,
                             double *squares_out, double *dots_out)
{
    lanes squares[ROWS][PARTS], dots[ROWS][PARTS];
    const size_t blocks_end = width - width % LANES;

    for (int r = 0; r < rows; r++) {
        for (int part = 0; part < PARTS; part++) {
            squares[r][part] = dots[r][part] = lanes_zero();
        }
    }
    for (size_t begin = 0; begin < blocks_end; begin += SCORE_CHUNK) {
        const size_t end = blocks_end - begin > SCORE_CHUNK ? begin + SCORE_CHUNK : blocks_end;
        UNROLLED
        for (int part = 0; part < PARTS; part++) {
            for (size_t i = begin + (size_t)part * GROUP; i < end; i += LANES) {
                const lanes q = lanes_load_acc(query + i);
                UNROLLED
                for (int r = 0; r < rows; r++) {
                    const lanes v = lanes_load((const elem *)x[r] + i);
                    squares[r][part] = lanes_square(v, squares[r][part]);
                    dots[r][part] = lanes_fma(v, q, dots[r][part]);
                }
            }
        }
    }
    UNROLLED
    for (int part = 0; part < PARTS; part++) {
        const size_t i = blocks_end + (size_t)part * GROUP;
        if (i < width) {
            const size_t n = group_columns(i, width);
            const lanes q = lanes_load_acc_some(query + i, n, -(acc)0);
            UNROLLED
            for (int r = 0; r < rows; r++) {
                const lanes v = lanes_load_some((const elem *)x[r] + i, n);
                squares[r][part] = lanes_square(v, squares[r][part]);
                dots[r][part] = lanes_fma(v, q, dots[r][part]);
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        squares_out[r] = (double)lanes_fold(squares[r]);
        dots_out[r] = (double)lanes_fold(dots[r]);
    }
}

void KERNEL(score)(const void *const *rows, size_t count, const void *query, size_t width,
                   double *squares, double *dots)
{
    size_t s = 0;
    for (; s + ROWS <= count; s += ROWS) {
        score_side_by_side(ROWS, rows + s, query, width, squares + s, dots + s);
    }
    for (; s < count; s++) {
        score_side_by_side(1, rows + s, query, width, squares + s, dots + s);
    }
}
