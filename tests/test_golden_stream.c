/* The recorded stacks of Kimi K3 through the stream, fed with the recorded outputs: prefix and bank
 * bit for bit, every read within the oracle's bound of the recorded one, in one stage and in one
 * per layer. See tests/golden/README.md. */
#include "allocate.h"
#include "elements.h"
#include "feed.h"
#include "golden.h"
#include "k3_loop.h"
#include "levels.h"
#include "oracle.h"
#include "suites.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STACKS = 3, BANK = 4, SOURCES_MAX = BANK + 1 };

typedef struct recorded {
    golden data;
    k3_stack stack;
    size_t sites;
    unsigned char *prefix, *bank, *normed, *output; /* [sites or BANK][tokens][width] */
    double *read_exact, *weights;
} recorded;

static void *tensor(recorded *it, int number, const char *name, size_t count, attnres_dtype dtype)
{
    char prefix[24];
    snprintf(prefix, sizeof prefix, "k3_%d.", number);
    return golden_tensor(&it->data, prefix, name, count, &dtype);
}

/* Query and gain of every site, from their bf16 factors. */
static void make_vectors(recorded *it, int number)
{
    const size_t width = it->stack.shape.width, count = it->sites * width;
    uint16_t *norm = tensor(it, number, "query_norm", count, ATTNRES_BF16);
    uint16_t *projection = tensor(it, number, "query_proj", count, ATTNRES_BF16);
    uint16_t *gain = tensor(it, number, "norm_gain", count, ATTNRES_BF16);
    it->stack.queries = allocate(count, sizeof(float));
    it->stack.gains = allocate(count, sizeof(float));
    for (size_t site = 0; site < it->sites; site++) {
        const attnres_vector left = {ATTNRES_BF16, projection + site * width, width};
        const attnres_vector right = {ATTNRES_BF16, norm + site * width, width};
        FEED_TRY(attnres_make_query(it->stack.shape.dtype, width, &left, &right,
                                    (float *)(void *)it->stack.queries + site * width));
    }
    for (size_t i = 0; i < count; i++) {
        elements_set(ATTNRES_F32, it->stack.gains, i, elements_get(ATTNRES_BF16, gain, i));
    }
    free(norm);
    free(projection);
    free(gain);
}

static void open_recorded(recorded *it, int number)
{
    char name[16];
    *it = (recorded){.sites = 0};
    golden_open(&it->data, "golden/k3.safetensors");
    snprintf(name, sizeof name, "k3_%d", number);
    const char *list = golden_text(&it->data, name);
    k3_stack *stack = &it->stack;
    stack->shape = (attnres_shape){golden_dtype(list), (size_t)golden_number(list, "tokens"),
                                   (size_t)golden_number(list, "width")};
    stack->layers = (size_t)golden_number(list, "layers");
    stack->block_size = (size_t)golden_number(list, "block_size");
    stack->eps = golden_number(list, "eps");
    stack->norm_eps = golden_number(list, "norm_eps");
    ck_assert_uint_eq(k3_pushes(stack), BANK);
    it->sites = k3_sites(stack);
    const size_t row = stack->shape.tokens * stack->shape.width;
    const attnres_dtype dtype = stack->shape.dtype;
    stack->embedding = tensor(it, number, "embedding", row, dtype);
    it->prefix = tensor(it, number, "prefix", it->sites * row, dtype);
    it->bank = tensor(it, number, "bank", BANK * row, dtype);
    it->normed = tensor(it, number, "normed", it->sites * row, dtype);
    it->output = tensor(it, number, "output", (it->sites - 1) * row, dtype);
    it->read_exact = tensor(it, number, "read_exact", it->sites * row, ATTNRES_F64);
    it->weights =
        tensor(it, number, "weights", it->sites * SOURCES_MAX * stack->shape.tokens, ATTNRES_F64);
    make_vectors(it, number);
}

static void close_recorded(recorded *it)
{
    k3_close(&it->stack);
    free(it->prefix);
    free(it->bank);
    free(it->normed);
    free(it->output);
    free(it->read_exact);
    free(it->weights);
    golden_close(&it->data);
}

/* ---- One read ------------------------------------------------------------------------------ */

/* How many bank rows the site reads: those of the pushes before it. */
static size_t banked_at(const recorded *it, size_t site)
{
    size_t count = 0;
    for (size_t s = 0; s < site; s++) {
        count += (size_t)k3_site_pushes(&it->stack, s);
    }
    return count;
}

