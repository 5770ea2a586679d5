/* Where rows lie makes no difference: layouts of banks, strides of results, rows gigabytes apart.
 */
#define _GNU_SOURCE /* MAP_NORESERVE */

#include "allocate.h"
#include "elements.h"
#include "levels.h"
#include "problem.h"
#include "suites.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { TOKENS = 4, COUNT = 5, WIDTH = 61 };

/* ---- Banks --------------------------------------------------------------------------------- */

typedef struct bank_layout {
    const char *name;
    size_t source_distance, token_distance, shift; /* in elements */
} bank_layout;

static const bank_layout layouts[] = {
    {"block-major", TOKENS *WIDTH, WIDTH, 0},
    {"token-major", WIDTH, COUNT *WIDTH, 0},
    {"token-major, padded rows", WIDTH + 3, COUNT *(WIDTH + 3), 1},
    {"block-major, padded rows, shifted", TOKENS *(WIDTH + 7), WIDTH + 7, 3},
    {"tokens far apart", WIDTH, 8 * COUNT *WIDTH + 1, 2},
    {"aligned rows", TOKENS * 64, 64, 0},
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts, BANK = 9 * TOKENS * COUNT * (WIDTH + 7) };

/* _i is level and dtype. */
START_TEST(bank_layouts_give_the_same_bits)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    const size_t size = attnres_dtype_size(dtype);
    const problem_size problem_of = {dtype, TOKENS, WIDTH, COUNT, INPUTS_ORDINARY};
    problem it;
    levels_use(_i / ELEMENTS_DTYPES);
    problem_open(&it, problem_of, inputs_stream(44, (uint64_t)_i, 0));
    problem_run(&it);
    void *bank = allocate(BANK, size), *found = allocate(TOKENS * WIDTH, size);
    for (size_t n = 0; n < LAYOUTS; n++) {
        const bank_layout *layout = &layouts[n];
        attnres_rows sources[COUNT];
        for (size_t i = 0; i < BANK; i++) {
            elements_set(dtype, bank, i, (double)NAN);
        }
        for (size_t s = 0; s < COUNT; s++) {
            char *data = elements_at(dtype, bank, layout->shift + s * layout->source_distance);
            sources[s] = (attnres_rows){data, (ptrdiff_t)layout->token_distance};
            for (size_t t = 0; t < TOKENS; t++) {
                memcpy(data + t * layout->token_distance * size, problem_row(&it, s, t),
                       WIDTH * size);
            }
        }
        attnres_read_args args = it.args;
        args.sources = sources;
        args.source_count = COUNT;
        args.retrieved.data = found;
        ck_assert_int_eq(attnres_read(&it.shape, &args), ATTNRES_OK);
        elements_check(dtype, found, it.retrieved, TOKENS * WIDTH, "%s", layout->name);
    }
    free(bank);
    free(found);
    problem_close(&it);
}
END_TEST

/* ---- Weights and logits -------------------------------------------------------------------- */

static const struct {
    ptrdiff_t source_stride, token_stride;
} strides[] = {{0, 0}, {TOKENS, 1}, {1, COUNT}, {0, 3}, {50, 0}, {50, 7}, {2, 2 * COUNT}, {1, 40}};
enum { ENTRIES = 400 };

