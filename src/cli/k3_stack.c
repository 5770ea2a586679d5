#include "k3_stack.h"

#include "k3_reference.h"
#include "synthetic.h"
#include "timing.h"

#include <stdlib.h>
#include <string.h>

static size_t sites_of(const attnres_cli_k3_stack *stack)
{
    return 2 * stack->layers + 1;
}

static size_t pushes_of(const attnres_cli_k3_stack *stack)
{
    return attnres_source_count(stack->layers, stack->block_size) - 1;
}

/* Query and gain of every site. As in a checkpoint, a query is folded from two vectors; the gain
 * of 2^-6 makes logits of about 1. */
int attnres_cli_k3_make(attnres_cli_k3_stack *stack)
{
    const attnres_dtype accumulator = attnres_dtype_accumulator(stack->dtype);
    const size_t sites = sites_of(stack), width = stack->width;
    float *gain = malloc(width * sizeof *gain);
    unsigned char *projection = malloc(width * sizeof(double));
    uint64_t state = stack->seed;
    int bad = 0;

    stack->vector_bytes = width * attnres_dtype_size(accumulator);
    stack->queries = calloc(sites, stack->vector_bytes);
    stack->gains = calloc(sites, stack->vector_bytes);
    if (!gain || !projection || !stack->queries || !stack->gains) {
        bad = -1;
    }
    for (size_t i = 0; !bad && i < width; i++) {
        gain[i] = 0x1p-6f;
    }
    for (size_t site = 0; !bad && site < sites; site++) {
        attnres_cli_fill(stack->dtype, ATTNRES_CLI_ORDINARY, &state, projection, width);
        const attnres_vector factors = {ATTNRES_F32, gain, width};
        const attnres_vector values = {stack->dtype, projection, width};
        if (attnres_make_query(stack->dtype, width, &values, &factors,
                               stack->queries + site * stack->vector_bytes) != ATTNRES_OK) {
            bad = -1;
        }
        attnres_cli_fill(accumulator, ATTNRES_CLI_ORDINARY, &state,
                         stack->gains + site * stack->vector_bytes, width);
    }
    free(gain);
    free(projection);
    if (bad) {
        attnres_cli_k3_free(stack);
    }
    return bad;
}

void attnres_cli_k3_free(attnres_cli_k3_stack *stack)
{
    free(stack->queries);
    free(stack->gains);
    stack->queries = stack->gains = NULL;
}

/* Everything one run works with. */
typedef struct run {
    const attnres_cli_k3_stack *stack;
    attnres_cli_k3_result *result;
    attnres_shape shape;
    size_t row_bytes, stream_bytes;
    void *memory[2];
    attnres_stream *stream;
    int active; /* which memory the stream is in */
    unsigned char *exported;
    size_t exported_capacity;
    unsigned char *embedding, *output, *normed, *retrieved;
    attnres_cli_k3_reference *reference; /* NULL: not verified */
} run;

static void stop(run *r)
{
    free(r->memory[0]);
    free(r->memory[1]);
    free(r->exported);
    free(r->embedding);
    free(r->output);
    free(r->normed);
    free(r->retrieved);
    attnres_cli_k3_reference_free(r->reference);
}

static int start(run *r, const attnres_cli_k3_stack *stack, size_t first, size_t tokens, int verify,
                 int hop)
{
    const attnres_stream_config config = {
        {stack->dtype, tokens, stack->width}, pushes_of(stack), ATTNRES_ROUND_EACH};
    const size_t size = attnres_dtype_size(stack->dtype), bytes = tokens * stack->width * size;

    r->stack = stack;
    r->shape = config.shape;
    r->row_bytes = stack->width * size;
    r->stream_bytes = attnres_stream_size(&config);
    r->embedding = malloc(bytes + 1);
    r->output = malloc(bytes + 1);
    r->normed = malloc(bytes + 1);
    r->retrieved = malloc(bytes + 1);
    r->memory[0] = r->stream_bytes ? malloc(r->stream_bytes) : NULL;
    r->memory[1] = hop && r->stream_bytes ? malloc(r->stream_bytes) : NULL;
    r->exported_capacity = r->stream_bytes + 1024;
    r->exported = hop ? malloc(r->exported_capacity) : NULL;
    r->reference = verify ? attnres_cli_k3_reference_make(&config) : NULL;
    if (!r->embedding || !r->output || !r->normed || !r->retrieved || !r->memory[0] ||
        (hop && (!r->memory[1] || !r->exported)) || (verify && !r->reference)) {
        return -1;
    }
    for (size_t t = 0; t < tokens; t++) { /* token by token: any split gives the same ones */
        uint64_t state = stack->seed + 0x9e3779b9u * (uint64_t)(first + t + 1);
        attnres_cli_fill(stack->dtype, ATTNRES_CLI_ORDINARY, &state,
                         r->embedding + t * r->row_bytes, stack->width);
    }
    for (size_t i = 0; i < bytes; i++) { /* the pages, before time is measured */
        r->output[i] = r->normed[i] = r->retrieved[i] = 1;
    }
    memset(r->memory[0], 1, r->stream_bytes);
    return (int)attnres_stream_init(&config, r->memory[0], r->stream_bytes, &r->stream);
}

