/* Folds that are kept and gone on with: however a bank is cut into calls, and whatever follows,
 * the bits are those of one read. */
#include "allocate.h"
#include "elements.h"
#include "levels.h"
#include "plain.h"
#include "problem.h"
#include "suites.h"
#include "two_phase_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { QUERIES_MAX = 30 };

/* A problem whose first sources are the bank, folded for many queries, each with its own state. */
typedef struct folding {
    problem all;
    size_t banked, queries;
    const void *query[QUERIES_MAX];
    attnres_state states[QUERIES_MAX];
    attnres_per_source logits[QUERIES_MAX];
    void *retrieved, *normed, *expected, *expected_normed; /* of one query */
    double *logits_after, *logits_expected;
} folding;

static void open_folding(folding *it, problem_size size, size_t banked, size_t queries,
                         uint64_t *stream)
{
    const attnres_dtype accumulator = attnres_dtype_accumulator(size.dtype);
    const size_t elements = size.tokens * size.width;
    *it = (folding){.banked = banked, .queries = queries};
    problem_open(&it->all, size, inputs_next(stream));
    for (size_t i = 0; i < queries; i++) {
        const size_t stride = size.width + i % 3;
        void *query = allocate(size.width, sizeof(double));
        inputs_fill_scaled(accumulator, 1.5 / sqrt((double)size.width), stream, query, size.width);
        it->query[i] = i ? query : memcpy(query, it->all.query, size.width * sizeof(double));
        it->states[i] = (attnres_state){
            allocate(size.tokens, sizeof(double)), allocate(size.tokens, sizeof(double)),
            allocate(size.tokens * stride, sizeof(double)), i % 3 ? (ptrdiff_t)stride : 0};
        memset(it->states[i].mix, 0xff, size.tokens * stride * sizeof(double)); /* NaN */
        if (i % 4 != 3) {
            it->logits[i].data = allocate(banked * size.tokens, sizeof(double));
        }
    }
    it->retrieved = allocate(elements, sizeof(double));
    it->normed = allocate(elements, sizeof(double));
    it->expected = allocate(elements, sizeof(double));
    it->expected_normed = allocate(elements, sizeof(double));
    it->logits_after = allocate((size.count - banked) * size.tokens, sizeof(double));
    it->logits_expected = allocate(size.count * size.tokens, sizeof(double));
}

static void close_folding(folding *it)
{
    for (size_t i = 0; i < it->queries; i++) {
        free((void *)(size_t)it->query[i]);
        free(it->states[i].max);
        free(it->states[i].sum);
        free(it->states[i].mix);
        free(it->logits[i].data);
    }
    free(it->retrieved);
    free(it->normed);
    free(it->expected);
    free(it->expected_normed);
    free(it->logits_after);
    free(it->logits_expected);
    problem_close(&it->all);
}

static void must(attnres_status status, const char *what)
{
    ck_assert_msg(status == ATTNRES_OK, "%s: %s", what, attnres_status_string(status));
}

/* One call for the sources begin .. end - 1 and the queries first .. first + count - 1. */
static void accumulate(const folding *it, size_t begin, size_t end, size_t first, size_t count)
{
    const size_t tokens = it->all.shape.tokens;
    attnres_per_source logits[QUERIES_MAX];
    int wanted = 0;
    for (size_t i = 0; i < count; i++) {
        logits[i] = it->logits[first + i];
        if (logits[i].data) {
            wanted = 1;
            logits[i].data = (double *)logits[i].data + begin * tokens;
        }
    }
    const attnres_accumulate_args args = {
        .sources = it->all.sources + begin,
        .source_count = end - begin,
        .queries = it->query + first,
        .query_count = count,
        .eps = it->all.args.eps,
        .scale = it->all.args.scale,
        .bias = it->all.args.bias ? it->all.args.bias + begin : NULL,
        .states = it->states + first,
        .logits = wanted ? logits : NULL,
    };
    must(attnres_accumulate(&it->all.shape, &args), "accumulate");
}

/* The bank in calls of any size, also none, now and then with the queries in two parts. */
static void fold_bank(const folding *it, uint64_t *stream)
{
    for (size_t i = 0; i < it->queries; i++) {
        must(attnres_state_clear(&it->all.shape, &it->states[i]), "clear");
    }
    size_t begin = 0;
    do {
        const size_t end = begin + inputs_pick(stream, it->banked - begin + 1);
        const size_t cut = inputs_pick(stream, 2) ? 0 : inputs_pick(stream, it->queries + 1);
        accumulate(it, begin, end, 0, cut);
        accumulate(it, begin, end, cut, it->queries - cut);
        begin = end;
    } while (begin < it->banked);
}

/* One read over everything, as what is expected. */
static void read_at_once(const folding *it, size_t i, size_t count, void *retrieved, void *normed)
{
    attnres_read_args args = it->all.args;
    args.query = it->query[i];
    args.sources = it->all.sources;
    args.source_count = count;
    args.retrieved.data = retrieved;
    args.normed.data = normed;
    args.logits.data = it->logits_expected;
    must(attnres_read(&it->all.shape, &args), "read at once");
}

