/* attnres_read with every combination of its options: one call gives what the same steps give one
 * by one, and writes nothing else; combinations that make no sense are refused. */
#include "allocate.h"
#include "elements.h"
#include "levels.h"
#include "plain.h"
#include "scene.h"
#include "suites.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BANK_MAX = 8, DELTAS_MAX = 2, SOURCES_MAX = BANK_MAX + 1, TOKENS_MAX = 2, WIDTH_MAX = 130 };
enum { NOWHERE, IN_PLACE, ELSEWHERE };
enum { NO_NORM, NORM_OF_ONES, NORM_WITH_GAIN };

typedef struct combination {
    size_t number, banked, deltas, prefix_out, norm;
    int has_prefix, push, retrieved, tables, fused, biased, scaled;
} combination;

enum { BANKS = 4, COMBINATIONS = 2 * 3 * 3 * 2 * 3 * 2 * 2 * 2 * 2 * 2 }; /* for each bank */

static size_t digit(size_t *number, size_t base)
{
    const size_t value = *number % base;
    *number /= base;
    return value;
}

static combination combination_of(int bank, size_t number)
{
    static const size_t banks[BANKS] = {0, 1, 3, BANK_MAX};
    combination it = {.number = number, .banked = banks[bank]};
    it.has_prefix = (int)digit(&number, 2);
    it.deltas = digit(&number, 3);
    it.prefix_out = digit(&number, 3);
    it.push = (int)digit(&number, 2);
    it.norm = digit(&number, 3);
    it.retrieved = (int)digit(&number, 2);
    it.tables = (int)digit(&number, 2);
    it.fused = (int)digit(&number, 2);
    it.biased = (int)digit(&number, 2);
    it.scaled = (int)digit(&number, 2);
    return it;
}

static int has_sum(const combination *c)
{
    return c->has_prefix || c->deltas > 0;
}

static int stores_sum(const combination *c)
{
    return c->prefix_out != NOWHERE || c->push;
}

static size_t sources_of(const combination *c)
{
    return c->banked + (size_t)has_sum(c);
}

static attnres_status status_of(const combination *c)
{
    const int nothing_to_read = sources_of(c) == 0;
    const int sum_is_lost = c->deltas > 0 && !stores_sum(c);
    const int nothing_to_store = stores_sum(c) && !has_sum(c);
    const int nothing_wanted = !c->retrieved && c->norm == NO_NORM && !c->tables;
    return nothing_to_read || sum_is_lost || nothing_to_store || nothing_wanted
               ? ATTNRES_ERROR_ARGUMENT
               : ATTNRES_OK;
}

/* ---- One call with its memory ------------------------------------------------------------ */

typedef struct stage {
    combination options;
    scene rows, logits; /* rows holds the weights, too */
    attnres_rows_out bank_out[BANK_MAX + 1], deltas_out[DELTAS_MAX], prefix;
    attnres_rows bank[BANK_MAX], deltas[DELTAS_MAX];
    double query[WIDTH_MAX], gain[WIDTH_MAX]; /* of the accumulator type */
    double bias[SOURCES_MAX];
    attnres_read_args args;
} stage;

static attnres_rows as_input(attnres_rows_out rows)
{
    const attnres_rows same = {rows.data, rows.stride};
    return same;
}

/* Entries in one of three orders, some with room between them. */
static attnres_per_source take_entries(scene *it, size_t sources, size_t order)
{
    const size_t tokens = it->shape.tokens;
    attnres_per_source entries = {0};
    if (order == 1) { /* token by token */
        entries.source_stride = 1;
        entries.token_stride = (ptrdiff_t)sources + 1;
    } else if (order == 2) {
        entries.source_stride = 2 * (ptrdiff_t)tokens + 1;
        entries.token_stride = 2;
    }
    entries.data = scene_take(it, (sources + 1) * (2 * tokens + 1));
    return entries;
}

static size_t entry(const stage *it, const attnres_per_source *entries, size_t s, size_t t)
{
    const size_t token_stride = entries->token_stride ? (size_t)entries->token_stride : 1;
    const size_t source_stride = entries->source_stride ? (size_t)entries->source_stride
                                                        : it->rows.shape.tokens * token_stride;
    return s * source_stride + t * token_stride;
}

