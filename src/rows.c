#include "rows.h"

#include <math.h>
#include <stdint.h>

attnres_status attnres_check_shape(const attnres_shape *shape)
{
    size_t bytes;
    if (!shape) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    if (attnres_dtype_size(shape->dtype) == 0) {
        return ATTNRES_ERROR_DTYPE;
    }
    if (shape->width == 0) {
        return ATTNRES_ERROR_SIZE;
    }
    if (attnres_multiply(shape->width, sizeof(double), &bytes) || bytes > PTRDIFF_MAX) {
        return ATTNRES_ERROR_OVERFLOW;
    }
    return ATTNRES_OK;
}

attnres_status attnres_check_scoring(double eps, double scale, const double *bias, size_t sources)
{
    if (!(eps >= 0) || !isfinite(eps) || !isfinite(scale)) {
        return ATTNRES_ERROR_VALUE;
    }
    for (size_t s = 0; bias && s < sources; s++) {
        if (isnan(bias[s]) || bias[s] == (double)INFINITY) {
            return ATTNRES_ERROR_VALUE;
        }
    }
    return ATTNRES_OK;
}

attnres_status attnres_region_rows(const attnres_shape *shape, attnres_dtype dtype,
                                   attnres_rows rows, struct attnres_region *region)
{
    const size_t size = attnres_element_bytes(dtype);
    size_t stride = shape->width, end;

    if (!rows.data) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    if (rows.stride != 0) {
        if (rows.stride < 0 || (size_t)rows.stride < shape->width) {
            return ATTNRES_ERROR_STRIDE;
        }
        stride = (size_t)rows.stride;
    }
    if (attnres_multiply(stride, size, &stride) || attnres_multiply(stride, shape->tokens, &end) ||
        end > PTRDIFF_MAX) {
        return ATTNRES_ERROR_OVERFLOW;
    }
    *region = (struct attnres_region){rows.data, stride, shape->width * size, shape->tokens};
    return ATTNRES_OK;
}

struct attnres_region attnres_region_vector(attnres_dtype dtype, const void *data, size_t length)
{
    const size_t bytes = length * attnres_element_bytes(dtype);
    const struct attnres_region region = {data, bytes, bytes, data != NULL};
    return region;
}

attnres_status attnres_region_per_source(size_t sources, size_t tokens, attnres_dtype dtype,
                                         const attnres_per_source *entries,
                                         struct attnres_region *region)
{
    size_t token_stride, source_stride, all_tokens, all_sources, last, bytes;

    *region = (struct attnres_region){0};
    if (!entries->data || sources == 0) {
        return ATTNRES_OK;
    }
    if (entries->token_stride < 0 || entries->source_stride < 0) {
        return ATTNRES_ERROR_STRIDE;
    }
    if (tokens == 0) {
        return ATTNRES_OK; /* no entry, hence no last one */
    }
    token_stride = entries->token_stride ? (size_t)entries->token_stride : 1;
    if (attnres_multiply(tokens, token_stride, &all_tokens)) {
        return ATTNRES_ERROR_OVERFLOW;
    }
    source_stride = entries->source_stride ? (size_t)entries->source_stride : all_tokens;
    if (attnres_multiply(sources, source_stride, &all_sources)) {
        return ATTNRES_ERROR_OVERFLOW;
    }
    /* Either index may be the slow one, but the slow one must step over all of the fast one. */
    if (source_stride < all_tokens && token_stride < all_sources && sources > 1 && tokens > 1) {
        return ATTNRES_ERROR_STRIDE;
    }
    last = all_sources - source_stride;
    if (last > SIZE_MAX - all_tokens || attnres_multiply(last + all_tokens, 8, &bytes) ||
        bytes > PTRDIFF_MAX) {
        return ATTNRES_ERROR_OVERFLOW;
    }
    *region = attnres_region_vector(dtype, entries->data, last + all_tokens - token_stride + 1);
    return ATTNRES_OK;
}

static int rows_apart(const struct attnres_region *a, const struct attnres_region *b, size_t i,
                      size_t j)
{
    const uintptr_t a_row = (uintptr_t)a->data + i * a->stride;
    const uintptr_t b_row = (uintptr_t)b->data + j * b->stride;
    return a_row + a->bytes <= b_row || b_row + b->bytes <= a_row;
}

int attnres_regions_overlap(const struct attnres_region *a, const struct attnres_region *b)
{
    if (a->count == 0 || b->count == 0) {
        return 0;
    }
    const uintptr_t a_begin = (uintptr_t)a->data, b_begin = (uintptr_t)b->data;
    if (a_begin + (a->count - 1) * a->stride + a->bytes <= b_begin ||
        b_begin + (b->count - 1) * b->stride + b->bytes <= a_begin) {
        return 0;
    }
    /* Interleaved with the same distance, as in a token-major bank: side by side in every period.
     */
    if (a->stride == b->stride) {
        const size_t shift =
            (b_begin >= a_begin ? b_begin - a_begin : a->stride - (a_begin - b_begin) % a->stride) %
            a->stride;
        if (shift >= a->bytes && a->stride - shift >= b->bytes) {
            return 0;
        }
    }
    /* Otherwise walk both in order of address. */
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        if (!rows_apart(a, b, i, j)) {
            return 1;
        }
        if (a_begin + i * a->stride < b_begin + j * b->stride) {
            i++;
        } else {
            j++;
        }
    }
    return 0;
}

int attnres_regions_equal(const struct attnres_region *a, const struct attnres_region *b)
{
    return a->data == b->data && a->bytes == b->bytes && a->count == b->count &&
           (a->stride == b->stride || a->count == 1);
}
