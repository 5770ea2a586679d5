/* All row sets and entries of one call in one array, and a picture of what it shall hold after
 * the call: results, what is between rows, and inputs are compared in one go. */
#ifndef ATTNRES_TESTS_SCENE_H
#define ATTNRES_TESTS_SCENE_H

#include <attnres.h>

#include <stddef.h>
#include <stdint.h>

#include "inputs.h"

typedef struct scene {
    attnres_shape shape;
    unsigned char *memory, *before, *expected;
    size_t capacity, used; /* elements */
} scene;

void scene_open(scene *it, attnres_shape shape, size_t capacity);
void scene_close(scene *it);

/* Room for that many elements, filled with a pattern. */
void *scene_take(scene *it, size_t elements);

/* `tokens` rows of the shape's width, `spread` elements between them, all of it a pattern. */
attnres_rows_out scene_rows(scene *it, size_t spread);

/* As many row sets: one after the other, or side by side in rows of one large array. */
void scene_list(scene *it, size_t count, size_t spread, int interleaved, attnres_rows_out *list);

/* Gives the rows numbers, and what is between them NaN (unless another row set is there). */
void scene_fill(const scene *it, attnres_rows_out rows, inputs_kind kind, uint64_t *stream);
void scene_fill_gaps(const scene *it, attnres_rows_out rows);

/* Row t of rows. */
void *scene_row(const scene *it, attnres_rows_out rows, size_t t);

/* What it holds now is what it shall hold, but for what scene_expect says. */
void scene_seal(scene *it);
void scene_expect(scene *it, void *at, const void *values, size_t elements);

/* Back to what it held when it was sealed. */
void scene_restore(scene *it);

/* Fails the test if it holds anything else than expected. */
void scene_check(const scene *it, const char *what);

#endif
