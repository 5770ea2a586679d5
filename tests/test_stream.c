/* The stream object: fed one output at a time it holds and reads what the batch calls give, for
 * both roundings; one call gives what its steps give. */
#include "allocate.h"
#include "elements.h"
#include "feed.h"
#include "inputs.h"
#include "levels.h"
#include "plain.h"
#include "stream_parts.h"
#include "suites.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OUTPUTS = 13, CAPACITY = OUTPUTS + 1 };

/* A stream with outputs for it, and room for the results of two reads. */
typedef struct loop {
    attnres_shape shape;
    feed one;
    feed_rows rows; /* embedding, outputs */
    void *query, *gain;
    double bias[CAPACITY + 1];
    void *retrieved[2], *normed[2], *weights[2];
    double *logits[2];
} loop;

static void open_loop(loop *it, attnres_shape shape, attnres_rounding rounding, uint64_t number)
{
    const attnres_dtype accumulator = attnres_dtype_accumulator(shape.dtype);
    const attnres_stream_config config = {shape, CAPACITY, rounding};
    const size_t elements = shape.tokens * shape.width, entries = (CAPACITY + 1) * shape.tokens;
    uint64_t stream = inputs_stream(68, number, (uint64_t)shape.dtype);
    *it = (loop){.shape = shape};
    feed_open(&it->one, config, (size_t)number);
    feed_rows_open(&it->rows, shape, 1 + OUTPUTS, (size_t)number % 3, inputs_next(&stream));
    it->query = allocate(shape.width, sizeof(double));
    it->gain = allocate(shape.width, sizeof(double));
    inputs_fill_scaled(accumulator, 1.5 / sqrt((double)shape.width), &stream, it->query,
                       shape.width);
    inputs_fill_scaled(accumulator, 1, &stream, it->gain, shape.width);
    for (size_t s = 0; s <= CAPACITY; s++) {
        it->bias[s] = inputs_pick(&stream, 6) ? inputs_bell(&stream) : -(double)INFINITY;
    }
    for (int i = 0; i < 2; i++) {
        it->retrieved[i] = allocate(elements, sizeof(double));
        it->normed[i] = allocate(elements, sizeof(double));
        it->weights[i] = allocate(entries, sizeof(double));
        it->logits[i] = allocate(entries, sizeof(double));
    }
}

static void close_loop(loop *it)
{
    feed_close(&it->one);
    feed_rows_close(&it->rows);
    free(it->query);
    free(it->gain);
    for (int i = 0; i < 2; i++) {
        free(it->retrieved[i]);
        free(it->normed[i]);
        free(it->weights[i]);
        free(it->logits[i]);
    }
}

/* A read of everything, results number i. */
static attnres_stream_read_args site_args(const loop *it, int i)
{
    const attnres_stream_read_args args = {
        .query = it->query,
        .eps = 1e-6,
        .retrieved = {it->retrieved[i], 0},
        .normed = {it->normed[i], 0},
        .norm_gain = it->gain,
        .norm_eps = 1e-5,
        .weights = {.data = it->weights[i]},
        .logits = {.data = it->logits[i]},
    };
    return args;
}

/* Results 0 and 1 of a read of `count` sources. */
static void check_results(const loop *it, size_t count, const char *what)
{
    const attnres_dtype dtype = it->shape.dtype;
    const size_t elements = it->shape.tokens * it->shape.width, entries = count * it->shape.tokens;
    elements_check(dtype, it->retrieved[0], it->retrieved[1], elements, "%s: result", what);
    elements_check(dtype, it->normed[0], it->normed[1], elements, "%s: normed", what);
    elements_check(dtype, it->weights[0], it->weights[1], entries, "%s: weights", what);
    elements_check(ATTNRES_F64, it->logits[0], it->logits[1], entries, "%s: logits", what);
}

static attnres_shape shape_of(int i, size_t number)
{
    const attnres_shape shape = {elements_dtype(i % ELEMENTS_DTYPES), 1 + number % 3,
                                 1 + number * 7 % 131};
    return shape;
}

/* ---- ROUND_ONCE: the batch calls ----------------------------------------------------------- */

