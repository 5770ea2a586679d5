#include "check_case.h"

#include "synthetic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS 2
#define DELTAS 2

struct attnres_cli_case_memory {
    unsigned char *rows;  /* sources, then deltas, TOKENS rows each, strided and shifted */
    double *query, *gain; /* in the accumulator type */
    double *bias;
    attnres_rows *row_sets;
    attnres_rows_out *sums;
    unsigned char *results[2];
    size_t capacity;
};

/* Rows are this far apart, and start this far from alignment: other numbers for other cases. */
static size_t stride_of(const attnres_cli_case *one)
{
    return one->width + one->seed % 4;
}

static size_t shift_of(const attnres_cli_case *one)
{
    return one->seed / 4 % 4;
}

attnres_cli_case_memory *attnres_cli_case_room(size_t widest, size_t most_sources)
{
    attnres_cli_case_memory *memory = calloc(1, sizeof *memory);
    const size_t row_sets = most_sources + DELTAS;
    const size_t row = (widest + 4) * sizeof(double) * TOKENS;

    if (memory == NULL) {
        return NULL;
    }
    /* Results: sums and copies of the sources, five rows, weights and logits. */
    memory->capacity = (row_sets + 24) * row + 4 * row_sets * TOKENS * sizeof(double);
    memory->rows = malloc(row_sets * row + 64);
    memory->query = malloc(widest * sizeof(double));
    memory->gain = malloc(widest * sizeof(double));
    memory->bias = malloc(most_sources * sizeof(double));
    memory->row_sets = malloc(row_sets * sizeof *memory->row_sets);
    memory->sums = malloc(row_sets * sizeof *memory->sums);
    memory->results[0] = malloc(memory->capacity);
    memory->results[1] = malloc(memory->capacity);
    if (!memory->rows || !memory->query || !memory->gain || !memory->bias || !memory->row_sets ||
        !memory->sums || !memory->results[0] || !memory->results[1]) {
        attnres_cli_case_free(memory);
        return NULL;
    }
    return memory;
}

void attnres_cli_case_free(attnres_cli_case_memory *memory)
{
    if (memory != NULL) {
        free(memory->rows);
        free(memory->query);
        free(memory->gain);
        free(memory->bias);
        free(memory->row_sets);
        free(memory->sums);
        free(memory->results[0]);
        free(memory->results[1]);
        free(memory);
    }
}

void attnres_cli_case_fill(attnres_cli_case_memory *memory, const attnres_cli_case *one)
{
    const size_t size = attnres_dtype_size(one->dtype);
    const attnres_dtype accumulator = attnres_dtype_accumulator(one->dtype);
    uint64_t state = one->seed;

    for (size_t s = 0; s < one->sources + DELTAS; s++) {
        /* Mostly ordinary rows; a quarter of the cases is made of extreme ones throughout. */
        const uint64_t dice = attnres_cli_random(&state);
        const int extreme = one->seed % 4 == 0 || dice % 16 == 0;
        const attnres_cli_kind kind =
            (attnres_cli_kind)(extreme ? dice / 16 % ATTNRES_CLI_KINDS
                                       : dice / 16 % (ATTNRES_CLI_TIES + 1));
        unsigned char *data = memory->rows + (s * TOKENS * stride_of(one) + shift_of(one)) * size;
        memory->row_sets[s] = (attnres_rows){data, (ptrdiff_t)stride_of(one)};
        for (size_t t = 0; t < TOKENS; t++) {
            attnres_cli_fill(one->dtype, t ? ATTNRES_CLI_ORDINARY : kind, &state,
                             data + t * stride_of(one) * size, one->width);
        }
    }
    attnres_cli_fill(accumulator, one->seed % 5 ? ATTNRES_CLI_ORDINARY : ATTNRES_CLI_WIDE, &state,
                     memory->query, one->width);
    attnres_cli_fill(accumulator, ATTNRES_CLI_ORDINARY, &state, memory->gain, one->width);
    attnres_cli_fill(ATTNRES_F64, ATTNRES_CLI_ORDINARY, &state, memory->bias, one->sources);
    if (one->sources > 2 && one->seed % 3 == 0) {
        memory->bias[one->seed % one->sources] = -(double)INFINITY;
    }
}

/* Hands out the result buffer piece by piece. */
typedef struct sink {
    unsigned char *data;
    size_t used;
} sink;

static void *take(sink *into, attnres_dtype dtype, size_t count)
{
    void *piece = into->data + into->used;
    into->used += (count * attnres_dtype_size(dtype) + 7) / 8 * 8;
    memset(into->data + into->used - 8, 0, 8); /* what fills it up to a multiple of 8 */
    return piece;
}

