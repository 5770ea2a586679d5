/* Results against what PyTorch and plain Python make of the same inputs: tests/golden, tests/data.
 */
#include "elements.h"
#include "golden.h"
#include "golden_parts.h"
#include "levels.h"
#include "suites.h"

#include <attnres.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CASES = 64 };

static void check_verdict(golden_verdict verdict, const char *name)
{
    ck_assert_msg(verdict.retrieved <= 1, "%s: result, ratio %g", name, verdict.retrieved);
    ck_assert_msg(verdict.weights <= 1, "%s: weights, ratio %g", name, verdict.weights);
    ck_assert_msg(verdict.reference <= 1, "%s: reference, ratio %g", name, verdict.reference);
}

/* The exact values of the sources, given in f64. */
static void check_sources(const golden_block *it, const double *expected)
{
    const size_t count = it->count * it->shape.tokens * it->shape.width;
    for (size_t i = 0; i < count; i++) {
        const double found = elements_get(it->shape.dtype, it->sources, i);
        if (elements_compare(ATTNRES_F64, &found, &expected[i], 1) != 1) {
            ck_abort_msg("source element %zu: %.17g, expected %.17g", i, found, expected[i]);
        }
    }
}

/* Runs the block read at every level, against references named as in the file. */
static void check_block(golden_block *it, const golden *data, const char *prefix, const char *name)
{
    attnres_dtype f64 = ATTNRES_F64;
    const size_t entries = it->count * it->shape.tokens, row = it->shape.tokens * it->shape.width;
    double *retrieved = golden_tensor(data, prefix, "retrieved_representation", row, &f64);
    double *weights = golden_tensor(data, prefix, "attention_weights", entries, &f64);
    double *sources = golden_tensor(data, prefix, "block_sources", it->count * row, &f64);
    for (int level = 0; level < levels_count(); level++) {
        levels_use(level);
        golden_block_run(it);
        check_sources(it, sources);
        check_verdict(golden_block_judge(it, retrieved, weights), name);
    }
    free(retrieved);
    free(weights);
    free(sources);
}

START_TEST(cases_match)
{
    golden data;
    golden_block it;
    char name[16], prefix[24];
    golden_open(&data, "golden/golden.safetensors");
    ck_assert_int_eq(atoi(golden_text(&data, "cases")), CASES);
    snprintf(name, sizeof name, "case%02d", _i);
    snprintf(prefix, sizeof prefix, "%s.", name);
    const char *parameters = golden_text(&data, name);
    golden_block_open(&it, &data, prefix, (size_t)golden_number(parameters, "block_size"),
                      golden_number(parameters, "eps"));
    ck_assert_int_eq(it.shape.dtype, golden_dtype(parameters));
    check_block(&it, &data, prefix, name);
    golden_block_close(&it);
    golden_close(&data);
}
END_TEST

static const struct {
    const char *input, *reference, *expected;
} real_inputs[] = {
    {"data/minilm.safetensors", "data/minilm-reference.safetensors",
     "data/minilm-expected.safetensors"},
    {"data/minilm-bf16.safetensors", "data/minilm-bf16-reference.safetensors",
     "data/minilm-bf16-expected.safetensors"},
};

/* What a trained transformer puts out, against the reference and against this library's committed
 * answer, bit for bit. */
START_TEST(real_input_matches)
{
    golden input, reference, expected;
    golden_block it;
    golden_open(&input, real_inputs[_i].input);
    golden_open(&reference, real_inputs[_i].reference);
    golden_open(&expected, real_inputs[_i].expected);
    golden_block_open(&it, &input, "", 5, 1e-6);
    check_block(&it, &reference, "", real_inputs[_i].input);
    attnres_dtype dtype = it.shape.dtype;
    const size_t entries = it.count * it.shape.tokens, row = it.shape.tokens * it.shape.width;
    void *retrieved = golden_tensor(&expected, "", "retrieved_representation", row, &dtype);
    void *weights = golden_tensor(&expected, "", "attention_weights", entries, &dtype);
    void *sources = golden_tensor(&expected, "", "block_sources", it.count * row, &dtype);
    for (int level = 0; level < levels_count(); level++) {
        levels_use(level);
        golden_block_run(&it);
        elements_check(dtype, it.retrieved, retrieved, row, "%s: result", levels_name(level));
        elements_check(dtype, it.weights, weights, entries, "%s: weights", levels_name(level));
        elements_check(dtype, it.sources, sources, it.count * row, "%s: sources",
                       levels_name(level));
    }
    free(retrieved);
    free(weights);
    free(sources);
    golden_block_close(&it);
    golden_close(&input);
    golden_close(&reference);
    golden_close(&expected);
}
END_TEST

Suite *golden_suite(void)
{
    Suite *suite = suite_create("golden");
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, levels_save, levels_restore);
    tcase_set_timeout(files, 60);
    tcase_add_loop_test(files, cases_match, 0, CASES);
    tcase_add_loop_test(files, real_input_matches, 0, 2);
    suite_add_tcase(suite, files);
    suite_add_tcase(suite, golden_k3_case());
    return suite;
}
