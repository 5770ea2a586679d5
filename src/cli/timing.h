/* Clocks, and what memory can do at best. */
#ifndef ATTNRES_CLI_TIMING_H
#define ATTNRES_CLI_TIMING_H

#include <stddef.h>

/* Seconds of a monotonic clock. */
double attnres_cli_now(void);

/* The middle one of values[count], which are sorted by this. */
double attnres_cli_median(double *values, size_t count);

/* Bytes per second at which this program's own code, compiled for the architecture's baseline,
 * reads a working set of that size again and again; the median of nine. 0 without memory. A hint:
 * the benchmark measures the roof with the best instructions. */
double attnres_cli_read_rate(size_t bytes);

#endif
