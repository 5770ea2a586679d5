/* Every kernel of every level by itself: the contract's bits, and not one byte touched that is not
 * its own. All arrays lie flush against pages that cannot be touched, at their end or start, or a
 * few elements away from it, which gives every alignment. */
#include "allocate.h"
#include "buffer.h"
#include "elements.h"
#include "inputs.h"
#include "levels.h"
#include "plain.h"
#include "suites.h"

#include "dispatch.h"
#include "kernels.h"

#include <math.h>
#include <string.h>

enum { ROWS = 7, WIDTHS = 130, OUTPUTS = 3, CAPACITY = WIDTHS * 8 + 64, GAPS = 4 };

/* Inputs: rows, then query, start, gain in accumulators. */
enum { QUERY = ROWS, START, GAIN, INPUTS };

typedef struct bed {
    const struct attnres_kernels *kernels;
    attnres_dtype dtype, accumulator;
    size_t width, count; /* of rows in use */
    buffer_place place;
    size_t gap; /* in elements */
    buffer inputs[INPUTS], outputs[OUTPUTS];
    unsigned char copies[INPUTS][CAPACITY]; /* what the inputs hold */
    unsigned char expected[CAPACITY];
    const void *rows[ROWS];
} bed;

static attnres_dtype input_dtype(const bed *it, int i)
{
    return i < ROWS ? it->dtype : it->accumulator;
}

static const void *input(const bed *it, int i)
{
    return it->inputs[i].data;
}

static void *output(bed *it, int i, attnres_dtype dtype, size_t count)
{
    const size_t size = attnres_dtype_size(dtype);
    return buffer_array(&it->outputs[i], it->place, it->gap * size, count * size);
}

/* Ordinary numbers, so that every element counts, and NaN nowhere; every 8th row is special. */
static void lay_out(bed *it, uint64_t *stream)
{
    for (int i = 0; i < INPUTS; i++) {
        const attnres_dtype dtype = input_dtype(it, i);
        const size_t size = attnres_dtype_size(dtype);
        void *data = buffer_array(&it->inputs[i], it->place, it->gap * size, it->width * size);
        inputs_fill(dtype, inputs_pick(stream, 8) ? INPUTS_ORDINARY : INPUTS_SPECIAL, stream, data,
                    it->width);
        memcpy(it->copies[i], data, it->width * size);
        if (i < ROWS) {
            it->rows[i] = data;
        }
    }
}

/* After a call: inputs as they were, nothing written beside any array. */
static void check_memory(const bed *it, const char *kernel)
{
    for (int i = 0; i < INPUTS; i++) {
        const buffer *in = &it->inputs[i];
        if (!buffer_is_untouched(in, 0) || memcmp(in->data, it->copies[i], in->bytes) != 0) {
            ck_abort_msg("%s, %s, width %zu: wrote to input %d", kernel, elements_name(it->dtype),
                         it->width, i);
        }
    }
    for (int i = 0; i < OUTPUTS; i++) {
        if (!buffer_is_untouched(&it->outputs[i], 0)) {
            ck_abort_msg("%s, %s, width %zu: wrote beside output %d", kernel,
                         elements_name(it->dtype), it->width, i);
        }
    }
}

static void check_output(const bed *it, int i, attnres_dtype dtype, const char *kernel)
{
    elements_check(dtype, it->outputs[i].data, it->expected,
                   it->outputs[i].bytes / attnres_dtype_size(dtype),
                   "%s of %s, output %d, width %zu, %zu rows, gap %zu at %s,", kernel,
                   elements_name(it->dtype), i, it->width, it->count, it->gap,
                   it->place == BUFFER_AT_END ? "end" : "start");
}

/* ---- score ------------------------------------------------------------------------------- */

