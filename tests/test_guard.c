/* The public calls on guarded memory: every array flush against a page that cannot be touched,
 * rows with and without gaps. Whatever the layout and level, results are those of the first run. */
#include "allocate.h"
#include "array.h"
#include "elements.h"
#include "levels.h"
#include "suites.h"

#include <stdio.h>
#include <string.h>

enum { WIDTHS = 130, TOKENS = 2, GAPS = 4, SLOTS_MAX = 24 };

/* A call with its arrays, inputs first. */
typedef struct call {
    const char *name;
    int slots;
    const char *slot_names[SLOTS_MAX];
    array arrays[SLOTS_MAX];
    unsigned char *expected[SLOTS_MAX]; /* rows of the outputs, one after the other */
    int written[SLOTS_MAX];             /* those that the variant asks for */
    void (*run)(const struct call *call, size_t width, unsigned variant);
    unsigned variants;
} call;

static void add(call *it, const char *name, attnres_dtype dtype, array_role role, size_t rows,
                size_t widest)
{
    const int i = it->slots++;
    it->slot_names[i] = name;
    array_open(&it->arrays[i], dtype, role, rows, widest);
    it->expected[i] = allocate(rows * widest, attnres_dtype_size(dtype));
}

static void close_call(call *it)
{
    for (int i = 0; i < it->slots; i++) {
        array_close(&it->arrays[i]);
        free(it->expected[i]);
    }
}

static void must(attnres_status status)
{
    if (status != ATTNRES_OK) {
        ck_abort_msg("%s", attnres_status_string(status));
    }
}

/* ---- attnres_read with everything it can take -------------------------------------------- */

enum {
    READ_SOURCE,
    READ_PREFIX = READ_SOURCE + 3,
    READ_DELTA,
    READ_QUERY = READ_DELTA + 2,
    READ_GAIN,
    READ_BIAS,
    READ_MAX,
    READ_SUM,
    READ_MIX,
    READ_PREFIX_OUT,
    READ_PUSH,
    READ_RETRIEVED,
    READ_NORMED,
    READ_WEIGHTS,
    READ_LOGITS
};
enum { READ_SOURCES = 4 }; /* the prefix is one */

static attnres_shape shape_of(const call *it, size_t width)
{
    const attnres_shape shape = {it->arrays[0].dtype, TOKENS, width};
    return shape;
}

/* variant: bit 0 resume (without weights), bit 1 the fused norm, bit 2 only the norm. */
static void run_read(const call *it, size_t width, unsigned variant)
{
    const array *at = it->arrays;
    const attnres_shape shape = shape_of(it, width);
    const attnres_rows sources[] = {array_rows(&at[READ_SOURCE]), array_rows(&at[READ_SOURCE + 1]),
                                    array_rows(&at[READ_SOURCE + 2])};
    const attnres_rows deltas[] = {array_rows(&at[READ_DELTA]), array_rows(&at[READ_DELTA + 1])};
    const attnres_state state = {array_row(&at[READ_MAX], 0), array_row(&at[READ_SUM], 0),
                                 array_row(&at[READ_MIX], 0), (ptrdiff_t)at[READ_MIX].stride};
    attnres_read_args args = {
        .sources = sources,
        .source_count = 3,
        .prefix = array_rows(&at[READ_PREFIX]),
        .deltas = deltas,
        .delta_count = 2,
        .prefix_out = array_rows_out(&at[READ_PREFIX_OUT]),
        .push = array_rows_out(&at[READ_PUSH]),
        .query = array_row(&at[READ_QUERY], 0),
        .eps = 1e-6,
        .bias = array_row(&at[READ_BIAS], 0),
        .resume = variant & 1 ? &state : NULL,
        .retrieved = array_rows_out(&at[READ_RETRIEVED]),
        .normed = array_rows_out(&at[READ_NORMED]),
        .norm_gain = array_row(&at[READ_GAIN], 0),
        .norm_eps = 1e-6,
        .norm_policy = variant & 2 ? ATTNRES_NORM_FUSED : ATTNRES_NORM_REFERENCE,
        .logits = {.data = array_row(&at[READ_LOGITS], 0),
                   .source_stride = (ptrdiff_t)at[READ_LOGITS].stride},
    };
    if (!(variant & 1)) {
        args.weights = (attnres_per_source){.data = array_row(&at[READ_WEIGHTS], 0),
                                            .source_stride = (ptrdiff_t)at[READ_WEIGHTS].stride};
    }
    if (variant & 4) {
        args.retrieved.data = NULL;
    }
    must(attnres_read(&shape, &args));
}

