/* Kimi K3's layer loop: every read site of the three recorded stacks, from the inputs that were
 * recorded before it. See tests/golden/README.md. */
#include "allocate.h"
#include "elements.h"
#include "golden.h"
#include "golden_parts.h"
#include "levels.h"
#include "oracle.h"

#include <attnres.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STACKS = 3, SITES = 21, BANK = 4, SOURCES_MAX = BANK + 1 };

typedef struct stack {
    golden data;
    attnres_shape shape;
    double eps, norm_eps;
    size_t bank_counts[SITES];
    void *embedding, *query_norm, *query_proj, *norm_gain, *prefix, *bank, *normed, *output;
    double *read_exact, *weights;
} stack;

static void open_stack(stack *it, int number)
{
    char name[16], prefix[24], key[32];
    attnres_dtype bf16 = ATTNRES_BF16, f64 = ATTNRES_F64;
    snprintf(name, sizeof name, "k3_%d", number);
    snprintf(prefix, sizeof prefix, "%s.", name);
    snprintf(key, sizeof key, "%s.bank_counts", name);
    golden_open(&it->data, "golden/k3.safetensors");
    const char *list = golden_text(&it->data, name);
    it->shape = (attnres_shape){golden_dtype(list), (size_t)golden_number(list, "tokens"),
                                (size_t)golden_number(list, "width")};
    ck_assert(2 * golden_number(list, "layers") + 1 == SITES);
    it->eps = golden_number(list, "eps");
    it->norm_eps = golden_number(list, "norm_eps");
    const char *counts = golden_text(&it->data, key);
    for (int site = 0; site < SITES; site++) {
        char *end;
        it->bank_counts[site] = strtoul(counts, &end, 10);
        ck_assert(end != counts && it->bank_counts[site] <= BANK);
        counts = end;
    }
    const size_t width = it->shape.width, row = it->shape.tokens * width;
    attnres_dtype *own = &it->shape.dtype;
    it->embedding = golden_tensor(&it->data, prefix, "embedding", row, own);
    it->query_norm = golden_tensor(&it->data, prefix, "query_norm", SITES * width, &bf16);
    it->query_proj = golden_tensor(&it->data, prefix, "query_proj", SITES * width, &bf16);
    it->norm_gain = golden_tensor(&it->data, prefix, "norm_gain", SITES * width, &bf16);
    it->prefix = golden_tensor(&it->data, prefix, "prefix", SITES * row, own);
    it->bank = golden_tensor(&it->data, prefix, "bank", BANK * row, own);
    it->normed = golden_tensor(&it->data, prefix, "normed", SITES * row, own);
    it->output = golden_tensor(&it->data, prefix, "output", (SITES - 1) * row, own);
    it->read_exact = golden_tensor(&it->data, prefix, "read_exact", SITES * row, &f64);
    it->weights = golden_tensor(&it->data, prefix, "weights",
                                (size_t)SITES * SOURCES_MAX * it->shape.tokens, &f64);
}

static void close_stack(stack *it)
{
    void *const memory[] = {it->embedding,  it->query_norm, it->query_proj, it->norm_gain,
                            it->prefix,     it->bank,       it->normed,     it->output,
                            it->read_exact, it->weights};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        free(memory[i]);
    }
    golden_close(&it->data);
}

static void *at(const stack *it, const void *rows, size_t row)
{
    return (char *)(size_t)rows + row * it->shape.width * attnres_dtype_size(it->shape.dtype);
}

/* The results of one site. */
typedef struct site {
    float *query, *gain;
    void *retrieved, *normed, *weights;
} site;

static void open_site(site *of, const stack *it, size_t number)
{
    const size_t width = it->shape.width, row = it->shape.tokens * width;
    const attnres_vector norm = {ATTNRES_BF16, (uint16_t *)it->query_norm + number * width, width};
    const attnres_vector proj = {ATTNRES_BF16, (uint16_t *)it->query_proj + number * width, width};
    of->query = allocate(width, sizeof(float));
    of->gain = allocate(width, sizeof(float));
    of->retrieved = allocate(row, sizeof(double));
    of->normed = allocate(row, sizeof(double));
    of->weights = allocate(SOURCES_MAX * it->shape.tokens, sizeof(double));
    ck_assert_int_eq(attnres_make_query(it->shape.dtype, width, &proj, &norm, of->query),
                     ATTNRES_OK);
    for (size_t i = 0; i < width; i++) {
        of->gain[i] = (float)elements_get(ATTNRES_BF16, it->norm_gain, number * width + i);
    }
}

static void close_site(site *of)
{
    free(of->query);
    free(of->gain);
    free(of->retrieved);
    free(of->normed);
    free(of->weights);
}

static void read_site(const stack *it, size_t number, const site *of)
{
    attnres_rows bank[BANK];
    for (size_t k = 0; k < BANK; k++) {
        bank[k] = (attnres_rows){at(it, it->bank, k * it->shape.tokens), 0};
    }
    const attnres_read_args args = {
        .sources = bank,
        .source_count = it->bank_counts[number],
        .prefix = {at(it, it->prefix, number * it->shape.tokens), 0},
        .query = of->query,
        .eps = it->eps,
        .retrieved = {of->retrieved, 0},
        .normed = {of->normed, 0},
        .norm_gain = of->gain,
        .norm_eps = it->norm_eps,
        .weights = {.data = of->weights},
    };
    ck_assert_int_eq(attnres_read(&it->shape, &args), ATTNRES_OK);
}

