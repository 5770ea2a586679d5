#include "k3_reference.h"

#include "oracle.h"
#include "synthetic.h"

#include <stdlib.h>
#include <string.h>

struct attnres_cli_k3_reference {
    attnres_stream_config config;
    size_t slot_bytes, row_bytes;
    unsigned char *bank; /* [capacity][tokens][width] */
    unsigned char *prefix;
    size_t banked;
    int has_prefix;
    double *result, *magnitude, *weights;
    const void **rows;
};

attnres_cli_k3_reference *attnres_cli_k3_reference_make(const attnres_stream_config *config)
{
    attnres_cli_k3_reference *made = calloc(1, sizeof *made);
    const attnres_shape *shape = &config->shape;
    if (made == NULL) {
        return NULL;
    }
    made->config = *config;
    made->row_bytes = shape->width * attnres_dtype_size(shape->dtype);
    made->slot_bytes = shape->tokens * made->row_bytes;
    made->bank = calloc(config->capacity, made->slot_bytes + 1);
    made->prefix = malloc(made->slot_bytes + 1);
    made->result = malloc(shape->width * sizeof(double));
    made->magnitude = malloc(shape->width * sizeof(double));
    made->weights = malloc((config->capacity + 1) * sizeof(double));
    made->rows = malloc((config->capacity + 1) * sizeof *made->rows);
    if (!made->bank || !made->prefix || !made->result || !made->magnitude || !made->weights ||
        !made->rows) {
        attnres_cli_k3_reference_free(made);
        return NULL;
    }
    return made;
}

void attnres_cli_k3_reference_free(attnres_cli_k3_reference *reference)
{
    if (reference != NULL) {
        free(reference->bank);
        free(reference->prefix);
        free(reference->result);
        free(reference->magnitude);
        free(reference->weights);
        free(reference->rows);
        free(reference);
    }
}

void attnres_cli_k3_reference_begin(attnres_cli_k3_reference *reference, const void *embedding)
{
    memcpy(reference->prefix, embedding, reference->slot_bytes);
    reference->has_prefix = 1;
    reference->banked = 0;
}

void attnres_cli_k3_reference_before(attnres_cli_k3_reference *reference, const void *output)
{
    const attnres_dtype dtype = reference->config.shape.dtype;
    const size_t count = reference->slot_bytes / attnres_dtype_size(dtype);
    if (output == NULL) {
        return;
    }
    if (!reference->has_prefix) {
        memcpy(reference->prefix, output, reference->slot_bytes);
        reference->has_prefix = 1;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        attnres_cli_set_sum(dtype, reference->prefix, i,
                            attnres_cli_value(dtype, reference->prefix, i),
                            attnres_cli_value(dtype, output, i));
    }
}

static size_t differing_bytes(const void *a, const void *b, size_t bytes)
{
    size_t count = 0;
    if (memcmp(a, b, bytes) == 0) {
        return 0;
    }
    for (size_t i = 0; i < bytes; i++) {
        count += ((const unsigned char *)a)[i] != ((const unsigned char *)b)[i];
    }
    return count;
}

static const unsigned char *own_slot(const attnres_cli_k3_reference *reference, size_t s)
{
    return s < reference->banked ? reference->bank + s * reference->slot_bytes : reference->prefix;
}

void attnres_cli_k3_reference_after(attnres_cli_k3_reference *reference,
                                    const attnres_stream *stream, const void *query, double eps,
                                    const void *retrieved, int push, attnres_cli_k3_result *result)
{
    const attnres_shape *shape = &reference->config.shape;
    const size_t sources = reference->banked + (size_t)reference->has_prefix;

    for (size_t t = 0; t < shape->tokens; t++) {
        for (size_t s = 0; s < sources; s++) {
            reference->rows[s] = own_slot(reference, s) + t * reference->row_bytes;
        }
        attnres_cli_oracle_read(shape->dtype, shape->width, reference->rows, sources, query, eps,
                                reference->result, reference->weights, reference->magnitude);
        const double error =
            attnres_cli_oracle_error(shape->dtype, shape->width, sources,
                                     (const unsigned char *)retrieved + t * reference->row_bytes,
                                     reference->result, reference->magnitude);
        result->worst_error = error > result->worst_error ? error : result->worst_error;
    }
    if (push) {
        memcpy(reference->bank + reference->banked * reference->slot_bytes, reference->prefix,
               reference->slot_bytes);
        reference->banked++;
        reference->has_prefix = 0;
    }
    attnres_rows *list = malloc((sources + 1) * sizeof *list);
    if (list == NULL || attnres_stream_sources(stream, list, sources + 1) !=
                            reference->banked + (size_t)reference->has_prefix) {
        result->state_differences++;
    } else {
        for (size_t s = 0; s < reference->banked + (size_t)reference->has_prefix; s++) {
            result->state_differences +=
                differing_bytes(list[s].data, own_slot(reference, s), reference->slot_bytes);
        }
    }
    free(list);
}
