/* The `attnres` program from outside: what it refuses, and how. What it computes is in
 * test_cli_read.c. */
#define _XOPEN_SOURCE 700

#include "cli_parts.h"
#include "files.h"
#include "program.h"
#include "suites.h"

#include "../src/cli/text.h"

#include <attnres.h>

#include <check.h>
#include <float.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))
#define ARGUMENTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- Verbs ----------------------------------------------------------------------------- */

typedef struct bad_verb {
    const char *arguments[4];
    const char *message;
} bad_verb;

static const bad_verb bad_verbs[] = {
    {{NULL}, "no verb"},
    {{"", NULL}, "unknown verb"},
    {{"raed", NULL}, "unknown verb 'raed'"},
    {{"--raed", NULL}, "unknown verb"},
    {{"two\nlines", NULL}, "unknown verb 'two?lines'"},
    {{"help", "read", NULL}, "no argument"},
    {{"version", "x", NULL}, "no argument"},
    {{"info", "x", NULL}, "unknown argument"},
    {{"info", "--json", "--xml", NULL}, "unknown argument"},
};

START_TEST(bad_verb_is_refused)
{
    program_result result = program_run(bad_verbs[_i].arguments, NULL);
    program_check_refused(&result, bad_verbs[_i].message);
    program_free(&result);
}
END_TEST

static program_result run_well(const char *const *arguments, const program_options *options)
{
    program_result result = program_run(arguments, options);
    ck_assert_msg(result.status == 0, "exit status %d: %s", result.status, result.err);
    ck_assert_str_eq(result.err, "");
    return result;
}

START_TEST(help_and_version_are_printed)
{
    char expected[64];
    snprintf(expected, sizeof expected, "attnres %s\n", attnres_version());
    for (size_t i = 0; i < 2; i++) {
        program_result help = run_well(ARGUMENTS(i == 0 ? "help" : "--help"), NULL);
        ck_assert_ptr_nonnull(strstr(help.out, "\n  read "));
        ck_assert_ptr_nonnull(strstr(help.out, "\n  info "));
        ck_assert_ptr_null(strstr(help.out, "\n  --"));
        program_free(&help);
        program_result version = run_well(ARGUMENTS(i == 0 ? "version" : "--version"), NULL);
        ck_assert_str_eq(version.out, expected);
        program_free(&version);
    }
    program_result usage = run_well(ARGUMENTS("read", "--help"), NULL);
    ck_assert_ptr_nonnull(strstr(usage.out, "--block-size"));
    program_free(&usage);
}
END_TEST

START_TEST(full_standard_output_is_an_error)
{
    program_options options = {.output = "/dev/full"};
    if (!files_exists(options.output)) {
        return;
    }
    static const char *const cases[][3] = {{"help"}, {"version"}, {"info"}, {"info", "--json"}};
    for (int i = 0; i < COUNT(cases); i++) {
        program_result result = program_run(cases[i], &options);
        program_check_refused(&result, "standard output");
        program_free(&result);
    }
}
END_TEST

/* ---- info ------------------------------------------------------------------------------ */

START_TEST(info_text_names_the_level)
{
    char expected[64];
    program_options options = {.environment = "ATTNRES_LEVEL=scalar"};
    program_result result = run_well(ARGUMENTS("info"), &options);
    snprintf(expected, sizeof expected, "attnres       %s", attnres_version());
    ck_assert_ptr_nonnull(strstr(result.out, expected));
    ck_assert_ptr_nonnull(strstr(result.out, "\nlevel         scalar: "));
    ck_assert_ptr_nonnull(strstr(result.out, "\nlevels        scalar   built, "));
    ck_assert_ptr_nonnull(strstr(result.out, "\ncaches        "));
    ck_assert_ptr_nonnull(strstr(result.out, "\ncpu           "));
    program_free(&result);
}
END_TEST

START_TEST(info_json_has_its_keys)
{
    json_error_t error;
    program_result result = run_well(ARGUMENTS("info", "--json"), NULL);
    json_t *root = json_loads(result.out, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "%s in %s", error.text, result.out);
    static const char *const strings[] = {"version", "architecture", "cpu", "level",
                                          "level_reason"};
    for (int i = 0; i < COUNT(strings); i++) {
        ck_assert_msg(json_string_length(json_object_get(root, strings[i])) > 0, "%s", strings[i]);
    }
    ck_assert_uint_eq(json_object_size(root), 8);
    ck_assert(json_is_object(json_object_get(root, "features")));
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(json_object_get(root, "features"), name, value)
    {
        ck_assert_msg(json_is_boolean(value), "%s", name);
    }
    size_t index = 0;
    int level_found = 0;
    json_array_foreach(json_object_get(root, "levels"), index, value)
    {
        ck_assert(json_is_boolean(json_object_get(value, "built")));
        ck_assert(json_is_boolean(json_object_get(value, "usable")));
        ck_assert(json_is_string(json_object_get(value, "why")));
        level_found |= json_equal(json_object_get(value, "name"), json_object_get(root, "level"));
    }
    ck_assert(level_found);
    ck_assert(json_is_array(json_object_get(root, "caches")));
    json_array_foreach(json_object_get(root, "caches"), index, value)
    {
        ck_assert_int_ge(json_integer_value(json_object_get(value, "level")), 1);
        ck_assert_int_gt(json_integer_value(json_object_get(value, "bytes")), 0);
        ck_assert(json_is_string(json_object_get(value, "type")));
    }
    json_decref(root);
    program_free(&result);
}
END_TEST

