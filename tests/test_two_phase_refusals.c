/* Everything that attnres_accumulate, attnres_state_clear and attnres_finish refuse, and that they
 * leave all memory as it was. */
#include "allocate.h"
#include "elements.h"
#include "inputs.h"
#include "suites.h"
#include "two_phase_parts.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { SOURCES = 3, QUERIES = 2, TOKENS = 2, WIDTH = 5 };

/* One valid call in one stretch of memory, for changes to be made to. */
typedef struct call {
    attnres_shape shape;
    attnres_rows sources[SOURCES];
    const void *queries[QUERIES];
    attnres_state states[QUERIES];
    attnres_per_source logits[QUERIES];
    attnres_accumulate_args args;
    struct {
        double rows[SOURCES][TOKENS * WIDTH];
        double queries[QUERIES][WIDTH];
        double bias[SOURCES];
        double max[QUERIES][TOKENS], sum[QUERIES][TOKENS], mix[QUERIES][TOKENS * WIDTH];
        double logits[QUERIES][SOURCES * TOKENS];
    } memory;
} call;

static void set_up(call *it, attnres_dtype dtype)
{
    uint64_t stream = 7;
    *it = (call){.shape = {dtype, TOKENS, WIDTH}};
    for (int s = 0; s < SOURCES; s++) {
        inputs_fill(dtype, INPUTS_ORDINARY, &stream, it->memory.rows[s], TOKENS * WIDTH);
        it->sources[s].data = it->memory.rows[s];
    }
    for (int i = 0; i < QUERIES; i++) {
        inputs_fill(attnres_dtype_accumulator(dtype), INPUTS_ORDINARY, &stream,
                    it->memory.queries[i], WIDTH);
        it->queries[i] = it->memory.queries[i];
        it->states[i] = (attnres_state){it->memory.max[i], it->memory.sum[i], it->memory.mix[i], 0};
        it->logits[i].data = it->memory.logits[i];
        for (int t = 0; t < TOKENS; t++) {
            it->memory.max[i][t] = -(double)INFINITY;
        }
    }
    it->args = (attnres_accumulate_args){.sources = it->sources,
                                         .source_count = SOURCES,
                                         .queries = it->queries,
                                         .query_count = QUERIES,
                                         .bias = it->memory.bias,
                                         .states = it->states,
                                         .logits = it->logits};
}

/* ---- What is changed, and what comes of it ------------------------------------------------ */

