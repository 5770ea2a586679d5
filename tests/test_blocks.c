/* Block summation, and the block read made of it. */
#include "allocate.h"
#include "elements.h"
#include "inputs.h"
#include "levels.h"
#include "oracle.h"
#include "plain.h"
#include "suites.h"

#include <attnres.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LAYERS_MAX = 300, TOKENS = 2 };

/* Layer outputs, an embedding before them, and room for the results. */
typedef struct stack {
    attnres_shape shape;
    size_t layers, block_size, count; /* of sources, the embedding included */
    void *memory;
    attnres_rows outputs[LAYERS_MAX];
    attnres_rows embedding;
    void *results; /* sources, one after the other */
    attnres_rows_out sources[LAYERS_MAX + 1];
    void *query, *retrieved, *weights;
} stack;

static stack *open_stack(attnres_shape shape, size_t layers, size_t block_size, inputs_kind kind,
                         uint64_t stream)
{
    const size_t row = shape.tokens * shape.width, size = attnres_dtype_size(shape.dtype);
    stack *it = allocate(1, sizeof *it);
    it->shape = shape;
    it->layers = layers;
    it->block_size = block_size;
    it->count = attnres_source_count(layers, block_size);
    it->memory = allocate((layers + 1) * row, size);
    it->results = allocate(it->count * row, size);
    it->query = allocate(shape.width, sizeof(double));
    it->retrieved = allocate(row, size);
    it->weights = allocate(it->count * shape.tokens, size);
    inputs_fill(shape.dtype, kind, &stream, it->memory, (layers + 1) * row);
    inputs_fill_scaled(attnres_dtype_accumulator(shape.dtype), 0.3, &stream, it->query,
                       shape.width);
    it->embedding.data = it->memory;
    for (size_t i = 0; i < layers; i++) {
        it->outputs[i].data = elements_at(shape.dtype, it->memory, (i + 1) * row);
    }
    for (size_t s = 0; s < it->count; s++) {
        it->sources[s].data = elements_at(shape.dtype, it->results, s * row);
    }
    return it;
}

static void close_stack(stack *it)
{
    free(it->memory);
    free(it->results);
    free(it->query);
    free(it->retrieved);
    free(it->weights);
    free(it);
}

static void sum_blocks(const stack *it)
{
    const attnres_block_sum_args args = {it->outputs, it->layers, it->block_size, it->sources + 1,
                                         it->count - 1};
    ck_assert_int_eq(attnres_block_sum(&it->shape, &args), ATTNRES_OK);
}

static attnres_block_read_args read_args(const stack *it)
{
    const attnres_block_read_args args = {.embedding = it->embedding,
                                          .outputs = it->outputs,
                                          .layers = it->layers,
                                          .block_size = it->block_size,
                                          .query = it->query,
                                          .eps = 1e-6,
                                          .retrieved = {it->retrieved, 0},
                                          .weights = {.data = it->weights},
                                          .sources = it->sources,
                                          .source_count = it->count};
    return args;
}

/* Sum number b of the results, against the literal contract and the exact sum. */
static void check_sum(const stack *it, size_t b, size_t begin, size_t end, int bounded)
{
    const attnres_dtype dtype = it->shape.dtype;
    const size_t width = it->shape.width;
    const void *rows[LAYERS_MAX];
    void *expected = allocate(width, attnres_dtype_size(dtype));
    for (size_t t = 0; t < it->shape.tokens; t++) {
        const void *found = elements_at(dtype, it->sources[b + 1].data, t * width);
        for (size_t i = begin; i < end; i++) {
            rows[i - begin] =
                elements_at(dtype, it->memory, ((i + 1) * it->shape.tokens + t) * width);
        }
        plain_sum(dtype, rows, end - begin, width, expected);
        elements_check(dtype, found, expected, width, "layers %zu to %zu, token %zu", begin, end,
                       t);
        ck_assert(!bounded || oracle_sum(dtype, rows, end - begin, width, found) <= 1);
    }
    free(expected);
}

static void check_sums(const stack *it, int bounded)
{
    size_t begin = 0, b = 0;
    for (; begin < it->layers; b++) {
        size_t end = begin;
        while (end < it->layers && end - begin < it->block_size) {
            end++;
        }
        check_sum(it, b, begin, end, bounded);
        begin = end;
    }
    ck_assert_uint_eq(b + 1, it->count);
}

