/* Reading the committed data: tensors and metadata of safetensors files, and the block read that
 * they are about. */
#ifndef ATTNRES_TESTS_GOLDEN_H
#define ATTNRES_TESTS_GOLDEN_H

#include "../src/cli/safetensors.h"

#include <attnres.h>

#include <jansson.h>
#include <stddef.h>

typedef struct golden {
    attnres_cli_file file;
    json_t *metadata;
} golden;

/* A file below the directory that ATTNRES_TEST_DATA names. Whatever is missing fails the test. */
void golden_open(golden *data, const char *path);
void golden_close(golden *data);

/* A text of the metadata. Valid until the file is closed. */
const char *golden_text(const golden *data, const char *key);

/* The number after "name=" in a list of those. */
double golden_number(const char *list, const char *name);

/* The dtype after "dtype=". */
attnres_dtype golden_dtype(const char *list);

/* The tensor named prefix + name, which must have this many elements; *dtype is set, or compared if
 * it is not 0. The caller's to free. */
void *golden_tensor(const golden *data, const char *prefix, const char *name, size_t count,
                    attnres_dtype *dtype);

const attnres_cli_tensor *golden_find(const golden *data, const char *prefix, const char *name);

/* Inputs and results of a block read. */
typedef struct golden_block {
    attnres_shape shape;
    size_t layers, block_size, count; /* of sources */
    double eps;
    void *embedding, *outputs, *projection, *query;
    void *retrieved, *weights, *sources; /* as golden_block_run left them */
} golden_block;

void golden_block_open(golden_block *it, const golden *data, const char *prefix, size_t block_size,
                       double eps);
void golden_block_close(golden_block *it);
void golden_block_run(golden_block *it);

/* The worst ratios that the oracle found. */
typedef struct golden_verdict {
    double retrieved, weights; /* error of the library's results over the oracle's bound */
    double reference;          /* error of the reference's results over 1e-13 sum w |x| */
} golden_verdict;

/* Judges results and reference (in f64, laid out alike) by the oracle, and result by reference:
 * fails the test unless their bounds allow the difference. */
golden_verdict golden_block_judge(const golden_block *it, const double *retrieved,
                                  const double *weights);

#endif
