/* What may lie where: the sameness that fields allow works and changes nothing, everything else
 * that overlaps is refused before anything is written, and what is merely close is not. */
#include "allocate.h"
#include "elements.h"
#include "inputs.h"
#include "levels.h"
#include "suites.h"

#include "rows.h"

#include <attnres.h>

#include <stdint.h>
#include <string.h>

enum { TOKENS = 3, WIDTH = 37, STRIDE = 41, SOURCES = 3, DELTAS = 2 };

/* Every pointer of a read. */
typedef enum place {
    SOURCE_FIRST,
    SOURCE_LAST,
    PREFIX,
    DELTA_FIRST,
    DELTA_LAST,
    QUERY,
    GAIN,
    BIAS,
    STATE_MIX,
    STATE_MAX,
    STATE_SUM,
    INPUTS_END,
    PREFIX_OUT = INPUTS_END,
    PUSH,
    RETRIEVED,
    NORMED,
    WEIGHTS,
    LOGITS,
    PLACES
} place;

static const char *const names[PLACES] = {
    "first source", "last source", "prefix",    "first delta", "last delta", "query",
    "gain",         "bias",        "state mix", "state max",   "state sum",  "prefix_out",
    "push",         "retrieved",   "normed",    "weights",     "logits"};

enum { SLOT = TOKENS * STRIDE * 8 + 64 };

typedef struct arena {
    attnres_dtype dtype;
    unsigned char *memory; /* SLOT bytes for each place */
    attnres_rows sources[SOURCES];
    attnres_rows deltas[DELTAS];
    attnres_state state;
    attnres_read_args args;
} arena;

static void *slot(const arena *it, place where)
{
    return it->memory + (size_t)where * SLOT;
}

static attnres_rows rows_at(const arena *it, place where)
{
    return (attnres_rows){slot(it, where), STRIDE};
}

static attnres_rows_out rows_out_at(const arena *it, place where)
{
    return (attnres_rows_out){slot(it, where), STRIDE};
}

static void fill_arena(arena *it)
{
    const attnres_dtype accumulator = attnres_dtype_accumulator(it->dtype);
    uint64_t stream = inputs_stream(40, (uint64_t)it->dtype, 0);
    for (int i = 0; i < INPUTS_END; i++) {
        const int is_wide = i == QUERY || i == GAIN || i == STATE_MIX;
        const int is_double = i == BIAS || i == STATE_MAX || i == STATE_SUM;
        inputs_fill_scaled(is_double ? ATTNRES_F64
                           : is_wide ? accumulator
                                     : it->dtype,
                           0.5, &stream, slot(it, (place)i), TOKENS * STRIDE);
    }
    for (int t = 0; t < TOKENS; t++) {
        ((double *)slot(it, STATE_SUM))[t] = 1.25;
    }
    memset(slot(it, PREFIX_OUT), 0x3c, (PLACES - PREFIX_OUT) * (size_t)SLOT);
}

/* with_state: a resumed read, which has no weights. */
static void open_arena(arena *it, attnres_dtype dtype, int with_state)
{
    *it = (arena){.dtype = dtype, .memory = allocate(PLACES, SLOT)};
    fill_arena(it);
    it->sources[0] = rows_at(it, SOURCE_FIRST);
    it->sources[1] = rows_at(it, SOURCE_LAST); /* inputs may be the same rows */
    it->sources[2] = rows_at(it, SOURCE_LAST);
    it->deltas[0] = rows_at(it, DELTA_FIRST);
    it->deltas[1] = rows_at(it, DELTA_LAST);
    it->state =
        (attnres_state){slot(it, STATE_MAX), slot(it, STATE_SUM), slot(it, STATE_MIX), STRIDE};
    it->args = (attnres_read_args){.sources = it->sources,
                                   .source_count = SOURCES,
                                   .prefix = rows_at(it, PREFIX),
                                   .deltas = it->deltas,
                                   .delta_count = DELTAS,
                                   .prefix_out = rows_out_at(it, PREFIX_OUT),
                                   .push = rows_out_at(it, PUSH),
                                   .query = slot(it, QUERY),
                                   .eps = 1e-6,
                                   .bias = slot(it, BIAS),
                                   .resume = with_state ? &it->state : NULL,
                                   .retrieved = rows_out_at(it, RETRIEVED),
                                   .normed = rows_out_at(it, NORMED),
                                   .norm_gain = slot(it, GAIN),
                                   .norm_eps = 1e-6,
                                   .weights = {.data = with_state ? NULL : slot(it, WEIGHTS)},
                                   .logits = {.data = slot(it, LOGITS)}};
}