static void check_score(bed *it, int from_memory)
{
    const reading in = {.dtype = it->dtype,
                        .width = it->width,
                        .count = it->count,
                        .rows = it->rows,
                        .query = input(it, QUERY)};
    double *squares = output(it, 0, ATTNRES_F64, it->count);
    double *dots = output(it, 1, ATTNRES_F64, it->count);
    double expected[2][ROWS];
    it->kernels->score(it->rows, it->count, input(it, QUERY), it->width, from_memory, squares,
                       dots);
    check_memory(it, "score");
    for (size_t s = 0; s < it->count; s++) {
        plain_score(&in, s, &expected[0][s], &expected[1][s]);
    }
    for (int i = 0; i < 2; i++) {
        memcpy(it->expected, expected[i], it->count * sizeof(double));
        check_output(it, i, ATTNRES_F64, "score");
    }
}

/* ---- sum --------------------------------------------------------------------------------- */

static double summed(const bed *it, int with_start, size_t i)
{
    double sum = with_start ? elements_get(it->accumulator, input(it, START), i)
                            : elements_get(it->dtype, it->rows[0], i);
    for (size_t r = with_start ? 0 : 1; r < it->count; r++) {
        sum = plain_add(it->dtype, sum, elements_get(it->dtype, it->rows[r], i));
    }
    return sum;
}

/* wanted: bit 0 a start, bit 1 the total, bit 2 out, bit 3 copy. */
static void check_sum(bed *it, unsigned wanted)
{
    const attnres_dtype types[OUTPUTS] = {it->accumulator, it->dtype, it->dtype};
    void *out[OUTPUTS];
    for (int i = 0; i < OUTPUTS; i++) {
        out[i] = output(it, i, types[i], it->width);
    }
    it->kernels->sum(it->rows, it->count, it->width, wanted & 1 ? input(it, START) : NULL,
                     wanted & 2 ? out[0] : NULL, wanted & 4 ? out[1] : NULL,
                     wanted & 8 ? out[2] : NULL);
    check_memory(it, "sum");
    for (int i = 0; i < OUTPUTS; i++) {
        if (!(wanted & 2u << i)) {
            ck_assert_msg(buffer_is_untouched(&it->outputs[i], 1), "sum wrote output %d", i);
            continue;
        }
        for (size_t n = 0; n < it->width; n++) {
            elements_set(types[i], it->expected, n, summed(it, wanted & 1, n));
        }
        check_output(it, i, types[i], "sum");
    }
}

/* ---- fold and mix ------------------------------------------------------------------------ */

/* Steps as they come: alpha 1 or p 1. The first one is not looked at without a start. */
static void make_steps(const bed *it, uint64_t *stream, double steps[2 * ROWS], void *packed)
{
    for (size_t s = 0; s < it->count; s++) {
        const double factor = plain_rounded(it->dtype, inputs_uniform(stream, 0, 1));
        const int grows = inputs_pick(stream, 2) == 0;
        steps[2 * s] = grows ? factor : 1;
        steps[2 * s + 1] = grows ? 1 : factor;
    }
    for (size_t i = 0; i < 2 * it->count; i++) {
        elements_set(it->accumulator, packed, i, steps[i]);
    }
}

static double folded(const bed *it, const double *steps, int with_start, size_t i)
{
    double o = with_start ? elements_get(it->accumulator, input(it, START), i)
                          : elements_get(it->dtype, it->rows[0], i);
    for (size_t s = with_start ? 0 : 1; s < it->count; s++) {
        o = plain_multiply(it->dtype, o, steps[2 * s]);
        o = plain_fma(it->dtype, steps[2 * s + 1], elements_get(it->dtype, it->rows[s], i), o);
    }
    return o;
}

static void check_fold(bed *it, uint64_t *stream, int with_start)
{
    double steps[2 * ROWS], packed[2 * ROWS];
    make_steps(it, stream, steps, packed);
    void *end = output(it, 0, it->accumulator, it->width);
    output(it, 1, it->dtype, 0);
    output(it, 2, it->dtype, 0);
    it->kernels->fold(it->rows, packed, it->count, with_start ? input(it, START) : NULL, end,
                      it->width);
    check_memory(it, "fold");
    for (size_t i = 0; i < it->width; i++) {
        elements_set(it->accumulator, it->expected, i, folded(it, steps, with_start, i));
    }
    check_output(it, 0, it->accumulator, "fold");
}

