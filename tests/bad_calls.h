/* THE lists of calls that are wrong, each in one respect. test_errors.c has the good calls that
 * they are made from; `it` is its bench. */
#ifndef ATTNRES_TESTS_BAD_CALLS_H
#define ATTNRES_TESTS_BAD_CALLS_H

#include <math.h>
#include <stdint.h>

/* The sizes of the good calls. */
enum { TOKENS = 2, WIDTH = 9, SOURCES = 3, LAYERS = 5, SUMS = 3 };

#define NOT_A_NUMBER ((double)NAN)
#define INFINITE ((double)INFINITY)
#define HUGE_COUNT ((size_t)1 << 62)
#define HUGE_STRIDE ((ptrdiff_t)1 << 61)

/* B(name, what is wrong, the status without ATTNRES_ERROR_) */
#define BAD_SHAPES(B)                                                                              \
    B(no_shape, it->shape_given = NULL, ARGUMENT)                                                  \
    B(dtype_0, it->shape.dtype = (attnres_dtype)0, DTYPE)                                          \
    B(dtype_5, it->shape.dtype = (attnres_dtype)5, DTYPE)                                          \
    B(negative_dtype, it->shape.dtype = (attnres_dtype)-1, DTYPE)                                  \
    B(width_0, it->shape.width = 0, SIZE)                                                          \
    B(width_overflows, it->shape.width = HUGE_COUNT, OVERFLOW)                                     \
    B(width_times_size_wraps, it->shape.width = SIZE_MAX / 8 + 2, OVERFLOW)                        \
    B(tokens_overflow, it->shape.tokens = SIZE_MAX, OVERFLOW)                                      \
    B(tokens_times_stride_wrap, it->shape.tokens = HUGE_COUNT, OVERFLOW)

#define BAD_READS(B)                                                                               \
    B(no_sources, it->read.sources = NULL, ARGUMENT)                                               \
    B(source_without_data, it->sources[1].data = NULL, ARGUMENT)                                   \
    B(source_stride_negative, it->sources[2].stride = -WIDTH, STRIDE)                              \
    B(source_stride_least, it->sources[2].stride = PTRDIFF_MIN, STRIDE)                            \
    B(source_stride_too_small, it->sources[0].stride = WIDTH - 1, STRIDE)                          \
    B(source_stride_overflows, it->sources[0].stride = PTRDIFF_MAX, OVERFLOW)                      \
    B(source_rows_overflow, it->sources[0].stride = HUGE_STRIDE, OVERFLOW)                         \
    B(prefix_stride_too_small, it->read.prefix.stride = 1, STRIDE)                                 \
    B(delta_without_data, it->deltas[0].data = NULL, ARGUMENT)                                     \
    B(delta_stride_negative, it->deltas[1].stride = -1, STRIDE)                                    \
    B(no_deltas, it->read.deltas = NULL, ARGUMENT)                                                 \
    B(deltas_stored_nowhere, it->read.prefix_out.data = it->read.push.data = NULL, ARGUMENT)       \
    B(no_query, it->read.query = NULL, ARGUMENT)                                                   \
    B(eps_negative, it->read.eps = -1e-9, VALUE)                                                   \
    B(eps_nan, it->read.eps = NOT_A_NUMBER, VALUE)                                                 \
    B(eps_infinite, it->read.eps = INFINITE, VALUE)                                                \
    B(scale_nan, it->read.scale = NOT_A_NUMBER, VALUE)                                             \
    B(scale_infinite, it->read.scale = -INFINITE, VALUE)                                           \
    B(bias_nan, it->bias[1] = NOT_A_NUMBER, VALUE)                                                 \
    B(bias_of_prefix_nan, it->bias[SOURCES] = NOT_A_NUMBER, VALUE)                                 \
    B(bias_infinite, it->bias[0] = INFINITE, VALUE)                                                \
    B(norm_eps_negative, it->read.norm_eps = -1, VALUE)                                            \
    B(norm_eps_nan, it->read.norm_eps = NOT_A_NUMBER, VALUE)                                       \
    B(norm_policy_unknown, it->read.norm_policy = (attnres_norm_policy)2, ARGUMENT)                \
    B(nothing_to_read, drop_inputs(it), ARGUMENT)                                                  \
    B(nothing_wanted, drop_results(it), ARGUMENT)                                                  \
    B(push_without_prefix, drop_prefix(it), ARGUMENT)                                              \
    B(retrieved_stride_too_small, it->read.retrieved.stride = WIDTH - 1, STRIDE)                   \
    B(retrieved_stride_negative, it->read.retrieved.stride = -20, STRIDE)                          \
    B(retrieved_overflows, it->read.retrieved.stride = HUGE_STRIDE, OVERFLOW)                      \
    B(normed_stride_too_small, it->read.normed.stride = 2, STRIDE)                                 \
    B(push_stride_too_small, it->read.push.stride = 2, STRIDE)                                     \
    B(prefix_out_stride_negative, it->read.prefix_out.stride = -WIDTH, STRIDE)                     \
    B(weights_strides_collide, it->read.weights.source_stride = 1, STRIDE)                         \
    B(weights_token_stride_negative, it->read.weights.token_stride = -1, STRIDE)                   \
    B(weights_source_stride_negative, it->read.weights.source_stride = -2, STRIDE)                 \
    B(weights_overflow, it->read.weights.source_stride = PTRDIFF_MAX, OVERFLOW)                    \
    B(logits_strides_collide, it->read.logits.token_stride = it->read.logits.source_stride = 3,    \
      STRIDE)                                                                                      \
    B(logits_overflow, it->read.logits.token_stride = PTRDIFF_MAX, OVERFLOW)                       \
    B(resume_with_weights, it->read.resume = &it->state, ARGUMENT)                                 \
    B(resume_without_max, resume_without(it, &it->state.max), ARGUMENT)                            \
    B(resume_without_sum, resume_without(it, &it->state.sum), ARGUMENT)                            \
    B(resume_without_mix, resume_without(it, NULL), ARGUMENT)                                      \
    B(too_many_sources, it->read.source_count = SIZE_MAX, OVERFLOW)