/* Points an output somewhere else. */
static void aim(arena *it, place output, void *data, ptrdiff_t stride)
{
    attnres_rows_out *const rows[] = {&it->args.prefix_out, &it->args.push, &it->args.retrieved,
                                      &it->args.normed};
    if (output == WEIGHTS) {
        it->args.weights.data = data;
    } else if (output == LOGITS) {
        it->args.logits.data = data;
    } else {
        *rows[output - PREFIX_OUT] = (attnres_rows_out){data, stride};
    }
}

static attnres_status run(const arena *it)
{
    const attnres_shape shape = {it->dtype, TOKENS, WIDTH};
    return attnres_read(&shape, &it->args);
}

/* By the header. */
static int may_be_same(place output, place input)
{
    const int is_delta = input == DELTA_FIRST || input == DELTA_LAST;
    if (output == PREFIX_OUT) {
        return input == PREFIX || is_delta;
    }
    return (output == RETRIEVED || output == NORMED) && (input <= PREFIX || is_delta);
}

/* ---- Every output on every input -------------------------------------------------------- */

/* Compares everything the call writes with a call whose outputs lie apart. */
static void check_against_apart(const arena *it, place moved)
{
    const size_t size = attnres_dtype_size(it->dtype);
    arena apart;
    open_arena(&apart, it->dtype, it->args.resume != NULL);
    apart.args.norm_policy = it->args.norm_policy;
    ck_assert_int_eq(run(&apart), ATTNRES_OK);
    const attnres_rows_out found[] = {it->args.prefix_out, it->args.push, it->args.retrieved,
                                      it->args.normed};
    for (place output = PREFIX_OUT; output <= NORMED; output++) {
        for (size_t t = 0; t < TOKENS; t++) {
            elements_check(it->dtype, (char *)found[output - PREFIX_OUT].data + t * STRIDE * size,
                           (char *)slot(&apart, output) + t * STRIDE * size, WIDTH,
                           "%s while %s is an input", names[output], names[moved]);
        }
    }
    ck_assert_mem_eq(slot(it, WEIGHTS), slot(&apart, WEIGHTS), SLOT);
    ck_assert_mem_eq(slot(it, LOGITS), slot(&apart, LOGITS), SLOT);
    free(apart.memory);
}

static void check_refused(arena *it, const char *how, const char *output, const char *other)
{
    unsigned char *before = allocate(PLACES, SLOT);
    memcpy(before, it->memory, (size_t)PLACES * SLOT);
    const attnres_status status = run(it);
    ck_assert_msg(status == ATTNRES_ERROR_OVERLAP, "%s, %s %s %s: %s", elements_name(it->dtype),
                  output, how, other, attnres_status_string(status));
    ck_assert_mem_eq(before, it->memory, (size_t)PLACES * SLOT);
    free(before);
}

