/* Where rows lie in memory, and whether what a call was given can be worked on. */
#ifndef ATTNRES_ROWS_H
#define ATTNRES_ROWS_H

#include <attnres.h>
#include <stdint.h>

#include "strict.h"

#define ATTNRES_TRY(expression)                                                                    \
    do {                                                                                           \
        const attnres_status attnres_try = (expression);                                           \
        if (attnres_try != ATTNRES_OK) {                                                           \
            return attnres_try;                                                                    \
        }                                                                                          \
    } while (0)

/* A stretch of `count` rows of `bytes` each, `stride` bytes apart. count 0: nothing at all. */
struct attnres_region {
    const char *data;
    size_t stride, bytes, count;
};

/* attnres_dtype_size of a dtype that has been checked: a public function is a call. */
static inline size_t attnres_element_bytes(attnres_dtype dtype)
{
    return dtype == ATTNRES_F64 ? 8 : dtype == ATTNRES_F32 ? 4 : 2;
}

static inline const void *attnres_row(const attnres_shape *shape, attnres_rows rows, size_t t)
{
    const size_t stride = rows.stride ? (size_t)rows.stride : shape->width;
    return (const char *)rows.data + t * stride * attnres_element_bytes(shape->dtype);
}

static inline void *attnres_row_out(const attnres_shape *shape, attnres_rows_out rows, size_t t)
{
    const size_t stride = rows.stride ? (size_t)rows.stride : shape->width;
    return rows.data ? (char *)rows.data + t * stride * attnres_element_bytes(shape->dtype) : NULL;
}

static inline attnres_rows attnres_rows_of(attnres_rows_out rows)
{
    const attnres_rows same = {rows.data, rows.stride};
    return same;
}

/* Where entry (s, t) is. */
static inline size_t attnres_entry(const attnres_shape *shape, const attnres_per_source *entries,
                                   size_t s, size_t t)
{
    const size_t token_stride = entries->token_stride ? (size_t)entries->token_stride : 1;
    const size_t source_stride =
        entries->source_stride ? (size_t)entries->source_stride : shape->tokens * token_stride;
    return s * source_stride + t * token_stride;
}

/* a * b, or a wrong answer and 1. Every call checks a few; dividing would show in small reads. */
static inline int attnres_multiply(size_t a, size_t b, size_t *product)
{
    return __builtin_mul_overflow(a, b, product);
}

attnres_status attnres_check_shape(const attnres_shape *shape);
attnres_status attnres_check_scoring(double eps, double scale, const double *bias, size_t sources);

/* The region that rows of a dtype cover; an error if data is missing or the stride is wrong. */
attnres_status attnres_region_rows(const attnres_shape *shape, attnres_dtype dtype,
                                   attnres_rows rows, struct attnres_region *region);

/* A vector of `length` elements; data NULL: an empty region. */
struct attnres_region attnres_region_vector(attnres_dtype dtype, const void *data, size_t length);

/* Everything between the first and the last entry; empty without data or sources. */
attnres_status attnres_region_per_source(size_t sources, size_t tokens, attnres_dtype dtype,
                                         const attnres_per_source *entries,
                                         struct attnres_region *region);

/* Whether any byte belongs to a row of both. */
int attnres_regions_overlap(const struct attnres_region *a, const struct attnres_region *b);

/* Whether they are the same rows: same start, same distance. */
int attnres_regions_equal(const struct attnres_region *a, const struct attnres_region *b);

#endif