/* A pipeline stage ends: the state moves into another stream. */
static int change_stage(run *r)
{
    const attnres_stream_config config = {r->shape, pushes_of(r->stack), ATTNRES_ROUND_EACH};
    const size_t size = attnres_stream_export_size(r->stream);
    attnres_status status = size <= r->exported_capacity
                                ? attnres_stream_export(r->stream, r->exported, size)
                                : ATTNRES_ERROR_SIZE;
    r->active = !r->active;
    if (status == ATTNRES_OK) {
        status = attnres_stream_init(&config, r->memory[r->active], r->stream_bytes, &r->stream);
    }
    return (int)(status == ATTNRES_OK ? attnres_stream_import(r->stream, r->exported, size)
                                      : status);
}

/* One read site; `output` (may be NULL) is what the last layer produced. */
static int read_site(run *r, size_t site, const unsigned char *output, int push)
{
    const attnres_cli_k3_stack *stack = r->stack;
    const attnres_rows outputs = {output, 0};
    attnres_stream_read_args args = {
        .outputs = &outputs,
        .output_count = output != NULL,
        .push = push,
        .query = stack->queries + site * stack->vector_bytes,
        .eps = stack->eps,
        .normed = {r->normed, 0},
        .norm_gain = stack->gains + site * stack->vector_bytes,
        .norm_eps = stack->norm_eps,
    };
    const size_t before = attnres_stream_sources(r->stream, NULL, 0);
    if (r->reference) {
        args.retrieved.data = r->retrieved;
        attnres_cli_k3_reference_before(r->reference, output);
    }
    const double begin = attnres_cli_now();
    const attnres_status status = attnres_stream_read(r->stream, &args);
    r->result->read_seconds += attnres_cli_now() - begin;
    if (status != ATTNRES_OK) {
        return (int)status;
    }
    /* Sources were the bank and the prefix, which there is now if there was none before. */
    const size_t after = attnres_stream_sources(r->stream, NULL, 0);
    const size_t sources = after > before ? after : before;
    const double rows = (double)(sources + (output != NULL ? 3u : 1u));
    r->result->bytes += rows * (double)(r->shape.tokens * r->row_bytes);
    if (site > 0) {
        r->result->reads++;
        r->result->source_rows += sources;
    }
    if (r->reference) {
        attnres_cli_k3_reference_after(r->reference, r->stream, args.query, stack->eps,
                                       r->retrieved, push, r->result);
    }
    for (size_t t = 0; r->result->digests && t < r->shape.tokens; t++) {
        r->result->digests[t] =
            attnres_cli_digest(r->result->digests[t], r->normed + t * r->row_bytes, r->row_bytes);
    }
    return 0;
}

/* A stand-in layer: the input moved by `shift` columns and halved, every third sign changed. Works
 * on bits: exact in every dtype, and of its input only. */
static void stand_in(run *r, size_t shift)
{
    const size_t width = r->shape.width;
    for (size_t t = 0; t < r->shape.tokens; t++) {
        attnres_cli_halve_and_move(r->shape.dtype, r->normed + t * r->row_bytes, width, shift,
                                   r->output + t * r->row_bytes);
    }
}

int attnres_cli_k3_run(const attnres_cli_k3_stack *stack, size_t first, size_t tokens, int verify,
                       int hop, void (*progress)(size_t layer, size_t layers),
                       attnres_cli_k3_result *result)
{
    run r = {.result = result};
    int status = start(&r, stack, first, tokens, verify, hop);
    for (size_t t = 0; result->digests && t < tokens; t++) {
        result->digests[t] = ATTNRES_CLI_DIGEST_START;
    }
    if (status == 0) {
        status = (int)attnres_stream_begin(r.stream, (attnres_rows){r.embedding, 0});
    }
    if (status == 0 && verify) {
        attnres_cli_k3_reference_begin(r.reference, r.embedding);
    }
    const unsigned char *output = NULL;
    for (size_t layer = 0; status == 0 && layer < stack->layers; layer++) {
        status = read_site(&r, 2 * layer, output, layer % stack->block_size == 0);
        output = r.output;
        stand_in(&r, 1);
        if (status == 0) {
            status = read_site(&r, 2 * layer + 1, output, 0);
        }
        stand_in(&r, stack->width - 1);
        if (status == 0 && hop) {
            status = change_stage(&r);
        }
        if (progress) {
            progress(layer + 1, stack->layers);
        }
    }
    if (status == 0) {
        status = read_site(&r, 2 * stack->layers, output, 0);
    }
    stop(&r);
    return status;
}
