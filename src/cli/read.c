/* `attnres read`: Block AttnRes on the tensors of a file.
 *
 *     in    embedding                [batch, sequence, width]
 *           previous_outputs         [layers, batch, sequence, width], oldest first
 *           pseudo_query             [width]
 *     out   retrieved_representation [batch, sequence, width]
 *           attention_weights        [sources, batch, sequence]
 *           block_sources            [sources, batch, sequence, width]
 *
 * All have one dtype: F64, F32, F16 or BF16. Other tensors in the file are not looked at. */
#include "cli.h"
#include "read_options.h"
#include "safetensors.h"
#include "text.h"

#include <attnres.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Input ----------------------------------------------------------------------------- */

typedef struct read_job {
    attnres_dtype dtype;
    size_t batch;
    size_t sequence;
    size_t width;
    size_t layers;
    size_t tokens;
    size_t sources;

    void *embedding;
    void *outputs;
    void *projection; /* the pseudo-query as it is in the file */
    void *query;      /* and in the accumulator type */
    void *retrieved;
    void *weights;
    void *block_sources;
    attnres_rows *output_rows;     /* [layers] */
    attnres_rows_out *source_rows; /* [sources] */
} read_job;

static void free_job(read_job *job)
{
    free(job->embedding);
    free(job->outputs);
    free(job->projection);
    free(job->query);
    free(job->retrieved);
    free(job->weights);
    free(job->block_sources);
    free(job->output_rows);
    free(job->source_rows);
}

static int find_input(const attnres_cli_file *file, const char *name, size_t rank,
                      const char *shape, const attnres_cli_tensor **tensor,
                      attnres_cli_message *message)
{
    char text[160];
    const attnres_cli_tensor *found = attnres_cli_file_find(file, name);
    if (found == NULL) {
        return attnres_cli_explain(message, "there is no tensor '%s'", name);
    }
    if (found->dtype == (attnres_dtype)0) {
        return attnres_cli_explain(message, "'%s' is %s, not F64, F32, F16 or BF16", name,
                                   found->dtype_name);
    }
    if (found->rank != rank) {
        return attnres_cli_explain(
            message, "'%s' has shape %s, not %s", name,
            attnres_cli_shape_text(found->shape, found->rank, text, sizeof text), shape);
    }
    *tensor = found;
    return 0;
}

/* Whether the three tensors fit together; takes the sizes from them. */
static int check_inputs(read_job *job, const attnres_cli_tensor *embedding,
                        const attnres_cli_tensor *outputs, const attnres_cli_tensor *query,
                        attnres_cli_message *message)
{
    char text[160];
    char other[160];
    if (outputs->dtype != embedding->dtype || query->dtype != embedding->dtype) {
        return attnres_cli_explain(
            message, "the dtypes differ: 'embedding' %s, 'previous_outputs' %s, 'pseudo_query' %s",
            embedding->dtype_name, outputs->dtype_name, query->dtype_name);
    }
    if (memcmp(outputs->shape + 1, embedding->shape, 3 * sizeof *embedding->shape) != 0) {
        return attnres_cli_explain(
            message, "'previous_outputs' has shape %s, which does not go with 'embedding' %s",
            attnres_cli_shape_text(outputs->shape, 4, text, sizeof text),
            attnres_cli_shape_text(embedding->shape, 3, other, sizeof other));
    }
    job->dtype = embedding->dtype;
    job->layers = outputs->shape[0];
    job->batch = embedding->shape[0];
    job->sequence = embedding->shape[1];
    job->width = embedding->shape[2];
    if (job->width == 0) {
        return attnres_cli_explain(message, "the width of 'embedding' is 0");
    }
    if (query->shape[0] != job->width) {
        return attnres_cli_explain(message,
                                   "'pseudo_query' has length %zu, but 'embedding' has width %zu",
                                   query->shape[0], job->width);
    }
    if (attnres_cli_multiply(job->batch, job->sequence, &job->tokens) != 0) {
        return attnres_cli_explain(message, "the shape of 'embedding' overflows");
    }
    return 0;
}

