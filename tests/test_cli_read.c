/* `attnres read` on good input: the worked examples, every dtype, the ways to write the command
 * line, and inputs at the edges. Expected values come from the formula, in double. */
#define _XOPEN_SOURCE 700

#include "cli_parts.h"
#include "files.h"
#include "program.h"

#include "../src/cli/safetensors.h"

#include <attnres.h>

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { ELEMENTS_MAX = 256 };

static const attnres_dtype dtypes[] = {ATTNRES_F32, ATTNRES_F64, ATTNRES_F16, ATTNRES_BF16};

/* ---- Elements -------------------------------------------------------------------------- */

/* Only for numbers the dtype holds exactly, and normal ones. */
static void encode(attnres_dtype dtype, const double *numbers, size_t count, void *data)
{
    for (size_t i = 0; i < count; i++) {
        float single = (float)numbers[i];
        uint32_t bits = 0;
        memcpy(&bits, &single, sizeof bits);
        if (dtype == ATTNRES_F64) {
            ((double *)data)[i] = numbers[i];
        } else if (dtype == ATTNRES_F32) {
            ((float *)data)[i] = single;
        } else if (dtype == ATTNRES_BF16 || numbers[i] == 0.0) {
            ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
        } else {
            uint32_t exponent = (bits >> 23 & 0xff) - 127 + 15;
            ((uint16_t *)data)[i] =
                (uint16_t)((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff));
        }
    }
}

static double decode_half(uint16_t half)
{
    double sign = (half & 0x8000) != 0 ? -1.0 : 1.0;
    int exponent = half >> 10 & 0x1f;
    int fraction = half & 0x3ff;
    if (exponent == 0x1f) {
        return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    }
    return sign * (exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25));
}

static double decode(attnres_dtype dtype, const void *data, size_t i)
{
    if (dtype == ATTNRES_F64) {
        return ((const double *)data)[i];
    }
    if (dtype == ATTNRES_F32) {
        return (double)((const float *)data)[i];
    }
    uint16_t half = ((const uint16_t *)data)[i];
    uint32_t bits = (uint32_t)half << 16;
    float single = 0;
    memcpy(&single, &bits, sizeof single);
    return dtype == ATTNRES_BF16 ? (double)single : decode_half(half);
}

static double tolerance(attnres_dtype dtype)
{
    switch (dtype) {
    case ATTNRES_F64:
        return 1e-13;
    case ATTNRES_F32:
        return 4e-6;
    case ATTNRES_F16:
        return 2e-3;
    default:
        return 1.6e-2;
    }
}

/* ---- A case ---------------------------------------------------------------------------- */

typedef struct example {
    size_t batch;
    size_t sequence;
    size_t width;
    size_t layers;
    size_t block_size;
    double eps;
    double scale;
    double embedding[ELEMENTS_MAX];
    double outputs[ELEMENTS_MAX];
    double query[ELEMENTS_MAX];
} example;

static void write_example(const char *path, attnres_dtype dtype, const example *input)
{
    double embedding[ELEMENTS_MAX]; /* large enough and aligned for every dtype */
    double outputs[ELEMENTS_MAX];
    double query[ELEMENTS_MAX];
    const size_t shape[] = {input->layers, input->batch, input->sequence, input->width};
    const attnres_cli_output tensors[] = {
        {"pseudo_query", dtype, 1, shape + 3, query},
        {"previous_outputs", dtype, 4, shape, outputs},
        {"embedding", dtype, 3, shape + 1, embedding},
    };
    attnres_cli_message message = {""};
    encode(dtype, input->embedding, ELEMENTS_MAX, embedding);
    encode(dtype, input->outputs, ELEMENTS_MAX, outputs);
    encode(dtype, input->query, ELEMENTS_MAX, query);
    int result = attnres_cli_file_write(path, tensors, 3, &message);
    ck_assert_msg(result == 0, "%s", message.text);
}