static void open_read(call *it, attnres_dtype dtype)
{
    static const char *const rows[] = {"source 0", "source 1", "source 2",
                                       "prefix",   "delta 0",  "delta 1"};
    static const char *const results[] = {"prefix_out", "push", "retrieved", "normed"};
    const attnres_dtype accumulator = attnres_dtype_accumulator(dtype);
    *it = (call){.name = "read", .run = run_read, .variants = 8};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        add(it, rows[i], dtype, ARRAY_INPUT, TOKENS, WIDTHS);
    }
    add(it, "query", accumulator, ARRAY_INPUT, 1, WIDTHS);
    add(it, "gain", accumulator, ARRAY_INPUT, 1, WIDTHS);
    add(it, "bias", ATTNRES_F64, ARRAY_INPUT, 1, WIDTHS);
    add(it, "resume.max", ATTNRES_F64, ARRAY_INPUT, 1, WIDTHS);
    add(it, "resume.sum", ATTNRES_F64, ARRAY_INPUT, 1, WIDTHS);
    add(it, "resume.mix", accumulator, ARRAY_INPUT, TOKENS, WIDTHS);
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        add(it, results[i], dtype, ARRAY_OUTPUT, TOKENS, WIDTHS);
    }
    add(it, "weights", dtype, ARRAY_OUTPUT, READ_SOURCES, WIDTHS);
    add(it, "logits", ATTNRES_F64, ARRAY_OUTPUT, READ_SOURCES, WIDTHS);
}

/* ---- attnres_block_read and attnres_block_sum -------------------------------------------- */

enum {
    BLOCK_EMBEDDING,
    BLOCK_OUTPUT,
    BLOCK_QUERY = BLOCK_OUTPUT + 5,
    BLOCK_RETRIEVED,
    BLOCK_WEIGHTS,
    BLOCK_SOURCE
};
enum { BLOCK_LAYERS = 5, BLOCK_SOURCES = 4 };

/* variant 0: block_read, 1: block_sum, which gives the same sums. */
static void run_block(const call *it, size_t width, unsigned variant)
{
    const array *at = it->arrays;
    const attnres_shape shape = shape_of(it, width);
    attnres_rows outputs[BLOCK_LAYERS];
    attnres_rows_out sources[BLOCK_SOURCES];
    for (int i = 0; i < BLOCK_LAYERS; i++) {
        outputs[i] = array_rows(&at[BLOCK_OUTPUT + i]);
    }
    for (int i = 0; i < BLOCK_SOURCES; i++) {
        sources[i] = array_rows_out(&at[BLOCK_SOURCE + i]);
    }
    if (variant == 1) {
        const attnres_block_sum_args args = {outputs, BLOCK_LAYERS, 2, sources + 1,
                                             BLOCK_SOURCES - 1};
        must(attnres_block_sum(&shape, &args));
        return;
    }
    const attnres_block_read_args args = {
        .embedding = array_rows(&at[BLOCK_EMBEDDING]),
        .outputs = outputs,
        .layers = BLOCK_LAYERS,
        .block_size = 2,
        .query = array_row(&at[BLOCK_QUERY], 0),
        .eps = 1e-6,
        .retrieved = array_rows_out(&at[BLOCK_RETRIEVED]),
        .weights = {.data = array_row(&at[BLOCK_WEIGHTS], 0),
                    .source_stride = (ptrdiff_t)at[BLOCK_WEIGHTS].stride},
        .sources = sources,
        .source_count = BLOCK_SOURCES,
    };
    must(attnres_block_read(&shape, &args));
}

static void open_block(call *it, attnres_dtype dtype)
{
    *it = (call){.name = "block_read", .run = run_block, .variants = 2};
    for (int i = 0; i < 1 + BLOCK_LAYERS; i++) {
        add(it, i ? "output" : "embedding", dtype, ARRAY_INPUT, TOKENS, WIDTHS);
    }
    add(it, "query", attnres_dtype_accumulator(dtype), ARRAY_INPUT, 1, WIDTHS);
    add(it, "retrieved", dtype, ARRAY_OUTPUT, TOKENS, WIDTHS);
    add(it, "weights", dtype, ARRAY_OUTPUT, BLOCK_SOURCES, WIDTHS);
    for (int i = 0; i < BLOCK_SOURCES; i++) {
        add(it, "source", dtype, ARRAY_OUTPUT, TOKENS, WIDTHS);
    }
}

/* ---- attnres_make_query -------------------------------------------------------------------- */

