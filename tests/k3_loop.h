/* Kimi K3's layer loop around a stream, with cheap stand-ins for attention and feed-forward (those
 * of tests/golden/README.md): everything that its reads give, for all tokens or a range of them. */
#ifndef ATTNRES_TESTS_K3_LOOP_H
#define ATTNRES_TESTS_K3_LOOP_H

#include <attnres.h>

#include <stddef.h>
#include <stdint.h>

typedef struct k3_stack {
    attnres_shape shape;
    size_t layers, block_size; /* in layers of two sites */
    double eps, norm_eps;
    unsigned char *embedding;       /* [tokens][width] */
    unsigned char *queries, *gains; /* [sites][width] in the accumulator type */
} k3_stack;

/* Random numbers. */
void k3_open(k3_stack *it, attnres_shape shape, size_t layers, size_t block_size, uint64_t stream);
void k3_close(k3_stack *it);

/* 2 * layers + 1, the final one included. */
size_t k3_sites(const k3_stack *it);
size_t k3_pushes(const k3_stack *it);
const void *k3_query(const k3_stack *it, size_t site);
const void *k3_gain(const k3_stack *it, size_t site);

/* Whether the raw prefix is pushed after the read at this site. */
int k3_site_pushes(const k3_stack *it, size_t site);

/* What the sublayer behind an even (attention) or odd (feed-forward) site makes of one row. */
void k3_stand_in(attnres_dtype dtype, size_t width, size_t site, const void *normed, void *output);

/* Row t of a site in results[sites][tokens][width]. */
void *k3_row(const k3_stack *it, void *results, size_t site, size_t t);

typedef struct k3_part {
    const k3_stack *stack;
    size_t first, tokens;
    int hops; /* the stream is exported and imported into another one at every layer boundary */
    void *retrieved, *normed; /* [sites][all tokens][width]; only the own tokens are written */
    attnres_status status;
    size_t sources; /* that the stream has in the end */
} k3_part;

/* Runs the loop for tokens first .. first + tokens - 1. Fails no test, so threads may do it: a
 * status other than OK ends the run. */
void k3_run(k3_part *part);

#endif