/* Bank (with a row for the push behind it), prefix and deltas, in strides that differ. */
static void take_inputs(stage *it, inputs_kind kind, uint64_t *stream)
{
    const combination *c = &it->options;
    scene *rows = &it->rows;
    const int interleaved = inputs_pick(stream, 2) == 0;
    scene_list(rows, c->banked + 1, inputs_pick(stream, 4), interleaved, it->bank_out);
    for (size_t s = 0; s < c->banked; s++) {
        it->bank[s] = as_input(it->bank_out[s]);
        if (!interleaved) {
            scene_fill_gaps(rows, it->bank_out[s]);
        }
        scene_fill(rows, it->bank_out[s], kind, stream);
    }
    it->prefix = scene_rows(rows, inputs_pick(stream, 4));
    scene_fill_gaps(rows, it->prefix);
    scene_fill(rows, it->prefix, kind, stream);
    for (size_t i = 0; i < c->deltas; i++) {
        it->deltas_out[i] = scene_rows(rows, inputs_pick(stream, 4));
        it->deltas[i] = as_input(it->deltas_out[i]);
        scene_fill_gaps(rows, it->deltas_out[i]);
        scene_fill(rows, it->deltas_out[i], kind, stream);
    }
}

/* Without a prefix the sum takes the place of a delta. */
static attnres_rows_out place_of_sum(stage *it, uint64_t *stream)
{
    const combination *c = &it->options;
    const attnres_rows_out nowhere = {NULL, 0};
    if (c->prefix_out == NOWHERE) {
        return nowhere;
    }
    if (c->prefix_out == IN_PLACE && has_sum(c)) {
        return c->has_prefix ? it->prefix : it->deltas_out[inputs_pick(stream, c->deltas)];
    }
    return scene_rows(&it->rows, inputs_pick(stream, 4));
}

static void take_outputs(stage *it, uint64_t *stream)
{
    const combination *c = &it->options;
    attnres_read_args *args = &it->args;
    args->prefix_out = place_of_sum(it, stream);
    if (c->push) {
        args->push = it->bank_out[c->banked];
    }
    if (c->retrieved) {
        args->retrieved = scene_rows(&it->rows, inputs_pick(stream, 4));
    }
    if (c->norm != NO_NORM) {
        args->normed = scene_rows(&it->rows, inputs_pick(stream, 4));
    }
    if (c->tables) {
        args->weights = take_entries(&it->rows, sources_of(c), inputs_pick(stream, 3));
        args->logits = take_entries(&it->logits, sources_of(c), inputs_pick(stream, 3));
    }
}

static void fill_vectors(stage *it, uint64_t *stream)
{
    const attnres_shape *shape = &it->rows.shape;
    const attnres_dtype accumulator = attnres_dtype_accumulator(shape->dtype);
    const double deviation = 1.5 / sqrt((double)shape->width);
    inputs_fill_scaled(accumulator, deviation, stream, it->query, shape->width);
    inputs_fill_scaled(accumulator, 1, stream, it->gain, shape->width);
    for (size_t s = 0; s < SOURCES_MAX; s++) {
        it->bias[s] = inputs_bell(stream);
    }
    if (it->options.biased && inputs_pick(stream, 3) == 0) {
        it->bias[inputs_pick(stream, SOURCES_MAX)] = -(double)INFINITY;
    }
}

