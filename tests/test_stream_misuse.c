/* Streams used wrongly: every call says so and changes nothing. */
#include "allocate.h"
#include "elements.h"
#include "feed.h"
#include "inputs.h"
#include "stream_parts.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { TOKENS = 2, WIDTH = 9, CAPACITY = 3, SETS = 8 };
enum { ELEMENTS = TOKENS * WIDTH, ENTRIES = TOKENS * (CAPACITY + 1) };

/* A stream with two bank rows and a prefix, and a read that it would do. */
typedef struct scenario {
    feed one;
    feed_rows rows;
    unsigned char *before;
    size_t size;
    attnres_rows sources[CAPACITY + 1];
    attnres_rows row;        /* for begin and add */
    attnres_rows outputs[2]; /* for read */
    attnres_stream_read_args read;
    struct {
        double retrieved[2 * ELEMENTS], normed[ELEMENTS], weights[ENTRIES], logits[ENTRIES];
        double query[WIDTH], gain[WIDTH], bias[CAPACITY + 1];
        double spare[ELEMENTS + 1];
    } memory, memory_before;
} scenario;

/* _i of the tests is dtype and rounding. */
static attnres_stream_config config_of(int i)
{
    const attnres_stream_config config = {{elements_dtype(i / 2), TOKENS, WIDTH},
                                          CAPACITY,
                                          i % 2 ? ATTNRES_ROUND_ONCE : ATTNRES_ROUND_EACH};
    return config;
}

static void set_up_read(scenario *it)
{
    it->row = it->rows.sets[5];
    it->outputs[0] = it->rows.sets[6];
    it->outputs[1] = it->rows.sets[7];
    it->read = (attnres_stream_read_args){.outputs = it->outputs,
                                          .output_count = 2,
                                          .push = 1,
                                          .query = it->memory.query,
                                          .bias = it->memory.bias,
                                          .retrieved = {it->memory.retrieved, 0},
                                          .normed = {it->memory.normed, 0},
                                          .norm_gain = it->memory.gain,
                                          .weights = {.data = it->memory.weights},
                                          .logits = {.data = it->memory.logits}};
    memset(it->memory.bias, 0, sizeof it->memory.bias);
}

static scenario *open_scenario(int i)
{
    const attnres_stream_config config = config_of(i);
    scenario *it = allocate(1, sizeof *it);
    uint64_t stream = inputs_stream(72, (uint64_t)i, 0);
    feed_open(&it->one, config, 1);
    feed_rows_open(&it->rows, config.shape, SETS, 1, inputs_next(&stream));
    FEED_TRY(attnres_stream_begin(it->one.stream, it->rows.sets[0]));
    FEED_TRY(attnres_stream_push(it->one.stream));
    FEED_TRY(attnres_stream_add(it->one.stream, it->rows.sets[1]));
    FEED_TRY(attnres_stream_push(it->one.stream));
    FEED_TRY(attnres_stream_add(it->one.stream, it->rows.sets[2]));
    FEED_TRY(attnres_stream_add(it->one.stream, it->rows.sets[3]));
    attnres_stream_sources(it->one.stream, it->sources, CAPACITY + 1);
    it->before = feed_bytes(&it->one, &it->size);
    memset(&it->memory, 0x5a, sizeof it->memory);
    inputs_fill(attnres_dtype_accumulator(config.shape.dtype), INPUTS_ORDINARY, &stream,
                it->memory.query, WIDTH);
    set_up_read(it);
    return it;
}

static void close_scenario(scenario *it)
{
    feed_close(&it->one);
    feed_rows_close(&it->rows);
    free(it->before);
    free(it);
}

static void check_unchanged(const scenario *it, const char *what)
{
    size_t size;
    unsigned char *now = feed_bytes(&it->one, &size);
    ck_assert_msg(size == it->size && memcmp(now, it->before, size) == 0,
                  "%s: the stream has changed", what);
    ck_assert_msg(memcmp(&it->memory, &it->memory_before, sizeof it->memory) == 0,
                  "%s: something was written", what);
    free(now);
}

