#include "golden.h"

#include "allocate.h"
#include "elements.h"
#include "files.h"
#include "oracle.h"

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 128 };

/* What the reference may be off by, relative to sum w |x|: it was summed in f64. */
#define REFERENCE_TOLERANCE 1e-13

static json_t *read_metadata(const char *path)
{
    size_t bytes = 0, header = 0;
    json_error_t error;
    char *data = files_read(path, &bytes);
    ck_assert_uint_gt(bytes, 8);
    for (size_t i = 0; i < 8; i++) {
        header |= (size_t)(unsigned char)data[i] << (8 * i);
    }
    ck_assert_uint_le(header, bytes - 8);
    json_t *root = json_loadb(data + 8, header, 0, &error);
    ck_assert_msg(root != NULL, "%s: %s", path, error.text);
    json_t *metadata = json_incref(json_object_get(root, "__metadata__"));
    json_decref(root);
    free(data);
    return metadata;
}

void golden_open(golden *data, const char *path)
{
    char full[FILES_PATH_CAPACITY];
    attnres_cli_message message;
    const char *directory = getenv("ATTNRES_TEST_DATA");
    ck_assert_msg(directory != NULL, "ATTNRES_TEST_DATA does not say where tests/ is");
    snprintf(full, sizeof full, "%s/%s", directory, path);
    ck_assert_msg(attnres_cli_file_open(full, &data->file, &message) == 0, "%s: %s", full,
                  message.text);
    data->metadata = read_metadata(full);
}

void golden_close(golden *data)
{
    attnres_cli_file_close(&data->file);
    json_decref(data->metadata);
}

const char *golden_text(const golden *data, const char *key)
{
    const char *text = json_string_value(json_object_get(data->metadata, key));
    ck_assert_msg(text != NULL, "no metadata '%s'", key);
    return text;
}

static const char *value_of(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, name, length) == 0 && at[length] == '=') {
            return at + length + 1;
        }
    }
    ck_abort_msg("no %s in '%s'", name, list);
    return NULL;
}

double golden_number(const char *list, const char *name)
{
    const char *text = value_of(list, name);
    char *end;
    const double number = strtod(text, &end);
    ck_assert(end != text && (*end == ' ' || *end == '\0'));
    return number;
}

attnres_dtype golden_dtype(const char *list)
{
    const char *text = value_of(list, "dtype");
    for (int i = 0; i < ELEMENTS_DTYPES; i++) {
        const char *name = attnres_cli_dtype_name(elements_dtype(i));
        const size_t length = strlen(name);
        if (strncmp(text, name, length) == 0 && (text[length] == ' ' || text[length] == '\0')) {
            return elements_dtype(i);
        }
    }
    ck_abort_msg("unknown dtype in '%s'", list);
    return (attnres_dtype)0;
}

const attnres_cli_tensor *golden_find(const golden *data, const char *prefix, const char *name)
{
    char full[NAME_MAX_BYTES];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const attnres_cli_tensor *tensor = attnres_cli_file_find(&data->file, full);
    ck_assert_msg(tensor != NULL, "no tensor '%s'", full);
    return tensor;
}

void *golden_tensor(const golden *data, const char *prefix, const char *name, size_t count,
                    attnres_dtype *dtype)
{
    const attnres_cli_tensor *tensor = golden_find(data, prefix, name);
    attnres_cli_message message;
    void *values;
    ck_assert_int_ne(tensor->dtype, 0);
    ck_assert(*dtype == 0 || *dtype == tensor->dtype);
    *dtype = tensor->dtype;
    ck_assert_msg(tensor->bytes == count * attnres_dtype_size(tensor->dtype), "size of %s%s",
                  prefix, name);
    ck_assert_msg(attnres_cli_file_load(&data->file, tensor, &values, &message) == 0, "%s",
                  message.text);
    return values;
}

