/* The read again, in double and in the most direct way, for the program to hold the library's
 * results against. Shares no code with the library. */
#ifndef ATTNRES_CLI_ORACLE_H
#define ATTNRES_CLI_ORACLE_H

#include <attnres.h>

/* Element i as a number. */
double attnres_cli_value(attnres_dtype dtype, const void *data, size_t i);

/* Reads one token: rows[count] of the dtype, the query in its accumulator type. Fills
 * result[width], weights[count], and magnitude[width] = sum of weight * |element|, in which errors
 * are measured. */
void attnres_cli_oracle_read(attnres_dtype dtype, size_t width, const void *const *rows,
                             size_t count, const void *query, double eps, double *result,
                             double *weights, double *magnitude);

/* How far a stored row is from the oracle's, as a multiple of what is allowed: half a unit in the
 * last place of the dtype, and for the arithmetic of the accumulator
 * 2^-24 (2^-53 for f64) * (8 + count + 4 * sqrt(width)) * magnitude. At most 1 is good; NaN
 * compares as 1e300. */
double attnres_cli_oracle_error(attnres_dtype dtype, size_t width, size_t count, const void *row,
                                const double *result, const double *magnitude);

#endif
