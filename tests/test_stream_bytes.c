/* Streams as bytes: what is imported goes on like what was exported, and bytes that are not a whole
 * export, or that do not fit, are refused and change nothing. */
#include "allocate.h"
#include "elements.h"
#include "feed.h"
#include "inputs.h"
#include "levels.h"
#include "stream_parts.h"

#include <string.h>

enum { SETS = 12, CAPACITY = 5 };

static attnres_stream_config config_of(int i, size_t number)
{
    const attnres_stream_config config = {
        {elements_dtype(i / 2 % ELEMENTS_DTYPES), 1 + number % 3, 1 + number * 5 % 40},
        CAPACITY,
        i % 2 ? ATTNRES_ROUND_ONCE : ATTNRES_ROUND_EACH};
    return config;
}

/* Step number `step` of a sequence that adds, and pushes after steps 0, 3 and 4. */
static void advance(attnres_stream *stream, const feed_rows *rows, size_t step)
{
    FEED_TRY(step == 0 ? attnres_stream_begin(stream, rows->sets[0])
                       : attnres_stream_add(stream, rows->sets[step]));
    if (step == 0 || step == 3 || step == 4) {
        FEED_TRY(attnres_stream_push(stream));
    }
}

static void run(attnres_stream *stream, const feed_rows *rows, size_t from, size_t to)
{
    for (size_t step = from; step < to; step++) {
        advance(stream, rows, step);
    }
}

/* The export in memory that ends at a page's edge and starts at an odd address. */
static void import(feed *to, const unsigned char *bytes, size_t size, attnres_status expected)
{
    buffer copy;
    buffer_open(&copy, size + 8);
    void *place = buffer_array(&copy, BUFFER_AT_END, 0, size);
    memcpy(place, bytes, size);
    const attnres_status status = attnres_stream_import(to->stream, place, size);
    ck_assert_msg(status == expected, "import of %zu bytes: %s", size,
                  attnres_status_string(status));
    ck_assert_mem_eq(place, bytes, size);
    buffer_close(&copy);
}

/* At every step into a fresh stream, or one that was elsewhere; then both go on. _i is dtype and
 * rounding. */
START_TEST(imports_go_on)
{
    for (size_t step = 1; step <= 9; step++) {
        attnres_stream_config config = config_of(_i, step);
        feed one, other;
        feed_rows rows;
        size_t size, other_size;
        feed_rows_open(&rows, config.shape, SETS, step % 3, inputs_stream(70, step, (uint64_t)_i));
        feed_open(&one, config, step);
        config.capacity += step % 3; /* at least as large */
        feed_open(&other, config, 7 * step);
        run(one.stream, &rows, 0, step);
        if (step % 2) {
            run(other.stream, &rows, 0, 6);
        }
        unsigned char *bytes = feed_bytes(&one, &size);
        import(&other, bytes, size, ATTNRES_OK);
        feed_check_same(&one, &other, "imported");
        unsigned char *again = feed_bytes(&other, &other_size);
        ck_assert_uint_eq(size, other_size);
        ck_assert_mem_eq(bytes, again, size);
        free(again);
        for (size_t next = step; next < SETS; next++) {
            advance(one.stream, &rows, next);
            advance(other.stream, &rows, next);
            feed_check_same(&one, &other, "gone on");
        }
        free(bytes);
        feed_close(&one);
        feed_close(&other);
        feed_rows_close(&rows);
    }
}
END_TEST

/* A stream in some state, and its export before something is refused. */
typedef struct target {
    feed stream;
    unsigned char *before;
    size_t size;
} target;

static void open_target(target *it, attnres_stream_config config, const feed_rows *rows,
                        size_t steps)
{
    feed_open(&it->stream, config, 5);
    run(it->stream.stream, rows, 0, steps);
    it->before = feed_bytes(&it->stream, &it->size);
}

static void check_unchanged(const target *it)
{
    size_t size;
    unsigned char *now = feed_bytes(&it->stream, &size);
    ck_assert_uint_eq(size, it->size);
    ck_assert_mem_eq(now, it->before, size);
    free(now);
}

