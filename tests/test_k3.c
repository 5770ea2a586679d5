/* Kimi K3's layer loop through the stream: literally what the contract says of each of its steps,
 * the same for any split of the tokens over threads, and for pipeline stages of one layer each. */
#include "allocate.h"
#include "elements.h"
#include "inputs.h"
#include "k3_loop.h"
#include "levels.h"
#include "plain.h"
#include "suites.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { SOURCES_MAX = 16, PARTS_MAX = 7 };

typedef struct results {
    unsigned char *retrieved, *normed; /* [sites][tokens][width] */
    size_t elements;
} results;

static results open_results(const k3_stack *stack)
{
    const size_t elements = k3_sites(stack) * stack->shape.tokens * stack->shape.width;
    const size_t size = attnres_dtype_size(stack->shape.dtype);
    const results it = {allocate(elements, size), allocate(elements, size), elements};
    return it;
}

static void close_results(results *it)
{
    free(it->retrieved);
    free(it->normed);
}

static void check_results(const k3_stack *stack, const results *found, const results *expected,
                          const char *what)
{
    elements_check(stack->shape.dtype, found->retrieved, expected->retrieved, found->elements,
                   "%s, result", what);
    elements_check(stack->shape.dtype, found->normed, expected->normed, found->elements,
                   "%s, normed", what);
}

/* ---- The literal loop --------------------------------------------------------------------- */

/* Bank and prefix of one token; rows [banked] is the prefix, or where it will be. */
typedef struct state {
    unsigned char *rows[SOURCES_MAX];
    size_t banked;
    int has_prefix;
} state;

static void add_output(const k3_stack *stack, state *it, const void *output)
{
    unsigned char *prefix = it->rows[it->banked];
    const void *both[2] = {prefix, output};
    plain_sum(stack->shape.dtype, it->has_prefix ? both : both + 1, it->has_prefix ? 2 : 1,
              stack->shape.width, prefix);
    it->has_prefix = 1;
}

static void read_literally(const k3_stack *stack, const state *it, size_t site, size_t t,
                           const results *to)
{
    const void *rows[SOURCES_MAX];
    for (size_t s = 0; s <= it->banked; s++) {
        rows[s] = it->rows[s];
    }
    const reading in = {.dtype = stack->shape.dtype,
                        .width = stack->shape.width,
                        .count = it->banked + 1,
                        .rows = rows,
                        .query = k3_query(stack, site),
                        .eps = stack->eps,
                        .norm_gain = k3_gain(stack, site),
                        .norm_eps = stack->norm_eps};
    const plain_results out = {.retrieved = k3_row(stack, to->retrieved, site, t),
                               .normed = k3_row(stack, to->normed, site, t)};
    plain_read(&in, NULL, &out);
}

/* As runtimes do it: read, push the raw prefix if the layer starts a block, sublayer, add. */
static void run_literally(const k3_stack *stack, size_t t, const results *to)
{
    const attnres_dtype dtype = stack->shape.dtype;
    const size_t width = stack->shape.width, row = width * attnres_dtype_size(dtype);
    unsigned char *output = allocate(1, row);
    state it = {.has_prefix = 1};
    for (size_t s = 0; s <= k3_pushes(stack); s++) {
        it.rows[s] = allocate(1, row);
    }
    memcpy(it.rows[0], stack->embedding + t * row, row);
    for (size_t layer = 0; layer < stack->layers; layer++) {
        for (size_t site = 2 * layer; site < 2 * layer + 2; site++) {
            read_literally(stack, &it, site, t, to);
            if (site == 2 * layer && layer % stack->block_size == 0) {
                it.banked++;
                it.has_prefix = 0;
            }
            k3_stand_in(dtype, width, site, k3_row(stack, to->normed, site, t), output);
            add_output(stack, &it, output);
        }
    }
    read_literally(stack, &it, 2 * stack->layers, t, to);
    for (size_t s = 0; s <= k3_pushes(stack); s++) {
        free(it.rows[s]);
    }
    free(output);
}

/* Boundaries at layer 0, last partial block, exact boundary at the end, one layer per block, one
 * block for all. _i is dtype and stack. */
static const size_t stacks[][3] = {/* layers, block size, width */
                                   {10, 3, 123}, {9, 3, 37}, {5, 1, 64}, {5, 12, 130},
                                   {4, 4, 31},   {1, 1, 1},  {7, 2, 384}};
enum { STACKS = sizeof stacks / sizeof *stacks };