/* ---- Calls that are wrong ------------------------------------------------------------------ */

static void *inside(const scenario *it, size_t s)
{
    return (void *)(uintptr_t)it->sources[s].data;
}

/* C(name, what is wrong, the call: begin, add, read; the status without ATTNRES_ERROR_) */
#define MISUSES(C)                                                                                 \
    C(begin_with_nothing, it->row.data = NULL, begin, ARGUMENT)                                    \
    C(begin_backwards, it->row.stride = -WIDTH, begin, STRIDE)                                     \
    C(begin_with_overlapping_rows, it->row.stride = WIDTH - 1, begin, STRIDE)                      \
    C(begin_with_far_rows, it->row.stride = PTRDIFF_MAX, begin, OVERFLOW)                          \
    C(begin_from_its_prefix, it->row = it->sources[2], begin, OVERLAP)                             \
    C(add_nothing, it->row.data = NULL, add, ARGUMENT)                                             \
    C(add_backwards, it->row.stride = -1, add, STRIDE)                                             \
    C(add_overlapping_rows, it->row.stride = WIDTH - 1, add, STRIDE)                               \
    C(add_far_rows, it->row.stride = PTRDIFF_MAX, add, OVERFLOW)                                   \
    C(add_its_prefix, it->row = it->sources[2], add, OVERLAP)                                      \
    C(add_its_bank, it->row = it->sources[0], add, OVERLAP)                                        \
    C(read_NULL_outputs, it->read.outputs = NULL, read, ARGUMENT)                                  \
    C(read_output_of_nothing, it->outputs[1].data = NULL, read, ARGUMENT)                          \
    C(read_output_backwards, it->outputs[1].stride = -WIDTH, read, STRIDE)                         \
    C(read_its_bank_as_output, it->outputs[1] = it->sources[1], read, OVERLAP)                     \
    C(read_its_prefix_as_output, it->outputs[0] = it->sources[2], read, OVERLAP)                   \
    C(read_without_query, it->read.query = NULL, read, ARGUMENT)                                   \
    C(read_with_negative_eps, it->read.eps = -1, read, VALUE)                                      \
    C(read_with_infinite_scale, it->read.scale = (double)INFINITY, read, VALUE)                    \
    C(read_with_NaN_bias, it->memory.bias[2] = (double)NAN, read, VALUE)                           \
    C(read_with_NaN_norm_eps, it->read.norm_eps = (double)NAN, read, VALUE)                        \
    C(read_with_no_policy, it->read.norm_policy = (attnres_norm_policy)9, read, ARGUMENT)          \
    C(read_for_nothing,                                                                            \
      (it->read.retrieved.data = it->read.normed.data = NULL,                                      \
       it->read.weights.data = it->read.logits.data = NULL),                                       \
      read, ARGUMENT)                                                                              \
    C(read_into_its_bank, it->read.retrieved.data = inside(it, 0), read, OVERLAP)                  \
    C(read_into_its_prefix, it->read.retrieved.data = inside(it, 2), read, OVERLAP)                \
    C(norm_into_its_bank, it->read.normed.data = inside(it, 1), read, OVERLAP)                     \
    C(read_into_itself, it->read.retrieved.data = it->one.stream, read, OVERLAP)                   \
    C(weights_into_itself, it->read.weights.data = inside(it, 0), read, OVERLAP)                   \
    C(logits_into_itself, it->read.logits.data = (void *)it->one.stream, read, OVERLAP)            \
    C(read_backwards, it->read.retrieved.stride = -WIDTH, read, STRIDE)                            \
    C(norm_overlapping_rows, it->read.normed.stride = 2, read, STRIDE)                             \
    C(shared_weights, it->read.weights.source_stride = 1, read, STRIDE)                            \
    C(far_logits, it->read.logits.source_stride = PTRDIFF_MAX, read, OVERFLOW)                     \
    C(norm_into_result, it->read.normed.data = it->memory.retrieved, read, OVERLAP)                \
    C(weights_into_result, it->read.weights.data = it->memory.retrieved, read, OVERLAP)            \
    C(result_into_query, it->read.retrieved.data = it->memory.query, read, OVERLAP)                \
    C(logits_into_bias, it->read.logits.data = it->memory.bias, read, OVERLAP)                     \
    C(norm_into_gain, it->read.normed.data = it->memory.gain, read, OVERLAP)                       \
    C(result_beside_output,                                                                        \
      it->read.retrieved.data = elements_at(it->rows.shape.dtype, feed_row(&it->rows, 6, 0), 1),   \
      read, OVERLAP)