static stage *open_stage(combination options, attnres_dtype dtype, uint64_t *stream)
{
    static const size_t widths[] = {1, 2, 15, 16, 17, 31, 32, 33, 48, 64, 65, 97, WIDTH_MAX};
    stage *it = allocate(1, sizeof *it);
    const attnres_shape shape = {dtype, 1 + inputs_pick(stream, TOKENS_MAX),
                                 widths[inputs_pick(stream, sizeof widths / sizeof *widths)]};
    const inputs_kind kind =
        inputs_pick(stream, 4) ? INPUTS_ORDINARY : (inputs_kind)inputs_pick(stream, INPUTS_KINDS);
    it->options = options;
    scene_open(&it->rows, shape, (SOURCES_MAX + 7) * TOKENS_MAX * (shape.width + 4) + 64);
    scene_open(&it->logits, (attnres_shape){ATTNRES_F64, shape.tokens, 1}, 64);
    it->args = (attnres_read_args){
        .sources = it->bank,
        .source_count = options.banked,
        .deltas = it->deltas,
        .delta_count = options.deltas,
        .query = it->query,
        .eps = 1e-6,
        .scale = options.scaled ? inputs_uniform(stream, -2, 2) : 0,
        .bias = options.biased ? it->bias : NULL,
        .norm_gain = options.norm == NORM_WITH_GAIN ? it->gain : NULL,
        .norm_eps = 1e-5,
        .norm_policy = options.fused ? ATTNRES_NORM_FUSED : ATTNRES_NORM_REFERENCE,
    };
    take_inputs(it, kind, stream);
    if (options.has_prefix) {
        it->args.prefix = as_input(it->prefix);
    }
    take_outputs(it, stream);
    fill_vectors(it, stream);
    scene_seal(&it->rows);
    scene_seal(&it->logits);
    return it;
}

static void close_stage(stage *it)
{
    scene_close(&it->rows);
    scene_close(&it->logits);
    free(it);
}

/* ---- The steps --------------------------------------------------------------------------- */

/* Rows of prefix and deltas of token t, oldest first. */
static size_t summands(const stage *it, size_t t, const void **rows)
{
    size_t n = 0;
    if (it->options.has_prefix) {
        rows[n++] = scene_row(&it->rows, it->prefix, t);
    }
    for (size_t i = 0; i < it->options.deltas; i++) {
        rows[n++] = scene_row(&it->rows, it->deltas_out[i], t);
    }
    return n;
}

/* Where the results belong that a row of values is given for. */
static void expect_rows(stage *it, size_t t, const void *sum, const void *retrieved,
                        const void *normed)
{
    const attnres_rows_out places[] = {it->args.prefix_out, it->args.push, it->args.retrieved,
                                       it->args.normed};
    const void *const values[] = {sum, sum, retrieved, normed};
    for (size_t i = 0; i < 4; i++) {
        if (places[i].data) {
            scene_expect(&it->rows, scene_row(&it->rows, places[i], t), values[i],
                         it->rows.shape.width);
        }
    }
}

/* Token t by the literal contract: the sum, then the read and its norm. */
static void expect_token(stage *it, size_t t)
{
    const combination *c = &it->options;
    const attnres_read_args *args = &it->args;
    const attnres_dtype dtype = it->rows.shape.dtype;
    const size_t width = it->rows.shape.width, count = sources_of(c);
    const void *parts[1 + DELTAS_MAX], *sources[SOURCES_MAX];
    double sum[WIDTH_MAX], retrieved[WIDTH_MAX], normed[WIDTH_MAX]; /* of the dtype */
    double weights[SOURCES_MAX], logits[SOURCES_MAX];

    for (size_t s = 0; s < c->banked; s++) {
        sources[s] = scene_row(&it->rows, it->bank_out[s], t);
    }
    if (has_sum(c)) {
        plain_sum(dtype, parts, summands(it, t, parts), width, sum);
        sources[c->banked] = sum;
    }
    const reading in = {
        dtype,       width,      count,           sources,        it->query,        args->eps,
        args->scale, args->bias, args->norm_gain, args->norm_eps, args->norm_policy};
    const plain_results out = {retrieved, normed, weights, logits};
    plain_read(&in, NULL, &out);
    expect_rows(it, t, sum, retrieved, normed);
    for (size_t s = 0; c->tables && s < count; s++) {
        const size_t at = entry(it, &args->weights, s, t);
        scene_expect(&it->rows, elements_at(dtype, args->weights.data, at),
                     elements_at(dtype, weights, s), 1);
        scene_expect(&it->logits, (double *)args->logits.data + entry(it, &args->logits, s, t),
                     &logits[s], 1);
    }
}

