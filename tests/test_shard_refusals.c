/* What attnres_score and attnres_mix refuse, what they allow, and that a refused call leaves all
 * memory as it was. */
#include "allocate.h"
#include "elements.h"
#include "inputs.h"
#include "shard_parts.h"

#include <attnres.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { SOURCES = 3, TOKENS = 2, WIDTH = 5 };

/* A valid call of each in one stretch of memory, for changes to be made to. */
typedef struct call {
    attnres_shape shape;
    attnres_rows sources[SOURCES];
    attnres_score_args score;
    attnres_mix_args mix;
    struct {
        double rows[SOURCES][TOKENS * WIDTH + 2];
        double query[WIDTH];
        double squares[SOURCES * TOKENS], dots[SOURCES * TOKENS], logits[SOURCES * TOKENS];
        double retrieved[TOKENS * WIDTH], weights[SOURCES * TOKENS];
    } memory;
} call;

static void set_up(call *it, attnres_dtype dtype)
{
    uint64_t stream = 9;
    *it = (call){.shape = {dtype, TOKENS, WIDTH}};
    for (int s = 0; s < SOURCES; s++) {
        inputs_fill(dtype, INPUTS_ORDINARY, &stream, it->memory.rows[s], TOKENS * WIDTH);
        it->sources[s].data = it->memory.rows[s];
    }
    inputs_fill(attnres_dtype_accumulator(dtype), INPUTS_ORDINARY, &stream, it->memory.query,
                WIDTH);
    inputs_fill(ATTNRES_F64, INPUTS_ORDINARY, &stream, it->memory.logits, SOURCES * TOKENS);
    it->score = (attnres_score_args){.sources = it->sources,
                                     .source_count = SOURCES,
                                     .query = it->memory.query,
                                     .squares = {.data = it->memory.squares},
                                     .dots = {.data = it->memory.dots}};
    it->mix = (attnres_mix_args){.sources = it->sources,
                                 .source_count = SOURCES,
                                 .logits = {.data = it->memory.logits},
                                 .retrieved = {it->memory.retrieved, 0},
                                 .weights = {.data = it->memory.weights}};
}

/* ---- What is changed, and what comes of it ------------------------------------------------ */

#define CHANGES_OF_BOTH(C)                                                                         \
    C(no_dtype, DTYPE, it->shape.dtype = (attnres_dtype)0)                                         \
    C(no_width, SIZE, it->shape.width = 0)                                                         \
    C(wide, OVERFLOW, it->shape.width = SIZE_MAX / 4)                                              \
    C(many_tokens, OVERFLOW, it->shape.tokens = SIZE_MAX / 4)                                      \
    C(NULL_row, ARGUMENT, it->sources[2].data = NULL)                                              \
    C(negative_stride, STRIDE, it->sources[2].stride = -WIDTH)                                     \
    C(small_stride, STRIDE, it->sources[2].stride = WIDTH - 1)                                     \
    C(large_stride, OVERFLOW, it->sources[2].stride = PTRDIFF_MAX)

#define CHANGES_OF_SCORE(C)                                                                        \
    C(NULL_sources, ARGUMENT, it->score.sources = NULL)                                            \
    C(NULL_query, ARGUMENT, it->score.query = NULL)                                                \
    C(NULL_squares, ARGUMENT, it->score.squares.data = NULL)                                       \
    C(NULL_dots, ARGUMENT, it->score.dots.data = NULL)                                             \
    C(squares_backwards, STRIDE, it->score.squares.token_stride = -1)                              \
    C(dots_share, STRIDE, it->score.dots.source_stride = 1)                                        \
    C(dots_far, OVERFLOW, it->score.dots.source_stride = PTRDIFF_MAX)                              \
    C(squares_are_dots, OVERLAP, it->score.squares.data = it->memory.dots + 1)                     \
    C(squares_in_query, OVERLAP, it->score.squares.data = it->memory.query)                        \
    C(dots_in_query, OVERLAP, it->score.dots.data = it->memory.query)                              \
    C(squares_in_source, OVERLAP, it->score.squares.data = it->memory.rows[1])                     \
    C(dots_in_source, OVERLAP, it->score.dots.data = it->memory.rows[2])