/* Everything at once: deltas, push, both results, weights and logits. */
static attnres_status run_read(attnres_cli_case_memory *memory, const attnres_cli_case *one,
                               sink *into)
{
    const attnres_shape shape = {one->dtype, TOKENS, one->width};
    const size_t row = TOKENS * one->width;
    const int fused = one->seed % 2 == 1;
    attnres_read_args args = {
        .sources = memory->row_sets,
        .source_count = one->sources - 1,
        .prefix = memory->row_sets[one->sources - 1],
        .deltas = memory->row_sets + one->sources,
        .delta_count = one->seed % (DELTAS + 1),
        .query = memory->query,
        .eps = one->seed % 7 ? 1e-6 : 0,
        .scale = one->seed % 5 ? 0 : 0.75,
        .bias = one->seed % 2 ? memory->bias : NULL,
        .norm_gain = one->seed % 3 ? memory->gain : NULL,
        .norm_eps = 1e-5,
        .norm_policy = fused ? ATTNRES_NORM_FUSED : ATTNRES_NORM_REFERENCE,
    };
    args.prefix_out.data = take(into, one->dtype, row);
    args.push.data = take(into, one->dtype, row);
    args.retrieved.data = take(into, one->dtype, row);
    args.normed.data = take(into, one->dtype, row);
    args.weights.data = take(into, one->dtype, TOKENS * one->sources);
    args.logits.data = take(into, ATTNRES_F64, TOKENS * one->sources);
    const attnres_status status = attnres_read(&shape, &args);
    attnres_cli_unify_nan(one->dtype, args.prefix_out.data, row);
    attnres_cli_unify_nan(one->dtype, args.push.data, row);
    attnres_cli_unify_nan(one->dtype, args.retrieved.data, row);
    attnres_cli_unify_nan(one->dtype, args.normed.data, row);
    attnres_cli_unify_nan(one->dtype, args.weights.data, TOKENS * one->sources);
    attnres_cli_unify_nan(ATTNRES_F64, args.logits.data, TOKENS * one->sources);
    return status;
}

static attnres_status run_block_read(attnres_cli_case_memory *memory, const attnres_cli_case *one,
                                     sink *into)
{
    const attnres_shape shape = {one->dtype, TOKENS, one->width};
    const size_t row = TOKENS * one->width;
    attnres_block_read_args args = {
        .embedding = memory->row_sets[0],
        .outputs = memory->row_sets + 1,
        .layers = one->sources - 1,
        .block_size = 1 + one->seed % 5,
        .query = memory->query,
        .eps = 1e-6,
        .sources = memory->sums,
    };
    args.source_count = attnres_source_count(args.layers, args.block_size);
    for (size_t s = 0; s < args.source_count; s++) {
        memory->sums[s] = (attnres_rows_out){take(into, one->dtype, row), 0};
    }
    args.retrieved.data = take(into, one->dtype, row);
    args.weights.data = take(into, one->dtype, TOKENS * args.source_count);
    const attnres_status status = attnres_block_read(&shape, &args);
    for (size_t s = 0; s < args.source_count; s++) {
        attnres_cli_unify_nan(one->dtype, memory->sums[s].data, row);
    }
    attnres_cli_unify_nan(one->dtype, args.retrieved.data, row);
    attnres_cli_unify_nan(one->dtype, args.weights.data, TOKENS * args.source_count);
    return status;
}

/* Two queries folded over all sources but the last, which resumes each as the prefix. */
static attnres_status run_two_phase(attnres_cli_case_memory *memory, const attnres_cli_case *one,
                                    sink *into)
{
    const attnres_shape shape = {one->dtype, TOKENS, one->width};
    const attnres_dtype accumulator = attnres_dtype_accumulator(one->dtype);
    const size_t row = TOKENS * one->width;
    const void *queries[3] = {memory->query, memory->gain, memory->query};
    attnres_state states[3];
    attnres_accumulate_args args = {.sources = memory->row_sets,
                                    .source_count = one->sources - 1,
                                    .queries = queries,
                                    .query_count = 1 + one->seed % 3,
                                    .eps = 1e-6,
                                    .states = states};
    attnres_status status = ATTNRES_OK;
    for (size_t i = 0; i < args.query_count; i++) {
        states[i].max = take(into, ATTNRES_F64, TOKENS);
        states[i].sum = take(into, ATTNRES_F64, TOKENS);
        states[i].mix = take(into, accumulator, row);
        states[i].mix_stride = 0;
        memset(states[i].mix, 0, row * attnres_dtype_size(accumulator));
        status = status ? status : attnres_state_clear(&shape, &states[i]);
    }
    status = status ? status : attnres_accumulate(&shape, &args);
    for (size_t i = 0; i < args.query_count; i++) {
        const attnres_read_args resumed = {.prefix = memory->row_sets[one->sources - 1],
                                           .query = queries[i],
                                           .eps = 1e-6,
                                           .resume = &states[i],
                                           .retrieved = {take(into, one->dtype, row), 0}};
        status = status ? status : attnres_read(&shape, &resumed);
        attnres_cli_unify_nan(one->dtype, resumed.retrieved.data, row);
        attnres_cli_unify_nan(ATTNRES_F64, states[i].max, TOKENS);
        attnres_cli_unify_nan(ATTNRES_F64, states[i].sum, TOKENS);
        attnres_cli_unify_nan(accumulator, states[i].mix, row);
    }
    return status;
}

attnres_status attnres_cli_case_run(attnres_cli_case_memory *memory, const attnres_cli_case *one,
                                    int slot, const void **results, size_t *bytes)
{
    sink into = {memory->results[slot], 0};
    attnres_status status = run_read(memory, one, &into);
    if (status == ATTNRES_OK) {
        status = run_block_read(memory, one, &into);
    }
    if (status == ATTNRES_OK) {
        status = run_two_phase(memory, one, &into);
    }
    *results = into.data;
    *bytes = into.used;
    return status;
}