/* _i is dtype, with or without a state, and the norm's policy. */
START_TEST(outputs_on_inputs)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    const int with_state = _i / ELEMENTS_DTYPES % 2;
    const size_t size = attnres_dtype_size(dtype);
    for (place output = PREFIX_OUT; output < PLACES; output++) {
        for (place input = SOURCE_FIRST; input < INPUTS_END; input++) {
            arena it;
            if ((output == WEIGHTS && with_state) || (input >= STATE_MIX && !with_state)) {
                continue;
            }
            open_arena(&it, dtype, with_state);
            it.args.norm_policy = (attnres_norm_policy)(_i / ELEMENTS_DTYPES / 2);
            aim(&it, output, slot(&it, input), STRIDE);
            if (may_be_same(output, input)) {
                ck_assert_msg(run(&it) == ATTNRES_OK, "%s on %s", names[output], names[input]);
                check_against_apart(&it, output);
                fill_arena(&it);
            } else {
                check_refused(&it, "is", names[output], names[input]);
            }
            aim(&it, output, (char *)slot(&it, input) + size, STRIDE);
            check_refused(&it, "is one element into", names[output], names[input]);
            if (input < QUERY || input == STATE_MIX) { /* rows: another distance, other rows */
                aim(&it, output, slot(&it, input), STRIDE + 1);
                check_refused(&it, "has another stride than", names[output], names[input]);
                aim(&it, output, (char *)slot(&it, input) + (2 * STRIDE + WIDTH - 1) * size,
                    STRIDE);
                check_refused(&it, "begins at the end of", names[output], names[input]);
            }
            free(it.memory);
        }
    }
}
END_TEST

START_TEST(outputs_on_outputs)
{
    const attnres_dtype dtype = elements_dtype(_i);
    for (place output = PREFIX_OUT; output < PLACES; output++) {
        for (place other = PREFIX_OUT; other < PLACES; other++) {
            arena it;
            if (output == other) {
                continue;
            }
            open_arena(&it, dtype, 0);
            aim(&it, output, slot(&it, other), STRIDE);
            check_refused(&it, "is", names[output], names[other]);
            free(it.memory);
        }
    }
}
END_TEST

/* More sources than one group: rows are read again after results were written. */
START_TEST(many_sources_forbid_results_on_sources)
{
    const attnres_shape shape = {ATTNRES_F32, 1, 4};
    attnres_rows sources[ATTNRES_SOURCES_FAST + 1];
    float memory[ATTNRES_SOURCES_FAST + 1][4], query[4] = {1, 2, 3, 4};
    for (size_t s = 0; s <= ATTNRES_SOURCES_FAST; s++) {
        for (size_t i = 0; i < 4; i++) {
            memory[s][i] = (float)(s + i);
        }
        sources[s] = (attnres_rows){memory[s], 0};
    }
    attnres_read_args args = {.sources = sources,
                              .source_count = ATTNRES_SOURCES_FAST,
                              .query = query,
                              .retrieved = {memory[0], 0}};
    ck_assert_int_eq(attnres_read(&shape, &args), ATTNRES_OK);
    args.source_count++;
    args.retrieved.data = memory[1];
    ck_assert_int_eq(attnres_read(&shape, &args), ATTNRES_ERROR_OVERLAP);
    args.retrieved.data = NULL;
    args.normed.data = memory[1];
    ck_assert_int_eq(attnres_read(&shape, &args), ATTNRES_ERROR_OVERLAP);
    ck_assert(memory[1][0] == 1);
}
END_TEST

/* ---- Close, but apart ---------------------------------------------------------------------- */