#define CHANGE(name, change, call, status)                                                         \
    static void change_##name(scenario *it)                                                        \
    {                                                                                              \
        change;                                                                                    \
    }
MISUSES(CHANGE)

enum { begin, add, read };

static attnres_status use(scenario *it, int call)
{
    return call == begin ? attnres_stream_begin(it->one.stream, it->row)
           : call == add ? attnres_stream_add(it->one.stream, it->row)
                         : attnres_stream_read(it->one.stream, &it->read);
}

START_TEST(misuse_changes_nothing)
{
    static const struct {
        const char *name;
        void (*change)(scenario *it);
        int call;
        attnres_status status;
    } misuses[] = {
#define ENTRY(name, change, call, status) {#name, change_##name, call, ATTNRES_ERROR_##status},
        MISUSES(ENTRY)};
    scenario *it = open_scenario(_i);
    for (size_t n = 0; n < sizeof misuses / sizeof *misuses; n++) {
        set_up_read(it);
        misuses[n].change(it);
        it->memory_before = it->memory;
        const attnres_status status = use(it, misuses[n].call);
        ck_assert_msg(status == misuses[n].status, "%s: %s", misuses[n].name,
                      attnres_status_string(status));
        check_unchanged(it, misuses[n].name);
    }
    set_up_read(it); /* with nothing wrong it works */
    FEED_TRY(attnres_stream_read(it->one.stream, &it->read));
    close_scenario(it);
}
END_TEST

/* ---- Wrong at this time -------------------------------------------------------------------- */

START_TEST(nothing_works_before_begin)
{
    scenario *it = open_scenario(_i);
    feed fresh;
    unsigned char bytes[256];
    feed_open(&fresh, config_of(_i), 0);
    attnres_stream *stream = fresh.stream;
    ck_assert_int_eq(attnres_stream_add(stream, it->row), ATTNRES_ERROR_STATE);
    ck_assert_int_eq(attnres_stream_push(stream), ATTNRES_ERROR_STATE);
    it->memory_before = it->memory;
    ck_assert_int_eq(attnres_stream_read(stream, &it->read), ATTNRES_ERROR_STATE);
    ck_assert_int_eq(attnres_stream_export(stream, bytes, sizeof bytes), ATTNRES_ERROR_STATE);
    ck_assert_uint_eq(attnres_stream_export_size(stream), 0);
    ck_assert_uint_eq(attnres_stream_sources(stream, it->sources, 1), 0);
    check_unchanged(it, "before begin");
    feed_close(&fresh);
    close_scenario(it);
}
END_TEST

/* No prefix, or no room: neither push nor a read that pushes. */
START_TEST(pushes_need_prefix_and_room)
{
    scenario *it = open_scenario(_i);
    attnres_stream *stream = it->one.stream;
    for (int full = 0; full < 2; full++) {
        if (full) {
            FEED_TRY(attnres_stream_add(stream, it->row));
        } else {
            FEED_TRY(attnres_stream_push(stream)); /* the third; no prefix from here on */
        }
        free(it->before);
        it->before = feed_bytes(&it->one, &it->size);
        set_up_read(it);
        it->read.output_count = full ? 2 : 0;
        it->memory_before = it->memory;
        ck_assert_int_eq(attnres_stream_push(stream), ATTNRES_ERROR_STATE);
        ck_assert_int_eq(attnres_stream_read(stream, &it->read), ATTNRES_ERROR_STATE);
        check_unchanged(it, full ? "full bank" : "no prefix");
    }
    it->read.push = 0;
    FEED_TRY(attnres_stream_read(stream, &it->read));
    close_scenario(it);
}
END_TEST