#define CHANGES_OF_MIX(C)                                                                          \
    C(mix_NULL_sources, ARGUMENT, it->mix.sources = NULL)                                          \
    C(mix_no_source, ARGUMENT, it->mix.source_count = 0)                                           \
    C(mix_NULL_logits, ARGUMENT, it->mix.logits.data = NULL)                                       \
    C(mix_NULL_retrieved, ARGUMENT, it->mix.retrieved.data = NULL)                                 \
    C(retrieved_backwards, STRIDE, it->mix.retrieved.stride = -WIDTH)                              \
    C(retrieved_small, STRIDE, it->mix.retrieved.stride = 2)                                       \
    C(logits_backwards, STRIDE, it->mix.logits.source_stride = -1)                                 \
    C(logits_share, STRIDE, it->mix.logits.source_stride = 1)                                      \
    C(weights_share, STRIDE, it->mix.weights.source_stride = 1)                                    \
    C(weights_far, OVERFLOW, it->mix.weights.source_stride = PTRDIFF_MAX)                          \
    C(retrieved_in_weights, OVERLAP, it->mix.retrieved.data = it->memory.weights)                  \
    C(retrieved_in_logits, OVERLAP, it->mix.retrieved.data = it->memory.logits)                    \
    C(weights_in_logits, OVERLAP, it->mix.weights.data = it->memory.logits)                        \
    C(weights_in_source, OVERLAP, it->mix.weights.data = it->memory.rows[0])                       \
    C(retrieved_shifted, OVERLAP, it->mix.retrieved.data = it->memory.rows[0] + 1)                 \
    C(retrieved_other_stride, OVERLAP,                                                             \
      (it->mix.retrieved.data = it->memory.rows[2], it->mix.retrieved.stride = WIDTH + 1))

#define FUNCTION(name, status, change)                                                             \
    static void change_##name(call *it)                                                            \
    {                                                                                              \
        change;                                                                                    \
    }
CHANGES_OF_BOTH(FUNCTION)
CHANGES_OF_SCORE(FUNCTION)
CHANGES_OF_MIX(FUNCTION)

enum { SCORE = 1, MIX = 2 };

static const struct {
    const char *name;
    int calls;
    attnres_status status;
    void (*change)(call *it);
} changes[] = {
#define OF_BOTH(name, status, change) {#name, SCORE | MIX, ATTNRES_ERROR_##status, change_##name},
#define OF_SCORE(name, status, change) {#name, SCORE, ATTNRES_ERROR_##status, change_##name},
#define OF_MIX(name, status, change) {#name, MIX, ATTNRES_ERROR_##status, change_##name},
    CHANGES_OF_BOTH(OF_BOTH) CHANGES_OF_SCORE(OF_SCORE) CHANGES_OF_MIX(OF_MIX)};

/* _i is the dtype. */
START_TEST(halves_refuse)
{
    call *it = allocate(1, sizeof *it), *before = allocate(1, sizeof *it);
    for (size_t n = 0; n < sizeof changes / sizeof *changes; n++) {
        set_up(it, elements_dtype(_i));
        changes[n].change(it);
        memcpy(before, it, sizeof *it);
        for (int half = SCORE; half <= MIX; half++) {
            if (!(changes[n].calls & half)) {
                continue;
            }
            const attnres_status status = half == SCORE ? attnres_score(&it->shape, &it->score)
                                                        : attnres_mix(&it->shape, &it->mix);
            ck_assert_msg(status == changes[n].status, "%s: %s", changes[n].name,
                          attnres_status_string(status));
            ck_assert_msg(memcmp(&it->memory, &before->memory, sizeof it->memory) == 0,
                          "%s: something was written", changes[n].name);
        }
    }
    set_up(it, elements_dtype(_i));
    ck_assert_int_eq(attnres_score(NULL, &it->score), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_score(&it->shape, NULL), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_mix(NULL, &it->mix), ATTNRES_ERROR_ARGUMENT);
    ck_assert_int_eq(attnres_mix(&it->shape, NULL), ATTNRES_ERROR_ARGUMENT);
    free(it);
    free(before);
}
END_TEST