START_TEST(loop_is_the_literal_one)
{
    const size_t *sizes = stacks[_i / ELEMENTS_DTYPES];
    const attnres_shape shape = {elements_dtype(_i % ELEMENTS_DTYPES), 2, sizes[2]};
    char what[64];
    k3_stack stack;
    k3_open(&stack, shape, sizes[0], sizes[1], inputs_stream(73, (uint64_t)_i, 0));
    results found = open_results(&stack), expected = open_results(&stack);
    for (size_t t = 0; t < shape.tokens; t++) {
        run_literally(&stack, t, &expected);
    }
    for (int level = 0; level < levels_count(); level++) {
        levels_use(level);
        k3_part part = {.stack = &stack,
                        .tokens = shape.tokens,
                        .retrieved = found.retrieved,
                        .normed = found.normed};
        memset(found.retrieved, 0x5a, found.elements);
        k3_run(&part);
        ck_assert_int_eq(part.status, ATTNRES_OK);
        ck_assert_uint_eq(part.sources, (sizes[0] + sizes[1] - 1) / sizes[1] + 1);
        snprintf(what, sizeof what, "level %s, %zu layers, blocks of %zu", levels_name(level),
                 sizes[0], sizes[1]);
        check_results(&stack, &found, &expected, what);
    }
    ck_assert_mem_eq(expected.retrieved, stack.embedding, /* the first site is a copy */
                     shape.tokens * shape.width * attnres_dtype_size(shape.dtype));
    close_results(&found);
    close_results(&expected);
    k3_close(&stack);
}
END_TEST

/* ---- Threads and stages --------------------------------------------------------------------- */

static void *run_part(void *part)
{
    k3_run(part);
    return NULL;
}

/* The tokens in that many ranges, each on a thread of its own. */
static void run_split(const k3_stack *stack, size_t parts, int hops, const results *to)
{
    const size_t tokens = stack->shape.tokens;
    pthread_t threads[PARTS_MAX];
    k3_part part[PARTS_MAX];
    size_t first = 0;
    for (size_t i = 0; i < parts; i++) {
        part[i] = (k3_part){.stack = stack,
                            .first = first,
                            .tokens = tokens / parts + (i < tokens % parts),
                            .hops = hops,
                            .retrieved = to->retrieved,
                            .normed = to->normed};
        first += part[i].tokens;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_part, &part[i]), 0);
    }
    ck_assert_uint_eq(first, tokens);
    for (size_t i = 0; i < parts; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }
    for (size_t i = 0; i < parts; i++) {
        ck_assert_msg(part[i].status == ATTNRES_OK, "part %zu of %zu: %s", i, parts,
                      attnres_status_string(part[i].status));
    }
}

/* _i is level and dtype. */
START_TEST(splits_and_stages_change_nothing)
{
    static const size_t splits[] = {1, 2, 3, PARTS_MAX};
    const attnres_shape shape = {elements_dtype(_i % ELEMENTS_DTYPES), 17, 123};
    k3_stack stack;
    char what[64];
    levels_use(_i / ELEMENTS_DTYPES);
    k3_open(&stack, shape, 10, 3, inputs_stream(74, (uint64_t)_i, 0));
    results whole = open_results(&stack), found = open_results(&stack);
    k3_part all = {.stack = &stack,
                   .tokens = shape.tokens,
                   .retrieved = whole.retrieved,
                   .normed = whole.normed};
    k3_run(&all);
    ck_assert_int_eq(all.status, ATTNRES_OK);
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        for (int hops = 0; hops < 2; hops++) {
            memset(found.retrieved, 0x5a, found.elements);
            memset(found.normed, 0x5a, found.elements);
            run_split(&stack, splits[i], hops, &found);
            snprintf(what, sizeof what, "%zu ranges, %s", splits[i],
                     hops ? "a stage per layer" : "one stage");
            check_results(&stack, &found, &whole, what);
        }
    }
    close_results(&whole);
    close_results(&found);
    k3_close(&stack);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("k3");
    TCase *loop = tcase_create("loop");
    tcase_add_checked_fixture(loop, levels_save, levels_restore);
    tcase_set_timeout(loop, 60);
    tcase_add_loop_test(loop, loop_is_the_literal_one, 0, ELEMENTS_DTYPES * STACKS);
    tcase_add_loop_test(loop, splits_and_stages_change_nothing, 0,
                        ELEMENTS_DTYPES * levels_count());
    suite_add_tcase(suite, loop);
    return suite;
}