static int load_tensors(read_job *job, const attnres_cli_file *file, attnres_cli_message *message)
{
    const attnres_cli_tensor *embedding = NULL;
    const attnres_cli_tensor *outputs = NULL;
    const attnres_cli_tensor *query = NULL;
    if (find_input(file, "embedding", 3, "[batch, sequence, width]", &embedding, message) != 0 ||
        find_input(file, "previous_outputs", 4, "[layers, batch, sequence, width]", &outputs,
                   message) != 0 ||
        find_input(file, "pseudo_query", 1, "[width]", &query, message) != 0 ||
        check_inputs(job, embedding, outputs, query, message) != 0 ||
        attnres_cli_file_load(file, embedding, &job->embedding, message) != 0 ||
        attnres_cli_file_load(file, outputs, &job->outputs, message) != 0 ||
        attnres_cli_file_load(file, query, &job->projection, message) != 0) {
        return -1;
    }
    return 0;
}

static int load_inputs(read_job *job, const char *path)
{
    attnres_cli_file file;
    attnres_cli_message message;
    if (attnres_cli_file_open(path, &file, &message) != 0) {
        return attnres_cli_fail("%s: %s", path, message.text);
    }
    int result = load_tensors(job, &file, &message);
    attnres_cli_file_close(&file);
    return result == 0 ? ATTNRES_CLI_EXIT_OK : attnres_cli_fail("%s: %s", path, message.text);
}

/* ---- Read and output ------------------------------------------------------------------- */

/* a * b * c bytes, at least one so that NULL means "out of memory" and nothing else. */
static void *allocate(size_t a, size_t b, size_t c)
{
    size_t bytes = 0;
    if (attnres_cli_multiply(a, b, &bytes) != 0 || attnres_cli_multiply(bytes, c, &bytes) != 0) {
        return NULL;
    }
    return malloc(bytes > 0 ? bytes : 1);
}

/* Without tokens there is nothing to read, and `layers` may be any number since no data stands
 * behind it: no list of row sets is made then. */
static size_t listed_layers(const read_job *job)
{
    return job->tokens > 0 ? job->layers : 0;
}

static int prepare(read_job *job, size_t block_size)
{
    size_t element = attnres_dtype_size(job->dtype);
    size_t layers = listed_layers(job);
    size_t listed = attnres_source_count(layers, block_size);
    job->sources = attnres_source_count(job->layers, block_size);
    size_t row_bytes = 0;
    size_t set_bytes = 0;
    if (attnres_cli_multiply(job->width, element, &row_bytes) != 0 ||
        attnres_cli_multiply(row_bytes, job->tokens, &set_bytes) != 0) {
        return -1;
    }
    job->query = allocate(job->width, sizeof(double), 1);
    job->retrieved = allocate(set_bytes, 1, 1);
    job->weights = allocate(listed, job->tokens, element);
    job->block_sources = allocate(listed, set_bytes, 1);
    job->output_rows = calloc(layers + 1, sizeof *job->output_rows);
    job->source_rows = calloc(listed, sizeof *job->source_rows);
    if (job->query == NULL || job->retrieved == NULL || job->weights == NULL ||
        job->block_sources == NULL || job->output_rows == NULL || job->source_rows == NULL) {
        return -1;
    }
    for (size_t layer = 0; layer < layers; layer++) {
        job->output_rows[layer].data = (const char *)job->outputs + layer * set_bytes;
    }
    for (size_t source = 0; source < listed; source++) {
        job->source_rows[source].data = (char *)job->block_sources + source * set_bytes;
    }
    return 0;
}

