/* Bad calls: each argument wrong in turn, the status it has, and that no output was touched. */
#include "array.h"
#include "bad_calls.h"
#include "elements.h"
#include "inputs.h"
#include "suites.h"

#include <attnres.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A good call of each kind over the same memory, and whatever is wrong with it. */
typedef struct bench {
    array inputs[12], outputs[10];
    int input_count, output_count;
    attnres_shape shape;
    attnres_rows sources[SOURCES], deltas[2], layer_outputs[LAYERS];
    attnres_rows_out sums[1 + SUMS];
    attnres_state state;
    double bias[4];
    attnres_read_args read;
    attnres_block_sum_args sum;
    attnres_block_read_args block;
    attnres_vector projection, gain;
    attnres_dtype query_dtype;
    size_t query_width;
    void *query_out;
    /* What is handed over; NULL here is part of some bad calls. */
    const attnres_shape *shape_given;
    const attnres_vector *projection_given, *gain_given;
} bench;

static array *add(bench *it, array_role role, attnres_dtype dtype, size_t rows)
{
    static const array_layout layout = {BUFFER_AT_END, 1, 2};
    uint64_t stream = inputs_stream(43, (uint64_t)it->input_count, 0);
    array *one =
        role == ARRAY_INPUT ? &it->inputs[it->input_count++] : &it->outputs[it->output_count++];
    array_open(one, dtype, role, rows, 16);
    array_lay(one, layout, WIDTH, INPUTS_ORDINARY, &stream);
    return one;
}

static attnres_rows add_rows(bench *it)
{
    return array_rows(add(it, ARRAY_INPUT, ATTNRES_BF16, TOKENS));
}

static attnres_rows_out add_rows_out(bench *it)
{
    return array_rows_out(add(it, ARRAY_OUTPUT, ATTNRES_BF16, TOKENS));
}

static attnres_per_source add_per_source(bench *it, attnres_dtype dtype)
{
    return (attnres_per_source){.data = array_row(add(it, ARRAY_OUTPUT, dtype, TOKENS), 0)};
}

static void open_read(bench *it)
{
    for (int s = 0; s < SOURCES; s++) {
        it->sources[s] = add_rows(it);
    }
    it->deltas[0] = add_rows(it);
    it->deltas[1] = add_rows(it);
    it->read = (attnres_read_args){
        .sources = it->sources,
        .source_count = SOURCES,
        .prefix = add_rows(it),
        .deltas = it->deltas,
        .delta_count = 2,
        .prefix_out = add_rows_out(it),
        .push = add_rows_out(it),
        .query = array_row(add(it, ARRAY_INPUT, ATTNRES_F32, 1), 0),
        .eps = 1e-6,
        .bias = it->bias,
        .retrieved = add_rows_out(it),
        .normed = add_rows_out(it),
        .weights = add_per_source(it, ATTNRES_BF16),
        .logits = add_per_source(it, ATTNRES_F64),
    };
    /* The state is not part of the good call. */
    const array *mix = add(it, ARRAY_INPUT, ATTNRES_F32, TOKENS);
    it->state = (attnres_state){it->bias, it->bias, array_row(mix, 0), 0};
}

static void open_blocks(bench *it)
{
    for (int i = 0; i < LAYERS; i++) {
        it->layer_outputs[i] = it->sources[i % SOURCES];
    }
    for (int i = 0; i <= SUMS; i++) {
        it->sums[i] = i == 0 ? it->read.push : i == 1 ? it->read.prefix_out : add_rows_out(it);
    }
    it->sum = (attnres_block_sum_args){it->layer_outputs, LAYERS, 2, it->sums + 1, SUMS};
    it->block = (attnres_block_read_args){
        .embedding = it->read.prefix,
        .outputs = it->layer_outputs,
        .layers = LAYERS,
        .block_size = 2,
        .query = it->read.query,
        .eps = 1e-6,
        .bias = it->bias,
        .retrieved = it->read.retrieved,
        .weights = it->read.weights,
        .sources = it->sums,
        .source_count = 1 + SUMS,
    };
}

static void open_bench(bench *it)
{
    memset(it, 0, sizeof *it);
    it->shape = (attnres_shape){ATTNRES_BF16, TOKENS, WIDTH};
    it->shape_given = &it->shape;
    open_read(it);
    open_blocks(it);
    it->query_dtype = ATTNRES_BF16;
    it->query_width = WIDTH;
    it->query_out = array_row(add(it, ARRAY_OUTPUT, ATTNRES_F32, 1), 0);
    it->projection = (attnres_vector){ATTNRES_BF16, it->sources[0].data, WIDTH};
    it->gain = (attnres_vector){ATTNRES_BF16, it->sources[1].data, WIDTH};
    it->projection_given = &it->projection;
    it->gain_given = &it->gain;
}