/* Goes on from the state with the rest of the sources, the last as prefix if `as_prefix`. */
static void resume(const folding *it, size_t i, int as_prefix)
{
    const size_t rest = it->all.count - it->banked;
    attnres_read_args args = it->all.args;
    args.query = rest ? it->query[i] : NULL;
    args.sources = it->all.sources + it->banked;
    args.source_count = rest;
    if (as_prefix && rest > 0) {
        args.source_count--;
        args.prefix = it->all.sources[it->all.count - 1];
    }
    args.bias = args.bias ? args.bias + it->banked : NULL;
    args.resume = &it->states[i];
    args.retrieved.data = it->retrieved;
    args.normed.data = it->normed;
    args.logits.data = it->logits_after;
    must(attnres_read(&it->all.shape, &args), "resume");
}

static void check_query(const folding *it, size_t i, const char *what)
{
    const attnres_dtype dtype = it->all.shape.dtype;
    const size_t tokens = it->all.shape.tokens, elements = tokens * it->all.shape.width;
    read_at_once(it, i, it->all.count, it->expected, it->expected_normed);
    resume(it, i, i % 2 == 0);
    elements_check(dtype, it->retrieved, it->expected, elements, "%s, query %zu", what, i);
    elements_check(dtype, it->normed, it->expected_normed, elements, "%s, norm, query %zu", what,
                   i);
    elements_check(ATTNRES_F64, it->logits_after, it->logits_expected + it->banked * tokens,
                   (it->all.count - it->banked) * tokens, "%s, new logits, query %zu", what, i);
    if (it->logits[i].data) {
        elements_check(ATTNRES_F64, it->logits[i].data, it->logits_expected, it->banked * tokens,
                       "%s, logits of the bank, query %zu", what, i);
    }
    const attnres_rows_out finished = {it->retrieved, 0};
    must(attnres_finish(&it->all.shape, &it->states[i], finished), "finish");
    if (it->banked > 0) {
        read_at_once(it, i, it->banked, it->expected, NULL);
    }
    for (size_t k = 0; it->banked == 0 && k < elements; k++) {
        elements_set(dtype, it->expected, k, (double)NAN);
    }
    elements_check(dtype, it->retrieved, it->expected, elements, "%s, finish, query %zu", what, i);
}

static void vary_options(folding *it, uint64_t *stream)
{
    attnres_read_args *args = &it->all.args;
    args->eps = inputs_pick(stream, 4) ? 1e-6 : 0;
    args->scale = inputs_pick(stream, 3) ? 0 : inputs_uniform(stream, -2, 2);
    args->bias = inputs_pick(stream, 3) ? it->all.bias : NULL;
    args->norm_policy = inputs_pick(stream, 2) ? ATTNRES_NORM_FUSED : ATTNRES_NORM_REFERENCE;
    for (size_t s = 0; s < it->all.count; s++) {
        if (inputs_pick(stream, 8) == 0) {
            it->all.bias[s] = -(double)INFINITY;
        }
    }
}

