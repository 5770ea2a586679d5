/* Setting streams up: what a configuration and its memory must be, and streams of no tokens. */
#include "allocate.h"
#include "elements.h"
#include "feed.h"
#include "stream_parts.h"

#include <stdint.h>

/* _i of the tests is dtype and rounding. */
static attnres_stream_config config_of(int i)
{
    const attnres_stream_config config = {
        {elements_dtype(i / 2), 2, 9}, 3, i % 2 ? ATTNRES_ROUND_ONCE : ATTNRES_ROUND_EACH};
    return config;
}

static const struct {
    attnres_stream_config config;
    attnres_status status;
} bad_configs[] = {
    {{{(attnres_dtype)0, 1, 8}, 2, ATTNRES_ROUND_EACH}, ATTNRES_ERROR_DTYPE},
    {{{(attnres_dtype)5, 1, 8}, 2, ATTNRES_ROUND_EACH}, ATTNRES_ERROR_DTYPE},
    {{{ATTNRES_BF16, 1, 0}, 2, ATTNRES_ROUND_EACH}, ATTNRES_ERROR_SIZE},
    {{{ATTNRES_BF16, 1, 8}, 0, ATTNRES_ROUND_EACH}, ATTNRES_ERROR_SIZE},
    {{{ATTNRES_BF16, 1, 8}, SIZE_MAX, ATTNRES_ROUND_EACH}, ATTNRES_ERROR_SIZE},
    {{{ATTNRES_BF16, 1, 8}, SIZE_MAX - 1, ATTNRES_ROUND_EACH}, ATTNRES_ERROR_OVERFLOW},
    {{{ATTNRES_BF16, 0, 8}, SIZE_MAX / 16, ATTNRES_ROUND_EACH}, ATTNRES_ERROR_OVERFLOW},
    {{{ATTNRES_BF16, 1, 8}, 2, (attnres_rounding)2}, ATTNRES_ERROR_ARGUMENT},
    {{{ATTNRES_BF16, 1, 8}, 2, (attnres_rounding)-1}, ATTNRES_ERROR_ARGUMENT},
    {{{ATTNRES_BF16, SIZE_MAX, 8}, 2, ATTNRES_ROUND_EACH}, ATTNRES_ERROR_OVERFLOW},
    {{{ATTNRES_BF16, 1, SIZE_MAX / 8}, 2, ATTNRES_ROUND_EACH}, ATTNRES_ERROR_OVERFLOW},
    {{{ATTNRES_BF16, SIZE_MAX / 64, 8}, 2, ATTNRES_ROUND_ONCE}, ATTNRES_ERROR_OVERFLOW},
    {{{ATTNRES_F64, (size_t)1 << 30, (size_t)1 << 30}, 2, ATTNRES_ROUND_ONCE},
     ATTNRES_ERROR_OVERFLOW},
};

START_TEST(bad_configurations_are_refused)
{
    unsigned char memory[4096] = {0};
    attnres_stream *const untouched = (attnres_stream *)(void *)memory, *stream = untouched;
    const attnres_stream_config *config = &bad_configs[_i].config;
    ck_assert_uint_eq(attnres_stream_size(config), 0);
    ck_assert_int_eq(attnres_stream_init(config, memory, sizeof memory, &stream),
                     bad_configs[_i].status);
    ck_assert_ptr_eq(stream, untouched);
    for (size_t i = 0; i < sizeof memory; i++) {
        ck_assert_uint_eq(memory[i], 0);
    }
}
END_TEST

START_TEST(bad_memory_is_refused)
{
    const attnres_stream_config config = config_of(_i);
    const size_t bytes = attnres_stream_size(&config);
    unsigned char *memory = allocate(bytes, 1);
    attnres_stream *const untouched = (attnres_stream *)(void *)memory, *stream = untouched;
    ck_assert_uint_eq(attnres_stream_size(NULL), 0);
    ck_assert_int_eq(attnres_stream_init(NULL, memory, bytes, &stream), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_stream_init(&config, NULL, bytes, &stream), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_stream_init(&config, memory, bytes, NULL), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_stream_init(&config, memory, bytes - 1, &stream), ATTNRES_ERROR_SIZE);
    ck_assert_int_eq(attnres_stream_init(&config, memory, 0, &stream), ATTNRES_ERROR_SIZE);
    ck_assert_ptr_eq(stream, untouched);
    for (size_t i = 0; i < bytes; i++) {
        ck_assert_uint_eq(memory[i], 0);
    }
    free(memory);
}
END_TEST

/* ---- No tokens ----------------------------------------------------------------------------- */

/* Everything works, and no row is looked at; the state still counts. */
START_TEST(no_tokens_are_fine)
{
    attnres_stream_config config = config_of(_i);
    config.shape.tokens = 0;
    const attnres_rows nowhere = {NULL, 0};
    double entries[4] = {1, 2, 3, 4};
    feed one;
    feed_open(&one, config, 3);
    const attnres_stream_read_args args = {.outputs = &nowhere,
                                           .output_count = 1,
                                           .push = 1,
                                           .weights = {entries, 1, 5},
                                           .logits = {entries, 0, 3}};
    FEED_TRY(attnres_stream_begin(one.stream, nowhere));
    FEED_TRY(attnres_stream_add(one.stream, nowhere));
    FEED_TRY(attnres_stream_push(one.stream));
    ck_assert_int_eq(attnres_stream_push(one.stream), ATTNRES_ERROR_STATE);
    FEED_TRY(attnres_stream_read(one.stream, &args));
    ck_assert_uint_eq(attnres_stream_sources(one.stream, NULL, 0), 2);
    FEED_TRY(attnres_stream_read(one.stream, &args));
    ck_assert_int_eq(attnres_stream_read(one.stream, &args), ATTNRES_ERROR_STATE);
    ck_assert(entries[0] == 1 && entries[1] == 2 && entries[2] == 3 && entries[3] == 4);
    feed_close(&one);
}
END_TEST

TCase *stream_setup_case(void)
{
    TCase *setup = tcase_create("setup");
    const int all = 2 * ELEMENTS_DTYPES;
    tcase_add_loop_test(setup, bad_configurations_are_refused, 0,
                        (int)(sizeof bad_configs / sizeof *bad_configs));
    tcase_add_loop_test(setup, bad_memory_is_refused, 0, all);
    tcase_add_loop_test(setup, no_tokens_are_fine, 0, all);
    return setup;
}