START_TEST(entries_lie_where_they_are_wanted)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    const problem_size size = {dtype, TOKENS, WIDTH, COUNT, INPUTS_ORDINARY};
    problem it;
    levels_use(_i / ELEMENTS_DTYPES);
    problem_open(&it, size, inputs_stream(45, (uint64_t)_i, 0));
    problem_run(&it);
    for (size_t n = 0; n < sizeof strides / sizeof *strides; n++) {
        double weights[ENTRIES], logits[ENTRIES]; /* weights of any dtype */
        double expected_weights[ENTRIES], expected_logits[ENTRIES];
        const size_t token_stride = strides[n].token_stride ? (size_t)strides[n].token_stride : 1;
        const size_t source_stride =
            strides[n].source_stride ? (size_t)strides[n].source_stride : TOKENS * token_stride;
        memset(weights, 0x11, sizeof weights);
        memset(logits, 0x11, sizeof logits);
        memset(expected_weights, 0x11, sizeof weights);
        memset(expected_logits, 0x11, sizeof logits);
        for (size_t s = 0; s < COUNT; s++) {
            for (size_t t = 0; t < TOKENS; t++) {
                const size_t at = s * source_stride + t * token_stride;
                elements_set(dtype, expected_weights, at,
                             elements_get(dtype, it.weights, s * TOKENS + t));
                expected_logits[at] = it.logits[s * TOKENS + t];
            }
        }
        attnres_read_args args = problem_args(&it);
        args.weights =
            (attnres_per_source){weights, strides[n].source_stride, strides[n].token_stride};
        args.logits =
            (attnres_per_source){logits, strides[n].source_stride, strides[n].token_stride};
        ck_assert_int_eq(attnres_read(&it.shape, &args), ATTNRES_OK);
        ck_assert_mem_eq(weights, expected_weights, sizeof weights);
        ck_assert_mem_eq(logits, expected_logits, sizeof logits);
    }
    problem_close(&it);
}
END_TEST

/* ---- Rows that are further apart than 32 bits count -------------------------------------- */

enum { FAR_SETS = 6 }; /* three sources, prefix_out, retrieved, normed */

static void *reserve(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static attnres_read_args far_args(const problem *it, const attnres_rows *sources,
                                  attnres_rows_out *outputs)
{
    attnres_read_args args = it->args;
    args.sources = sources;
    args.source_count = 2;
    args.prefix = sources[2];
    args.deltas = sources;
    args.delta_count = 1;
    args.prefix_out = outputs[0];
    args.retrieved = outputs[1];
    args.normed = outputs[2];
    return args;
}

static void compare_far(const problem *it, void *memory, size_t stride)
{
    const attnres_dtype dtype = it->shape.dtype;
    attnres_rows sources[3], near[3];
    attnres_rows_out outputs[3], near_outputs[3];
    void *results = allocate(3 * 2 * WIDTH, attnres_dtype_size(dtype));
    for (size_t k = 0; k < 3; k++) {
        void *data = elements_at(dtype, memory, k * WIDTH);
        sources[k] = (attnres_rows){data, (ptrdiff_t)stride};
        near[k] = it->sources[k];
        for (size_t t = 0; t < 2; t++) {
            memcpy(elements_at(dtype, data, t * stride), problem_row(it, k, t),
                   WIDTH * attnres_dtype_size(dtype));
        }
        outputs[k] =
            (attnres_rows_out){elements_at(dtype, memory, (3 + k) * WIDTH), (ptrdiff_t)stride};
        near_outputs[k] = (attnres_rows_out){elements_at(dtype, results, k * 2 * WIDTH), 0};
    }
    attnres_read_args args = far_args(it, sources, outputs);
    ck_assert_int_eq(attnres_read(&it->shape, &args), ATTNRES_OK);
    args = far_args(it, near, near_outputs);
    ck_assert_int_eq(attnres_read(&it->shape, &args), ATTNRES_OK);
    for (size_t k = 0; k < 3; k++) {
        for (size_t t = 0; t < 2; t++) {
            elements_check(dtype, elements_at(dtype, outputs[k].data, t * stride),
                           elements_at(dtype, results, (k * 2 + t) * WIDTH), WIDTH,
                           "output %zu of token %zu", k, t);
        }
    }
    free(results);
}

/* Two tokens, more than 2^31 elements apart (4 GiB and more), in memory that exists where it is
 * touched. */
START_TEST(rows_may_be_gigabytes_apart)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    const size_t stride = ((size_t)1 << 31) + 77;
    const size_t bytes = (stride + FAR_SETS * WIDTH) * attnres_dtype_size(dtype);
    const problem_size size = {dtype, 2, WIDTH, 3, INPUTS_ORDINARY};
    problem it;
    if (sizeof(size_t) < 8 || inputs_quick()) {
        printf("SKIPPED: rows gigabytes apart, in 32 bits or with ATTNRES_TEST_QUICK\n");
        return;
    }
    void *memory = reserve(bytes);
    if (!memory) {
        printf("SKIPPED: rows gigabytes apart, for this system gives no %zu bytes\n", bytes);
        return;
    }
    levels_use(_i / ELEMENTS_DTYPES);
    problem_open(&it, size, inputs_stream(46, (uint64_t)_i, 0));
    compare_far(&it, memory, stride);
    problem_close(&it);
    munmap(memory, bytes);
}
END_TEST