static void close_bench(bench *it)
{
    for (int i = 0; i < it->input_count; i++) {
        array_close(&it->inputs[i]);
    }
    for (int i = 0; i < it->output_count; i++) {
        array_close(&it->outputs[i]);
    }
}

static void drop_inputs(bench *it)
{
    it->read.source_count = it->read.delta_count = 0;
    it->read.prefix.data = it->read.prefix_out.data = it->read.push.data = NULL;
}

static void drop_results(bench *it)
{
    it->read.retrieved.data = it->read.normed.data = NULL;
    it->read.weights.data = it->read.logits.data = NULL;
}

static void drop_prefix(bench *it)
{
    it->read.prefix.data = NULL;
    it->read.delta_count = 0;
}

static void resume_without(bench *it, double **missing)
{
    it->read.weights.data = NULL;
    it->read.resume = &it->state;
    if (missing) {
        *missing = NULL;
    } else {
        it->state.mix = NULL;
    }
}

static void shift_sum(bench *it)
{
    it->layer_outputs[2].data = (char *)it->sums[2].data + 2;
}

static void retrieve_on(bench *it, const void *data)
{
    it->block.retrieved.data = (void *)(uintptr_t)data;
}

typedef struct bad_call {
    const char *name;
    void (*spoil)(bench *it);
    attnres_status status;
} bad_call;

#define SPOIL(name, statement, status)                                                             \
    static void spoil_##name(bench *it)                                                            \
    {                                                                                              \
        statement;                                                                                 \
    }
#define ENTRY(name, statement, status) {#name, spoil_##name, ATTNRES_ERROR_##status},

BAD_SHAPES(SPOIL)
BAD_READS(SPOIL)
BAD_SUMS(SPOIL)
BAD_BLOCK_READS(SPOIL)
BAD_QUERIES(SPOIL)

static const bad_call bad_reads[] = {BAD_SHAPES(ENTRY) BAD_READS(ENTRY)};
static const bad_call bad_sums[] = {BAD_SHAPES(ENTRY) BAD_SUMS(ENTRY)};
static const bad_call bad_block_reads[] = {BAD_SHAPES(ENTRY) BAD_BLOCK_READS(ENTRY)};
static const bad_call bad_queries[] = {BAD_QUERIES(ENTRY)};

/* ---- Running them -------------------------------------------------------------------------- */

static attnres_status run_read(bench *it)
{
    return attnres_read(it->shape_given, &it->read);
}

static attnres_status run_sum(bench *it)
{
    return attnres_block_sum(it->shape_given, &it->sum);
}

static attnres_status run_block_read(bench *it)
{
    return attnres_block_read(it->shape_given, &it->block);
}

static attnres_status run_query(bench *it)
{
    return attnres_make_query(it->query_dtype, it->query_width, it->projection_given,
                              it->gain_given, it->query_out);
}

static int is_untouched(const bench *it)
{
    int untouched = 1;
    for (int i = 0; i < it->input_count; i++) {
        untouched &= array_is_untouched(&it->inputs[i]);
    }
    for (int i = 0; i < it->output_count; i++) {
        untouched &= array_is_untouched(&it->outputs[i]);
    }
    return untouched;
}

static void check_bad(const bad_call *one, attnres_status (*run)(bench *))
{
    bench it;
    open_bench(&it);
    one->spoil(&it);
    const attnres_status status = run(&it);
    ck_assert_msg(status == one->status, "%s: '%s', expected '%s'", one->name,
                  attnres_status_string(status), attnres_status_string(one->status));
    ck_assert_msg(is_untouched(&it), "%s: something was written", one->name);
    close_bench(&it);
}

START_TEST(bad_read_is_refused)
{
    check_bad(&bad_reads[_i], run_read);
}
END_TEST

START_TEST(bad_sum_is_refused)
{
    check_bad(&bad_sums[_i], run_sum);
}
END_TEST

START_TEST(bad_block_read_is_refused)
{
    check_bad(&bad_block_reads[_i], run_block_read);
}
END_TEST

START_TEST(bad_query_is_refused)
{
    check_bad(&bad_queries[_i], run_query);
}
END_TEST

/* What the bad calls are made from is good. */
START_TEST(good_calls_are_not_refused)
{
    attnres_status (*const runs[])(bench *) = {run_read, run_sum, run_block_read, run_query};
    for (int i = 0; i < 4; i++) {
        bench it;
        open_bench(&it);
        ck_assert_int_eq(runs[i](&it), ATTNRES_OK);
        ck_assert(!is_untouched(&it));
        close_bench(&it);
    }
}
END_TEST