static void check_folding(problem_size size, size_t banked, size_t queries, uint64_t number)
{
    uint64_t stream = inputs_stream(61, number, (uint64_t)size.dtype);
    folding *it = allocate(1, sizeof *it);
    char what[128];
    open_folding(it, size, banked, queries, &stream);
    vary_options(it, &stream);
    for (int level = 0; level < levels_count(); level++) {
        levels_use(level);
        fold_bank(it, &stream);
        snprintf(what, sizeof what, "level %s, case %llu: %zu + %zu sources, %zu tokens, width %zu",
                 levels_name(level), (unsigned long long)number, banked, size.count - banked,
                 size.tokens, size.width);
        for (size_t i = 0; i < queries; i++) {
            check_query(it, i, what);
        }
    }
    close_folding(it);
    free(it);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* _i is the dtype. Tokens are cut down where there is much to do for each. */
START_TEST(any_cut_is_one_read)
{
    static const size_t widths[] = {1,  31,  33, 130, 64, 2,  1000, 17, 127,
                                    37, 128, 65, 515, 16, 96, 7186, 32};
    for (size_t n = 0; n < 90; n += inputs_quick() ? 5 : 1) {
        const size_t width = widths[n % (sizeof widths / sizeof *widths)];
        const size_t banked = n * 7 % 41, queries = 1 + n * 13 % (width > 500 ? 5 : QUERIES_MAX);
        const size_t most = 150000 / (width * (banked + 1) * queries) + 1;
        const problem_size size = {.dtype = elements_dtype(_i),
                                   .tokens = least(1 + n * 11 % 40, most),
                                   .width = width,
                                   .count = banked + (banked == 0) + n % 3,
                                   .kind = n % 3 ? INPUTS_ORDINARY : (inputs_kind)(n / 3 % 6)};
        check_folding(size, banked, queries, n);
    }
}
END_TEST

/* 30 queries on each side of the tiles that rows and queries are taken in. */
START_TEST(edges_of_tiles)
{
    static const size_t counts[] = {1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33};
    static const size_t queries[] = {1, 2, 23, 24, 25, 26, 30};
    const size_t kinds = sizeof queries / sizeof *queries;
    for (size_t n = 0; n < kinds * (sizeof counts / sizeof *counts); n += inputs_quick() ? 5 : 1) {
        const size_t banked = counts[n / kinds];
        const problem_size size = {.dtype = elements_dtype(_i),
                                   .tokens = 1 + 16 / banked + n % 2,
                                   .width = 5 + n % 60,
                                   .count = banked + 1};
        check_folding(size, banked, queries[n % kinds], 1000 + n);
    }
}
END_TEST

/* More sources than one group, before and after. _i is the dtype. */
START_TEST(many_sources_on_both_sides)
{
    static const size_t cases[][3] = {{10, 191, 37},  {10, 192, 1},   {10, 193, 130},
                                      {300, 1, 64},   {193, 193, 33}, {193, 200, 515},
                                      {0, 193, 1030}, {400, 0, 31}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n += inputs_quick() ? 3 : 1) {
        const problem_size size = {.dtype = elements_dtype(_i),
                                   .tokens = 1 + n % 2,
                                   .width = cases[n][2],
                                   .count = cases[n][0] + cases[n][1]};
        check_folding(size, cases[n][0], 2, 2000 + n);
    }
}
END_TEST

/* ---- The state itself ------------------------------------------------------------------- */

static void check_state(const folding *it, size_t t, const plain_state *expected, const char *what)
{
    const attnres_dtype accumulator = attnres_dtype_accumulator(it->all.shape.dtype);
    const size_t width = it->all.shape.width;
    const attnres_state *state = &it->states[0];
    elements_check(ATTNRES_F64, &state->max[t], &expected->max, 1, "%s, maximum", what);
    elements_check(ATTNRES_F64, &state->sum[t], &expected->sum, 1, "%s, sum", what);
    if (expected->sum == 0) {
        return;
    }
    void *mix = allocate(width, sizeof(double));
    for (size_t i = 0; i < width; i++) {
        elements_set(accumulator, mix, i, expected->mix[i]);
    }
    elements_check(accumulator, elements_at(accumulator, state->mix, t * width), mix, width,
                   "%s, mix", what);
    free(mix);
}

/* Source by source, as the contract has it. _i is level and dtype. */
START_TEST(states_are_the_contracts)
{
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t n = 0; n < 40; n++) {
        uint64_t stream = inputs_stream(62, n, (uint64_t)_i);
        const problem_size size = {.dtype = elements_dtype(_i % ELEMENTS_DTYPES),
                                   .tokens = 2,
                                   .width = 1 + n * 7 % 80,
                                   .count = 1 + n % 9,
                                   .kind = n % 2 ? INPUTS_ORDINARY : INPUTS_WIDE};
        folding *it = allocate(1, sizeof *it);
        plain_state states[2];
        int is_nan[2] = {0, 0};
        double *logits = allocate(size.count, sizeof *logits);
        open_folding(it, size, size.count, 1, &stream);
        vary_options(it, &stream);
        must(attnres_state_clear(&it->all.shape, &it->states[0]), "clear");
        for (size_t t = 0; t < 2; t++) {
            states[t].mix = allocate(size.width, sizeof(double));
            plain_clear(&states[t]);
            check_state(it, t, &states[t], "empty");
        }
        for (size_t s = 0; s < size.count; s++) {
            accumulate(it, s, s + 1, 0, 1);
            for (size_t t = 0; t < 2; t++) {
                const reading in = problem_reading(&it->all, &it->all.args, t);
                plain_logits(&in, logits);
                is_nan[t] |= isnan(logits[s]) || logits[s] == (double)INFINITY;
                plain_take(&in, &states[t], in.rows[s], logits[s]);
                if (is_nan[t]) { /* for good, and then nothing else counts */
                    ck_assert(isnan(it->states[0].sum[t]));
                } else {
                    check_state(it, t, &states[t], "one more source");
                }
            }
        }
        free(states[0].mix);
        free(states[1].mix);
        free(logits);
        close_folding(it);
        free(it);
    }
}
END_TEST

Suite *two_phase_suite(void)
{
    Suite *suite = suite_create("two_phase");
    TCase *folds = tcase_create("folds");
    tcase_add_checked_fixture(folds, levels_save, levels_restore);
    tcase_set_timeout(folds, 120);
    tcase_add_loop_test(folds, any_cut_is_one_read, 0, ELEMENTS_DTYPES);
    tcase_add_loop_test(folds, edges_of_tiles, 0, ELEMENTS_DTYPES);
    tcase_add_loop_test(folds, many_sources_on_both_sides, 0, ELEMENTS_DTYPES);
    tcase_add_loop_test(folds, states_are_the_contracts, 0, ELEMENTS_DTYPES * levels_count());
    suite_add_tcase(suite, folds);
    suite_add_tcase(suite, two_phase_refusals_case());
    return suite;
}