START_TEST(sources_are_counted)
{
    static const size_t counts[][3] = {
        {0, 1, 1},   {0, 5, 1},   {1, 1, 2},         {1, 5, 2},
        {5, 5, 2},   {6, 5, 3},   {10, 5, 3},        {7, 3, 4},
        {54, 6, 10}, {93, 12, 9}, {12, SIZE_MAX, 2}, {SIZE_MAX, SIZE_MAX, 2},
        {4, 1, 5},   {0, 0, 0},   {9, 0, 0},         {186, 24, 9},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        ck_assert_uint_eq(attnres_source_count(counts[i][0], counts[i][1]), counts[i][2]);
    }
}
END_TEST

/* Every split of up to 13 layers, all kinds of numbers. _i is level and dtype. */
START_TEST(sums_are_the_contracts)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t layers = 0; layers <= 13; layers++) {
        for (size_t block_size = 1; block_size <= 8; block_size++) {
            const size_t n = layers * 8 + block_size;
            const attnres_shape shape = {dtype, TOKENS, 1 + n * 7 % 131};
            const inputs_kind kind = (inputs_kind)(n % INPUTS_KINDS);
            stack *it = open_stack(shape, layers, block_size, kind, inputs_stream(18, n, 0));
            sum_blocks(it);
            check_sums(it, kind < INPUTS_HUGE);
            close_stack(it);
        }
    }
}
END_TEST

/* More rows than are added in one sweep, wider than one tile of them. */
START_TEST(long_blocks_are_the_contracts)
{
    static const size_t lengths[] = {127, 128, 129, 256, 257, 300};
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
        const attnres_shape shape = {dtype, 1, n % 2 ? 700 : 255 + n};
        stack *it = open_stack(shape, lengths[n], SIZE_MAX, INPUTS_ORDINARY,
                               inputs_stream(19, n, (uint64_t)_i));
        sum_blocks(it);
        check_sums(it, 1);
        close_stack(it);
    }
}
END_TEST

/* Sums 1 + 2 + 3 and 4 around an embedding of 5, in every dtype; then an exact boundary. */
START_TEST(worked_examples)
{
    static const double values[] = {5, 1, 2, 3, 4, 7, -2, 9};
    static const double seven[] = {5, 6, 9, 9}; /* 5 | 1+2+3 | 4+7-2 | 9 */
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    const attnres_shape shape = {dtype, 1, 1};
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t layers = 0; layers <= 7; layers++) {
        stack *it = open_stack(shape, layers, 3, INPUTS_ORDINARY, 0);
        const attnres_block_read_args args = read_args(it);
        for (size_t i = 0; i <= layers; i++) {
            elements_set(dtype, it->memory, i, values[i]);
        }
        ck_assert_int_eq(attnres_block_read(&shape, &args), ATTNRES_OK);
        ck_assert_uint_eq(it->count, 1 + (layers + 2) / 3);
        if (layers == 4 || layers == 7) {
            ck_assert(elements_get(dtype, it->results, 0) == 5);
            ck_assert(elements_get(dtype, it->results, 1) == 6);
            ck_assert(elements_get(dtype, it->results, 2) == (layers == 4 ? 4 : seven[2]));
            ck_assert(layers == 4 || elements_get(dtype, it->results, 3) == seven[3]);
        }
        if (layers == 0) {
            ck_assert(elements_get(dtype, it->retrieved, 0) == 5);
            ck_assert(elements_get(dtype, it->weights, 0) == 1);
        }
        close_stack(it);
    }
}
END_TEST

/* 2^24 swallows each 1 in float: only the chronological order gives 2^24 + 0. And bf16 sums are
 * rounded once: 256 + 1 + 1 = 258, which addition by addition would stay 256. */
START_TEST(order_and_single_rounding_show)
{
    const float big = 0x1p24f, one = 1, minus = -0x1p24f;
    float sum = 0;
    const attnres_rows outputs[] = {{&big, 0}, {&one, 0}, {&one, 0}, {&minus, 0}};
    const attnres_rows_out sums[] = {{&sum, 0}};
    const attnres_shape shape = {ATTNRES_F32, 1, 1};
    const attnres_block_sum_args args = {outputs, 4, 4, sums, 1};
    levels_use(_i);
    ck_assert_int_eq(attnres_block_sum(&shape, &args), ATTNRES_OK);
    ck_assert(sum == 0);

    const uint16_t large = 0x4380, small = 0x3f80; /* 256 and 1 */
    uint16_t half = 0;
    const attnres_rows halves[] = {{&large, 0}, {&small, 0}, {&small, 0}};
    const attnres_rows_out half_sums[] = {{&half, 0}};
    const attnres_shape half_shape = {ATTNRES_BF16, 1, 1};
    const attnres_block_sum_args half_args = {halves, 3, 3, half_sums, 1};
    ck_assert_int_eq(attnres_block_sum(&half_shape, &half_args), ATTNRES_OK);
    ck_assert_uint_eq(half, 0x4381);
}
END_TEST

