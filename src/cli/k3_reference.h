/* The reference semantics of a K3 stack's state, kept apart from the library: prefix and bank in
 * the dtype, one rounding per addition, every read again in double. */
#ifndef ATTNRES_CLI_K3_REFERENCE_H
#define ATTNRES_CLI_K3_REFERENCE_H

#include "k3_stack.h"

typedef struct attnres_cli_k3_reference attnres_cli_k3_reference;

/* NULL without memory. */
attnres_cli_k3_reference *attnres_cli_k3_reference_make(const attnres_stream_config *config);
void attnres_cli_k3_reference_free(attnres_cli_k3_reference *reference);

void attnres_cli_k3_reference_begin(attnres_cli_k3_reference *reference, const void *embedding);

/* Adds a layer's output (may be NULL) to the prefix. */
void attnres_cli_k3_reference_before(attnres_cli_k3_reference *reference, const void *output);

/* Compares what was read with a read of the own state, pushes if asked to, and compares the
 * stream's state with the own one. */
void attnres_cli_k3_reference_after(attnres_cli_k3_reference *reference,
                                    const attnres_stream *stream, const void *query, double eps,
                                    const void *retrieved, int push, attnres_cli_k3_result *result);

#endif