static attnres_status run(const read_job *job, const attnres_cli_read_options *options)
{
    attnres_shape shape = {.dtype = job->dtype, .tokens = job->tokens, .width = job->width};
    attnres_vector projection = {
        .dtype = job->dtype, .data = job->projection, .length = job->width};
    attnres_status status =
        attnres_make_query(job->dtype, job->width, &projection, NULL, job->query);
    if (status != ATTNRES_OK) {
        return status;
    }
    attnres_block_read_args args = {
        .embedding = {.data = job->embedding},
        .outputs = job->output_rows,
        .layers = listed_layers(job),
        .block_size = options->block_size,
        .query = job->query,
        .eps = options->eps,
        .scale = options->scale,
        .retrieved = {.data = job->retrieved},
        .weights = {.data = job->weights},
        .sources = job->source_rows,
        .source_count = attnres_source_count(listed_layers(job), options->block_size),
    };
    return attnres_block_read(&shape, &args);
}

static int write_results(const read_job *job, const char *path)
{
    const size_t sizes[] = {job->sources, job->batch, job->sequence, job->width};
    const attnres_cli_output outputs[] = {
        {"retrieved_representation", job->dtype, 3, sizes + 1, job->retrieved},
        {"attention_weights", job->dtype, 3, sizes, job->weights},
        {"block_sources", job->dtype, 4, sizes, job->block_sources},
    };
    attnres_cli_message message;
    if (attnres_cli_file_write(path, outputs, sizeof outputs / sizeof outputs[0], &message) != 0) {
        return attnres_cli_fail("%s: %s", path, message.text);
    }
    char text[3][160];
    for (size_t i = 0; i < 3; i++) {
        attnres_cli_shape_text(outputs[i].shape, outputs[i].rank, text[i], sizeof text[i]);
    }
    attnres_cli_say("%s: retrieved_representation %s, attention_weights %s, block_sources %s, "
                    "dtype %s; layers %zu, sources %zu, level %s",
                    path, text[0], text[1], text[2], attnres_cli_dtype_name(job->dtype),
                    job->layers, job->sources, attnres_level_name(attnres_current_level()));
    return ATTNRES_CLI_EXIT_OK;
}

static int read_and_write(read_job *job, const attnres_cli_read_options *options)
{
    int exit_status = load_inputs(job, options->input);
    if (exit_status != ATTNRES_CLI_EXIT_OK) {
        return exit_status;
    }
    if (prepare(job, options->block_size) != 0) {
        return attnres_cli_fail("%s: out of memory", options->input);
    }
    attnres_status status = run(job, options);
    if (status != ATTNRES_OK) {
        return attnres_cli_fail("%s: %s", options->input, attnres_status_string(status));
    }
    return write_results(job, options->output);
}

static int choose_level(const char *name)
{
    attnres_level level = ATTNRES_LEVEL_SCALAR;
    if (name == NULL) {
        return ATTNRES_CLI_EXIT_OK;
    }
    if (attnres_level_from_name(name, &level) != ATTNRES_OK) {
        return attnres_cli_fail("read: unknown level '%s' (attnres info lists them)", name);
    }
    if (attnres_set_level(level) != ATTNRES_OK) {
        return attnres_cli_fail("read: level '%s' cannot run here (attnres info says why)", name);
    }
    return ATTNRES_CLI_EXIT_OK;
}

int attnres_cli_read(int argc, char **argv)
{
    attnres_cli_read_options options;
    read_job job = {0};
    int status = attnres_cli_parse_read_options(argc, argv, &options);
    if (status == ATTNRES_CLI_EXIT_OK && options.help) {
        printf("%s", attnres_cli_read_usage);
        return ATTNRES_CLI_EXIT_OK;
    }
    if (status == ATTNRES_CLI_EXIT_OK) {
        status = choose_level(options.level);
    }
    if (status == ATTNRES_CLI_EXIT_OK) {
        status = read_and_write(&job, &options);
    }
    free_job(&job);
    return status;
}