START_TEST(missing_arguments_are_refused)
{
    const attnres_shape shape = {ATTNRES_F32, 1, 1};
    ck_assert_int_eq(attnres_read(&shape, NULL), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_block_sum(&shape, NULL), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_block_read(&shape, NULL), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_read(NULL, NULL), ATTNRES_ERROR_ARGUMENT);
}
END_TEST

/* No tokens: no row is looked at, wherever it points; the other rules stay. */
START_TEST(no_tokens_is_no_work)
{
    const attnres_shape shape = {ATTNRES_F16, 0, 7}, bad = {ATTNRES_F16, 0, 0};
    const attnres_rows rows[4] = {{NULL, 0}, {NULL, 3}, {NULL, -1}, {NULL, 0}};
    const attnres_rows_out sums[4] = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
    attnres_read_args read = {.sources = rows, .source_count = 4};
    attnres_block_sum_args sum = {rows, 4, 2, sums, 2};
    attnres_block_read_args block = {
        .outputs = rows, .layers = 4, .block_size = 2, .sources = sums, .source_count = 3};
    ck_assert_int_eq(attnres_read(&shape, &read), ATTNRES_OK);
    ck_assert_int_eq(attnres_block_sum(&shape, &sum), ATTNRES_OK);
    ck_assert_int_eq(attnres_block_read(&shape, &block), ATTNRES_OK);
    ck_assert_int_eq(attnres_read(&bad, &read), ATTNRES_ERROR_SIZE);
    sum.sum_count = 3;
    block.source_count = 2;
    read.eps = -1;
    ck_assert_int_eq(attnres_read(&shape, &read), ATTNRES_ERROR_VALUE);
    ck_assert_int_eq(attnres_block_sum(&shape, &sum), ATTNRES_ERROR_SIZE);
    ck_assert_int_eq(attnres_block_read(&shape, &block), ATTNRES_ERROR_SIZE);
}
END_TEST

START_TEST(statuses_and_dtypes_have_text_and_size)
{
    for (int status = ATTNRES_OK; status <= ATTNRES_ERROR_LEVEL; status++) {
        const char *text = attnres_status_string((attnres_status)status);
        ck_assert(text && *text && !strchr(text, '\n'));
        ck_assert_str_ne(text, attnres_status_string((attnres_status)1000));
        for (int other = ATTNRES_OK; other < status; other++) {
            ck_assert_str_ne(text, attnres_status_string((attnres_status)other));
        }
    }
    ck_assert_ptr_nonnull(attnres_status_string((attnres_status)-1));
    ck_assert_uint_eq(attnres_dtype_size(ATTNRES_F32), 4);
    ck_assert_uint_eq(attnres_dtype_size(ATTNRES_F64), 8);
    ck_assert_uint_eq(attnres_dtype_size(ATTNRES_F16), 2);
    ck_assert_uint_eq(attnres_dtype_size(ATTNRES_BF16), 2);
    ck_assert_uint_eq(attnres_dtype_size((attnres_dtype)0), 0);
    ck_assert_uint_eq(attnres_dtype_size((attnres_dtype)5), 0);
    for (int i = 0; i < ELEMENTS_DTYPES; i++) {
        const attnres_dtype dtype = elements_dtype(i);
        ck_assert_int_eq(attnres_dtype_accumulator(dtype),
                         dtype == ATTNRES_F64 ? ATTNRES_F64 : ATTNRES_F32);
    }
}
END_TEST

START_TEST(version_is_the_headers)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", ATTNRES_VERSION_MAJOR, ATTNRES_VERSION_MINOR,
             ATTNRES_VERSION_PATCH);
    ck_assert_str_eq(attnres_version(), text);
}
END_TEST

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

Suite *errors_suite(void)
{
    Suite *suite = suite_create("errors");
    TCase *bad = tcase_create("bad calls");
    tcase_add_loop_test(bad, bad_read_is_refused, 0, COUNT(bad_reads));
    tcase_add_loop_test(bad, bad_sum_is_refused, 0, COUNT(bad_sums));
    tcase_add_loop_test(bad, bad_block_read_is_refused, 0, COUNT(bad_block_reads));
    tcase_add_loop_test(bad, bad_query_is_refused, 0, COUNT(bad_queries));
    tcase_add_test(bad, good_calls_are_not_refused);
    tcase_add_test(bad, missing_arguments_are_refused);
    tcase_add_test(bad, no_tokens_is_no_work);
    suite_add_tcase(suite, bad);

    TCase *text = tcase_create("text");
    tcase_add_test(text, statuses_and_dtypes_have_text_and_size);
    tcase_add_test(text, version_is_the_headers);
    suite_add_tcase(suite, text);
    return suite;
}
