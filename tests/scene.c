#include "scene.h"

#include "allocate.h"
#include "elements.h"

#include <check.h>
#include <math.h>
#include <string.h>

void scene_open(scene *it, attnres_shape shape, size_t capacity)
{
    const size_t size = attnres_dtype_size(shape.dtype);
    *it = (scene){.shape = shape, .capacity = capacity};
    it->memory = allocate(capacity, size);
    it->before = allocate(capacity, size);
    it->expected = allocate(capacity, size);
    memset(it->memory, 0x5a, capacity * size);
}

void scene_close(scene *it)
{
    free(it->memory);
    free(it->before);
    free(it->expected);
}

void *scene_take(scene *it, size_t elements)
{
    void *start = elements_at(it->shape.dtype, it->memory, it->used);
    ck_assert_uint_le(elements, it->capacity - it->used);
    it->used += elements;
    return start;
}

attnres_rows_out scene_rows(scene *it, size_t spread)
{
    const size_t stride = it->shape.width + spread;
    const attnres_rows_out rows = {scene_take(it, it->shape.tokens * stride), (ptrdiff_t)stride};
    return rows;
}

void scene_list(scene *it, size_t count, size_t spread, int interleaved, attnres_rows_out *list)
{
    const size_t width = it->shape.width;
    if (!interleaved) {
        for (size_t s = 0; s < count; s++) {
            list[s] = scene_rows(it, (spread + s) % 4);
        }
        return;
    }
    const size_t stride = count * width + spread;
    void *start = scene_take(it, it->shape.tokens * stride);
    for (size_t s = 0; s < count; s++) {
        list[s] =
            (attnres_rows_out){elements_at(it->shape.dtype, start, s * width), (ptrdiff_t)stride};
    }
}

void *scene_row(const scene *it, attnres_rows_out rows, size_t t)
{
    const size_t stride = rows.stride ? (size_t)rows.stride : it->shape.width;
    return elements_at(it->shape.dtype, rows.data, t * stride);
}

void scene_fill(const scene *it, attnres_rows_out rows, inputs_kind kind, uint64_t *stream)
{
    for (size_t t = 0; t < it->shape.tokens; t++) {
        inputs_fill(it->shape.dtype, kind, stream, scene_row(it, rows, t), it->shape.width);
    }
}

void scene_fill_gaps(const scene *it, attnres_rows_out rows)
{
    for (size_t t = 0; t < it->shape.tokens; t++) {
        for (size_t i = it->shape.width; i < (size_t)rows.stride; i++) {
            elements_set(it->shape.dtype, scene_row(it, rows, t), i, (double)NAN);
        }
    }
}

void scene_seal(scene *it)
{
    const size_t bytes = it->capacity * attnres_dtype_size(it->shape.dtype);
    memcpy(it->before, it->memory, bytes);
    memcpy(it->expected, it->memory, bytes);
}

void scene_expect(scene *it, void *at, const void *values, size_t elements)
{
    memcpy(it->expected + ((unsigned char *)at - it->memory), values,
           elements * attnres_dtype_size(it->shape.dtype));
}

void scene_restore(scene *it)
{
    memcpy(it->memory, it->before, it->capacity * attnres_dtype_size(it->shape.dtype));
}

void scene_check(const scene *it, const char *what)
{
    elements_check(it->shape.dtype, it->memory, it->expected, it->capacity, "%s", what);
}
