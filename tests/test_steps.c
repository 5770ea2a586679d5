/* What surrounds the mix: deltas, prefix, push, norm, and folds that are gone on with. One call
 * gives the bits of the steps done one by one. */
#include "allocate.h"
#include "elements.h"
#include "levels.h"
#include "oracle.h"
#include "plain.h"
#include "problem.h"
#include "suites.h"

#include <math.h>
#include <string.h>

enum { WIDTHS = 70, DELTAS = 3 };

/* ---- Deltas, prefix, push ------------------------------------------------------------------ */

/* The last sources of a problem serve as prefix and deltas. */
typedef struct live {
    problem it;
    size_t banked;       /* sources that stay sources */
    attnres_rows prefix; /* maybe absent */
    size_t delta_count;
    void *sum, *pushed, *expected; /* of the prefix, [tokens][width] */
} live;

static void open_live(live *all, attnres_dtype dtype, size_t n, uint64_t seed)
{
    const problem_size size = {dtype, 1 + n % 2, 1 + n * 3 % 140, 3 + 1 + DELTAS,
                               (inputs_kind)(n % INPUTS_HUGE)};
    const attnres_rows none = {NULL, 0};
    problem_open(&all->it, size, inputs_stream(35, n, seed));
    const size_t elements = size.tokens * size.width;
    all->banked = n % 4;
    all->delta_count = n / 4 % (DELTAS + 1);
    all->prefix = all->delta_count > 0 && n % 3 == 0 ? none : all->it.sources[3];
    all->sum = allocate(elements, attnres_dtype_size(dtype));
    all->pushed = allocate(elements, attnres_dtype_size(dtype));
    all->expected = allocate(elements, attnres_dtype_size(dtype));
    for (size_t t = 0; t < size.tokens; t++) {
        const void *rows[1 + DELTAS];
        size_t count = 0;
        if (all->prefix.data) {
            rows[count++] = problem_row(&all->it, 3, t);
        }
        for (size_t i = 0; i < all->delta_count; i++) {
            rows[count++] = problem_row(&all->it, 4 + i, t);
        }
        plain_sum(dtype, rows, count, size.width,
                  elements_at(dtype, all->expected, t * size.width));
    }
}

static void close_live(live *all)
{
    free(all->sum);
    free(all->pushed);
    free(all->expected);
    problem_close(&all->it);
}

static attnres_read_args live_args(const live *all)
{
    attnres_read_args args = problem_args(&all->it);
    args.source_count = all->banked;
    args.prefix = all->prefix;
    args.deltas = all->it.sources + 4;
    args.delta_count = all->delta_count;
    return args;
}

/* The read of bank and finished prefix, as an ordinary read of as many sources. */
static void expect_read(const live *all, problem *expected)
{
    attnres_rows sources[4];
    attnres_read_args args = problem_args(expected);
    memcpy(sources, all->it.sources, all->banked * sizeof *sources);
    sources[all->banked] = (attnres_rows){all->expected, 0};
    args.sources = sources;
    args.source_count = all->banked + 1;
    ck_assert_int_eq(attnres_read(&all->it.shape, &args), ATTNRES_OK);
}

/* _i is level and dtype. */
START_TEST(deltas_make_the_prefix)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t n = 0; n < 96; n++) {
        live all, other;
        open_live(&all, dtype, n, (uint64_t)_i);
        open_live(&other, dtype, n, (uint64_t)_i);
        attnres_read_args args = live_args(&all);
        const size_t elements = all.it.shape.tokens * all.it.shape.width;
        const unsigned stored = all.delta_count ? 1 + (unsigned)(n / 16 % 3) : (unsigned)(n % 4);
        args.prefix_out.data = stored & 1 ? all.sum : NULL;
        args.push.data = stored & 2 ? all.pushed : NULL;
        ck_assert_int_eq(attnres_read(&all.it.shape, &args), ATTNRES_OK);
        expect_read(&all, &other.it);
        if (stored & 1) {
            elements_check(dtype, all.sum, all.expected, elements, "prefix_out, case %zu", n);
        }
        if (stored & 2) {
            elements_check(dtype, all.pushed, all.expected, elements, "push, case %zu", n);
        }
        all.it.count = other.it.count = all.banked + 1;
        problem_check(&all.it, &other.it, "prefix");
        close_live(&all);
        close_live(&other);
    }
}
END_TEST