static void expect_mix(bed *it, const struct attnres_mix *mix, const double *steps, int which)
{
    const size_t lanes = (size_t)plain_lanes(it->dtype);
    double squares[PLAIN_LANES_MAX] = {0};
    for (size_t i = 0; i < it->width; i++) {
        double v = plain_multiply(it->dtype, folded(it, steps, mix->start != NULL, i), mix->factor);
        if (which == 0) {
            elements_set(it->dtype, it->expected, i, v);
        }
        v = mix->round ? elements_round(it->dtype, v) : v;
        squares[i % lanes] = plain_fma(it->dtype, v, v, squares[i % lanes]);
        v = plain_multiply(it->dtype, v, mix->norm_factor);
        if (mix->gain) {
            v = plain_multiply(it->dtype, v, elements_get(it->accumulator, input(it, GAIN), i));
        }
        if (which == 2) {
            elements_set(it->dtype, it->expected, i, v);
        }
    }
    for (size_t j = 0; which == 1 && j < lanes; j++) {
        elements_set(it->accumulator, it->expected, j, squares[j]);
    }
}

/* wanted: bit 0 a start, 1 rounded, 2 out, 3 squares, 4 normed, 5 a gain. */
static void check_mix(bed *it, uint64_t *stream, unsigned wanted)
{
    double steps[2 * ROWS], packed[2 * ROWS];
    const size_t lanes = (size_t)plain_lanes(it->dtype);
    const attnres_dtype types[OUTPUTS] = {it->dtype, it->accumulator, it->dtype};
    make_steps(it, stream, steps, packed);
    void *out = output(it, 0, it->dtype, it->width);
    void *squares = output(it, 1, it->accumulator, lanes);
    void *normed = output(it, 2, it->dtype, it->width);
    const struct attnres_mix mix = {
        .rows = it->rows,
        .steps = packed,
        .count = it->count,
        .start = wanted & 1 ? input(it, START) : NULL,
        .factor = plain_rounded(it->dtype, 0.3),
        .round = (wanted & 2) != 0,
        .out = wanted & 4 ? out : NULL,
        .squares = wanted & 8 ? squares : NULL,
        .normed = wanted & 16 ? normed : NULL,
        .norm_factor = plain_rounded(it->dtype, 1.7),
        .gain = wanted & 32 ? input(it, GAIN) : NULL,
    };
    if (mix.squares) {
        memset(squares, 0, lanes * attnres_dtype_size(it->accumulator));
    }
    it->kernels->mix(&mix, it->width);
    check_memory(it, "mix");
    for (int i = 0; i < OUTPUTS; i++) {
        if (wanted & 4u << i) {
            expect_mix(it, &mix, steps, i);
            check_output(it, i, types[i], "mix");
        } else {
            ck_assert_msg(buffer_is_untouched(&it->outputs[i], 1), "mix wrote output %d", i);
        }
    }
}

/* ---- normalize --------------------------------------------------------------------------- */

static void check_normalize(bed *it, int with_gain)
{
    const double factor = plain_rounded(it->dtype, 0.7);
    void *out = output(it, 0, it->dtype, it->width);
    it->kernels->normalize(it->rows[0], factor, with_gain ? input(it, GAIN) : NULL, it->width, out);
    check_memory(it, "normalize");
    for (size_t i = 0; i < it->width; i++) {
        double v = plain_multiply(it->dtype, elements_get(it->dtype, it->rows[0], i), factor);
        if (with_gain) {
            v = plain_multiply(it->dtype, v, elements_get(it->accumulator, input(it, GAIN), i));
        }
        elements_set(it->dtype, it->expected, i, v);
    }
    check_output(it, 0, it->dtype, "normalize");
}

/* ---- All of them ------------------------------------------------------------------------- */

static bed *open_bed(const struct attnres_table *table, attnres_dtype dtype)
{
    bed *it = allocate(1, sizeof *it);
    it->kernels = &table->of[dtype];
    it->dtype = dtype;
    it->accumulator = attnres_dtype_accumulator(dtype);
    for (int i = 0; i < INPUTS; i++) {
        buffer_open(&it->inputs[i], CAPACITY);
    }
    for (int i = 0; i < OUTPUTS; i++) {
        buffer_open(&it->outputs[i], CAPACITY);
        output(it, i, dtype, 0);
    }
    return it;
}