/* A block of one is a copy, also of -0 and of subnormals, and the block read of such blocks is the
 * read of all outputs. */
START_TEST(blocks_of_one_are_copies)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    levels_use(_i / ELEMENTS_DTYPES);
    for (int kind = 0; kind < INPUTS_HUGE; kind++) {
        const attnres_shape shape = {dtype, TOKENS, 37};
        const size_t row = shape.tokens * shape.width;
        stack *it = open_stack(shape, 6, 1, (inputs_kind)kind, inputs_stream(20, (uint64_t)_i, 0));
        void *expected = allocate(row, attnres_dtype_size(dtype));
        attnres_rows all[7];
        elements_set(dtype, it->memory, row + 3, -0.0);
        attnres_block_read_args args = read_args(it);
        ck_assert_int_eq(attnres_block_read(&shape, &args), ATTNRES_OK);
        ck_assert_mem_eq(it->results, it->memory, 7 * row * attnres_dtype_size(dtype));
        for (size_t s = 0; s < 7; s++) {
            all[s] = s ? it->outputs[s - 1] : it->embedding;
        }
        const attnres_read_args full = {.sources = all,
                                        .source_count = 7,
                                        .query = it->query,
                                        .eps = 1e-6,
                                        .retrieved = {expected, 0}};
        ck_assert_int_eq(attnres_read(&shape, &full), ATTNRES_OK);
        elements_check(dtype, it->retrieved, expected, row, "blocks of one");
        free(expected);
        close_stack(it);
    }
}
END_TEST

/* One call gives the bits of the two, with and without the copy of the embedding. */
START_TEST(block_read_is_sum_and_read)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t n = 0; n < 60; n++) {
        const attnres_shape shape = {dtype, 1 + n % 3, 1 + n * 13 % 140};
        const size_t row = shape.tokens * shape.width;
        stack *it = open_stack(shape, n % 11, 1 + n % 4, (inputs_kind)(n % INPUTS_KINDS),
                               inputs_stream(21, n, (uint64_t)_i));
        stack *other = open_stack(shape, n % 11, 1 + n % 4, (inputs_kind)(n % INPUTS_KINDS),
                                  inputs_stream(21, n, (uint64_t)_i));
        attnres_block_read_args args = read_args(it);
        attnres_rows sources[LAYERS_MAX];
        if (n % 2) {
            memset(it->results, 0x77, row * attnres_dtype_size(dtype));
            memcpy(other->results, it->results, row * attnres_dtype_size(dtype));
            it->sources[0].data = NULL;
        } else {
            memcpy(other->results, other->memory, row * attnres_dtype_size(dtype));
        }
        ck_assert_int_eq(attnres_block_read(&shape, &args), ATTNRES_OK);
        sum_blocks(other);
        for (size_t s = 0; s < other->count; s++) {
            sources[s] = s ? (attnres_rows){other->sources[s].data, 0} : other->embedding;
        }
        const attnres_read_args read = {.sources = sources,
                                        .source_count = other->count,
                                        .query = other->query,
                                        .eps = 1e-6,
                                        .retrieved = {other->retrieved, 0},
                                        .weights = {.data = other->weights}};
        ck_assert_int_eq(attnres_read(&shape, &read), ATTNRES_OK);
        elements_check(dtype, it->results, other->results, it->count * row, "sources, case %zu", n);
        elements_check(dtype, it->retrieved, other->retrieved, row, "result, case %zu", n);
        elements_check(dtype, it->weights, other->weights, it->count * shape.tokens,
                       "weights, case %zu", n);
        close_stack(it);
        close_stack(other);
    }
}
END_TEST

Suite *blocks_suite(void)
{
    Suite *suite = suite_create("blocks");
    TCase *blocks = tcase_create("blocks");
    const int all = ELEMENTS_DTYPES * levels_count();
    tcase_add_checked_fixture(blocks, levels_save, levels_restore);
    tcase_set_timeout(blocks, 60);
    tcase_add_test(blocks, sources_are_counted);
    tcase_add_loop_test(blocks, sums_are_the_contracts, 0, all);
    tcase_add_loop_test(blocks, long_blocks_are_the_contracts, 0, all);
    tcase_add_loop_test(blocks, worked_examples, 0, all);
    tcase_add_loop_test(blocks, order_and_single_rounding_show, 0, levels_count());
    tcase_add_loop_test(blocks, blocks_of_one_are_copies, 0, all);
    tcase_add_loop_test(blocks, block_read_is_sum_and_read, 0, all);
    suite_add_tcase(suite, blocks);
    return suite;
}