#define BAD_SUMS(B)                                                                                \
    B(no_outputs, it->sum.outputs = NULL, ARGUMENT)                                                \
    B(output_without_data, it->layer_outputs[4].data = NULL, ARGUMENT)                             \
    B(output_stride_too_small, it->layer_outputs[0].stride = WIDTH - 1, STRIDE)                    \
    B(no_sums, it->sum.sums = NULL, ARGUMENT)                                                      \
    B(sum_without_data, it->sums[2].data = NULL, ARGUMENT)                                         \
    B(sum_stride_negative, it->sums[3].stride = -WIDTH, STRIDE)                                    \
    B(block_size_0, it->sum.block_size = 0, SIZE)                                                  \
    B(one_sum_less, it->sum.sum_count = SUMS - 1, SIZE)                                            \
    B(one_sum_more, it->sum.sum_count = SUMS + 1, SIZE)                                            \
    B(boundary_has_no_partial, it->sum.layers = 4, SIZE)                                           \
    B(sum_on_anothers_output, it->layer_outputs[0].data = it->sums[3].data, OVERLAP)               \
    B(sum_on_output_shifted, shift_sum(it), OVERLAP)                                               \
    B(sum_on_sum, it->sums[1] = it->sums[2], OVERLAP)

#define BAD_BLOCK_READS(B)                                                                         \
    B(no_embedding, it->block.embedding.data = NULL, ARGUMENT)                                     \
    B(no_block_outputs, it->block.outputs = NULL, ARGUMENT)                                        \
    B(no_block_query, it->block.query = NULL, ARGUMENT)                                            \
    B(no_retrieved, it->block.retrieved.data = NULL, ARGUMENT)                                     \
    B(no_block_sources, it->block.sources = NULL, ARGUMENT)                                        \
    B(block_sum_without_data, it->sums[3].data = NULL, ARGUMENT)                                   \
    B(block_read_size_0, it->block.block_size = 0, SIZE)                                           \
    B(one_source_less, it->block.source_count = SUMS, SIZE)                                        \
    B(one_source_more, it->block.source_count = SUMS + 2, SIZE)                                    \
    B(block_eps_negative, it->block.eps = -1, VALUE)                                               \
    B(block_scale_nan, it->block.scale = NOT_A_NUMBER, VALUE)                                      \
    B(block_bias_nan, it->bias[3] = NOT_A_NUMBER, VALUE)                                           \
    B(embedding_stride_too_small, it->block.embedding.stride = 3, STRIDE)                          \
    B(block_weights_collide, it->block.weights.source_stride = 1, STRIDE)                          \
    B(retrieved_on_embedding, retrieve_on(it, it->block.embedding.data), OVERLAP)                  \
    B(retrieved_on_output, retrieve_on(it, it->layer_outputs[1].data), OVERLAP)                    \
    B(retrieved_on_sum, retrieve_on(it, it->sums[2].data), OVERLAP)                                \
    B(retrieved_on_query, retrieve_on(it, it->block.query), OVERLAP)                               \
    B(retrieved_on_weights, retrieve_on(it, it->block.weights.data), OVERLAP)                      \
    B(weights_on_source, it->block.weights.data = it->sums[0].data, OVERLAP)                       \
    B(copy_on_output, it->layer_outputs[0].data = it->sums[0].data, OVERLAP)                       \
    B(copy_on_embedding, it->block.embedding.data = it->sums[0].data, OVERLAP)                     \
    B(sum_on_embedding, it->block.embedding.data = it->sums[1].data, OVERLAP)                      \
    B(copy_on_block_sum, it->sums[0] = it->sums[2], OVERLAP)

#define BAD_QUERIES(B)                                                                             \
    B(no_projection, it->projection_given = NULL, ARGUMENT)                                        \
    B(projection_without_data, it->projection.data = NULL, ARGUMENT)                               \
    B(gain_without_data, it->gain.data = NULL, ARGUMENT)                                           \
    B(nowhere_to_write, it->query_out = NULL, ARGUMENT)                                            \
    B(query_dtype, it->query_dtype = (attnres_dtype)9, DTYPE)                                      \
    B(projection_dtype, it->projection.dtype = (attnres_dtype)0, DTYPE)                            \
    B(gain_dtype, it->gain.dtype = (attnres_dtype)7, DTYPE)                                        \
    B(query_width_0, it->query_width = 0, SIZE)                                                    \
    B(projection_too_short, it->projection.length = WIDTH - 1, SIZE)                               \
    B(projection_too_long, it->projection.length = WIDTH + 1, SIZE)                                \
    B(gain_too_short, it->gain.length = 1, SIZE)                                                   \
    B(query_width_overflows, it->query_width = SIZE_MAX, OVERFLOW)                                 \
    B(query_on_projection, it->projection.data = it->query_out, OVERLAP)                           \
    B(query_on_gain, it->gain.data = (char *)it->query_out + 4, OVERLAP)

#endif
