/* Elements of every dtype, by code that shares nothing with the library's: it decodes and encodes
 * by arithmetic (ldexp, nearbyint), where the library shifts bits. */
#ifndef ATTNRES_TESTS_ELEMENTS_H
#define ATTNRES_TESTS_ELEMENTS_H

#include <attnres.h>

#include <stddef.h>
#include <stdint.h>

#define ELEMENTS_DTYPES 4

/* All dtypes, for loops. */
attnres_dtype elements_dtype(int i);
const char *elements_name(attnres_dtype dtype);

/* Largest exponent e with 2^e a number, smallest with 2^e normal, and significant bits. */
typedef struct elements_format {
    int precision, smallest, largest;
} elements_format;

elements_format elements_format_of(attnres_dtype dtype);

/* Element i, exactly. */
double elements_get(attnres_dtype dtype, const void *data, size_t i);

/* Element i = value, rounded once: to nearest, ties to even. */
void elements_set(attnres_dtype dtype, void *data, size_t i, double value);

/* The number of the dtype nearest to value, ties to even; beyond the largest: Inf. */
double elements_round(attnres_dtype dtype, double value);

/* The distance between neighbouring numbers of the dtype around value (finite). */
double elements_ulp(attnres_dtype dtype, double value);

double elements_largest(attnres_dtype dtype);

/* Element i as `steps` representable numbers further away from zero. */
void elements_move(attnres_dtype dtype, void *data, size_t i, int steps);

/* Where element i is. */
void *elements_at(attnres_dtype dtype, void *data, size_t i);

/* The same bits, but that any NaN equals any NaN. Returns `count`, or the first that differs. */
size_t elements_compare(attnres_dtype dtype, const void *a, const void *b, size_t count);

/* Fails the test if they differ; `what` and its arguments say which results these are. */
void elements_check(attnres_dtype dtype, const void *found, const void *expected, size_t count,
                    const char *what, ...) __attribute__((format(printf, 5, 6)));

/* The bits of one element, for messages. */
uint64_t elements_bits(attnres_dtype dtype, const void *data, size_t i);

#endif
