/* A K3 stack run in the ways that `attnres k3` and `attnres demo` show. */
#ifndef ATTNRES_CLI_K3_MEASURE_H
#define ATTNRES_CLI_K3_MEASURE_H

#include "k3_stack.h"

/* Prints what was found, one line each: the check against the oracle, decode (one token at a time,
 * at most `decode_tokens` of them), prefill (all tokens at once, split over `threads`), and the
 * digest. Returns an exit status: 1 if anything disagreed, 2 (with its message) if it could not be
 * done. */
int attnres_cli_k3_measure(const attnres_cli_k3_stack *stack, size_t tokens, size_t decode_tokens,
                           size_t threads);

#endif
