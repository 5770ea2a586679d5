#include "sum_token.h"

#include "rows.h"

/* Rows added in one sweep; more are taken in groups, over tiles of columns whose accumulators fit
 * fixed scratch. Element by element that is the same sum. */
#define GROUP 128
#define TILE_BYTES 2048

/* Row pointers of up to GROUP of the rows first, list[0], ... from number `begin` on. */
static size_t gather(const attnres_shape *shape, attnres_rows first, const attnres_rows *list,
                     size_t total, size_t t, size_t begin, const void **rows)
{
    const size_t n = total - begin < GROUP ? total - begin : GROUP;
    const size_t listed_from = first.data != NULL;
    for (size_t r = 0; r < n; r++) {
        const size_t s = begin + r;
        rows[r] = attnres_row(shape, s < listed_from ? first : list[s - listed_from], t);
    }
    return n;
}

void attnres_sum_token(const struct attnres_kernels *kernels, const attnres_shape *shape,
                       attnres_rows first, const attnres_rows *list, size_t count, size_t t,
                       void *out, void *copy)
{
    const size_t total = count + (first.data != NULL);
    const size_t size = attnres_dtype_size(shape->dtype);
    const void *rows[GROUP];

    if (total <= GROUP) {
        const size_t n = gather(shape, first, list, total, t, 0, rows);
        kernels->sum(rows, n, shape->width, NULL, NULL, out, copy);
        return;
    }
    double tile[TILE_BYTES / sizeof(double)];
    const size_t columns = TILE_BYTES / attnres_dtype_size(attnres_dtype_accumulator(shape->dtype));
    for (size_t i = 0; i < shape->width; i += columns) {
        const size_t n = shape->width - i < columns ? shape->width - i : columns;
        for (size_t begin = 0; begin < total; begin += GROUP) {
            const size_t taken = gather(shape, first, list, total, t, begin, rows);
            const int last = begin + taken == total;
            for (size_t r = 0; r < taken; r++) {
                rows[r] = (const char *)rows[r] + i * size;
            }
            kernels->sum(rows, taken, n, begin ? tile : NULL, tile,
                         last && out ? (char *)out + i * size : NULL,
                         last && copy ? (char *)copy + i * size : NULL);
        }
    }
}
