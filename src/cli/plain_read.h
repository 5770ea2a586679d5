/* The read as the author of a runtime would write it, to compare with: plain C, double sums, an
 * array of scores, a copy of the sources. Compiled like the rest, for the same baseline. */
#ifndef ATTNRES_CLI_PLAIN_READ_H
#define ATTNRES_CLI_PLAIN_READ_H

#include <stddef.h>
#include <stdint.h>

#define ATTNRES_CLI_PLAIN_SOURCES 16

/* One token; copy[count * width] and out[width] are float whatever the sources are. */
void attnres_cli_plain_read_f32(const float *const *rows, size_t count, const float *query,
                                size_t width, double eps, float *copy, float *out);
void attnres_cli_plain_read_bf16(const uint16_t *const *rows, size_t count, const float *query,
                                 size_t width, double eps, float *copy, uint16_t *out);

#endif
