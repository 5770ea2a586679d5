#include "k3_loop.h"

#include "allocate.h"
#include "elements.h"
#include "inputs.h"
#include "plain.h"

#include <math.h>
#include <string.h>

size_t k3_sites(const k3_stack *it)
{
    return 2 * it->layers + 1;
}

size_t k3_pushes(const k3_stack *it)
{
    return (it->layers + it->block_size - 1) / it->block_size;
}

int k3_site_pushes(const k3_stack *it, size_t site)
{
    return site % 2 == 0 && site / 2 < it->layers && site / 2 % it->block_size == 0;
}

static size_t vector_bytes(const k3_stack *it)
{
    return it->shape.width * attnres_dtype_size(attnres_dtype_accumulator(it->shape.dtype));
}

const void *k3_query(const k3_stack *it, size_t site)
{
    return it->queries + site * vector_bytes(it);
}

const void *k3_gain(const k3_stack *it, size_t site)
{
    return it->gains + site * vector_bytes(it);
}

void k3_open(k3_stack *it, attnres_shape shape, size_t layers, size_t block_size, uint64_t stream)
{
    const attnres_dtype accumulator = attnres_dtype_accumulator(shape.dtype);
    *it = (k3_stack){
        .shape = shape, .layers = layers, .block_size = block_size, .eps = 1e-5, .norm_eps = 1e-5};
    const size_t elements = k3_sites(it) * shape.width;
    it->embedding = allocate(shape.tokens * shape.width, attnres_dtype_size(shape.dtype));
    it->queries = allocate(elements, sizeof(double));
    it->gains = allocate(elements, sizeof(double));
    inputs_fill_scaled(shape.dtype, 1, &stream, it->embedding, shape.tokens * shape.width);
    inputs_fill_scaled(accumulator, 1.5 / sqrt((double)shape.width), &stream, it->queries,
                       elements);
    inputs_fill_scaled(accumulator, 1, &stream, it->gains, elements);
}

void k3_close(k3_stack *it)
{
    free(it->embedding);
    free(it->queries);
    free(it->gains);
}

void *k3_row(const k3_stack *it, void *results, size_t site, size_t t)
{
    return elements_at(it->shape.dtype, results, (site * it->shape.tokens + t) * it->shape.width);
}

/* attention: y_i = x_{i+1} / 2 + x_i / 4; feed-forward: z_i = x_{i-1} - x_i / 2. The products are
 * exact unless they underflow, which these inputs do not do. */
void k3_stand_in(attnres_dtype dtype, size_t width, size_t site, const void *normed, void *output)
{
    for (size_t i = 0; i < width; i++) {
        const double x = elements_get(dtype, normed, i);
        const double next = elements_get(dtype, normed, (i + 1) % width);
        const double previous = elements_get(dtype, normed, (i + width - 1) % width);
        elements_set(dtype, output, i,
                     site % 2 == 0 ? plain_add(dtype, 0.5 * next, 0.25 * x)
                                   : plain_add(dtype, previous, -0.5 * x));
    }
}

/* ---- The loop ------------------------------------------------------------------------------ */

typedef struct run {
    attnres_stream_config config;
    attnres_stream *stream;
    void *memory[2], *bytes, *output;
    int active;
} run;

static attnres_status start(run *r, const k3_part *part)
{
    const attnres_shape *shape = &part->stack->shape;
    const size_t size = attnres_dtype_size(shape->dtype);
    *r = (run){.config = {{shape->dtype, part->tokens, shape->width},
                          k3_pushes(part->stack),
                          ATTNRES_ROUND_EACH}};
    const size_t bytes = attnres_stream_size(&r->config);
    r->memory[0] = allocate(bytes, 1);
    r->memory[1] = allocate(bytes, 1);
    r->bytes = allocate(bytes + 1024, 1);
    r->output = allocate(part->tokens * shape->width, size);
    const attnres_status status = attnres_stream_init(&r->config, r->memory[0], bytes, &r->stream);
    const attnres_rows embedding = {part->stack->embedding + part->first * shape->width * size, 0};
    return status == ATTNRES_OK ? attnres_stream_begin(r->stream, embedding) : status;
}

static void stop(run *r)
{
    free(r->memory[0]);
    free(r->memory[1]);
    free(r->bytes);
    free(r->output);
}

/* The next pipeline stage. */
static attnres_status hop(run *r)
{
    const size_t size = attnres_stream_export_size(r->stream);
    attnres_status status = attnres_stream_export(r->stream, r->bytes, size);
    r->active = !r->active;
    if (status == ATTNRES_OK) {
        status = attnres_stream_init(&r->config, r->memory[r->active],
                                     attnres_stream_size(&r->config), &r->stream);
    }
    return status == ATTNRES_OK ? attnres_stream_import(r->stream, r->bytes, size) : status;
}

static attnres_status read_site(run *r, const k3_part *part, size_t site)
{
    const k3_stack *stack = part->stack;
    const attnres_rows output = {r->output, 0};
    const attnres_stream_read_args args = {
        .outputs = &output,
        .output_count = site > 0,
        .push = k3_site_pushes(stack, site),
        .query = k3_query(stack, site),
        .eps = stack->eps,
        .retrieved = {k3_row(stack, part->retrieved, site, part->first), 0},
        .normed = {k3_row(stack, part->normed, site, part->first), 0},
        .norm_gain = k3_gain(stack, site),
        .norm_eps = stack->norm_eps,
    };
    return attnres_stream_read(r->stream, &args);
}

void k3_run(k3_part *part)
{
    const k3_stack *stack = part->stack;
    const attnres_shape *shape = &stack->shape;
    run r;
    part->status = start(&r, part);
    for (size_t site = 0; part->status == ATTNRES_OK && site < k3_sites(stack); site++) {
        if (part->hops && site % 2 == 0) {
            part->status = hop(&r);
        }
        if (part->status == ATTNRES_OK) {
            part->status = read_site(&r, part, site);
        }
        for (size_t t = 0; t < part->tokens; t++) {
            k3_stand_in(shape->dtype, shape->width, site,
                        k3_row(stack, part->normed, site, part->first + t),
                        elements_at(shape->dtype, r.output, t * shape->width));
        }
    }
    part->sources = attnres_stream_sources(r.stream, NULL, 0);
    stop(&r);
}