#define CHANGES(C)                                                                                 \
    C(NULL_sources, ARGUMENT, it->args.sources = NULL)                                             \
    C(NULL_queries, ARGUMENT, it->args.queries = NULL)                                             \
    C(NULL_states, ARGUMENT, it->args.states = NULL)                                               \
    C(NULL_row, ARGUMENT, it->sources[1].data = NULL)                                              \
    C(NULL_query, ARGUMENT, it->queries[1] = NULL)                                                 \
    C(NULL_max, ARGUMENT, it->states[1].max = NULL)                                                \
    C(NULL_sum, ARGUMENT, it->states[1].sum = NULL)                                                \
    C(NULL_mix, ARGUMENT, it->states[1].mix = NULL)                                                \
    C(no_dtype, DTYPE, it->shape.dtype = (attnres_dtype)0)                                         \
    C(wrong_dtype, DTYPE, it->shape.dtype = (attnres_dtype)5)                                      \
    C(no_width, SIZE, it->shape.width = 0)                                                         \
    C(wide, OVERFLOW, it->shape.width = SIZE_MAX / 4)                                              \
    C(many_tokens, OVERFLOW, it->shape.tokens = SIZE_MAX / 16)                                     \
    C(negative_stride, STRIDE, it->sources[2].stride = -WIDTH)                                     \
    C(small_stride, STRIDE, it->sources[2].stride = WIDTH - 1)                                     \
    C(large_stride, OVERFLOW, it->sources[2].stride = PTRDIFF_MAX)                                 \
    C(negative_mix, STRIDE, it->states[1].mix_stride = -WIDTH)                                     \
    C(small_mix, STRIDE, it->states[1].mix_stride = 1)                                             \
    C(large_mix, OVERFLOW, it->states[1].mix_stride = PTRDIFF_MAX / 2)                             \
    C(negative_eps, VALUE, it->args.eps = -1e-300)                                                 \
    C(NaN_eps, VALUE, it->args.eps = (double)NAN)                                                  \
    C(infinite_eps, VALUE, it->args.eps = (double)INFINITY)                                        \
    C(NaN_scale, VALUE, it->args.scale = (double)NAN)                                              \
    C(infinite_scale, VALUE, it->args.scale = -(double)INFINITY)                                   \
    C(NaN_bias, VALUE, it->memory.bias[2] = (double)NAN)                                           \
    C(infinite_bias, VALUE, it->memory.bias[2] = (double)INFINITY)                                 \
    C(same_mix, OVERLAP, it->states[1].mix = it->states[0].mix)                                    \
    C(same_max, OVERLAP, it->states[1].max = it->states[0].max)                                    \
    C(max_is_sum, OVERLAP, it->states[1].sum = it->states[1].max)                                  \
    C(max_is_others_sum, OVERLAP, it->states[0].max = it->states[1].sum)                           \
    C(sum_in_mix, OVERLAP, it->states[1].sum = it->states[1].mix)                                  \
    C(max_in_others_mix, OVERLAP, it->states[1].max = it->states[0].mix)                           \
    C(mix_in_source, OVERLAP, it->states[1].mix = it->memory.rows[2])                              \
    C(max_in_source, OVERLAP, it->states[0].max = it->memory.rows[0])                              \
    C(mix_in_query, OVERLAP, it->states[0].mix = it->memory.queries[1])                            \
    C(sum_in_query, OVERLAP, it->states[0].sum = it->memory.queries[0])                            \
    C(max_in_bias, OVERLAP, it->states[1].max = it->memory.bias)                                   \
    C(same_logits, OVERLAP, it->logits[1].data = it->logits[0].data)                               \
    C(logits_in_source, OVERLAP, it->logits[0].data = it->memory.rows[1])                          \
    C(logits_in_query, OVERLAP, it->logits[0].data = it->memory.queries[1])                        \
    C(logits_in_bias, OVERLAP, it->logits[1].data = it->memory.bias)                               \
    C(logits_in_mix, OVERLAP, it->logits[0].data = it->memory.mix[1])                              \
    C(logits_in_max, OVERLAP, it->logits[1].data = it->memory.max[0])                              \
    C(logits_backwards, STRIDE, it->logits[1].token_stride = -1)                                   \
    C(logits_share, STRIDE, it->logits[1].source_stride = 1)                                       \
    C(logits_far, OVERFLOW, it->logits[0].source_stride = PTRDIFF_MAX)

#define FUNCTION(name, status, change)                                                             \
    static void change_##name(call *it)                                                            \
    {                                                                                              \
        change;                                                                                    \
    }
CHANGES(FUNCTION)

static const struct {
    const char *name;
    attnres_status status;
    void (*change)(call *it);
} changes[] = {
#define ENTRY(name, status, change) {#name, ATTNRES_ERROR_##status, change_##name},
    CHANGES(ENTRY)
#undef ENTRY
};
enum { CHANGE_COUNT = sizeof changes / sizeof *changes };

