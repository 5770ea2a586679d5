/* attnres_read: check everything, then go from token to token. */
#include "read.h"

#include "dispatch.h"
#include "rows.h"
#include "sum_token.h"

void attnres_read_run(const attnres_shape *shape, const attnres_read_args *args)
{
    const int stores_prefix = args->prefix_out.data || args->push.data;
    const struct attnres_plan plan = {
        .shape = shape,
        .kernels = &attnres_dispatch()->of[shape->dtype],
        .scoring = {shape->dtype, shape->width, args->query, args->eps,
                    args->scale != 0 ? args->scale : 1,
                    attnres_from_memory(shape, attnres_read_sources(args))},
        .list = args->sources,
        .list_count = args->source_count,
        .last = args->prefix_out.data ? attnres_rows_of(args->prefix_out)
                : args->push.data     ? attnres_rows_of(args->push)
                                      : args->prefix,
        .count = attnres_read_sources(args),
        .bias = args->bias,
        .resume = args->resume,
        .retrieved = args->retrieved,
        .normed = args->normed,
        .norm_gain = args->norm_gain,
        .norm_eps = args->norm_eps,
        .norm_rounds = args->norm_policy == ATTNRES_NORM_REFERENCE || shape->dtype == ATTNRES_F32 ||
                       shape->dtype == ATTNRES_F64,
        .weights = args->weights,
        .logits = args->logits,
    };
    for (size_t t = 0; t < shape->tokens; t++) {
        if (stores_prefix) {
            attnres_sum_token(plan.kernels, shape, args->prefix, args->deltas, args->delta_count, t,
                              attnres_row_out(shape, args->prefix_out, t),
                              attnres_row_out(shape, args->push, t));
        }
        attnres_read_token(&plan, t);
    }
}

attnres_status attnres_read(const attnres_shape *shape, const attnres_read_args *args)
{
    ATTNRES_TRY(attnres_read_check(shape, args));
    if (shape->tokens > 0) {
        attnres_read_run(shape, args);
    }
    return ATTNRES_OK;
}
