#include "problem.h"

#include "allocate.h"
#include "elements.h"
#include "plain.h"

#include <check.h>
#include <math.h>
#include <string.h>

static void open_results(problem *it)
{
    const size_t elements = it->shape.tokens * it->shape.width;
    const size_t entries = it->count * it->shape.tokens;
    const size_t size = attnres_dtype_size(it->shape.dtype);
    it->retrieved = allocate(elements, size);
    it->normed = allocate(elements, size);
    it->weights = allocate(entries, size);
    it->logits = allocate(entries, sizeof *it->logits);
}

static void close_results(problem *it)
{
    free(it->retrieved);
    free(it->normed);
    free(it->weights);
    free(it->logits);
}

static void fill_query(problem *it, inputs_kind kind, uint64_t *stream)
{
    const attnres_dtype accumulator = attnres_dtype_accumulator(it->shape.dtype);
    const double ordinary = 1.5 / sqrt((double)it->shape.width);
    if (kind == INPUTS_TIES) {
        inputs_fill(accumulator, INPUTS_TIES, stream, it->query, it->shape.width);
    } else if (kind != INPUTS_ORDINARY && inputs_pick(stream, 16) == 0) {
        inputs_fill(accumulator, (inputs_kind)inputs_pick(stream, INPUTS_SPECIAL), stream,
                    it->query, it->shape.width);
    } else {
        inputs_fill_scaled(accumulator, ordinary, stream, it->query, it->shape.width);
    }
    inputs_fill_scaled(accumulator, 1, stream, it->gain, it->shape.width);
}

/* Rows of the kind, with an ordinary one now and then; NaN between the rows. */
static void fill_sources(problem *it, inputs_kind kind, uint64_t *stream)
{
    const attnres_dtype dtype = it->shape.dtype;
    for (size_t s = 0; s < it->count; s++) {
        for (size_t t = 0; t < it->shape.tokens; t++) {
            void *row = problem_row(it, s, t);
            const int ordinary = inputs_pick(stream, 8) == 0;
            inputs_fill(dtype, ordinary ? INPUTS_ORDINARY : kind, stream, row, it->shape.width);
            for (size_t i = it->shape.width; i < it->stride; i++) {
                elements_set(dtype, row, i, (double)NAN);
            }
        }
    }
}

void problem_open(problem *it, problem_size size, uint64_t stream)
{
    const size_t bytes = attnres_dtype_size(size.dtype);
    *it = (problem){.shape = {size.dtype, size.tokens, size.width}, .count = size.count};
    it->stride = size.width + inputs_pick(&stream, 4);
    it->memory = allocate(size.count * size.tokens * it->stride, bytes);
    it->sources = allocate(size.count, sizeof *it->sources);
    it->rows = allocate(size.count, sizeof *it->rows);
    it->query = allocate(size.width, sizeof(double));
    it->gain = allocate(size.width, sizeof(double));
    it->bias = allocate(size.count, sizeof *it->bias);
    for (size_t s = 0; s < size.count; s++) {
        it->sources[s] = (attnres_rows){problem_row(it, s, 0), (ptrdiff_t)it->stride};
        it->bias[s] = inputs_bell(&stream);
    }
    fill_sources(it, size.kind, &stream);
    fill_query(it, size.kind, &stream);
    open_results(it);
    it->args = (attnres_read_args){
        .query = it->query, .eps = 1e-6, .norm_gain = it->gain, .norm_eps = 1e-5};
}

void problem_close(problem *it)
{
    free(it->memory);
    free(it->sources);
    free(it->rows);
    free(it->query);
    free(it->gain);
    free(it->bias);
    close_results(it);
}

void *problem_row(const problem *it, size_t source, size_t token)
{
    return elements_at(it->shape.dtype, it->memory,
                       (source * it->shape.tokens + token) * it->stride);
}

attnres_read_args problem_args(const problem *it)
{
    attnres_read_args args = it->args;
    args.sources = it->sources;
    args.source_count = it->count;
    args.retrieved.data = it->retrieved;
    args.normed.data = it->normed;
    args.weights.data = it->weights;
    args.logits.data = it->logits;
    return args;
}

reading problem_reading(const problem *it, const attnres_read_args *args, size_t token)
{
    for (size_t s = 0; s < it->count; s++) {
        it->rows[s] = problem_row(it, s, token);
    }
    return (reading){.dtype = it->shape.dtype,
                     .width = it->shape.width,
                     .count = it->count,
                     .rows = it->rows,
                     .query = args->query,
                     .eps = args->eps,
                     .scale = args->scale,
                     .bias = args->bias,
                     .norm_gain = args->norm_gain,
                     .norm_eps = args->norm_eps,
                     .norm_policy = args->norm_policy};
}

void problem_run(problem *it)
{
    const attnres_read_args args = problem_args(it);
    const attnres_status status = attnres_read(&it->shape, &args);
    ck_assert_msg(status == ATTNRES_OK, "%s", attnres_status_string(status));
}

void problem_expect(const problem *it, problem *expected)
{
    const attnres_dtype dtype = it->shape.dtype;
    const size_t tokens = it->shape.tokens, width = it->shape.width;
    void *weights = allocate(it->count, attnres_dtype_size(dtype));
    double *logits = allocate(it->count, sizeof *logits);
    *expected = (problem){.shape = it->shape, .count = it->count};
    open_results(expected);
    for (size_t t = 0; t < tokens; t++) {
        const reading in = problem_reading(it, &it->args, t);
        const plain_results out = {elements_at(dtype, expected->retrieved, t * width),
                                   elements_at(dtype, expected->normed, t * width), weights,
                                   logits};
        plain_read(&in, NULL, &out);
        for (size_t s = 0; s < it->count; s++) {
            const size_t size = attnres_dtype_size(dtype);
            memcpy(elements_at(dtype, expected->weights, s * tokens + t),
                   elements_at(dtype, weights, s), size);
            expected->logits[s * tokens + t] = logits[s];
        }
    }
    free(weights);
    free(logits);
}

void problem_forget(problem *expected)
{
    close_results(expected);
}

void problem_check(const problem *it, const problem *expected, const char *what)
{
    const attnres_dtype dtype = it->shape.dtype;
    const size_t elements = it->shape.tokens * it->shape.width;
    const size_t entries = it->count * it->shape.tokens;
    elements_check(ATTNRES_F64, it->logits, expected->logits, entries,
                   "%s, %zu sources, width %zu: logits of %s,", what, it->count, it->shape.width,
                   elements_name(dtype));
    elements_check(dtype, it->weights, expected->weights, entries,
                   "%s, %zu sources, width %zu: weights", what, it->count, it->shape.width);
    elements_check(dtype, it->retrieved, expected->retrieved, elements,
                   "%s, %zu sources, width %zu: result", what, it->count, it->shape.width);
    elements_check(dtype, it->normed, expected->normed, elements,
                   "%s, %zu sources, width %zu: normed", what, it->count, it->shape.width);
}
