/* Made-up tensors that are the same on every machine: elements are built from bits, no
 * floating-point arithmetic is involved. */
#ifndef ATTNRES_CLI_SYNTHETIC_H
#define ATTNRES_CLI_SYNTHETIC_H

#include <attnres.h>

#include <stdint.h>

/* What a row looks like. */
typedef enum attnres_cli_kind {
    ATTNRES_CLI_ORDINARY, /* magnitudes from 1/16 to 2 */
    ATTNRES_CLI_TIES,     /* the same, few significant bits: sums land half-way between numbers */
    ATTNRES_CLI_WIDE,     /* every finite magnitude that the dtype has */
    ATTNRES_CLI_TINY,     /* subnormal, or a little above */
    ATTNRES_CLI_HUGE,     /* squares overflow */
    ATTNRES_CLI_ZERO,
    ATTNRES_CLI_SPECIAL, /* ordinary with an Inf or NaN in it */
    ATTNRES_CLI_KINDS
} attnres_cli_kind;

/* SplitMix64: the next number of the sequence that *state stands at. */
uint64_t attnres_cli_random(uint64_t *state);

/* Fills data[count]. */
void attnres_cli_fill(attnres_dtype dtype, attnres_cli_kind kind, uint64_t *state, void *data,
                      size_t count);

/* FNV-1a over the bytes, going on from `digest`; start with ATTNRES_CLI_DIGEST_START. */
#define ATTNRES_CLI_DIGEST_START 0xcbf29ce484222325u
uint64_t attnres_cli_digest(uint64_t digest, const void *data, size_t bytes);

/* Turns every NaN into the same one, for comparisons: its sign and payload are not promised. */
void attnres_cli_unify_nan(attnres_dtype dtype, void *data, size_t count);

/* to[i] = from[i + shift] / 2, every third sign changed, indices modulo count. Exact, but that
 * numbers too small to be halved become 0. */
void attnres_cli_halve_and_move(attnres_dtype dtype, const void *from, size_t count, size_t shift,
                                void *to);

/* data[i] = a + b, rounded once to nearest, ties to even; a and b are numbers of the dtype. */
void attnres_cli_set_sum(attnres_dtype dtype, void *data, size_t i, double a, double b);

#endif