/* _i is the dtype. */
START_TEST(accumulate_refuses)
{
    call *it = allocate(1, sizeof *it), *before = allocate(1, sizeof *it);
    for (int n = 0; n < CHANGE_COUNT; n++) {
        set_up(it, elements_dtype(_i));
        changes[n].change(it);
        memcpy(before, it, sizeof *it);
        const attnres_status status = attnres_accumulate(&it->shape, &it->args);
        ck_assert_msg(status == changes[n].status, "%s: %s", changes[n].name,
                      attnres_status_string(status));
        ck_assert_msg(memcmp(&it->memory, &before->memory, sizeof it->memory) == 0,
                      "%s: something was written", changes[n].name);
    }
    set_up(it, elements_dtype(_i));
    ck_assert_int_eq(attnres_accumulate(NULL, &it->args), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_accumulate(&it->shape, NULL), ATTNRES_ERROR_ARGUMENT);
    free(it);
    free(before);
}
END_TEST

/* ---- What is legal, though it looks odd --------------------------------------------------- */

START_TEST(nothing_to_do_is_fine)
{
    call *it = allocate(1, sizeof *it), *before = allocate(1, sizeof *it);
    set_up(it, elements_dtype(_i));
    memcpy(before, it, sizeof *it);
    attnres_accumulate_args args = it->args;
    args.source_count = 0; /* with logits wanted, of none */
    ck_assert_int_eq(attnres_accumulate(&it->shape, &args), ATTNRES_OK);
    args.sources = NULL;
    args.bias = NULL;
    ck_assert_int_eq(attnres_accumulate(&it->shape, &args), ATTNRES_OK);
    args = it->args;
    args.query_count = 0;
    ck_assert_int_eq(attnres_accumulate(&it->shape, &args), ATTNRES_OK);
    args.queries = NULL;
    args.states = NULL;
    args.logits = NULL;
    ck_assert_int_eq(attnres_accumulate(&it->shape, &args), ATTNRES_OK);

    const attnres_state nothing = {NULL, NULL, NULL, 0};
    const attnres_rows_out nowhere = {NULL, 0};
    it->shape.tokens = 0; /* then no row is looked at */
    it->sources[1].data = NULL;
    it->states[0] = nothing;
    it->logits[0].token_stride = 3;
    ck_assert_int_eq(attnres_accumulate(&it->shape, &it->args), ATTNRES_OK);
    ck_assert_int_eq(attnres_state_clear(&it->shape, &nothing), ATTNRES_OK);
    ck_assert_int_eq(attnres_finish(&it->shape, &nothing, nowhere), ATTNRES_OK);
    ck_assert_mem_eq(&it->memory, &before->memory, sizeof it->memory);
    free(it);
    free(before);
}
END_TEST

/* A resumed read may want logits and have no new source. */
START_TEST(resume_without_sources)
{
    call *it = allocate(1, sizeof *it), *before = allocate(1, sizeof *it);
    double retrieved[TOKENS * WIDTH], finished[TOKENS * WIDTH];
    set_up(it, elements_dtype(_i));
    ck_assert_int_eq(attnres_accumulate(&it->shape, &it->args), ATTNRES_OK);
    memcpy(before, it, sizeof *it);
    const attnres_read_args args = {.resume = &it->states[0],
                                    .retrieved = {retrieved, 0},
                                    .logits = {.data = it->memory.logits[0]}};
    ck_assert_int_eq(attnres_read(&it->shape, &args), ATTNRES_OK);
    ck_assert_mem_eq(&it->memory, &before->memory, sizeof it->memory);
    const attnres_rows_out out = {finished, 0};
    ck_assert_int_eq(attnres_finish(&it->shape, &it->states[0], out), ATTNRES_OK);
    elements_check(it->shape.dtype, retrieved, finished, TOKENS * WIDTH, "no new source");
    free(it);
    free(before);
}
END_TEST