static void run_query(const call *it, size_t width, unsigned variant)
{
    const array *at = it->arrays;
    const attnres_vector projection = {at[0].dtype, array_row(&at[0], 0), width};
    const attnres_vector gain = {at[1].dtype, array_row(&at[1], 0), width};
    must(attnres_make_query(at[0].dtype, width, &projection, variant ? &gain : NULL,
                            array_row(&at[2], 0)));
}

static void open_query(call *it, attnres_dtype dtype)
{
    *it = (call){.name = "make_query", .run = run_query, .variants = 2};
    add(it, "projection", dtype, ARRAY_INPUT, 1, WIDTHS);
    add(it, "gain", ATTNRES_BF16, ARRAY_INPUT, 1, WIDTHS);
    add(it, "query", attnres_dtype_accumulator(dtype), ARRAY_OUTPUT, 1, WIDTHS);
}

/* ---- Running them -------------------------------------------------------------------------- */

/* Vectors with one entry per source or token are as wide as that. */
static size_t width_of(const call *it, int i, size_t width)
{
    const char *name = it->slot_names[i];
    if (strcmp(name, "bias") == 0) {
        return READ_SOURCES;
    }
    const int per_token = strcmp(name, "weights") == 0 || strcmp(name, "logits") == 0 ||
                          strcmp(name, "resume.max") == 0 || strcmp(name, "resume.sum") == 0;
    return per_token ? TOKENS : width;
}

static void lay_out(call *it, array_layout layout, size_t width, uint64_t stream)
{
    for (int i = 0; i < it->slots; i++) {
        array *one = &it->arrays[i];
        array_lay(one, layout, width_of(it, i, width), INPUTS_ORDINARY, &stream);
        for (size_t t = 0; strcmp(it->slot_names[i], "resume.sum") == 0 && t < TOKENS; t++) {
            elements_set(ATTNRES_F64, one->memory.data, t, 1.5 + (double)t); /* a sum is positive */
            array_settle(one);
        }
    }
}

/* Keeps the outputs' rows, or compares with what was kept. */
static void check_outputs(call *it, int keep, const char *what)
{
    for (int i = 0; i < it->slots; i++) {
        array *one = &it->arrays[i];
        const size_t bytes = one->width * attnres_dtype_size(one->dtype);
        array_check(one, it->slot_names[i]);
        if (one->role == ARRAY_INPUT) {
            continue;
        }
        if (keep) {
            it->written[i] = !array_is_untouched(one);
        }
        ck_assert_msg(it->written[i] == !array_is_untouched(one), "%s: %s written or not?", what,
                      it->slot_names[i]);
        for (size_t r = 0; it->written[i] && r < one->rows; r++) {
            void *kept = it->expected[i] + r * bytes;
            if (keep) {
                memcpy(kept, array_row(one, r), bytes);
            }
            elements_check(one->dtype, array_row(one, r), kept, one->width, "%s, %s row %zu", what,
                           it->slot_names[i], r);
        }
    }
}

/* One width in all layouts at all levels. */
static void check_width(call *it, size_t width, uint64_t stream)
{
    const unsigned variant = (unsigned)(width % it->variants);
    char what[96];
    for (int level = 0; level < levels_count(); level++) {
        levels_use(level);
        for (size_t n = 0; n < 2 * GAPS; n++) {
            const array_layout layout = {n % 2 ? BUFFER_AT_START : BUFFER_AT_END, n / 2,
                                         (n + width) % 3};
            const int first = level == 0 && n == 0;
            lay_out(it, layout, width, stream);
            it->run(it, width, variant);
            snprintf(what, sizeof what, "%s, level %s, width %zu, gap %zu at the %s", it->name,
                     levels_name(level), width, layout.gap, n % 2 ? "start" : "end");
            check_outputs(it, first, what);
        }
    }
}

/* _i is call and dtype. */
START_TEST(calls_keep_to_themselves)
{
    void (*const openers[])(call *, attnres_dtype) = {open_read, open_block, open_query};
    call *it = allocate(1, sizeof *it);
    openers[_i / ELEMENTS_DTYPES](it, elements_dtype(_i % ELEMENTS_DTYPES));
    for (size_t width = 1; width <= WIDTHS; width += inputs_quick() ? 3 : 1) {
        check_width(it, width, inputs_stream(17, width, (uint64_t)_i));
    }
    close_call(it);
    free(it);
}
END_TEST

Suite *guard_suite(void)
{
    Suite *suite = suite_create("guard");
    TCase *calls = tcase_create("calls");
    tcase_add_checked_fixture(calls, levels_save, levels_restore);
    tcase_set_timeout(calls, 120);
    tcase_add_loop_test(calls, calls_keep_to_themselves, 0, 3 * ELEMENTS_DTYPES);
    suite_add_tcase(suite, calls);
    return suite;
}