/* Small quarters, not all of them different, none of them constant over a row. */
static void fill_example(example *input)
{
    for (size_t i = 0; i < ELEMENTS_MAX; i++) {
        input->embedding[i] = (double)((i * 5 + 3) % 11) / 4 - 1;
        input->outputs[i] = (double)((i * 7 + 1) % 13) / 4 - 1.5;
        input->query[i] = (double)((i * 3 + 2) % 7) / 4 - 0.5;
    }
}

void cli_write_sample(const char *path, attnres_dtype dtype, size_t layers)
{
    example input = {.batch = 1, .sequence = 2, .width = 3, .layers = layers};
    fill_example(&input);
    write_example(path, dtype, &input);
}

static double source_element(const example *input, size_t source, size_t token, size_t i)
{
    size_t row = token * input->width + i;
    size_t set = input->batch * input->sequence * input->width;
    double sum = 0;
    if (source == 0) {
        return input->embedding[row];
    }
    for (size_t layer = (source - 1) * input->block_size;
         layer < source * input->block_size && layer < input->layers; layer++) {
        sum += input->outputs[layer * set + row];
    }
    return sum;
}

static double source_logit(const example *input, size_t source, size_t token)
{
    double squares = 0;
    double dot = 0;
    for (size_t i = 0; i < input->width; i++) {
        double x = source_element(input, source, token, i);
        squares += x * x;
        dot += x * input->query[i];
    }
    return input->scale * dot / sqrt(squares / (double)input->width + input->eps);
}

typedef struct output_data {
    attnres_dtype dtype;
    size_t sources;
    void *retrieved;
    void *weights;
    void *block_sources;
} output_data;

static void *load_output(const attnres_cli_file *file, const char *name, attnres_dtype dtype,
                         size_t rank, const size_t *shape)
{
    attnres_cli_message message = {""};
    void *data = NULL;
    const attnres_cli_tensor *tensor = attnres_cli_file_find(file, name);
    ck_assert_msg(tensor != NULL, "no tensor %s", name);
    ck_assert_int_eq(tensor->dtype, dtype);
    ck_assert_uint_eq(tensor->rank, rank);
    for (size_t i = 0; i < rank; i++) {
        ck_assert_msg(tensor->shape[i] == shape[i], "%s: size %zu is %zu, expected %zu", name, i,
                      tensor->shape[i], shape[i]);
    }
    ck_assert_int_eq(attnres_cli_file_load(file, tensor, &data, &message), 0);
    return data;
}

static output_data load_outputs(const char *path, attnres_dtype dtype, const example *input)
{
    attnres_cli_file file;
    attnres_cli_message message = {""};
    output_data output = {.dtype = dtype};
    output.sources = 1 + (input->layers + input->block_size - 1) / input->block_size;
    const size_t shape[] = {output.sources, input->batch, input->sequence, input->width};
    ck_assert_msg(attnres_cli_file_open(path, &file, &message) == 0, "%s", message.text);
    ck_assert_uint_eq(file.count, 3);
    output.retrieved = load_output(&file, "retrieved_representation", dtype, 3, shape + 1);
    output.weights = load_output(&file, "attention_weights", dtype, 3, shape);
    output.block_sources = load_output(&file, "block_sources", dtype, 4, shape);
    attnres_cli_file_close(&file);
    return output;
}

static void free_outputs(output_data *output)
{
    free(output->retrieved);
    free(output->weights);
    free(output->block_sources);
}

static void check_token(const example *input, const output_data *output, size_t token)
{
    size_t tokens = input->batch * input->sequence;
    double total = 0;
    for (size_t source = 0; source < output->sources; source++) {
        total += exp(source_logit(input, source, token));
    }
    for (size_t source = 0; source < output->sources; source++) {
        double weight = exp(source_logit(input, source, token)) / total;
        double found = decode(output->dtype, output->weights, source * tokens + token);
        ck_assert_double_eq_tol(found, weight, tolerance(output->dtype));
    }
    for (size_t i = 0; i < input->width; i++) {
        double mixed = 0;
        size_t row = token * input->width + i;
        for (size_t source = 0; source < output->sources; source++) {
            double x = source_element(input, source, token, i);
            mixed += exp(source_logit(input, source, token)) / total * x;
            ck_assert_double_eq(
                decode(output->dtype, output->block_sources, source * tokens * input->width + row),
                x);
        }
        double found = decode(output->dtype, output->retrieved, row);
        ck_assert_double_eq_tol(found, mixed, tolerance(output->dtype) * fmax(1, fabs(mixed)));
    }
}

