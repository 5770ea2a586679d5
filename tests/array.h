/* Row sets and vectors in guarded memory: inputs that must not change, outputs whose gaps and
 * surroundings must not. */
#ifndef ATTNRES_TESTS_ARRAY_H
#define ATTNRES_TESTS_ARRAY_H

#include <attnres.h>

#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "inputs.h"

typedef enum array_role { ARRAY_INPUT, ARRAY_OUTPUT } array_role;

typedef struct array {
    attnres_dtype dtype;
    array_role role;
    size_t rows, width, stride; /* of the last array_lay */
    buffer memory;
    unsigned char *before; /* what it held then */
} array;

typedef struct array_layout {
    buffer_place place;
    size_t gap;    /* elements to the page's edge */
    size_t spread; /* elements between rows */
} array_layout;

/* Room for `rows` rows of up to `widest`, plus a spread of up to 4 elements. */
void array_open(array *it, attnres_dtype dtype, array_role role, size_t rows, size_t widest);
void array_close(array *it);

/* Puts it in its place. Inputs get numbers, NaN between their rows; outputs the pattern. */
void array_lay(array *it, array_layout layout, size_t width, inputs_kind kind, uint64_t *stream);

/* Remembers what it holds by now as what it must hold later. */
void array_settle(array *it);

void *array_row(const array *it, size_t row);
attnres_rows array_rows(const array *it);
attnres_rows_out array_rows_out(const array *it);

/* Fails the test if an input has changed, or anything but the rows of an output. */
void array_check(const array *it, const char *what);

/* Whether nothing at all has changed. */
int array_is_untouched(const array *it);

#endif
