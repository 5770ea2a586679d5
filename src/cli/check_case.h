/* One case of `attnres check`: a shape with made-up inputs, run through the calls of the library.
 */
#ifndef ATTNRES_CLI_CHECK_CASE_H
#define ATTNRES_CLI_CHECK_CASE_H

#include <attnres.h>

#include <stdint.h>

typedef struct attnres_cli_case {
    attnres_dtype dtype;
    size_t width, sources;
    uint64_t seed;
} attnres_cli_case;

typedef struct attnres_cli_case_memory attnres_cli_case_memory;

/* Room for the largest case; NULL if there is none. Freed by attnres_cli_case_free. */
attnres_cli_case_memory *attnres_cli_case_room(size_t widest, size_t most_sources);
void attnres_cli_case_free(attnres_cli_case_memory *memory);

/* Makes the inputs of a case. */
void attnres_cli_case_fill(attnres_cli_case_memory *memory, const attnres_cli_case *one);

/* Runs the case at the current level. The results of all calls, NaNs unified, are the bytes
 * *results[*bytes], valid until the next run with the same slot (0 or 1). Returns the status of the
 * first call that failed, or ATTNRES_OK. */
attnres_status attnres_cli_case_run(attnres_cli_case_memory *memory, const attnres_cli_case *one,
                                    int slot, const void **results, size_t *bytes);

#endif