/* Sources and results against attnres_block_read of the first `layers` outputs. */
static void check_batch(const loop *it, size_t layers, size_t block_size)
{
    const size_t count = attnres_source_count(layers, block_size);
    const size_t elements = it->shape.tokens * it->shape.width;
    void *memory = allocate(count * elements, sizeof(double));
    attnres_rows_out sums[CAPACITY + 1];
    attnres_rows found[CAPACITY + 1];
    for (size_t s = 0; s < count; s++) {
        sums[s] = (attnres_rows_out){elements_at(it->shape.dtype, memory, s * elements), 0};
    }
    const attnres_block_read_args args = {.embedding = it->rows.sets[0],
                                          .outputs = it->rows.sets + 1,
                                          .layers = layers,
                                          .block_size = block_size,
                                          .query = it->query,
                                          .eps = 1e-6,
                                          .retrieved = {it->retrieved[1], 0},
                                          .weights = {.data = it->weights[1]},
                                          .sources = sums,
                                          .source_count = count};
    FEED_TRY(attnres_block_read(&it->shape, &args));
    ck_assert_uint_eq(attnres_stream_sources(it->one.stream, found, CAPACITY + 1), count);
    for (size_t s = 0; s < count; s++) {
        elements_check(it->shape.dtype, found[s].data, sums[s].data, elements,
                       "source %zu after %zu outputs, blocks of %zu", s, layers, block_size);
    }
    elements_check(it->shape.dtype, it->retrieved[0], it->retrieved[1], elements,
                   "result after %zu outputs, blocks of %zu", layers, block_size);
    elements_check(it->shape.dtype, it->weights[0], it->weights[1], count * it->shape.tokens,
                   "weights after %zu outputs, blocks of %zu", layers, block_size);
    free(memory);
}

/* Feeds outputs `next`, next + 1, ...: by add and a read, or by one read. */
static size_t feed_some(loop *it, size_t next, size_t block_size, int together)
{
    attnres_stream_read_args args = site_args(it, 0);
    const size_t in_block = block_size - (next - 1) % block_size; /* until it is full */
    size_t n = together ? 1 + next % 3 : 1;
    n = n < in_block ? n : in_block;
    n = n < OUTPUTS + 1 - next ? n : OUTPUTS + 1 - next;
    if (together) {
        args.outputs = it->rows.sets + next;
        args.output_count = n;
    } else {
        FEED_TRY(attnres_stream_add(it->one.stream, it->rows.sets[next]));
    }
    FEED_TRY(attnres_stream_read(it->one.stream, &args));
    return n;
}

/* After every output, for every block size. _i is level and dtype. */
START_TEST(once_is_the_batch)
{
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t n = 0; n < 2 * 14; n++) {
        const size_t block_size = 1 + n % 14;
        const int together = n >= 14;
        loop it;
        open_loop(&it, shape_of(_i, n), ATTNRES_ROUND_ONCE, n);
        FEED_TRY(attnres_stream_begin(it.one.stream, it.rows.sets[0]));
        FEED_TRY(attnres_stream_push(it.one.stream));
        const attnres_stream_read_args args = site_args(&it, 0);
        FEED_TRY(attnres_stream_read(it.one.stream, &args));
        check_batch(&it, 0, block_size);
        for (size_t next = 1; next <= OUTPUTS;) {
            next += feed_some(&it, next, block_size, together);
            check_batch(&it, next - 1, block_size);
            if ((next - 1) % block_size == 0) {
                FEED_TRY(attnres_stream_push(it.one.stream));
            }
        }
        close_loop(&it);
    }
}
END_TEST

/* ---- ROUND_EACH: one rounding per addition --------------------------------------------------- */

static void check_prefix(const loop *it, const unsigned char *expected, const char *what)
{
    attnres_rows found[CAPACITY + 1];
    const size_t count = attnres_stream_sources(it->one.stream, found, CAPACITY + 1);
    elements_check(it->shape.dtype, found[count - 1].data, expected,
                   it->shape.tokens * it->shape.width, "%s", what);
}

/* expected = expected + outputs first .. first + n - 1, one rounding. */
static void add_literally(const loop *it, unsigned char *expected, size_t first, size_t n)
{
    const attnres_dtype dtype = it->shape.dtype;
    double sum[256];
    const void *rows[1 + OUTPUTS];
    for (size_t t = 0; t < it->shape.tokens; t++) {
        unsigned char *row = elements_at(dtype, expected, t * it->shape.width);
        rows[0] = row;
        for (size_t i = 0; i < n; i++) {
            rows[1 + i] = feed_row(&it->rows, first + i, t);
        }
        plain_sum(dtype, rows, 1 + n, it->shape.width, sum);
        memcpy(row, sum, it->shape.width * attnres_dtype_size(dtype));
    }
}