/* The sum written over the prefix, or over a delta: the same bits, and the other inputs stay. */
START_TEST(prefix_is_updated_in_place)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t n = 1; n < 96; n++) {
        live all, other;
        open_live(&all, dtype, n, (uint64_t)_i);
        open_live(&other, dtype, n, (uint64_t)_i);
        attnres_read_args args = live_args(&all);
        const size_t onto = n % 2 && all.prefix.data ? 3 : 4 + n / 2 % DELTAS;
        if ((onto == 3 && !all.prefix.data) || (onto > 3 && onto - 4 >= all.delta_count)) {
            close_live(&all);
            close_live(&other);
            continue;
        }
        args.prefix_out =
            (attnres_rows_out){problem_row(&all.it, onto, 0), (ptrdiff_t)all.it.stride};
        args.push.data = all.pushed;
        ck_assert_int_eq(attnres_read(&all.it.shape, &args), ATTNRES_OK);
        expect_read(&all, &other.it);
        for (size_t s = 0; s < 4 + DELTAS; s++) {
            for (size_t t = 0; t < all.it.shape.tokens; t++) {
                const void *expected =
                    s == onto ? elements_at(dtype, all.expected, t * all.it.shape.width)
                              : problem_row(&other.it, s, t);
                elements_check(dtype, problem_row(&all.it, s, t), expected, all.it.shape.width,
                               "row set %zu, sum onto %zu", s, onto);
            }
        }
        all.it.count = other.it.count = all.banked + 1;
        problem_check(&all.it, &other.it, "prefix in place");
        close_live(&all);
        close_live(&other);
    }
}
END_TEST

/* ---- Norm ---------------------------------------------------------------------------------- */

/* Each result may be asked for alone, and gives the same bits then. Gain of ones is no gain. */
START_TEST(results_do_not_depend_on_each_other)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t n = 0; n < 40; n++) {
        problem it;
        const problem_size size = {dtype, 2, 1 + n * 7 % 140, n == 39 ? 200 : 1 + n % 6,
                                   INPUTS_ORDINARY};
        problem_open(&it, size, inputs_stream(36, n, (uint64_t)_i));
        const size_t elements = size.tokens * size.width;
        void *alone = allocate(elements, attnres_dtype_size(dtype));
        for (size_t i = 0; n % 3 == 0 && i < size.width; i++) {
            elements_set(attnres_dtype_accumulator(dtype), it.gain, i, 1);
        }
        it.args.norm_policy = n % 2 ? ATTNRES_NORM_FUSED : ATTNRES_NORM_REFERENCE;
        problem_run(&it);
        attnres_read_args args = problem_args(&it);
        args.weights.data = args.logits.data = args.normed.data = NULL;
        args.retrieved.data = alone;
        ck_assert_int_eq(attnres_read(&it.shape, &args), ATTNRES_OK);
        elements_check(dtype, alone, it.retrieved, elements, "result alone");
        args.retrieved.data = NULL;
        args.normed.data = alone;
        args.norm_gain = n % 3 == 0 ? NULL : it.gain;
        ck_assert_int_eq(attnres_read(&it.shape, &args), ATTNRES_OK);
        elements_check(dtype, alone, it.normed, elements, "norm alone");
        free(alone);
        problem_close(&it);
    }
}
END_TEST

/* Reference policy: the norm of the stored result, as a read of one source would see it. */
static void check_norm_of_result(const problem *it)
{
    const attnres_dtype dtype = it->shape.dtype;
    const size_t width = it->shape.width;
    void *expected = allocate(width, attnres_dtype_size(dtype));
    for (size_t t = 0; t < it->shape.tokens; t++) {
        const void *row = elements_at(dtype, it->retrieved, t * width);
        const reading in = {.dtype = dtype,
                            .width = width,
                            .count = 1,
                            .rows = &row,
                            .query = it->query,
                            .norm_gain = it->gain,
                            .norm_eps = it->args.norm_eps};
        const plain_results out = {.normed = expected};
        plain_read(&in, NULL, &out);
        elements_check(dtype, elements_at(dtype, it->normed, t * width), expected, width,
                       "norm of the stored result, width %zu", width);
    }
    free(expected);
}

START_TEST(policies_of_the_norm)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    levels_use(_i / ELEMENTS_DTYPES);
    int differences = 0;
    for (size_t n = 0; n < 40; n++) {
        problem it, fused;
        const problem_size size = {dtype, 2, 1 + n * 7 % 140, 2 + n % 5, INPUTS_ORDINARY};
        const uint64_t stream = inputs_stream(37, n, (uint64_t)_i);
        problem_open(&it, size, stream);
        problem_open(&fused, size, stream);
        problem_run(&it);
        check_norm_of_result(&it);
        fused.args.norm_policy = ATTNRES_NORM_FUSED;
        problem_run(&fused);
        const size_t elements = size.tokens * size.width;
        elements_check(dtype, fused.retrieved, it.retrieved, elements, "result");
        differences += elements_compare(dtype, fused.normed, it.normed, elements) != elements;
        problem_close(&it);
        problem_close(&fused);
    }
    /* Unrounded values show in 16-bit dtypes, and nowhere else. */
    ck_assert_int_eq(differences > 0, attnres_dtype_size(dtype) == 2);
}
END_TEST

/* ---- Resume -------------------------------------------------------------------------------- */

