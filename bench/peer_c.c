#include "peer_c.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"

#define PASTE(prefix, name) prefix##_##name
#define NAMED(prefix, name) PASTE(prefix, name)
#define PEER(name) NAMED(PEER_PREFIX, name)

/* One token, as public C runtimes do it: the sources are copied next to each other in the working
 * precision, sums are double, the scores get an array from malloc. */
#define DEFINE_TOKEN(dtype, elem, work, widen, narrow)                                             \
    static int read_token_##dtype(const elem *const *sources, size_t count, const work *query,     \
                                  double eps, size_t width, elem *out)                             \
    {                                                                                              \
        work *rows = malloc(count * width * sizeof *rows);                                         \
        double *scores = malloc(count * sizeof *scores);                                           \
        double largest = -INFINITY, total = 0;                                                     \
        if (!rows || !scores) {                                                                    \
            free(rows);                                                                            \
            free(scores);                                                                          \
            return 0;                                                                              \
        }                                                                                          \
        for (size_t s = 0; s < count; s++) {                                                       \
            work *row = rows + s * width;                                                          \
            double squares = 0, dot = 0;                                                           \
            for (size_t i = 0; i < width; i++) {                                                   \
                row[i] = widen(sources[s][i]);                                                     \
            }                                                                                      \
            for (size_t i = 0; i < width; i++) {                                                   \
                squares += (double)row[i] * (double)row[i];                                        \
                dot += (double)row[i] * (double)query[i];                                          \
            }                                                                                      \
            scores[s] = dot / sqrt(squares / (double)width + eps);                                 \
            largest = scores[s] > largest ? scores[s] : largest;                                   \
        }                                                                                          \
        for (size_t s = 0; s < count; s++) {                                                       \
            scores[s] = exp(scores[s] - largest);                                                  \
            total += scores[s];                                                                    \
        }                                                                                          \
        for (size_t i = 0; i < width; i++) {                                                       \
            double sum = 0;                                                                        \
            for (size_t s = 0; s < count; s++) {                                                   \
                sum += scores[s] * (double)rows[s * width + i];                                    \
            }                                                                                      \
            out[i] = narrow((work)(sum / total));                                                  \
        }                                                                                          \
        free(rows);                                                                                \
        free(scores);                                                                              \
        return 1;                                                                                  \
    }                                                                                              \
    static void sum_token_##dtype(const elem *const *rows, size_t count, size_t width, elem *out)  \
    {                                                                                              \
        for (size_t i = 0; i < width; i++) {                                                       \
            work sum = widen(rows[0][i]);                                                          \
            for (size_t s = 1; s < count; s++) {                                                   \
                sum += widen(rows[s][i]);                                                          \
            }                                                                                      \
            out[i] = narrow(sum);                                                                  \
        }                                                                                          \
    }

#define AS_IS(x) (x)
DEFINE_TOKEN(f32, float, float, AS_IS, AS_IS)
DEFINE_TOKEN(f64, double, double, AS_IS, AS_IS)
DEFINE_TOKEN(f16, uint16_t, float, attnres_f16_to_float, attnres_float_to_f16)
DEFINE_TOKEN(bf16, uint16_t, float, attnres_bf16_to_float, attnres_float_to_bf16)

enum { ROWS_MAX = 256 };

static int read_token(attnres_dtype dtype, const void *const *rows, size_t count, const void *query,
                      double eps, size_t width, void *out)
{
    switch (dtype) {
    case ATTNRES_F32:
        return read_token_f32((const float *const *)rows, count, query, eps, width, out);
    case ATTNRES_F64:
        return read_token_f64((const double *const *)rows, count, query, eps, width, out);
    case ATTNRES_F16:
        return read_token_f16((const uint16_t *const *)rows, count, query, eps, width, out);
    case ATTNRES_BF16:
        return read_token_bf16((const uint16_t *const *)rows, count, query, eps, width, out);
    }
    return 0;
}

static void sum_token(attnres_dtype dtype, const void *const *rows, size_t count, size_t width,
                      void *out)
{
    switch (dtype) {
    case ATTNRES_F32:
        sum_token_f32((const float *const *)rows, count, width, out);
        break;
    case ATTNRES_F64:
        sum_token_f64((const double *const *)rows, count, width, out);
        break;
    case ATTNRES_F16:
        sum_token_f16((const uint16_t *const *)rows, count, width, out);
        break;
    case ATTNRES_BF16:
        sum_token_bf16((const uint16_t *const *)rows, count, width, out);
        break;
    }
}

static size_t row_offset(const attnres_shape *shape, ptrdiff_t stride, size_t token)
{
    return token * (stride ? (size_t)stride : shape->width) * attnres_dtype_size(shape->dtype);
}

static const void *row_of(const attnres_shape *shape, attnres_rows rows, size_t token)
{
    return (const char *)rows.data + row_offset(shape, rows.stride, token);
}

static void *row_to(const attnres_shape *shape, attnres_rows_out rows, size_t token)
{
    return (char *)rows.data + row_offset(shape, rows.stride, token);
}

attnres_status PEER(read)(const attnres_shape *shape, const attnres_read_args *args)
{
    const void *rows[ROWS_MAX];
    for (size_t t = 0; t < shape->tokens; t++) {
        size_t count = 0;
        for (; count < args->source_count; count++) {
            rows[count] = row_of(shape, args->sources[count], t);
        }
        if (args->prefix.data) {
            rows[count++] = row_of(shape, args->prefix, t);
        }
        if (!read_token(shape->dtype, rows, count, args->query, args->eps, shape->width,
                        row_to(shape, args->retrieved, t))) {
            return ATTNRES_ERROR_SIZE;
        }
    }
    return ATTNRES_OK;
}

attnres_status PEER(block_sum)(const attnres_shape *shape, const attnres_block_sum_args *args)
{
    const void *rows[ROWS_MAX];
    for (size_t block = 0; block < args->sum_count; block++) {
        const size_t first = block * args->block_size;
        const size_t left = args->layers - first;
        const size_t count = left < args->block_size ? left : args->block_size;
        for (size_t t = 0; t < shape->tokens; t++) {
            for (size_t i = 0; i < count; i++) {
                rows[i] = row_of(shape, args->outputs[first + i], t);
            }
            sum_token(shape->dtype, rows, count, shape->width, row_to(shape, args->sums[block], t));
        }
    }
    return ATTNRES_OK;
}

attnres_status PEER(block_read)(const attnres_shape *shape, const attnres_block_read_args *args)
{
    attnres_rows sources[ROWS_MAX];
    sources[0] = args->embedding;
    for (size_t s = 1; s < args->source_count; s++) {
        sources[s] = (attnres_rows){args->sources[s].data, args->sources[s].stride};
    }
    const attnres_block_sum_args sums = {.outputs = args->outputs,
                                         .layers = args->layers,
                                         .block_size = args->block_size,
                                         .sums = args->sources + 1,
                                         .sum_count = args->source_count - 1};
    const attnres_read_args read = {.sources = sources,
                                    .source_count = args->source_count,
                                    .query = args->query,
                                    .eps = args->eps,
                                    .retrieved = args->retrieved};
    PEER(block_sum)(shape, &sums);
    return PEER(read)(shape, &read);
}