START_TEST(clear_and_finish_refuse)
{
    call *it = allocate(1, sizeof *it), *before = allocate(1, sizeof *it);
    double out[TOKENS * WIDTH] = {0};
    const attnres_rows_out good = {out, 0}, nowhere = {NULL, 0};
    set_up(it, elements_dtype(_i));
    for (int n = 0; n < CHANGE_COUNT; n++) {
        set_up(it, elements_dtype(_i));
        changes[n].change(it);
        memcpy(before, it, sizeof *it);
        const attnres_state *state = &it->states[1];
        const int is_bad_shape =
            memcmp(&it->shape.tokens, (size_t[]){TOKENS, WIDTH}, 2 * sizeof(size_t)) != 0 ||
            attnres_dtype_size(it->shape.dtype) == 0;
        if (is_bad_shape || !state->max || !state->sum || !state->mix || state->mix_stride) {
            const attnres_status status = attnres_finish(&it->shape, state, good);
            ck_assert_msg(status == changes[n].status, "%s: %s", changes[n].name,
                          attnres_status_string(status));
            ck_assert_int_eq(attnres_state_clear(&it->shape, state), changes[n].status);
        }
        ck_assert_mem_eq(&it->memory, &before->memory, sizeof it->memory);
    }
    set_up(it, elements_dtype(_i));
    attnres_rows_out inside = {it->states[0].mix, 0};
    ck_assert_int_eq(attnres_finish(&it->shape, &it->states[0], inside), ATTNRES_ERROR_OVERLAP);
    inside.data = it->states[0].sum;
    ck_assert_int_eq(attnres_finish(&it->shape, &it->states[0], inside), ATTNRES_ERROR_OVERLAP);
    ck_assert_int_eq(attnres_finish(&it->shape, &it->states[0], nowhere), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_finish(&it->shape, NULL, good), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_finish(NULL, &it->states[0], good), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_state_clear(NULL, &it->states[0]), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_state_clear(&it->shape, NULL), ATTNRES_ERROR_ARGUMENT);
    for (int i = 0; i < TOKENS * WIDTH; i++) {
        ck_assert(out[i] == 0);
    }
    free(it);
    free(before);
}
END_TEST

/* Weights need all sources; a resumed read does not have them. */
START_TEST(weights_do_not_go_with_resume)
{
    call *it = allocate(1, sizeof *it), *before = allocate(1, sizeof *it);
    double weights[SOURCES * TOKENS] = {0}, out[TOKENS * WIDTH] = {0};
    set_up(it, elements_dtype(_i));
    ck_assert_int_eq(attnres_accumulate(&it->shape, &it->args), ATTNRES_OK);
    memcpy(before, it, sizeof *it);
    attnres_read_args args = {.sources = it->sources,
                              .source_count = SOURCES,
                              .query = it->queries[0],
                              .resume = &it->states[0],
                              .retrieved = {out, 0},
                              .weights = {.data = weights}};
    ck_assert_int_eq(attnres_read(&it->shape, &args), ATTNRES_ERROR_ARGUMENT);
    ck_assert(weights[0] == 0 && out[0] == 0);
    args.weights.data = NULL;
    void *const inside[] = {it->states[0].max, it->states[0].sum, it->states[0].mix};
    for (int i = 0; i < 3; i++) {
        args.retrieved.data = inside[i];
        ck_assert_int_eq(attnres_read(&it->shape, &args), ATTNRES_ERROR_OVERLAP);
    }
    ck_assert_mem_eq(&it->memory, &before->memory, sizeof it->memory);
    free(it);
    free(before);
}
END_TEST

TCase *two_phase_refusals_case(void)
{
    TCase *refusals = tcase_create("refusals");
    tcase_add_loop_test(refusals, accumulate_refuses, 0, ELEMENTS_DTYPES);
    tcase_add_loop_test(refusals, nothing_to_do_is_fine, 0, ELEMENTS_DTYPES);
    tcase_add_loop_test(refusals, resume_without_sources, 0, ELEMENTS_DTYPES);
    tcase_add_loop_test(refusals, clear_and_finish_refuse, 0, ELEMENTS_DTYPES);
    tcase_add_loop_test(refusals, weights_do_not_go_with_resume, 0, ELEMENTS_DTYPES);
    return refusals;
}