static void run_well(const char *const *arguments, const program_options *options)
{
    program_result result = program_run(arguments, options);
    ck_assert_msg(result.status == 0, "exit status %d: %s", result.status, result.err);
    ck_assert_str_eq(result.err, "");
    const char *end = strchr(result.out, '\n');
    ck_assert_msg(end != NULL && end[1] == '\0', "not one line: %s", result.out);
    ck_assert_ptr_nonnull(strstr(result.out, "retrieved_representation ["));
    program_free(&result);
}

static output_data run_example(attnres_dtype dtype, const example *input)
{
    char block_size[32];
    char eps[32];
    char scale[32];
    write_example(files_path("in"), dtype, input);
    snprintf(block_size, sizeof block_size, "%zu", input->block_size);
    snprintf(eps, sizeof eps, "%.17g", input->eps);
    snprintf(scale, sizeof scale, "%.17g", input->scale);
    run_well(ARGUMENTS("read", files_path("in"), "-o", files_path("out"), "--block-size",
                       block_size, "--eps", eps, "--scale", scale),
             NULL);
    ck_assert_uint_eq(files_count(), 2);
    output_data output = load_outputs(files_path("out"), dtype, input);
    for (size_t token = 0; token < input->batch * input->sequence; token++) {
        check_token(input, &output, token);
    }
    return output;
}

/* ---- Tests ----------------------------------------------------------------------------- */

START_TEST(first_worked_example)
{
    attnres_dtype dtype = dtypes[_i];
    example input = {.batch = 1,
                     .sequence = 1,
                     .width = 2,
                     .layers = 0,
                     .block_size = 2,
                     .eps = 1e-6,
                     .scale = 1,
                     .embedding = {1, 0},
                     .query = {1, 0.5}};
    output_data output = run_example(dtype, &input);
    ck_assert_double_eq(decode(dtype, output.retrieved, 0), 1.0); /* exact, not close */
    ck_assert_double_eq(decode(dtype, output.retrieved, 1), 0.0);
    ck_assert_double_eq(decode(dtype, output.weights, 0), 1.0);
    free_outputs(&output);
}
END_TEST

START_TEST(other_worked_examples)
{
    static const size_t shapes[][5] = {
        {1, 1, 2, 3, 2},  /* a completed block and a partial one: 3 sources */
        {1, 2, 2, 4, 2},  /* two completed blocks, no empty partial: 3 sources */
        {2, 3, 5, 7, 3},  /* 1 + 2 + 1 sources */
        {1, 1, 33, 5, 9}, /* a block larger than the layers */
        {3, 1, 4, 3, 1},  /* blocks of one: the full read */
    };
    static const size_t sources[] = {3, 3, 4, 2, 4};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        example input = {.batch = shapes[i][0],
                         .sequence = shapes[i][1],
                         .width = shapes[i][2],
                         .layers = shapes[i][3],
                         .block_size = shapes[i][4],
                         .eps = i % 2 == 0 ? 1e-6 : 0.5,
                         .scale = i < 2 ? 1 : -0.75};
        fill_example(&input);
        output_data output = run_example(dtypes[_i], &input);
        ck_assert_uint_eq(output.sources, sources[i]);
        free_outputs(&output);
    }
}
END_TEST