/* ---- read: bad command lines ----------------------------------------------------------- */

/* IN and OUT stand for the paths of a good input and of the output. */
typedef struct bad_line {
    const char *arguments[12];
    const char *message;
} bad_line;

#define READ "read", "IN", "-o", "OUT"

static const bad_line bad_lines[] = {
    {{"read", NULL}, "no input file"},
    {{"read", "-o", "OUT", "--block-size", "2", NULL}, "no input file"},
    {{"read", "IN", "--block-size", "2", NULL}, "no output file"},
    {{"read", "IN", "-o", "", "--block-size", "2", NULL}, "no output file"},
    {{READ, NULL}, "--block-size is missing"},
    {{READ, "IN", "--block-size", "2", NULL}, "more than one input"},
    {{READ, "--block-size", "2", "--", "IN", NULL}, "more than one input"},
    {{"read", "IN", "--block-size", "2", "-o", NULL}, "'-o' needs a value"},
    {{READ, "--block-size", NULL}, "'--block-size' needs a value"},
    {{READ, "--block-size", "2", "--frobnicate", NULL}, "'--frobnicate'"},
    {{READ, "--block-size", "2", "-x", NULL}, "'-x'"},
    {{READ, "--block-size", "2", "--help=7", NULL}, "'--help=7'"},
    {{READ, "--block-size", "0", NULL}, "--block-size must be"},
    {{READ, "--block-size", "-1", NULL}, "--block-size must be"},
    {{READ, "--block-size", "+1", NULL}, "--block-size must be"},
    {{READ, "--block-size", " 1", NULL}, "--block-size must be"},
    {{READ, "--block-size", "", NULL}, "--block-size must be"},
    {{READ, "--block-size=", NULL}, "--block-size must be"},
    {{READ, "--block-size", "2x", NULL}, "--block-size must be"},
    {{READ, "--block-size", "2.0", NULL}, "--block-size must be"},
    {{READ, "--block-size", "18446744073709551616", NULL}, "--block-size must be"},
    {{READ, "--block-size", "99999999999999999999999", NULL}, "--block-size must be"},
    {{READ, "--block-size", "2", "--eps", "-1", NULL}, "--eps must be"},
    {{READ, "--block-size", "2", "--eps", "-1e-300", NULL}, "--eps must be"},
    {{READ, "--block-size", "2", "--eps", "nan", NULL}, "--eps must be"},
    {{READ, "--block-size", "2", "--eps", "-nan", NULL}, "--eps must be"},
    {{READ, "--block-size", "2", "--eps", "inf", NULL}, "--eps must be"},
    {{READ, "--block-size", "2", "--eps", "+infinity", NULL}, "--eps must be"},
    {{READ, "--block-size", "2", "--eps", "1e999", NULL}, "--eps must be"},
    {{READ, "--block-size", "2", "--eps", "", NULL}, "--eps must be"},
    {{READ, "--block-size", "2", "--eps", "1e-6 ", NULL}, "--eps must be"},
    {{READ, "--block-size", "2", "--eps", "1,5", NULL}, "--eps must be"},
    {{READ, "--block-size", "2", "--scale", "0", NULL}, "--scale must be"},
    {{READ, "--block-size", "2", "--scale", "-inf", NULL}, "--scale must be"},
    {{READ, "--block-size", "2", "--scale", "x", NULL}, "--scale must be"},
    {{READ, "--block-size", "2", "--level", "warp", NULL}, "unknown level 'warp'"},
    {{READ, "--block-size", "2", "--level", "", NULL}, "unknown level"},
    {{READ, "--block-size", "2", "--level", "SCALAR", NULL}, "unknown level"},
};