/* Token t of a site, by the oracle and by what is recorded. */
static void judge_token(const stack *it, size_t number, const site *of, size_t t)
{
    const attnres_dtype dtype = it->shape.dtype;
    const size_t width = it->shape.width, tokens = it->shape.tokens;
    const size_t count = it->bank_counts[number] + 1;
    const void *rows[SOURCES_MAX];
    for (size_t k = 0; k + 1 < count; k++) {
        rows[k] = at(it, it->bank, k * tokens + t);
    }
    rows[count - 1] = at(it, it->prefix, number * tokens + t);
    const reading in = {.dtype = dtype,
                        .width = width,
                        .count = count,
                        .rows = rows,
                        .query = of->query,
                        .eps = it->eps,
                        .norm_gain = of->gain,
                        .norm_eps = it->norm_eps};
    oracle judge;
    oracle_open(&judge, &in);
    ck_assert(oracle_retrieved(&judge, at(it, of->retrieved, t)) <= 1);
    ck_assert(oracle_normed(&judge, at(it, of->normed, t)) <= 1);
    for (size_t s = 0; s < count; s++) {
        const double reference = it->weights[(number * SOURCES_MAX + s) * tokens + t];
        const double found = elements_get(dtype, of->weights, s * tokens + t);
        ck_assert(fabs(reference - (double)judge.weights[s]) <= 1e-13);
        ck_assert(fabs(found - reference) <=
                  (double)judge.weight_bounds[s] + 1e-13 + elements_ulp(dtype, reference) * 0.501);
    }
    for (size_t i = 0; i < width; i++) {
        const double reference = it->read_exact[(number * tokens + t) * width + i];
        const double error = (double)real_abs((real)reference - judge.mix[i]);
        ck_assert_msg(error <= 1e-13 * (double)judge.magnitudes[i], "site %zu: reference off by %g",
                      number, error);
        /* The recorded norm starts from a result that may have been rounded the other way. */
        const double normed = elements_get(dtype, at(it, it->normed, number * tokens + t), i);
        const double found = elements_get(dtype, at(it, of->normed, t), i);
        ck_assert_msg(fabs(found - normed) <=
                          2 * (double)judge.normed_bounds[i] + elements_ulp(dtype, normed) * 1.01,
                      "site %zu: normed %g, recorded %g", number, found, normed);
    }
    oracle_close(&judge);
}

/* _i is the stack. */
START_TEST(sites_match)
{
    stack it;
    open_stack(&it, _i);
    for (size_t number = 0; number < SITES; number++) {
        site of;
        open_site(&of, &it, number);
        for (int level = 0; level < levels_count(); level++) {
            levels_use(level);
            read_site(&it, number, &of);
            for (size_t t = 0; t < it.shape.tokens; t++) {
                judge_token(&it, number, &of, t);
            }
            if (number == 0) { /* nothing but the embedding: a copy */
                ck_assert_mem_eq(of.retrieved, it.embedding,
                                 it.shape.tokens * it.shape.width *
                                     attnres_dtype_size(it.shape.dtype));
            }
        }
        close_site(&of);
    }
    close_stack(&it);
}
END_TEST

/* prefix = prefix + output, one rounding each, and pushes: the recorded prefixes, bit for bit. A
 * read that adds the output first, in place, is how a runtime does it. */
START_TEST(prefixes_follow)
{
    stack it;
    open_stack(&it, _i);
    const attnres_dtype dtype = it.shape.dtype;
    const size_t row = it.shape.tokens * it.shape.width, size = attnres_dtype_size(dtype);
    void *prefix = allocate(row, size), *pushed = allocate(row, size);
    site of;
    open_site(&of, &it, 0);
    for (int level = 0; level < levels_count(); level++) {
        levels_use(level);
        memcpy(prefix, it.embedding, row * size);
        for (size_t number = 0; number + 1 < SITES; number++) {
            const size_t banked = it.bank_counts[number + 1];
            const int pushes = banked > it.bank_counts[number]; /* the raw prefix of this site */
            const attnres_rows output = {at(&it, it.output, number * it.shape.tokens), 0};
            attnres_read_args args = {.query = of.query,
                                      .retrieved = {of.retrieved, 0},
                                      .prefix = {prefix, 0},
                                      .push = {pushes ? pushed : NULL, 0}};
            if (pushes) {
                ck_assert_int_eq(attnres_read(&it.shape, &args), ATTNRES_OK);
                elements_check(dtype, pushed, at(&it, it.bank, (banked - 1) * it.shape.tokens), row,
                               "bank row %zu", banked - 1);
                args.prefix.data = NULL;
                args.push.data = NULL;
            }
            args.deltas = &output;
            args.delta_count = 1;
            args.prefix_out.data = prefix;
            ck_assert_int_eq(attnres_read(&it.shape, &args), ATTNRES_OK);
            elements_check(dtype, prefix, at(&it, it.prefix, (number + 1) * it.shape.tokens), row,
                           "prefix of site %zu", number + 1);
        }
    }
    close_site(&of);
    free(prefix);
    free(pushed);
    close_stack(&it);
}
END_TEST

TCase *golden_k3_case(void)
{
    TCase *loop = tcase_create("k3");
    tcase_add_checked_fixture(loop, levels_save, levels_restore);
    tcase_set_timeout(loop, 60);
    tcase_add_loop_test(loop, sites_match, 0, STACKS);
    tcase_add_loop_test(loop, prefixes_follow, 0, STACKS);
    return loop;
}