/* ---- Not a stream, no arguments ----------------------------------------------------------- */

START_TEST(pointers_are_checked)
{
    scenario *it = open_scenario(_i);
    uint64_t memory[64] = {0}; /* no stream */
    attnres_stream *const strangers[] = {NULL, (attnres_stream *)(void *)memory};
    unsigned char *bytes = allocate(it->size + 1, 1);
    it->memory_before = it->memory;
    for (int i = 0; i < 2; i++) {
        attnres_stream *stream = strangers[i];
        ck_assert_int_eq(attnres_stream_begin(stream, it->row), ATTNRES_ERROR_ARGUMENT);
        ck_assert_int_eq(attnres_stream_add(stream, it->row), ATTNRES_ERROR_ARGUMENT);
        ck_assert_int_eq(attnres_stream_push(stream), ATTNRES_ERROR_ARGUMENT);
        ck_assert_int_eq(attnres_stream_read(stream, &it->read), ATTNRES_ERROR_ARGUMENT);
        ck_assert_int_eq(attnres_stream_export(stream, bytes, it->size), ATTNRES_ERROR_ARGUMENT);
        ck_assert_int_eq(attnres_stream_import(stream, it->before, it->size),
                         ATTNRES_ERROR_ARGUMENT);
        ck_assert_uint_eq(attnres_stream_export_size(stream), 0);
        ck_assert_uint_eq(attnres_stream_sources(stream, NULL, 0), 0);
    }
    attnres_stream *own = it->one.stream;
    ck_assert_int_eq(attnres_stream_read(own, NULL), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_stream_export(own, NULL, it->size), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_stream_export(own, bytes, it->size - 1), ATTNRES_ERROR_SIZE);
    ck_assert_int_eq(attnres_stream_export(own, inside(it, 0), it->size), ATTNRES_ERROR_OVERLAP);
    ck_assert_int_eq(attnres_stream_import(own, NULL, it->size), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_stream_import(own, inside(it, 0), 8), ATTNRES_ERROR_ARGUMENT);
    for (size_t i = 0; i <= it->size; i++) {
        ck_assert_uint_eq(bytes[i], 0);
    }
    check_unchanged(it, "pointers");
    FEED_TRY(attnres_stream_export(own, bytes, it->size + 1)); /* room for more is fine */
    ck_assert_mem_eq(bytes, it->before, it->size);
    ck_assert_uint_eq(bytes[it->size], 0);
    free(bytes);
    close_scenario(it);
}
END_TEST

/* An export that is within the stream's own memory cannot be imported from there. */
START_TEST(import_from_itself_is_refused)
{
    const attnres_stream_config config = config_of(_i);
    scenario *it = open_scenario(_i);
    const size_t need = attnres_stream_size(&config), all = need + it->size;
    unsigned char *memory = allocate(all, 1);
    attnres_stream *stream;
    FEED_TRY(attnres_stream_init(&config, memory, all, &stream)); /* more than it needs */
    memcpy(memory + need, it->before, it->size);
    ck_assert_int_eq(attnres_stream_import(stream, memory + need, it->size), ATTNRES_ERROR_OVERLAP);
    ck_assert_uint_eq(attnres_stream_sources(stream, NULL, 0), 0);
    free(memory);
    close_scenario(it);
}
END_TEST

TCase *stream_misuse_case(void)
{
    TCase *misuse = tcase_create("misuse");
    const int all = 2 * ELEMENTS_DTYPES;
    tcase_add_loop_test(misuse, misuse_changes_nothing, 0, all);
    tcase_add_loop_test(misuse, nothing_works_before_begin, 0, all);
    tcase_add_loop_test(misuse, pushes_need_prefix_and_room, 0, all);
    tcase_add_loop_test(misuse, pointers_are_checked, 0, all);
    tcase_add_loop_test(misuse, import_from_itself_is_refused, 0, all);
    return misuse;
}