/* Runs it without and with a file at the output's place: nothing appears, nothing is harmed. */
static void check_nothing_done(const char *const *arguments, const program_options *options,
                               const char *message)
{
    static const char precious[] = "a file that was here before";
    size_t before = files_count();
    program_result result = program_run(arguments, options);
    program_check_refused(&result, message);
    program_free(&result);
    ck_assert_uint_eq(files_count(), before);

    files_write(files_path("out"), precious, sizeof precious);
    result = program_run(arguments, options);
    program_check_refused(&result, message);
    program_free(&result);
    ck_assert_uint_eq(files_count(), before + 1);
    files_check(files_path("out"), precious, sizeof precious);
}

START_TEST(bad_line_is_refused)
{
    const char *arguments[12] = {NULL};
    for (size_t i = 0; bad_lines[_i].arguments[i] != NULL; i++) {
        const char *word = bad_lines[_i].arguments[i];
        arguments[i] = strcmp(word, "IN") == 0    ? files_path("in")
                       : strcmp(word, "OUT") == 0 ? files_path("out")
                                                  : word;
    }
    cli_write_sample(files_path("in"), ATTNRES_F32, 3);
    check_nothing_done(arguments, NULL, bad_lines[_i].message);
}
END_TEST

/* ---- read: bad files ------------------------------------------------------------------- */

typedef struct bad_file {
    const char *header;
    size_t data_bytes;
    const char *message;
} bad_file;

#define TENSOR(name, dtype, shape, offsets)                                                        \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define E TENSOR("embedding", "F32", "[1,2,2]", "[0,16]")
#define P TENSOR("previous_outputs", "F32", "[1,1,2,2]", "[16,32]")
#define Q TENSOR("pseudo_query", "F32", "[2]", "[32,40]")

static const bad_file bad_files[] = {
    /* malformed; test_safetensors.c has every way */
    {"{", 0, "not valid JSON"},
    {"{" E "," P "," Q "," Q "}", 40, "duplicate"},
    {"{" E "," P "," Q "}", 39, "beyond the end"},
    {"{" E "," P "," Q "}", 41, "belong to no tensor"},
    /* a tensor is missing */
    {"{}", 0, "no tensor 'embedding'"},
    {"{" E "," P "}", 32, "no tensor 'pseudo_query'"},
    {"{" E "," TENSOR("previous_output", "F32", "[1,1,2,2]", "[16,32]") "," Q "}", 40,
     "no tensor 'previous_outputs'"},
    /* the wrong dtype */
    {"{" TENSOR("embedding", "I32", "[1,2,2]", "[0,16]") "," P "," Q "}", 40, "'embedding' is I32"},
    {"{" E "," P "," TENSOR("pseudo_query", "I64", "[1]", "[32,40]") "}", 40,
     "'pseudo_query' is I64"},
    {"{" E "," P "," TENSOR("pseudo_query", "F64", "[2]", "[32,48]") "}", 48, "dtypes differ"},
    {"{" E "," TENSOR("previous_outputs", "F16", "[2,1,2,2]", "[16,32]") "," Q "}", 40,
     "dtypes differ"},
    {"{" TENSOR("embedding", "F99", "[1,2,2]", "[0,16]") "," P "," Q "}", 40, "unknown dtype"},
    /* the wrong shape */
    {"{" TENSOR("embedding", "F32", "[2,2]", "[0,16]") "," P "," Q "}", 40, "has shape [2, 2]"},
    {"{" TENSOR("embedding", "F32", "[1,1,2,2]", "[0,16]") "," P "," Q "}", 40, "has shape"},
    {"{" E "," TENSOR("previous_outputs", "F32", "[1,2,2]", "[16,32]") "," Q "}", 40,
     "has shape [1, 2, 2]"},
    {"{" E "," TENSOR("previous_outputs", "F32", "[1,2,1,2]", "[16,32]") "," Q "}", 40,
     "does not go with"},
    {"{" E "," TENSOR("previous_outputs", "F32", "[2,1,2,1]", "[16,32]") "," Q "}", 40,
     "does not go with"},
    {"{" E "," P "," TENSOR("pseudo_query", "F32", "[1,2]", "[32,40]") "}", 40, "has shape"},
    {"{" E "," P "," TENSOR("pseudo_query", "F32", "[]", "[32,36]") "}", 36, "has shape []"},
    {"{" E "," P "," TENSOR("pseudo_query", "F32", "[3]", "[32,44]") "}", 44, "length 3"},
    {"{" TENSOR("embedding", "F32", "[1,2,0]",
                "[0,0]") "," TENSOR("previous_outputs", "F32", "[1,1,2,0]",
                                    "[0,0]") "," TENSOR("pseudo_query", "F32", "[0]", "[0,0]") "}",
     0, "width of 'embedding' is 0"},
    /* sizes that overflow */
    {"{" TENSOR("embedding", "F32", "[4294967296,4294967296,0]",
                "[0,0]") "," TENSOR("previous_outputs", "F32", "[0,4294967296,4294967296,0]",
                                    "[0,0]") "," TENSOR("pseudo_query", "F32", "[0]", "[0,0]") "}",
     0, "overflows"},
};