static void close_bed(bed *it)
{
    for (int i = 0; i < INPUTS; i++) {
        buffer_close(&it->inputs[i]);
    }
    for (int i = 0; i < OUTPUTS; i++) {
        buffer_close(&it->outputs[i]);
    }
    free(it);
}

/* _i is level, place, dtype. */
START_TEST(kernels_keep_to_themselves)
{
    struct attnres_table table;
    memset(&table, 0, sizeof table);
    attnres_table_fill(&table, levels_at(_i / ELEMENTS_DTYPES / 2));
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    uint64_t stream = inputs_stream(15, (uint64_t)_i, 0);
    bed *it = open_bed(&table, dtype);
    it->place = _i / ELEMENTS_DTYPES % 2 ? BUFFER_AT_START : BUFFER_AT_END;
    for (size_t n = 0; n < WIDTHS * GAPS; n += inputs_quick() ? 3 : 1) {
        it->width = 1 + n / GAPS;
        it->gap = n % GAPS;
        it->count = 1 + n % ROWS;
        lay_out(it, &stream);
        check_score(it, 0);
        check_score(it, 1);
        check_sum(it, 2 + (unsigned)n % 7 * 2); /* any outputs but none */
        check_sum(it, 3 + (unsigned)n % 7 * 2);
        check_fold(it, &stream, 0);
        check_fold(it, &stream, 1);
        check_mix(it, &stream, (unsigned)n % 64);
        check_mix(it, &stream, 63 - (unsigned)n % 2);
        check_normalize(it, (int)n % 2);
    }
    close_bed(it);
}
END_TEST

/* A result may be one of the rows, and a fold may end where it started. */
START_TEST(kernels_work_in_place)
{
    struct attnres_table table;
    memset(&table, 0, sizeof table);
    attnres_table_fill(&table, levels_at(_i / ELEMENTS_DTYPES));
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    uint64_t stream = inputs_stream(16, (uint64_t)_i, 0);
    bed *it = open_bed(&table, dtype);
    it->count = 3;
    for (it->width = 1; it->width <= WIDTHS; it->width++) {
        const size_t bytes = it->width * attnres_dtype_size(dtype);
        double steps[2 * ROWS], packed[2 * ROWS];
        for (size_t r = 0; r < it->count; r++) {
            lay_out(it, &stream);
            void *row = it->inputs[r].data;
            it->kernels->sum(it->rows, 3, it->width, NULL, NULL, it->expected, NULL);
            it->kernels->sum(it->rows, 3, it->width, NULL, NULL, row, NULL);
            elements_check(dtype, row, it->expected, it->width, "sum onto row %zu", r);
            memcpy(row, it->copies[r], bytes);
            make_steps(it, &stream, steps, packed);
            struct attnres_mix mix = {
                .rows = it->rows, .steps = packed, .count = 3, .factor = 0.5, .out = it->expected};
            it->kernels->mix(&mix, it->width);
            mix.out = row;
            it->kernels->mix(&mix, it->width);
            elements_check(dtype, row, it->expected, it->width, "mix onto row %zu", r);
            it->kernels->normalize(row, 0.25, NULL, it->width, it->expected);
            it->kernels->normalize(row, 0.25, NULL, it->width, row);
            elements_check(dtype, row, it->expected, it->width, "normalize in place");
        }
        void *start = it->inputs[START].data;
        it->kernels->fold(it->rows, packed, 3, start, it->expected, it->width);
        it->kernels->fold(it->rows, packed, 3, start, start, it->width);
        elements_check(it->accumulator, start, it->expected, it->width, "fold onto its start");
    }
    close_bed(it);
}
END_TEST

Suite *kernels_suite(void)
{
    Suite *suite = suite_create("kernels");
    TCase *alone = tcase_create("alone");
    tcase_set_timeout(alone, 120);
    tcase_add_loop_test(alone, kernels_keep_to_themselves, 0, ELEMENTS_DTYPES * 2 * levels_count());
    tcase_add_loop_test(alone, kernels_work_in_place, 0, ELEMENTS_DTYPES * levels_count());
    suite_add_tcase(suite, alone);
    return suite;
}