/* All row sets of a token side by side: no two rows share an element. */
START_TEST(interleaved_rows_are_apart)
{
    const attnres_dtype dtype = elements_dtype(_i % ELEMENTS_DTYPES);
    enum { ROW_SETS = 7 }; /* two sources, prefix, delta; prefix_out, push, retrieved */
    const size_t size = attnres_dtype_size(dtype);
    unsigned char *bank = allocate(TOKENS * ROW_SETS * WIDTH, size);
    unsigned char *apart = allocate(ROW_SETS * TOKENS * WIDTH, size);
    double query[WIDTH] = {0};
    uint64_t stream = inputs_stream(41, (uint64_t)_i, 0);
    levels_use(_i / ELEMENTS_DTYPES);
    inputs_fill(attnres_dtype_accumulator(dtype), INPUTS_ORDINARY, &stream, query, WIDTH);
    inputs_fill(dtype, INPUTS_ORDINARY, &stream, bank, TOKENS * ROW_SETS * WIDTH);
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        attnres_rows in[4];
        attnres_rows_out out[3];
        for (size_t k = 0; k < ROW_SETS; k++) {
            for (size_t t = 0; t < TOKENS; t++) {
                memcpy(apart + (k * TOKENS + t) * WIDTH * size,
                       bank + (t * ROW_SETS + k) * WIDTH * size, interleaved ? 0 : WIDTH * size);
            }
            unsigned char *data =
                interleaved ? bank + k * WIDTH * size : apart + k * TOKENS * WIDTH * size;
            const ptrdiff_t stride = interleaved ? ROW_SETS * WIDTH : 0;
            if (k < 4) {
                in[k] = (attnres_rows){data, stride};
            } else {
                out[k - 4] = (attnres_rows_out){data, stride};
            }
        }
        const attnres_shape shape = {dtype, TOKENS, WIDTH};
        const attnres_read_args args = {.sources = in,
                                        .source_count = 2,
                                        .prefix = in[2],
                                        .deltas = in + 3,
                                        .delta_count = 1,
                                        .prefix_out = out[0],
                                        .push = out[1],
                                        .query = query,
                                        .retrieved = out[2]};
        ck_assert_int_eq(attnres_read(&shape, &args), ATTNRES_OK);
    }
    for (size_t k = 0; k < ROW_SETS; k++) {
        for (size_t t = 0; t < TOKENS; t++) {
            elements_check(dtype, bank + (t * ROW_SETS + k) * WIDTH * size,
                           apart + (k * TOKENS + t) * WIDTH * size, WIDTH, "row set %zu", k);
        }
    }
    free(bank);
    free(apart);
}
END_TEST

/* The library's arithmetic on strides against marking every byte. */
START_TEST(regions_overlap_where_bytes_do)
{
    enum { BYTES = 400 };
    static char memory[2 * BYTES]; /* only addresses matter */
    uint64_t stream = inputs_stream(42, 0, 0);
    const int rounds = inputs_quick() ? 20000 : 200000;
    int overlapping = 0;
    for (int n = 0; n < rounds; n++) {
        struct attnres_region regions[2];
        unsigned char marks[2 * BYTES] = {0};
        int expected = 0;
        for (int r = 0; r < 2; r++) {
            const size_t bytes = 1 + inputs_pick(&stream, 12);
            const size_t stride = n % 3 && r ? regions[0].stride : bytes + inputs_pick(&stream, 30);
            regions[r].data = memory + inputs_pick(&stream, BYTES);
            regions[r].stride = stride < bytes ? bytes : stride;
            regions[r].bytes = bytes;
            regions[r].count = inputs_pick(&stream, 9);
            for (size_t i = 0; i < regions[r].count; i++) {
                const size_t begin = (size_t)(regions[r].data - memory) + i * regions[r].stride;
                for (size_t b = begin; b < begin + bytes; b++) {
                    expected |= r && marks[b];
                    marks[b] |= !r;
                }
            }
        }
        overlapping += expected;
        ck_assert_msg(attnres_regions_overlap(&regions[0], &regions[1]) == expected &&
                          attnres_regions_overlap(&regions[1], &regions[0]) == expected,
                      "%zu rows of %zu every %zu at %td; %zu of %zu every %zu at %td",
                      regions[0].count, regions[0].bytes, regions[0].stride,
                      regions[0].data - memory, regions[1].count, regions[1].bytes,
                      regions[1].stride, regions[1].data - memory);
    }
    ck_assert_int_gt(overlapping, rounds / 10);
    ck_assert_int_lt(overlapping, rounds * 9 / 10);
}
END_TEST

Suite *overlap_suite(void)
{
    Suite *suite = suite_create("overlap");
    TCase *read = tcase_create("read");
    tcase_add_checked_fixture(read, levels_save, levels_restore);
    tcase_set_timeout(read, 60);
    tcase_add_loop_test(read, outputs_on_inputs, 0, 4 * ELEMENTS_DTYPES);
    tcase_add_loop_test(read, outputs_on_outputs, 0, ELEMENTS_DTYPES);
    tcase_add_test(read, many_sources_forbid_results_on_sources);
    tcase_add_loop_test(read, interleaved_rows_are_apart, 0, ELEMENTS_DTYPES * levels_count());
    tcase_add_test(read, regions_overlap_where_bytes_do);
    suite_add_tcase(suite, read);
    return suite;
}
