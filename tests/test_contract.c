/* Every level against the contract taken literally, bit for bit, through attnres_read. */
#include "elements.h"
#include "levels.h"
#include "problem.h"
#include "suites.h"

#include <math.h>
#include <stdio.h>

enum { WIDTHS = 130, COUNTS = 12 };

/* Every option of the read has its turn. */
static void vary_options(problem *it, uint64_t *stream)
{
    static const double eps[] = {1e-6, 0, 1e-5, 1};
    it->args.eps = eps[inputs_pick(stream, 4)];
    it->args.norm_eps = eps[inputs_pick(stream, 4)];
    it->args.scale = inputs_pick(stream, 3) ? 0 : inputs_uniform(stream, -2, 2);
    it->args.bias = inputs_pick(stream, 2) ? it->bias : NULL;
    if (inputs_pick(stream, 4) == 0) {
        it->bias[inputs_pick(stream, it->count)] = -(double)INFINITY;
    }
    it->args.norm_gain = inputs_pick(stream, 4) ? it->gain : NULL;
    it->args.norm_policy = inputs_pick(stream, 2) ? ATTNRES_NORM_FUSED : ATTNRES_NORM_REFERENCE;
}

/* One problem at every level. */
static void check_levels(problem_size size, uint64_t number)
{
    uint64_t stream = inputs_stream(1, number, (uint64_t)size.dtype * 16 + (uint64_t)size.kind);
    problem it, expected;
    char what[64];
    problem_open(&it, size, inputs_next(&stream));
    vary_options(&it, &stream);
    problem_expect(&it, &expected);
    for (int level = 0; level < levels_count(); level++) {
        levels_use(level);
        problem_run(&it);
        snprintf(what, sizeof what, "level %s, %s input %llu", levels_name(level),
                 inputs_name(size.kind), (unsigned long long)number);
        problem_check(&it, &expected, what);
    }
    problem_forget(&expected);
    problem_close(&it);
}

/* _i is dtype and kind. */
static problem_size size_of(int i)
{
    const problem_size size = {.dtype = elements_dtype(i % ELEMENTS_DTYPES),
                               .tokens = 1,
                               .kind = (inputs_kind)(i / ELEMENTS_DTYPES)};
    return size;
}

START_TEST(every_small_width_and_count)
{
    problem_size size = size_of(_i);
    const size_t step = inputs_quick() ? 7 : 1; /* has no factor in common with COUNTS */
    for (size_t n = 0; n < WIDTHS * COUNTS; n += step) {
        size.width = 1 + n / COUNTS;
        size.count = 1 + n % COUNTS;
        size.tokens = 1 + n % 7 / 5;
        check_levels(size, n);
    }
}
END_TEST

START_TEST(large_widths)
{
    static const size_t widths[] = {511, 512, 513, 1000, 2304, 4099, 7168, 7186};
    problem_size size = size_of(_i);
    for (size_t n = 0; n < sizeof widths / sizeof *widths; n += inputs_quick() ? 5 : 1) {
        size.width = widths[n];
        size.count = 2 + n;
        check_levels(size, n);
    }
}
END_TEST

/* Groups of ATTNRES_SOURCES_FAST sources, tiles of columns, and their edges. */
START_TEST(many_sources)
{
    static const size_t counts[] = {33, 191, 192, 193, 384, 385, 400};
    static const size_t widths[] = {1, 37, 130, 515, 3, 64, 1030};
    problem_size size = size_of(_i);
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n += inputs_quick() ? 3 : 1) {
        size.count = counts[n];
        size.width = widths[(n + (size_t)_i) % (sizeof widths / sizeof *widths)];
        check_levels(size, n);
    }
}
END_TEST

Suite *contract_suite(void)
{
    Suite *suite = suite_create("contract");
    TCase *read = tcase_create("read");
    tcase_add_checked_fixture(read, levels_save, levels_restore);
    tcase_set_timeout(read, 120);
    tcase_add_loop_test(read, every_small_width_and_count, 0, ELEMENTS_DTYPES * INPUTS_KINDS);
    tcase_add_loop_test(read, large_widths, 0, ELEMENTS_DTYPES * INPUTS_KINDS);
    tcase_add_loop_test(read, many_sources, 0, ELEMENTS_DTYPES * INPUTS_KINDS);
    suite_add_tcase(suite, read);
    return suite;
}
