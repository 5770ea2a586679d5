#include "array.h"

#include "allocate.h"
#include "elements.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { SPREAD_MAX = 4, GAP_MAX = 4 };

void array_open(array *it, attnres_dtype dtype, array_role role, size_t rows, size_t widest)
{
    const size_t elements = rows * (widest + SPREAD_MAX) + GAP_MAX;
    *it = (array){.dtype = dtype, .role = role, .rows = rows};
    buffer_open(&it->memory, elements * attnres_dtype_size(dtype));
    it->before = allocate(elements, attnres_dtype_size(dtype));
}

void array_close(array *it)
{
    buffer_close(&it->memory);
    free(it->before);
}

/* Bytes from the first row's begin to the last one's end. */
static size_t extent(const array *it)
{
    return ((it->rows - 1) * it->stride + it->width) * attnres_dtype_size(it->dtype);
}

void array_settle(array *it)
{
    memcpy(it->before, it->memory.data, extent(it));
}

void array_lay(array *it, array_layout layout, size_t width, inputs_kind kind, uint64_t *stream)
{
    const size_t size = attnres_dtype_size(it->dtype);
    it->width = width;
    it->stride = width + layout.spread;
    buffer_array(&it->memory, layout.place, layout.gap * size, extent(it));
    if (it->role == ARRAY_INPUT) {
        for (size_t i = 0; i < extent(it) / size; i++) {
            elements_set(it->dtype, it->memory.data, i, (double)NAN);
        }
        for (size_t r = 0; r < it->rows; r++) {
            inputs_fill(it->dtype, kind, stream, array_row(it, r), width);
        }
    }
    array_settle(it);
}

void *array_row(const array *it, size_t row)
{
    return elements_at(it->dtype, it->memory.data, row * it->stride);
}

attnres_rows array_rows(const array *it)
{
    const attnres_rows rows = {it->memory.data, (ptrdiff_t)it->stride};
    return rows;
}

attnres_rows_out array_rows_out(const array *it)
{
    const attnres_rows_out rows = {it->memory.data, (ptrdiff_t)it->stride};
    return rows;
}

int array_is_untouched(const array *it)
{
    return buffer_is_untouched(&it->memory, 0) &&
           memcmp(it->memory.data, it->before, extent(it)) == 0;
}

/* The elements between the rows of an output. */
static int gaps_are_untouched(const array *it)
{
    const size_t size = attnres_dtype_size(it->dtype);
    for (size_t r = 0; r + 1 < it->rows; r++) {
        const size_t begin = (r * it->stride + it->width) * size;
        if (memcmp(it->memory.data + begin, it->before + begin, (it->stride - it->width) * size) !=
            0) {
            return 0;
        }
    }
    return 1;
}

void array_check(const array *it, const char *what)
{
    if (!buffer_is_untouched(&it->memory, 0)) {
        ck_abort_msg("%s: written beside it, width %zu", what, it->width);
    }
    if (it->role == ARRAY_INPUT && !array_is_untouched(it)) {
        ck_abort_msg("%s: an input was written to, width %zu", what, it->width);
    }
    if (it->role == ARRAY_OUTPUT && !gaps_are_untouched(it)) {
        ck_abort_msg("%s: written between its rows, width %zu", what, it->width);
    }
}