/* By add, by a read with one output, and by a read with two, which rounds once. */
START_TEST(each_is_rounded)
{
    levels_use(_i / ELEMENTS_DTYPES);
    for (size_t n = 0; n < 30; n++) {
        loop it;
        open_loop(&it, shape_of(_i, n), ATTNRES_ROUND_EACH, 100 + n);
        attnres_stream_read_args args = site_args(&it, 0);
        const size_t row = it.shape.width * attnres_dtype_size(it.shape.dtype);
        unsigned char *expected = allocate(it.shape.tokens, row);
        for (size_t t = 0; t < it.shape.tokens; t++) {
            memcpy(expected + t * row, feed_row(&it.rows, 0, t), row);
        }
        FEED_TRY(attnres_stream_begin(it.one.stream, it.rows.sets[0]));
        check_prefix(&it, expected, "embedding");
        for (size_t next = 1; next < OUTPUTS;) {
            const size_t count = (n + next) % 3;
            if (count == 0) {
                FEED_TRY(attnres_stream_add(it.one.stream, it.rows.sets[next]));
                add_literally(&it, expected, next, 1);
            } else {
                args.outputs = it.rows.sets + next;
                args.output_count = count;
                FEED_TRY(attnres_stream_read(it.one.stream, &args));
                add_literally(&it, expected, next, count);
            }
            check_prefix(&it, expected, "prefix");
            next += count ? count : 1;
        }
        free(expected);
        close_loop(&it);
    }
}
END_TEST

/* ---- One call, and its steps ------------------------------------------------------------- */

/* What the stream's read does, on another stream by other calls: add, attnres_read, push. */
static void read_apart(loop *it, feed *other, const attnres_stream_read_args *site)
{
    attnres_rows sources[CAPACITY + 1];
    for (size_t i = 0; i < site->output_count; i++) {
        FEED_TRY(attnres_stream_add(other->stream, site->outputs[i]));
    }
    const attnres_read_args args = {
        .sources = sources,
        .source_count = attnres_stream_sources(other->stream, sources, CAPACITY + 1),
        .query = site->query,
        .eps = site->eps,
        .scale = site->scale,
        .bias = site->bias,
        .retrieved = {it->retrieved[1], 0},
        .normed = {it->normed[1], 0},
        .norm_gain = site->norm_gain,
        .norm_eps = site->norm_eps,
        .norm_policy = site->norm_policy,
        .weights = {.data = it->weights[1]},
        .logits = {.data = it->logits[1]},
    };
    FEED_TRY(attnres_read(&it->shape, &args));
    if (site->push) {
        FEED_TRY(attnres_stream_push(other->stream));
    }
    char what[96];
    snprintf(what, sizeof what, "%zu outputs, %zu sources, push %d", site->output_count,
             args.source_count, site->push);
    check_results(it, args.source_count, what);
    feed_check_same(&it->one, other, what);
}

/* Any sequence of reads with and without outputs and push. _i is level, dtype and rounding. */
START_TEST(one_call_is_its_steps)
{
    const attnres_rounding rounding = _i % 2 ? ATTNRES_ROUND_ONCE : ATTNRES_ROUND_EACH;
    levels_use(_i / 2 / ELEMENTS_DTYPES);
    for (size_t n = 0; n < 40; n++) {
        uint64_t stream = inputs_stream(69, n, (uint64_t)_i);
        loop it;
        feed other;
        open_loop(&it, shape_of(_i / 2, n), rounding, 200 + n);
        feed_open(&other, it.one.config, n * 5);
        FEED_TRY(attnres_stream_begin(it.one.stream, it.rows.sets[0]));
        FEED_TRY(attnres_stream_begin(other.stream, it.rows.sets[0]));
        int has_prefix = 1;
        for (size_t next = 1; next + 3 <= OUTPUTS + 1;) {
            attnres_stream_read_args args = site_args(&it, 0);
            args.outputs = it.rows.sets + next;
            args.output_count = inputs_pick(&stream, rounding == ATTNRES_ROUND_ONCE ? 4 : 2);
            has_prefix |= args.output_count > 0;
            args.push = has_prefix && inputs_pick(&stream, 3) == 0 ? -1 : 0; /* any but 0 is yes */
            args.scale = inputs_pick(&stream, 3) ? 0 : -0.75;
            args.bias = inputs_pick(&stream, 2) ? it.bias : NULL;
            args.norm_policy = inputs_pick(&stream, 2) ? ATTNRES_NORM_FUSED : 0;
            FEED_TRY(attnres_stream_read(it.one.stream, &args));
            read_apart(&it, &other, &args);
            has_prefix &= !args.push;
            next += args.output_count + (args.output_count == 0 && inputs_pick(&stream, 2));
        }
        feed_close(&other);
        close_loop(&it);
    }
}
END_TEST