START_TEST(nothing_to_do_is_fine)
{
    call *it = allocate(1, sizeof *it), *before = allocate(1, sizeof *it);
    set_up(it, elements_dtype(_i));
    memcpy(before, it, sizeof *it);
    it->score.source_count = 0;
    ck_assert_int_eq(attnres_score(&it->shape, &it->score), ATTNRES_OK);
    it->score.source_count = SOURCES;
    it->shape.tokens = 0;
    it->sources[0].data = NULL;
    it->mix.weights.token_stride = 7;
    ck_assert_int_eq(attnres_score(&it->shape, &it->score), ATTNRES_OK);
    ck_assert_int_eq(attnres_mix(&it->shape, &it->mix), ATTNRES_OK);
    ck_assert_mem_eq(&it->memory, &before->memory, sizeof it->memory);
    free(it);
    free(before);
}
END_TEST

/* ---- The result in place of a source ------------------------------------------------------- */

START_TEST(result_in_place_of_a_source)
{
    const attnres_dtype dtype = elements_dtype(_i);
    call *it = allocate(1, sizeof *it), *apart = allocate(1, sizeof *it);
    for (int s = 0; s < SOURCES; s++) {
        set_up(apart, dtype);
        ck_assert_int_eq(attnres_mix(&apart->shape, &apart->mix), ATTNRES_OK);
        set_up(it, dtype);
        it->mix.retrieved.data = it->memory.rows[s];
        ck_assert_int_eq(attnres_mix(&it->shape, &it->mix), ATTNRES_OK);
        elements_check(dtype, it->memory.rows[s], apart->memory.retrieved, TOKENS * WIDTH,
                       "in place of source %d", s);
        elements_check(dtype, it->memory.weights, apart->memory.weights, SOURCES * TOKENS,
                       "weights, in place of source %d", s);
        it->sources[(s + 1) % SOURCES] = it->sources[s]; /* also if it is there twice */
        ck_assert_int_eq(attnres_mix(&it->shape, &it->mix), ATTNRES_OK);
    }
    free(it);
    free(apart);
}
END_TEST

/* Beyond one group rows are read again after results were written. */
START_TEST(many_sources_and_a_result_in_place)
{
    enum { MANY = ATTNRES_SOURCES_FAST + 1 };
    const attnres_dtype dtype = elements_dtype(_i);
    call *it = allocate(1, sizeof *it), *before = allocate(1, sizeof *it);
    double *logits = allocate(MANY * TOKENS, sizeof *logits);
    attnres_rows sources[MANY];
    set_up(it, dtype);
    for (int s = 0; s < MANY; s++) {
        sources[s] = it->sources[s % SOURCES];
    }
    it->mix.sources = sources;
    it->mix.source_count = MANY;
    it->mix.logits.data = logits;
    it->mix.weights.data = NULL;
    it->mix.retrieved.data = it->memory.rows[1];
    memcpy(before, it, sizeof *it);
    ck_assert_int_eq(attnres_mix(&it->shape, &it->mix), ATTNRES_ERROR_OVERLAP);
    ck_assert_mem_eq(&it->memory, &before->memory, sizeof it->memory);
    it->mix.source_count = MANY - 1;
    ck_assert_int_eq(attnres_mix(&it->shape, &it->mix), ATTNRES_OK);
    free(it);
    free(before);
    free(logits);
}
END_TEST

TCase *shard_refusals_case(void)
{
    TCase *refusals = tcase_create("refusals");
    tcase_add_loop_test(refusals, halves_refuse, 0, ELEMENTS_DTYPES);
    tcase_add_loop_test(refusals, nothing_to_do_is_fine, 0, ELEMENTS_DTYPES);
    tcase_add_loop_test(refusals, result_in_place_of_a_source, 0, ELEMENTS_DTYPES);
    tcase_add_loop_test(refusals, many_sources_and_a_result_in_place, 0, ELEMENTS_DTYPES);
    return refusals;
}