/* Weights and logits of the second token, and of the second source, behind as large a gap. */
START_TEST(entries_may_be_gigabytes_apart)
{
    const attnres_dtype dtype = elements_dtype(_i);
    const size_t gap = ((size_t)1 << 31) + 5, bytes = (gap + 16) * sizeof(double);
    const problem_size size = {dtype, 2, WIDTH, 2, INPUTS_ORDINARY};
    problem it;
    if (sizeof(size_t) < 8 || inputs_quick()) {
        printf("SKIPPED: entries gigabytes apart, in 32 bits or with ATTNRES_TEST_QUICK\n");
        return;
    }
    void *weights = reserve(bytes);
    double *logits = reserve(bytes);
    if (!weights || !logits) {
        printf("SKIPPED: entries gigabytes apart, for this system gives no %zu bytes\n", bytes);
        return;
    }
    problem_open(&it, size, inputs_stream(47, (uint64_t)_i, 0));
    problem_run(&it);
    attnres_read_args args = problem_args(&it);
    args.weights = (attnres_per_source){weights, 1, (ptrdiff_t)gap};
    args.logits = (attnres_per_source){logits, (ptrdiff_t)gap, 1};
    ck_assert_int_eq(attnres_read(&it.shape, &args), ATTNRES_OK);
    for (size_t s = 0; s < 2; s++) {
        for (size_t t = 0; t < 2; t++) {
            ck_assert(elements_get(dtype, weights, s + t * gap) ==
                      elements_get(dtype, it.weights, s * 2 + t));
            ck_assert(logits[s * gap + t] == it.logits[s * 2 + t]);
        }
    }
    problem_close(&it);
    munmap(weights, bytes);
    munmap(logits, bytes);
}
END_TEST

/* One row may stand for several sources, and for other inputs. */
START_TEST(inputs_may_be_the_same_rows)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    const problem_size size = {dtype, 2, WIDTH, 3, INPUTS_ORDINARY};
    problem it, copies;
    const uint64_t stream = inputs_stream(48, (uint64_t)_i, 0);
    levels_use(_i / ELEMENTS_DTYPES);
    problem_open(&it, size, stream);
    problem_open(&copies, size, stream);
    for (size_t t = 0; t < 2; t++) {
        memcpy(problem_row(&copies, 2, t), problem_row(&copies, 0, t),
               WIDTH * attnres_dtype_size(dtype));
    }
    it.sources[2] = it.sources[0];
    problem_run(&it);
    problem_run(&copies);
    problem_check(&it, &copies, "a source twice");
    problem_close(&it);
    problem_close(&copies);
}
END_TEST

Suite *layout_suite(void)
{
    Suite *suite = suite_create("layout");
    const int all = ELEMENTS_DTYPES * levels_count();
    TCase *memory = tcase_create("memory");
    tcase_add_checked_fixture(memory, levels_save, levels_restore);
    tcase_set_timeout(memory, 60);
    tcase_add_loop_test(memory, bank_layouts_give_the_same_bits, 0, all);
    tcase_add_loop_test(memory, entries_lie_where_they_are_wanted, 0, all);
    tcase_add_loop_test(memory, rows_may_be_gigabytes_apart, 0, all);
    tcase_add_loop_test(memory, entries_may_be_gigabytes_apart, 0, ELEMENTS_DTYPES);
    tcase_add_loop_test(memory, inputs_may_be_the_same_rows, 0, all);
    suite_add_tcase(suite, memory);
    return suite;
}
