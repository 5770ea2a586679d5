/* The read of one token after the other, shared by every call that reads. */
#ifndef ATTNRES_READ_H
#define ATTNRES_READ_H

#include <attnres.h>

#include "kernels.h"
#include "score.h"

/* A checked call, spelled out. Sources are `first` (if it has data), then list or list_out, then
 * `last` (if it has data). */
struct attnres_plan {
    const attnres_shape *shape;
    const struct attnres_kernels *kernels;
    struct attnres_scoring scoring;
    attnres_rows first;
    const attnres_rows *list;
    const attnres_rows_out *list_out;
    size_t list_count;
    attnres_rows last;
    size_t count; /* all sources */
    const double *bias;
    const attnres_state *resume;
    attnres_rows_out retrieved, normed;
    const void *norm_gain;
    double norm_eps;
    int norm_rounds; /* the mix is rounded before it is normalised */
    attnres_per_source weights, logits;
    const attnres_per_source *given; /* logits to mix with; NULL: the rows are scored */
};

/* Sources of a read: those listed, and the prefix if there will be one. */
size_t attnres_read_sources(const attnres_read_args *args);

/* Whether attnres_read would do what it is asked to. */
attnres_status attnres_read_check(const attnres_shape *shape, const attnres_read_args *args);

/* attnres_read, of arguments that passed the check, for at least one token. */
void attnres_read_run(const attnres_shape *shape, const attnres_read_args *args);

/* Reads token t and writes every result that the plan wants. */
void attnres_read_token(const struct attnres_plan *plan, size_t t);

#endif
