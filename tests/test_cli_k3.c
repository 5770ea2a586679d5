/* `attnres k3` from outside: one digest for every level and number of threads, checks that agree,
 * and options that are refused. */
#define _XOPEN_SOURCE 700

#include "levels.h"
#include "program.h"
#include "suites.h"

#include <stdio.h>
#include <string.h>

#define ARGUMENTS_MAX 24
#define SMALL "k3", "--layers", "5", "--width", "64", "--block-size", "2", "--tokens", "5"

/* The digest that the program prints, "?" if there is none. Everything else must be in order. */
static void run_small(const char *const *more, const char *environment, char digest[17])
{
    static const char *const small[] = {SMALL};
    const program_options options = {.environment = environment};
    const char *arguments[ARGUMENTS_MAX] = {NULL};
    size_t n = 0;
    for (; n < sizeof small / sizeof *small; n++) {
        arguments[n] = small[n];
    }
    for (; *more != NULL; more++) {
        ck_assert_uint_lt(n, ARGUMENTS_MAX - 1);
        arguments[n++] = *more;
    }
    program_result result = program_run(arguments, &options);
    ck_assert_msg(result.status == 0, "exit status %d: %s%s", result.status, result.out,
                  result.err);
    ck_assert_str_eq(result.err, "");
    ck_assert_ptr_nonnull(strstr(result.out, "5 layers, width 64, block size "));
    /* All 2 * 5 + 1 sites but the first, which has nothing to mix. */
    ck_assert_ptr_nonnull(strstr(result.out, "\n10 reads of "));
    ck_assert_ptr_nonnull(strstr(result.out, "bank and prefix equal\n"));
    ck_assert_ptr_null(strstr(result.out, "DISAGREES"));
    const char *line = strstr(result.out, "\ndigest ");
    ck_assert_ptr_nonnull(line);
    ck_assert_int_eq(sscanf(line, "\ndigest %16[0-9a-f]\n", digest), 1);
    ck_assert_uint_eq(strlen(digest), 16);
    program_free(&result);
}

#define MORE(...) ((const char *const[]){__VA_ARGS__, NULL})

/* _i is the dtype. */
START_TEST(one_digest_for_all)
{
    static const char *const dtypes[] = {"f32", "f64", "f16", "bf16"};
    const char *dtype = dtypes[_i];
    char expected[17], found[17], variable[64];
    run_small(MORE("--dtype", dtype), NULL, expected);
    for (int level = 0; level < levels_count(); level++) {
        static const char *const threads[] = {"1", "2", "3"};
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
            run_small(
                MORE("--dtype", dtype, "--level", levels_name(level), "--threads", threads[i]),
                NULL, found);
            ck_assert_str_eq(found, expected);
        }
        snprintf(variable, sizeof variable, "ATTNRES_LEVEL=%s", levels_name(level));
        run_small(MORE("--dtype", dtype), variable, found);
        ck_assert_str_eq(found, expected);
    }
    run_small(MORE("--dtype", dtype, "--seed", "2"), NULL, found);
    ck_assert_str_ne(found, expected);
}
END_TEST

/* More layers in one block than there are, any size. */
START_TEST(one_block_for_all)
{
    char large[17], larger[17], largest[32];
    snprintf(largest, sizeof largest, "%zu", (size_t)-1);
    run_small(MORE("--block-size", "5"), NULL, large);
    run_small(MORE("--block-size", largest), NULL, larger);
    ck_assert_str_eq(large, larger);
}
END_TEST

static const char *const bad_options[][4] = {
    {"--layers", "0"},
    {"--layers", "100001"},
    {"--layers", "-1"},
    {"--width", "0"},
    {"--width", "64x"},
    {"--width", "16777217"},
    {"--width", "4611686018427387905"}, /* times 4 it would be 4 */
    {"--width", "99999999999999999999"},
    {"--block-size", "0"},
    {"--tokens", "0"},
    {"--tokens", "1e3"},
    {"--tokens", "16777217"},
    {"--tokens", "4611686018427387904"},
    {"--threads", "0"},
    {"--threads", "6"}, /* than tokens */
    {"--threads", "1025", "--tokens", "2000"},
    {"--dtype", "f8"},
    {"--dtype", ""},
    {"--level", "sse"},
    {"--level", ""},
    {"--seed", "one"},
    {"--seed"},
    {"--tokens", "5", "--width"},
    {"--bogus", "1"},
    {"-x"},
    {"file.safetensors"},
};

START_TEST(bad_options_are_refused)
{
    const char *arguments[ARGUMENTS_MAX] = {SMALL};
    size_t n = 9;
    for (size_t i = 0; i < 4 && bad_options[_i][i] != NULL; i++) {
        arguments[n++] = bad_options[_i][i];
    }
    program_result result = program_run(arguments, NULL);
    program_check_refused(&result, "k3");
    program_free(&result);
}
END_TEST

START_TEST(help_names_the_options)
{
    static const char *const options[] = {"--layers",  "--width", "--block-size", "--tokens",
                                          "--threads", "--seed",  "--dtype",      "--level"};
    program_result result = program_run(MORE("k3", "--help"), NULL);
    ck_assert_int_eq(result.status, 0);
    ck_assert_str_eq(result.err, "");
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        ck_assert_ptr_nonnull(strstr(result.out, options[i]));
    }
    program_free(&result);
}
END_TEST

Suite *cli_k3_suite(void)
{
    Suite *suite = suite_create("cli_k3");
    TCase *k3 = tcase_create("k3");
    tcase_set_timeout(k3, 120);
    tcase_add_loop_test(k3, one_digest_for_all, 0, 4);
    tcase_add_test(k3, one_block_for_all);
    tcase_add_loop_test(k3, bad_options_are_refused, 0,
                        (int)(sizeof bad_options / sizeof *bad_options));
    tcase_add_test(k3, help_names_the_options);
    suite_add_tcase(suite, k3);
    return suite;
}