START_TEST(command_lines_that_mean_the_same)
{
    const char *in = files_path("in");
    const char *out = files_path("out");
    char joined[FILES_PATH_CAPACITY];
    size_t bytes = 0;
    cli_write_sample(in, ATTNRES_BF16, 5);
    run_well(ARGUMENTS("read", in, "-o", out, "--block-size", "2"), NULL);
    char *expected = files_read(out, &bytes);
    snprintf(joined, sizeof joined, "--output=%s", out);
    const program_options posix = {.environment = "POSIXLY_CORRECT=1"};
    const program_options lowered = {.environment = "ATTNRES_LEVEL=scalar"};
    const char *const lines[][14] = {
        {"read", in, joined, "--block-size", "002"},
        {"read", "--block-size=2", "--eps=1e-6", "--scale=1", joined, in},
        {"read", "-o", out, "--scale", "1e0", in, "--eps", "0.000001", "--block-size", "2"},
        {"read", "--block-size", "9", joined, "--block-size", "2", "--level=scalar", "--", in},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ck_assert_int_eq(unlink(out), 0);
        run_well(lines[i], i % 2 == 0 ? &posix : &lowered);
        files_check(out, expected, bytes);
    }
    /* The input is read in full before the output takes its place. */
    run_well(ARGUMENTS("read", in, "-o", in, "--block-size", "2"), NULL);
    files_check(in, expected, bytes);
    ck_assert_uint_eq(files_count(), 2);
    free(expected);
}
END_TEST

START_TEST(no_tokens_are_an_answer)
{
    /* Without tokens `layers` is only a number in the shape. */
    static const size_t layers[] = {0, 5, (size_t)1 << 40};
    const size_t width[] = {3};
    double query[3] = {1, 2, 3};
    for (size_t i = 0; i < 3; i++) {
        example input = {
            .batch = 0, .sequence = 7, .width = 3, .layers = layers[i], .block_size = 2};
        const size_t shape[] = {layers[i], 0, 7, 3};
        const attnres_cli_output tensors[] = {
            {"embedding", ATTNRES_F64, 3, shape + 1, NULL},
            {"previous_outputs", ATTNRES_F64, 4, shape, NULL},
            {"pseudo_query", ATTNRES_F64, 1, width, query},
        };
        attnres_cli_message message = {""};
        ck_assert_int_eq(attnres_cli_file_write(files_path("in"), tensors, 3, &message), 0);
        run_well(ARGUMENTS("read", files_path("in"), "-o", files_path("out"), "--block-size", "2"),
                 NULL);
        output_data output = load_outputs(files_path("out"), ATTNRES_F64, &input);
        free_outputs(&output);
    }
}
END_TEST

START_TEST(other_tensors_are_passed_over)
{
    files_write_safetensors(
        files_path("in"),
        "{\"embedding\":{\"dtype\":\"F16\",\"shape\":[1,1,1],\"data_offsets\":[1,3]},"
        "\"previous_outputs\":{\"dtype\":\"F16\",\"shape\":[0,1,1,1],\"data_offsets\":[3,3]},"
        "\"pseudo_query\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[3,5]},"
        "\"layer.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]},"
        "\"ids\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[5,13]},"
        "\"__metadata__\":{\"format\":\"pt\"}}",
        13);
    run_well(ARGUMENTS("read", files_path("in"), "-o", files_path("out"), "--block-size", "1"),
             NULL);
    example input = {.batch = 1, .sequence = 1, .width = 1, .layers = 0, .block_size = 1};
    output_data output = load_outputs(files_path("out"), ATTNRES_F16, &input);
    ck_assert_int_eq(memcmp(output.retrieved, "\x08\x0f", 2), 0); /* one source: its very bits */
    ck_assert_int_eq(memcmp(output.block_sources, "\x08\x0f", 2), 0);
    free_outputs(&output);
}
END_TEST

TCase *cli_read_case(void)
{
    TCase *read = tcase_create("read");
    files_use(read);
    tcase_add_loop_test(read, first_worked_example, 0, 4);
    tcase_add_loop_test(read, other_worked_examples, 0, 4);
    tcase_add_test(read, command_lines_that_mean_the_same);
    tcase_add_test(read, no_tokens_are_an_answer);
    tcase_add_test(read, other_tensors_are_passed_over);
    tcase_set_timeout(read, 60);
    return read;
}
