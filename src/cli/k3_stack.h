/* Kimi K3's layer loop around the stream object, with made-up weights and cheap stand-ins for
 * attention and feed-forward:
 *
 *     x = norm(read(bank, prefix)); push the raw prefix if the layer starts a block
 *     prefix = prefix + attention(x)        (only attention(x) after a push)
 *     x = norm(read(bank, prefix)); prefix = prefix + ffn(x)
 *
 * in every layer, one more read at the end: 2 * layers + 1 sites. The very first has one source
 * and is a copy; the others are the model's reads (186 of them in K3). */
#ifndef ATTNRES_CLI_K3_STACK_H
#define ATTNRES_CLI_K3_STACK_H

#include <attnres.h>

#include <stdint.h>

typedef struct attnres_cli_k3_stack {
    attnres_dtype dtype;
    size_t layers, width, block_size; /* block_size in layers, as in K3's configuration */
    uint64_t seed;
    double eps, norm_eps;
    /* Made by attnres_cli_k3_make: one query and one gain of `width` accumulators per site. */
    unsigned char *queries, *gains;
    size_t vector_bytes;
} attnres_cli_k3_stack;

/* What one run over some tokens did. Sums and maxima, so that runs can be added up. */
typedef struct attnres_cli_k3_result {
    uint64_t *digests; /* [tokens] of the normed rows of all sites; NULL: not wanted */
    double read_seconds;
    double bytes;              /* least traffic of the reads: every row once */
    size_t reads, source_rows; /* per token, the first site left out */
    double worst_error;        /* against the oracle, as a multiple of what is allowed */
    size_t state_differences;  /* bytes of bank and prefix unlike the independent run's */
} attnres_cli_k3_result;

/* Makes the weights. 0, or -1 if there is no memory for them. */
int attnres_cli_k3_make(attnres_cli_k3_stack *stack);
void attnres_cli_k3_free(attnres_cli_k3_stack *stack);

/* Runs tokens first .. first + tokens - 1. With `verify`, every read is compared with the oracle on
 * an independently kept state; time is then not measured. `hop`: the stream is exported and
 * imported into another one at every layer, as a pipeline would. `progress` (may be NULL) is
 * called after every layer. Returns ATTNRES_OK, an error of the library, or -1 without memory. */
int attnres_cli_k3_run(const attnres_cli_k3_stack *stack, size_t first, size_t tokens, int verify,
                       int hop, void (*progress)(size_t layer, size_t layers),
                       attnres_cli_k3_result *result);

#endif