/* The same from calls that do one thing each: a block sum, a bare read. Compares with what is
 * expected of the one call. */
static void check_steps_apart(stage *it, const char *what)
{
    const combination *c = &it->options;
    const attnres_shape *shape = &it->rows.shape;
    double sum[TOKENS_MAX * WIDTH_MAX], retrieved[TOKENS_MAX * WIDTH_MAX];
    attnres_rows sources[SOURCES_MAX], parts[1 + DELTAS_MAX];
    const attnres_rows_out sums = {sum, 0};
    size_t n = 0;

    memcpy(sources, it->bank, sizeof it->bank);
    if (c->has_prefix) {
        parts[n++] = as_input(it->prefix);
    }
    for (size_t i = 0; i < c->deltas; i++) {
        parts[n++] = it->deltas[i];
    }
    if (n > 0) {
        const attnres_block_sum_args add = {parts, n, n, &sums, 1};
        ck_assert_int_eq(attnres_block_sum(shape, &add), ATTNRES_OK);
        sources[c->banked] = (attnres_rows){sum, 0};
    }
    const attnres_read_args read = {.sources = sources,
                                    .source_count = sources_of(c),
                                    .query = it->query,
                                    .eps = it->args.eps,
                                    .scale = it->args.scale,
                                    .bias = it->args.bias,
                                    .retrieved = {retrieved, 0}};
    ck_assert_int_eq(attnres_read(shape, &read), ATTNRES_OK);
    const attnres_rows_out places[] = {it->args.prefix_out, it->args.push, it->args.retrieved};
    void *const values[] = {sum, sum, retrieved};
    for (size_t t = 0; t < shape->tokens; t++) {
        for (size_t k = 0; k < 3; k++) {
            if (places[k].data) {
                const unsigned char *row = scene_row(&it->rows, places[k], t);
                elements_check(shape->dtype, elements_at(shape->dtype, values[k], t * shape->width),
                               it->rows.expected + (row - it->rows.memory), shape->width,
                               "%s, steps apart, result %zu", what, k);
            }
        }
    }
}

/* ---- All combinations ---------------------------------------------------------------------- */

static void check_combination(const combination *c, attnres_dtype dtype)
{
    uint64_t stream = inputs_stream(60, c->number, c->banked * 8 + (size_t)dtype);
    stage *it = open_stage(*c, dtype, &stream);
    const attnres_status expected = status_of(c);
    char what[96];
    for (size_t t = 0; expected == ATTNRES_OK && t < it->rows.shape.tokens; t++) {
        expect_token(it, t);
    }
    for (int level = 0; level < levels_count(); level++) {
        levels_use(level);
        scene_restore(&it->rows);
        scene_restore(&it->logits);
        snprintf(what, sizeof what, "level %s, %zu banked, combination %zu, width %zu",
                 levels_name(level), c->banked, c->number, it->rows.shape.width);
        if (expected == ATTNRES_OK) {
            check_steps_apart(it, what);
        }
        const attnres_status status = attnres_read(&it->rows.shape, &it->args);
        ck_assert_msg(status == expected, "%s: %s", what, attnres_status_string(status));
        scene_check(&it->rows, what);
        scene_check(&it->logits, what);
    }
    close_stage(it);
}

/* _i is dtype and bank. */
START_TEST(one_call_is_its_steps)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    size_t legal = 0;
    for (size_t n = 0; n < COMBINATIONS; n += inputs_quick() ? 7 : 1) {
        const combination c = combination_of(_i / ELEMENTS_DTYPES, n);
        check_combination(&c, dtype);
        legal += status_of(&c) == ATTNRES_OK;
    }
    ck_assert_uint_gt(legal, 0);
}
END_TEST

Suite *combinations_suite(void)
{
    Suite *suite = suite_create("combinations");
    TCase *combinations = tcase_create("combinations");
    tcase_add_checked_fixture(combinations, levels_save, levels_restore);
    tcase_set_timeout(combinations, 120);
    tcase_add_loop_test(combinations, one_call_is_its_steps, 0, ELEMENTS_DTYPES * BANKS);
    suite_add_tcase(suite, combinations);
    return suite;
}
