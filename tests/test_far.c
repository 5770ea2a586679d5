/* Rows more than 2^31 elements (4 GiB and more) apart, for the calls that test_layout.c does not
 * try: the same bits as from rows that are close. */
#define _GNU_SOURCE /* MAP_NORESERVE */

#include "allocate.h"
#include "elements.h"
#include "inputs.h"
#include "levels.h"
#include "problem.h"
#include "suites.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { TOKENS = 2, WIDTH = 67, SOURCES = 3, SETS = SOURCES + 1 };

static void must(attnres_status status)
{
    ck_assert_msg(status == ATTNRES_OK, "%s", attnres_status_string(status));
}

/* Memory that exists where it is touched; NULL if this system does not give that much. */
typedef struct space {
    void *memory;
    size_t bytes, stride; /* elements from token to token */
} space;

static int open_space(space *it, attnres_dtype dtype)
{
    it->stride = ((size_t)1 << (sizeof(size_t) < 8 ? 10 : 31)) + 77;
    it->bytes = (it->stride * (TOKENS - 1) + SETS * WIDTH) * attnres_dtype_size(dtype);
    if (inputs_quick()) {
        printf("SKIPPED: rows gigabytes apart, with ATTNRES_TEST_QUICK\n");
        return 0;
    }
    it->memory = mmap(NULL, it->bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (it->memory == MAP_FAILED) {
        printf("SKIPPED: rows gigabytes apart, for this system gives no %zu bytes\n", it->bytes);
        return 0;
    }
    return 1;
}

static void close_space(const space *it)
{
    ck_assert_int_eq(munmap(it->memory, it->bytes), 0);
}

/* Row set k of the space. */
static attnres_rows_out far_set(const space *it, attnres_dtype dtype, size_t k)
{
    const attnres_rows_out rows = {elements_at(dtype, it->memory, k * WIDTH),
                                   (ptrdiff_t)it->stride};
    return rows;
}

/* The problem's sources, copied into the space. */
static void spread_sources(const space *it, const problem *near, attnres_rows *sources)
{
    const attnres_dtype dtype = near->shape.dtype;
    for (size_t s = 0; s < SOURCES; s++) {
        const attnres_rows_out rows = far_set(it, dtype, s);
        sources[s] = (attnres_rows){rows.data, rows.stride};
        for (size_t t = 0; t < TOKENS; t++) {
            memcpy(elements_at(dtype, rows.data, t * it->stride), problem_row(near, s, t),
                   WIDTH * attnres_dtype_size(dtype));
        }
    }
}

static void check_far(const space *it, attnres_dtype dtype, attnres_rows_out rows,
                      const void *expected, const char *what)
{
    for (size_t t = 0; t < TOKENS; t++) {
        elements_check(dtype, elements_at(dtype, rows.data, t * it->stride),
                       elements_at(dtype, (void *)(uintptr_t)expected, t * WIDTH), WIDTH,
                       "%s, token %zu", what, t);
    }
}

static void open_near(problem *it, int i)
{
    const problem_size size = {.dtype = elements_dtype(i % ELEMENTS_DTYPES),
                               .tokens = TOKENS,
                               .width = WIDTH,
                               .count = SOURCES};
    levels_use(i / ELEMENTS_DTYPES);
    problem_open(it, size, inputs_stream(75, (uint64_t)i, 0));
    problem_run(it);
}

/* _i of the tests is level and dtype. */
START_TEST(mix_and_score)
{
    problem near;
    space it;
    attnres_rows sources[SOURCES];
    double sums[2][SOURCES * TOKENS], far_sums[2][SOURCES * TOKENS];
    open_near(&near, _i);
    if (open_space(&it, near.shape.dtype)) {
        spread_sources(&it, &near, sources);
        attnres_score_args score = {
            near.sources, SOURCES, near.query, {.data = sums[0]}, {.data = sums[1]}};
        must(attnres_score(&near.shape, &score));
        score.sources = sources;
        score.squares.data = far_sums[0];
        score.dots.data = far_sums[1];
        must(attnres_score(&near.shape, &score));
        elements_check(ATTNRES_F64, far_sums, sums, 2 * SOURCES * TOKENS, "sums");
        const attnres_mix_args mix = {.sources = sources,
                                      .source_count = SOURCES,
                                      .logits = {.data = near.logits},
                                      .retrieved = far_set(&it, near.shape.dtype, SOURCES)};
        must(attnres_mix(&near.shape, &mix));
        check_far(&it, near.shape.dtype, mix.retrieved, near.retrieved, "mix");
        close_space(&it);
    }
    problem_close(&near);
}
END_TEST

START_TEST(block_sums)
{
    problem near;
    space it;
    attnres_rows outputs[SOURCES];
    open_near(&near, _i);
    if (open_space(&it, near.shape.dtype)) {
        const attnres_rows_out expected = {near.retrieved, 0};
        const attnres_rows_out sum = far_set(&it, near.shape.dtype, SOURCES);
        attnres_block_sum_args args = {near.sources, SOURCES, SOURCES, &expected, 1};
        must(attnres_block_sum(&near.shape, &args));
        spread_sources(&it, &near, outputs);
        args.outputs = outputs;
        args.sums = &sum;
        must(attnres_block_sum(&near.shape, &args));
        check_far(&it, near.shape.dtype, sum, near.retrieved, "sum");
        close_space(&it);
    }
    problem_close(&near);
}
END_TEST

/* Sources far apart, and states whose mixes are. */
START_TEST(folds)
{
    problem near;
    space rows, mixes;
    attnres_rows sources[SOURCES];
    double max[TOKENS], sum[TOKENS], finished[TOKENS * WIDTH];
    open_near(&near, _i);
    const attnres_dtype accumulator = attnres_dtype_accumulator(near.shape.dtype);
    if (open_space(&rows, near.shape.dtype)) {
        ck_assert(open_space(&mixes, accumulator));
        spread_sources(&rows, &near, sources);
        const attnres_state state = {max, sum, mixes.memory, (ptrdiff_t)mixes.stride};
        const void *query = near.query;
        const attnres_accumulate_args args = {.sources = sources,
                                              .source_count = SOURCES,
                                              .queries = &query,
                                              .query_count = 1,
                                              .eps = near.args.eps,
                                              .states = &state};
        must(attnres_state_clear(&near.shape, &state));
        must(attnres_accumulate(&near.shape, &args));
        must(attnres_finish(&near.shape, &state, (attnres_rows_out){finished, 0}));
        elements_check(near.shape.dtype, finished, near.retrieved, TOKENS * WIDTH, "fold");
        const attnres_rows_out far_result = far_set(&rows, near.shape.dtype, SOURCES);
        must(attnres_finish(&near.shape, &state, far_result));
        check_far(&rows, near.shape.dtype, far_result, near.retrieved, "finished");
        close_space(&mixes);
        close_space(&rows);
    }
    problem_close(&near);
}
END_TEST

/* What is fed to a stream, and what is read from it. */
START_TEST(streams)
{
    problem near;
    space it;
    attnres_rows sources[SOURCES];
    attnres_stream *stream;
    open_near(&near, _i);
    const attnres_stream_config config = {near.shape, SOURCES, ATTNRES_ROUND_EACH};
    const size_t bytes = attnres_stream_size(&config);
    void *memory = allocate(bytes, 1);
    if (open_space(&it, near.shape.dtype)) {
        spread_sources(&it, &near, sources);
        must(attnres_stream_init(&config, memory, bytes, &stream));
        must(attnres_stream_begin(stream, sources[0]));
        must(attnres_stream_push(stream));
        must(attnres_stream_add(stream, sources[1]));
        must(attnres_stream_push(stream));
        const attnres_stream_read_args args = {.outputs = &sources[2],
                                               .output_count = 1,
                                               .query = near.query,
                                               .eps = near.args.eps,
                                               .retrieved =
                                                   far_set(&it, near.shape.dtype, SOURCES)};
        must(attnres_stream_read(stream, &args));
        check_far(&it, near.shape.dtype, args.retrieved, near.retrieved, "stream");
        close_space(&it);
    }
    free(memory);
    problem_close(&near);
}
END_TEST

/* More than 2^31 elements of work in one call, from rows that are all the same memory: a stride of
 * zero bytes does not exist, so one long row is every source and every query of a fold. */
START_TEST(more_than_32_bits_of_work)
{
    enum { LONG_WIDTH = 1 << 20, MANY = 2100 };
    const attnres_shape shape = {ATTNRES_BF16, 1, LONG_WIDTH};
    uint16_t *row = allocate(LONG_WIDTH, sizeof *row), *out = allocate(LONG_WIDTH, sizeof *out);
    attnres_rows *outputs = allocate(MANY, sizeof *outputs);
    const attnres_rows_out sum = {out, 0};
    if (inputs_quick()) {
        printf("SKIPPED: more than 2^31 elements of work, with ATTNRES_TEST_QUICK\n");
    } else {
        levels_use(levels_count() - 1);
        for (size_t i = 0; i < LONG_WIDTH; i++) {
            row[i] = (uint16_t)(i % 3 == 0 ? 0x3f80 : i % 3 == 1 ? 0xbf80 : 0); /* 1, -1, 0 */
        }
        for (size_t k = 0; k < MANY; k++) {
            outputs[k].data = row;
        }
        const attnres_block_sum_args args = {outputs, MANY, MANY, &sum, 1};
        must(attnres_block_sum(&shape, &args));
        const uint16_t one = 0x4503, minus = 0xc503; /* 2100 as bf16: 2096, the nearest */
        for (size_t i = 0; i < LONG_WIDTH; i++) {
            ck_assert_uint_eq(out[i], i % 3 == 0 ? one : i % 3 == 1 ? minus : 0);
        }
    }
    free(row);
    free(out);
    free(outputs);
}
END_TEST

Suite *far_suite(void)
{
    Suite *suite = suite_create("far");
    TCase *rows = tcase_create("rows");
    const int all = ELEMENTS_DTYPES * levels_count();
    tcase_add_checked_fixture(rows, levels_save, levels_restore);
    tcase_set_timeout(rows, 60);
    tcase_add_loop_test(rows, mix_and_score, 0, all);
    tcase_add_loop_test(rows, block_sums, 0, all);
    tcase_add_loop_test(rows, folds, 0, all);
    tcase_add_loop_test(rows, streams, 0, all);
    tcase_add_test(rows, more_than_32_bits_of_work);
    suite_add_tcase(suite, rows);
    return suite;
}