/* The state of token t after the first `taken` sources, by the literal contract. */
static void state_after(const problem *it, size_t taken, size_t t, attnres_state *state)
{
    const attnres_dtype accumulator = attnres_dtype_accumulator(it->shape.dtype);
    const reading in = problem_reading(it, &it->args, t);
    double *logits = allocate(it->count, sizeof *logits);
    plain_state plain = {.mix = allocate(it->shape.width, sizeof(double))};
    plain_logits(&in, logits);
    plain_clear(&plain);
    for (size_t s = 0; s < taken; s++) {
        plain_take(&in, &plain, in.rows[s], logits[s]);
    }
    state->max[t] = plain.max;
    state->sum[t] = plain.sum;
    for (size_t i = 0; i < it->shape.width; i++) { /* an empty fold's mix is not looked at */
        elements_set(accumulator, state->mix, t * (size_t)state->mix_stride + i,
                     plain.sum == 0 ? (double)NAN : plain.mix[i]);
    }
    free(plain.mix);
    free(logits);
}

static attnres_state open_state(const problem *it)
{
    const size_t stride = it->shape.width + 3;
    const attnres_state state = {
        allocate(it->shape.tokens, sizeof(double)), allocate(it->shape.tokens, sizeof(double)),
        allocate(it->shape.tokens * stride, sizeof(double)), (ptrdiff_t)stride};
    return state;
}

static void close_state(attnres_state *state)
{
    free(state->max);
    free(state->sum);
    free(state->mix);
}

/* Goes on with sources taken .. count - 1; the last `prefixed` (0 or 1) as the prefix. */
static void resume(const problem *it, problem *out, size_t taken, size_t prefixed)
{
    attnres_state state = open_state(it);
    for (size_t t = 0; t < it->shape.tokens; t++) {
        state_after(it, taken, t, &state);
    }
    attnres_state kept = open_state(it);
    const size_t mix_bytes = it->shape.tokens * (size_t)state.mix_stride * sizeof(double);
    memcpy(kept.mix, state.mix, mix_bytes);
    attnres_read_args args = problem_args(it);
    args.sources = it->sources + taken;
    args.source_count = it->count - taken - prefixed;
    if (prefixed) {
        args.prefix = it->sources[it->count - 1];
    }
    args.bias = args.bias ? args.bias + taken : NULL;
    args.resume = &state;
    args.retrieved.data = out->retrieved;
    args.normed.data = out->normed;
    args.weights.data = NULL;
    args.logits.data = taken < it->count ? out->logits + taken * it->shape.tokens : NULL;
    ck_assert_int_eq(attnres_read(&it->shape, &args), ATTNRES_OK);
    ck_assert_mem_eq(kept.mix, state.mix, mix_bytes);
    close_state(&kept);
    close_state(&state);
}

/* Stopped after any source and gone on with: the bits of one read. */
START_TEST(fold_goes_on_from_a_state)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t n = 0; n < 24; n++) {
        problem it, out;
        const problem_size size = {dtype, 2, 1 + n * 11 % 150, n % 8 == 7 ? 197 : 1 + n % 5,
                                   n % 6 == 5 ? INPUTS_TINY : INPUTS_ORDINARY};
        const uint64_t stream = inputs_stream(38, n, (uint64_t)_i);
        problem_open(&it, size, stream);
        problem_open(&out, size, stream);
        it.args.bias = n % 2 ? it.bias : NULL;
        it.bias[0] = n % 4 == 1 ? -(double)INFINITY : it.bias[0];
        it.args.norm_policy = n % 3 ? ATTNRES_NORM_FUSED : ATTNRES_NORM_REFERENCE;
        problem_run(&it);
        for (size_t taken = 0; taken <= size.count; taken += size.count > 20 ? 49 : 1) {
            resume(&it, &out, taken, taken < size.count && n % 2);
            const size_t elements = size.tokens * size.width;
            elements_check(dtype, out.retrieved, it.retrieved, elements, "resumed after %zu",
                           taken);
            elements_check(dtype, out.normed, it.normed, elements, "resumed after %zu", taken);
            elements_check(ATTNRES_F64, out.logits + taken * size.tokens,
                           it.logits + taken * size.tokens, (size.count - taken) * size.tokens,
                           "resumed after %zu", taken);
        }
        problem_close(&it);
        problem_close(&out);
    }
}
END_TEST

Suite *steps_suite(void)
{
    Suite *suite = suite_create("steps");
    const int all = ELEMENTS_DTYPES * levels_count();
    TCase *steps = tcase_create("steps");
    tcase_add_checked_fixture(steps, levels_save, levels_restore);
    tcase_set_timeout(steps, 60);
    tcase_add_loop_test(steps, deltas_make_the_prefix, 0, all);
    tcase_add_loop_test(steps, prefix_is_updated_in_place, 0, all);
    tcase_add_loop_test(steps, results_do_not_depend_on_each_other, 0, all);
    tcase_add_loop_test(steps, policies_of_the_norm, 0, all);
    tcase_add_loop_test(steps, fold_goes_on_from_a_state, 0, all);
    suite_add_tcase(suite, steps);
    return suite;
}