START_TEST(bad_file_is_refused)
{
    const bad_file *bad = &bad_files[_i];
    files_write_safetensors(files_path("in"), bad->header, bad->data_bytes);
    check_nothing_done(
        ARGUMENTS("read", files_path("in"), "-o", files_path("out"), "--block-size", "2"), NULL,
        bad->message);
}
END_TEST

START_TEST(absent_input_is_refused)
{
    static const char *const places[][2] = {
        {"absent", "cannot open"}, {"", "not a regular file"}, {"pipe", "not a regular file"}};
    ck_assert_int_eq(mkfifo(files_path("pipe"), 0600), 0);
    check_nothing_done(
        ARGUMENTS("read", files_path(places[_i][0]), "-o", files_path("out"), "--block-size", "2"),
        NULL, places[_i][1]);
}
END_TEST

START_TEST(impossible_output_is_refused)
{
    static const char *const places[][2] = {{"absent/out", "No such file"},
                                            {"in/out", "Not a directory"},
                                            {"", "is a directory"},
                                            {"pipe", "not a regular file"}};
    cli_write_sample(files_path("in"), ATTNRES_F32, 3);
    ck_assert_int_eq(mkfifo(files_path("pipe"), 0600), 0);
    program_result result = program_run(
        ARGUMENTS("read", files_path("in"), "-o", files_path(places[_i][0]), "--block-size", "2"),
        NULL);
    program_check_refused(&result, places[_i][1]);
    program_free(&result);
    ck_assert_uint_eq(files_count(), 2);
}
END_TEST

START_TEST(full_disk_leaves_nothing)
{
    program_options options = {.file_limit = 300};
    cli_write_sample(files_path("in"), ATTNRES_F64, 3);
    check_nothing_done(
        ARGUMENTS("read", files_path("in"), "-o", files_path("out"), "--block-size", "2"), &options,
        "cannot write");
}
END_TEST

/* ---- Numbers --------------------------------------------------------------------------- */

START_TEST(numbers_are_read_strictly)
{
    size_t size = 7;
    double number = 7;
    ck_assert_int_eq(attnres_cli_parse_size("18446744073709551616", &size), -1);
    ck_assert_uint_eq(size, 7);
    char text[32];
    snprintf(text, sizeof text, "%zu", SIZE_MAX);
    ck_assert_int_eq(attnres_cli_parse_size(text, &size), 0);
    ck_assert_uint_eq(size, SIZE_MAX);
    ck_assert_int_eq(attnres_cli_parse_size("007", &size), 0);
    ck_assert_uint_eq(size, 7);
    ck_assert_int_eq(attnres_cli_parse_number("1e309", &number), -1);
    ck_assert_double_eq(number, 7);
    ck_assert_int_eq(attnres_cli_parse_number("2.5e-1", &number), 0);
    ck_assert_double_eq(number, 0.25);
    ck_assert_int_eq(attnres_cli_parse_number("5e-324", &number), 0);
    ck_assert(number > 0 && number < DBL_MIN);
    ck_assert_int_eq(attnres_cli_multiply(SIZE_MAX / 2 + 1, 2, &size), -1);
    ck_assert_int_eq(attnres_cli_multiply(SIZE_MAX, 0, &size), 0);
    ck_assert_uint_eq(size, 0);
}
END_TEST

Suite *cli_suite(void)
{
    Suite *suite = suite_create("cli");
    TCase *program = tcase_create("program");
    files_use(program);
    tcase_add_loop_test(program, bad_verb_is_refused, 0, COUNT(bad_verbs));
    tcase_add_test(program, help_and_version_are_printed);
    tcase_add_test(program, full_standard_output_is_an_error);
    tcase_add_test(program, info_text_names_the_level);
    tcase_add_test(program, info_json_has_its_keys);
    tcase_add_loop_test(program, bad_line_is_refused, 0, COUNT(bad_lines));
    tcase_add_loop_test(program, bad_file_is_refused, 0, COUNT(bad_files));
    tcase_add_loop_test(program, absent_input_is_refused, 0, 3);
    tcase_add_loop_test(program, impossible_output_is_refused, 0, 4);
    tcase_add_test(program, full_disk_leaves_nothing);
    tcase_add_test(program, numbers_are_read_strictly);
    tcase_set_timeout(program, 60);
    suite_add_tcase(suite, program);
    suite_add_tcase(suite, cli_read_case());
    return suite;
}