/* Within the bound of the oracle, which knows what the recorded result is a rounding of. */
static void check_token(const recorded *it, size_t site, size_t t, const void *retrieved,
                        const void *weights)
{
    const k3_stack *stack = &it->stack;
    const attnres_dtype dtype = stack->shape.dtype;
    const size_t width = stack->shape.width, count = banked_at(it, site) + 1;
    const void *rows[SOURCES_MAX];
    for (size_t s = 0; s < count; s++) {
        rows[s] =
            s + 1 < count ? k3_row(stack, it->bank, s, t) : k3_row(stack, it->prefix, site, t);
    }
    const reading in = {.dtype = dtype,
                        .width = width,
                        .count = count,
                        .rows = rows,
                        .query = k3_query(stack, site),
                        .eps = stack->eps};
    oracle judge;
    oracle_open(&judge, &in);
    for (size_t i = 0; i < width; i++) {
        const double exact = it->read_exact[(site * stack->shape.tokens + t) * width + i];
        const double bound =
            (double)judge.mix_bounds[i] + 1e-13 * (double)judge.magnitudes[i] +
            (attnres_dtype_size(dtype) == 2 ? elements_ulp(dtype, exact) * 0.501 : 0);
        const double error = fabs(elements_get(dtype, retrieved, i) - exact);
        ck_assert_msg(error <= bound, "site %zu, element %zu: error %g, bound %g", site, i, error,
                      bound);
    }
    for (size_t s = 0; s < count; s++) {
        const double exact = it->weights[(site * SOURCES_MAX + s) * stack->shape.tokens + t];
        const double error =
            fabs(elements_get(dtype, weights, s * stack->shape.tokens + t) - exact);
        ck_assert(error <=
                  (double)judge.weight_bounds[s] + 1e-13 + elements_ulp(dtype, exact) * 0.501);
    }
    oracle_close(&judge);
}

/* Bank and prefix as they were read, whether or not the prefix was pushed since. */
static void check_state(const recorded *it, const feed *stage, size_t site)
{
    const k3_stack *stack = &it->stack;
    const size_t row = stack->shape.tokens * stack->shape.width;
    const size_t banked = banked_at(it, site);
    attnres_rows found[SOURCES_MAX];
    ck_assert_uint_eq(attnres_stream_sources(stage->stream, found, SOURCES_MAX), banked + 1);
    for (size_t s = 0; s <= banked; s++) {
        const void *expected =
            s < banked ? k3_row(stack, it->bank, s, 0) : k3_row(stack, it->prefix, site, 0);
        elements_check(stack->shape.dtype, found[s].data, expected, row, "site %zu, source %zu",
                       site, s);
    }
}

static void read_site(const recorded *it, const feed *stage, size_t site)
{
    const k3_stack *stack = &it->stack;
    const size_t elements = stack->shape.tokens * stack->shape.width;
    const attnres_rows output = {site ? k3_row(stack, it->output, site - 1, 0) : NULL, 0};
    void *retrieved = allocate(elements, sizeof(double));
    void *weights = allocate(SOURCES_MAX * stack->shape.tokens, sizeof(double));
    const attnres_stream_read_args args = {.outputs = &output,
                                           .output_count = site > 0,
                                           .push = k3_site_pushes(stack, site),
                                           .query = k3_query(stack, site),
                                           .eps = stack->eps,
                                           .retrieved = {retrieved, 0},
                                           .weights = {.data = weights}};
    FEED_TRY(attnres_stream_read(stage->stream, &args));
    check_state(it, stage, site);
    for (size_t t = 0; t < stack->shape.tokens; t++) {
        check_token(it, site, t, elements_at(stack->shape.dtype, retrieved, t * stack->shape.width),
                    weights);
    }
    free(retrieved);
    free(weights);
}

/* ---- The loop ------------------------------------------------------------------------------ */

static void hop(feed *stage)
{
    size_t size;
    feed next;
    unsigned char *bytes = feed_bytes(stage, &size);
    feed_open(&next, stage->config, size);
    FEED_TRY(attnres_stream_import(next.stream, bytes, size));
    feed_close(stage);
    free(bytes);
    *stage = next;
}

/* _i is the stack, and whether there are stages. */
START_TEST(stacks_match)
{
    recorded it;
    open_recorded(&it, _i / 2);
    for (int level = 0; level < levels_count(); level++) {
        feed stage;
        const attnres_stream_config config = {it.stack.shape, BANK, ATTNRES_ROUND_EACH};
        levels_use(level);
        feed_open(&stage, config, 0);
        FEED_TRY(attnres_stream_begin(stage.stream, (attnres_rows){it.stack.embedding, 0}));
        for (size_t site = 0; site < it.sites; site++) {
            if (_i % 2 && site % 2 == 0) {
                hop(&stage);
            }
            read_site(&it, &stage, site);
        }
        feed_close(&stage);
    }
    close_recorded(&it);
}
END_TEST

/* The stand-ins that the other tests run are those of the recorded stacks. */
START_TEST(stand_ins_match)
{
    recorded it;
    open_recorded(&it, _i);
    const attnres_shape *shape = &it.stack.shape;
    void *output = allocate(shape->width, sizeof(double));
    for (size_t site = 0; site + 1 < it.sites; site++) {
        for (size_t t = 0; t < shape->tokens; t++) {
            k3_stand_in(shape->dtype, shape->width, site, k3_row(&it.stack, it.normed, site, t),
                        output);
            elements_check(shape->dtype, output, k3_row(&it.stack, it.output, site, t),
                           shape->width, "output of site %zu", site);
        }
    }
    free(output);
    close_recorded(&it);
}
END_TEST

Suite *golden_stream_suite(void)
{
    Suite *suite = suite_create("golden_stream");
    TCase *stacks = tcase_create("stacks");
    tcase_add_checked_fixture(stacks, levels_save, levels_restore);
    tcase_set_timeout(stacks, 60);
    tcase_add_loop_test(stacks, stacks_match, 0, 2 * STACKS);
    tcase_add_loop_test(stacks, stand_ins_match, 0, STACKS);
    suite_add_tcase(suite, stacks);
    return suite;
}