void golden_block_open(golden_block *it, const golden *data, const char *prefix, size_t block_size,
                       double eps)
{
    const attnres_cli_tensor *embedding = golden_find(data, prefix, "embedding");
    const attnres_cli_tensor *outputs = golden_find(data, prefix, "previous_outputs");
    ck_assert_uint_eq(embedding->rank, 3);
    ck_assert_uint_eq(outputs->rank, 4);
    *it = (golden_block){.layers = outputs->shape[0], .block_size = block_size, .eps = eps};
    it->shape.tokens = embedding->shape[0] * embedding->shape[1];
    it->shape.width = embedding->shape[2];
    it->count = attnres_source_count(it->layers, block_size);
    const size_t row = it->shape.tokens * it->shape.width;
    it->embedding = golden_tensor(data, prefix, "embedding", row, &it->shape.dtype);
    it->outputs =
        golden_tensor(data, prefix, "previous_outputs", it->layers * row, &it->shape.dtype);
    it->projection = golden_tensor(data, prefix, "pseudo_query", it->shape.width, &it->shape.dtype);
    const size_t size = attnres_dtype_size(it->shape.dtype);
    it->query = allocate(it->shape.width, sizeof(double));
    it->retrieved = allocate(row, size);
    it->weights = allocate(it->count * it->shape.tokens, size);
    it->sources = allocate(it->count * row, size);
    const attnres_vector projection = {it->shape.dtype, it->projection, it->shape.width};
    ck_assert_int_eq(
        attnres_make_query(it->shape.dtype, it->shape.width, &projection, NULL, it->query),
        ATTNRES_OK);
}

void golden_block_close(golden_block *it)
{
    free(it->embedding);
    free(it->outputs);
    free(it->projection);
    free(it->query);
    free(it->retrieved);
    free(it->weights);
    free(it->sources);
}

void golden_block_run(golden_block *it)
{
    const size_t row = it->shape.tokens * it->shape.width;
    attnres_rows *outputs = allocate(it->layers, sizeof *outputs);
    attnres_rows_out *sources = allocate(it->count, sizeof *sources);
    for (size_t i = 0; i < it->layers; i++) {
        outputs[i].data = elements_at(it->shape.dtype, it->outputs, i * row);
    }
    for (size_t s = 0; s < it->count; s++) {
        sources[s].data = elements_at(it->shape.dtype, it->sources, s * row);
    }
    const attnres_block_read_args args = {.embedding = {it->embedding, 0},
                                          .outputs = outputs,
                                          .layers = it->layers,
                                          .block_size = it->block_size,
                                          .query = it->query,
                                          .eps = it->eps,
                                          .retrieved = {it->retrieved, 0},
                                          .weights = {.data = it->weights},
                                          .sources = sources,
                                          .source_count = it->count};
    ck_assert_int_eq(attnres_block_read(&it->shape, &args), ATTNRES_OK);
    free(outputs);
    free(sources);
}

static void judge_token(const golden_block *it, size_t t, const double *retrieved,
                        const double *weights, golden_verdict *verdict)
{
    const attnres_dtype dtype = it->shape.dtype;
    const size_t width = it->shape.width, tokens = it->shape.tokens;
    const void **rows = allocate(it->count, sizeof *rows);
    double *found = allocate(it->count, sizeof *found); /* of any dtype */
    for (size_t s = 0; s < it->count; s++) {
        rows[s] = elements_at(dtype, it->sources, (s * tokens + t) * width);
        elements_set(dtype, found, s, elements_get(dtype, it->weights, s * tokens + t));
    }
    const reading in = {.dtype = dtype,
                        .width = width,
                        .count = it->count,
                        .rows = rows,
                        .query = it->query,
                        .eps = it->eps};
    oracle judge;
    oracle_open(&judge, &in);
    const void *result = elements_at(dtype, it->retrieved, t * width);
    verdict->retrieved = fmax(verdict->retrieved, oracle_retrieved(&judge, result));
    verdict->weights = fmax(verdict->weights, oracle_weights(&judge, found));
    for (size_t s = 0; s < it->count; s++) {
        const real error = real_abs((real)weights[s * tokens + t] - judge.weights[s]);
        verdict->reference = fmax(verdict->reference, (double)error / REFERENCE_TOLERANCE);
    }
    for (size_t i = 0; i < width; i++) {
        const double reference = retrieved[t * width + i];
        const double tolerance = REFERENCE_TOLERANCE * (double)judge.magnitudes[i];
        const double rounding = elements_ulp(dtype, reference) / 2;
        const double error = (double)real_abs((real)reference - judge.mix[i]);
        const double difference = fabs(elements_get(dtype, result, i) - reference);
        verdict->reference = fmax(verdict->reference, error == 0 ? 0 : error / tolerance);
        ck_assert_msg(difference <=
                          (double)judge.mix_bounds[i] + tolerance + rounding * (1 + 0x1p-10),
                      "token %zu, element %zu: %.17g, reference %.17g", t, i,
                      elements_get(dtype, result, i), reference);
    }
    oracle_close(&judge);
    free(found);
    free(rows);
}

golden_verdict golden_block_judge(const golden_block *it, const double *retrieved,
                                  const double *weights)
{
    golden_verdict verdict = {0};
    for (size_t t = 0; t < it->shape.tokens; t++) {
        judge_token(it, t, retrieved, weights, &verdict);
    }
    return verdict;
}