/* ---- Small matters --------------------------------------------------------------------------- */

START_TEST(sources_are_listed)
{
    const attnres_shape shape = {ATTNRES_BF16, 2, 5};
    const attnres_rows untouched = {&shape, 77};
    attnres_rows list[3] = {untouched, untouched, untouched};
    loop it;
    open_loop(&it, shape, ATTNRES_ROUND_EACH, 300);
    ck_assert_uint_eq(attnres_stream_sources(NULL, list, 3), 0);
    ck_assert_uint_eq(attnres_stream_sources(it.one.stream, list, 3), 0);
    ck_assert_ptr_eq(list[0].data, &shape);
    FEED_TRY(attnres_stream_begin(it.one.stream, it.rows.sets[0]));
    FEED_TRY(attnres_stream_push(it.one.stream));
    ck_assert_uint_eq(attnres_stream_sources(it.one.stream, NULL, 3), 1);
    FEED_TRY(attnres_stream_add(it.one.stream, it.rows.sets[1]));
    ck_assert_uint_eq(attnres_stream_sources(it.one.stream, list, 1), 2);
    ck_assert_ptr_ne(list[0].data, &shape);
    ck_assert_ptr_eq(list[1].data, &shape);
    ck_assert_uint_eq(attnres_stream_sources(it.one.stream, list, 3), 2);
    ck_assert_ptr_eq(list[2].data, &shape);
    for (size_t s = 0; s < 2; s++) {
        for (size_t t = 0; t < 2; t++) {
            const size_t stride = list[s].stride ? (size_t)list[s].stride : 5;
            ck_assert_mem_eq((const uint16_t *)list[s].data + t * stride, feed_row(&it.rows, s, t),
                             5 * sizeof(uint16_t));
        }
    }
    close_loop(&it);
}
END_TEST

/* begin starts over, in any state. */
START_TEST(a_stream_begins_again)
{
    const attnres_rounding rounding = _i % 2 ? ATTNRES_ROUND_ONCE : ATTNRES_ROUND_EACH;
    loop it;
    feed fresh;
    open_loop(&it, shape_of(_i / 2, 9), rounding, 301);
    feed_open(&fresh, it.one.config, 3);
    FEED_TRY(attnres_stream_begin(fresh.stream, it.rows.sets[2]));
    FEED_TRY(attnres_stream_add(fresh.stream, it.rows.sets[3]));
    for (int state = 0; state < 4; state++) {
        for (int i = 0; i < state; i++) {
            FEED_TRY(i == 1 ? attnres_stream_push(it.one.stream)
                            : attnres_stream_add(it.one.stream, it.rows.sets[i + 1]));
        }
        FEED_TRY(attnres_stream_begin(it.one.stream, it.rows.sets[2]));
        FEED_TRY(attnres_stream_add(it.one.stream, it.rows.sets[3]));
        feed_check_same(&it.one, &fresh, "begun again");
    }
    feed_close(&fresh);
    close_loop(&it);
}
END_TEST

Suite *stream_suite(void)
{
    Suite *suite = suite_create("stream");
    TCase *loops = tcase_create("loops");
    const int all = ELEMENTS_DTYPES * levels_count();
    tcase_add_checked_fixture(loops, levels_save, levels_restore);
    tcase_set_timeout(loops, 60);
    tcase_add_loop_test(loops, once_is_the_batch, 0, all);
    tcase_add_loop_test(loops, each_is_rounded, 0, all);
    tcase_add_loop_test(loops, one_call_is_its_steps, 0, 2 * all);
    tcase_add_test(loops, sources_are_listed);
    tcase_add_loop_test(loops, a_stream_begins_again, 0, 2 * ELEMENTS_DTYPES);
    suite_add_tcase(suite, loops);
    suite_add_tcase(suite, stream_bytes_case());
    suite_add_tcase(suite, stream_misuse_case());
    suite_add_tcase(suite, stream_setup_case());
    return suite;
}