static void close_target(target *it)
{
    free(it->before);
    feed_close(&it->stream);
}

/* An export of `steps` steps of one configuration, into another one. */
static void check_misfit(attnres_stream_config config, attnres_stream_config other, size_t steps)
{
    feed_rows rows, other_rows;
    feed one;
    size_t size;
    feed_rows_open(&rows, config.shape, SETS, 0, 1);
    feed_rows_open(&other_rows, other.shape, SETS, 0, 2);
    feed_open(&one, config, 0);
    run(one.stream, &rows, 0, steps);
    unsigned char *bytes = feed_bytes(&one, &size);
    for (size_t begun = 0; begun <= 2; begun += 2) { /* also before begin */
        target it;
        open_target(&it, other, &other_rows, begun);
        import(&it.stream, bytes, size, ATTNRES_ERROR_SIZE);
        check_unchanged(&it);
        close_target(&it);
    }
    free(bytes);
    feed_close(&one);
    feed_rows_close(&rows);
    feed_rows_close(&other_rows);
}

START_TEST(other_streams_are_refused)
{
    const attnres_stream_config config = config_of(_i, 7);
    attnres_stream_config other = config;
    other.shape.tokens++;
    check_misfit(config, other, 5);
    other = config;
    other.shape.width--;
    check_misfit(config, other, 5);
    other = config;
    other.rounding =
        config.rounding == ATTNRES_ROUND_ONCE ? ATTNRES_ROUND_EACH : ATTNRES_ROUND_ONCE;
    check_misfit(config, other, 5);
    for (int i = 0; i < ELEMENTS_DTYPES; i++) {
        other = config;
        other.shape.dtype = elements_dtype(i);
        if (other.shape.dtype != config.shape.dtype) {
            check_misfit(config, other, 5);
        }
    }
    other = config;
    other.capacity = 2; /* step 5 leaves three in the bank */
    check_misfit(config, other, 5);
}
END_TEST

/* As many bank rows as there is room for, with a prefix and without. */
START_TEST(a_full_bank_fits)
{
    for (size_t steps = 5; steps <= 6; steps++) {
        attnres_stream_config config = config_of(_i, 8);
        feed_rows rows;
        feed one, other;
        size_t size;
        feed_rows_open(&rows, config.shape, SETS, 1, 3);
        feed_open(&one, config, 0);
        run(one.stream, &rows, 0, steps);
        unsigned char *bytes = feed_bytes(&one, &size);
        config.capacity = 3;
        feed_open(&other, config, 1);
        import(&other, bytes, size, ATTNRES_OK);
        feed_check_same(&one, &other, "full bank");
        if (steps == 6) {
            ck_assert_int_eq(attnres_stream_push(other.stream), ATTNRES_ERROR_STATE);
        }
        free(bytes);
        feed_close(&one);
        feed_close(&other);
        feed_rows_close(&rows);
    }
}
END_TEST

/* ---- Damaged bytes ------------------------------------------------------------------------- */

/* What is refused, whatever the reason. */
static void check_refused(target *it, const unsigned char *bytes, size_t size, const char *what,
                          size_t number)
{
    const attnres_status status = attnres_stream_import(it->stream.stream, bytes, size);
    ck_assert_msg(status == ATTNRES_ERROR_ARGUMENT || status == ATTNRES_ERROR_SIZE,
                  "%s %zu of %zu bytes: %s", what, number, size, attnres_status_string(status));
    check_unchanged(it);
}

/* Bytes in front of the rows. */
static size_t header_size(const feed *it, size_t size)
{
    const attnres_shape *shape = &it->config.shape;
    const size_t elements = shape->tokens * shape->width;
    const size_t rows = attnres_stream_sources(it->stream, NULL, 0) * elements;
    size_t total = 0;
    if (it->config.rounding == ATTNRES_ROUND_ONCE) {
        total = elements * attnres_dtype_size(attnres_dtype_accumulator(shape->dtype));
    }
    return size - rows * attnres_dtype_size(shape->dtype) - total;
}

START_TEST(damaged_bytes_are_refused)
{
    const attnres_stream_config config = config_of(_i, 4);
    feed_rows rows;
    feed one;
    target it;
    size_t size;
    feed_rows_open(&rows, config.shape, SETS, 0, 4);
    feed_open(&one, config, 0);
    run(one.stream, &rows, 0, 7); /* bank and prefix */
    unsigned char *bytes = feed_bytes(&one, &size);
    unsigned char *damaged = allocate(size + 1, 1);
    open_target(&it, config, &rows, 3);
    for (size_t n = 0; n < size; n++) {
        unsigned char *cut = allocate(n, 1); /* sanitizers see reads beyond it */
        memcpy(cut, bytes, n);
        check_refused(&it, cut, n, "cut to", n);
        free(cut);
    }
    memcpy(damaged, bytes, size);
    check_refused(&it, damaged, size + 1, "one more than", size);
    const size_t header = header_size(&one, size);
    ck_assert(header > 0 && header < size);
    for (size_t n = 0; n < header; n++) {
        for (int bit = 0; bit < 8; bit++) {
            damaged[n] ^= (unsigned char)(1 << bit);
            check_refused(&it, damaged, size, "header byte", n);
            damaged[n] ^= (unsigned char)(1 << bit);
        }
    }
    uint64_t stream = inputs_stream(71, (uint64_t)_i, 0);
    for (size_t n = 0; n < 2000; n++) {
        for (size_t i = 0; i < size; i++) {
            damaged[i] = (unsigned char)inputs_next(&stream);
        }
        memcpy(damaged, bytes, n % 8 * 8 % header); /* part of the header is right */
        check_refused(&it, damaged, size, "garbage", n);
    }
    memset(damaged, 0, size);
    check_refused(&it, damaged, size, "zeros", 0);
    memset(damaged, 0xff, size);
    check_refused(&it, damaged, size, "ones", 0);
    import(&it.stream, bytes, size, ATTNRES_OK); /* undamaged */
    feed_check_same(&it.stream, &one, "in the end");
    free(bytes);
    free(damaged);
    close_target(&it);
    feed_close(&one);
    feed_rows_close(&rows);
}
END_TEST

/* An export with neither bank nor prefix does not exist. */
START_TEST(bytes_of_nothing_are_refused)
{
    const attnres_stream_config config = {{ATTNRES_F32, 0, 3}, 2, ATTNRES_ROUND_EACH};
    const attnres_rows nowhere = {NULL, 0};
    feed one;
    size_t size;
    feed_open(&one, config, 0);
    FEED_TRY(attnres_stream_begin(one.stream, nowhere)); /* no tokens: no row is looked at */
    unsigned char *bytes = feed_bytes(&one, &size);
    import(&one, bytes, size, ATTNRES_OK);
    unsigned cleared = 0; /* of its fields one says that there is a prefix */
    for (size_t at = 0; at < size; at += 8) {
        uint64_t field;
        memcpy(&field, bytes + at, sizeof field);
        if (field == 1) {
            memset(bytes + at, 0, sizeof field);
            cleared++;
        }
    }
    ck_assert_uint_ge(cleared, 1);
    ck_assert_int_ne(attnres_stream_import(one.stream, bytes, size), ATTNRES_OK);
    free(bytes);
    feed_close(&one);
}
END_TEST

TCase *stream_bytes_case(void)
{
    TCase *bytes = tcase_create("bytes");
    tcase_add_checked_fixture(bytes, levels_save, levels_restore);
    tcase_set_timeout(bytes, 60);
    tcase_add_loop_test(bytes, imports_go_on, 0, 2 * ELEMENTS_DTYPES);
    tcase_add_loop_test(bytes, other_streams_are_refused, 0, 2 * ELEMENTS_DTYPES);
    tcase_add_loop_test(bytes, a_full_bank_fits, 0, 2 * ELEMENTS_DTYPES);
    tcase_add_loop_test(bytes, damaged_bytes_are_refused, 0, 2 * ELEMENTS_DTYPES);
    tcase_add_test(bytes, bytes_of_nothing_are_refused);
    return bytes;
}
