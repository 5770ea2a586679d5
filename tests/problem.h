/* A made-up read of several tokens: inputs, results, and what the literal contract and the oracle
 * have to say about them. */
#ifndef ATTNRES_TESTS_PROBLEM_H
#define ATTNRES_TESTS_PROBLEM_H

#include <attnres.h>

#include <stddef.h>
#include <stdint.h>

#include "inputs.h"
#include "reading.h"

typedef struct problem_size {
    attnres_dtype dtype;
    size_t tokens, width, count;
    inputs_kind kind;
} problem_size;

typedef struct problem {
    attnres_shape shape;
    size_t count;
    size_t stride; /* of the sources' rows, larger than the width; the gaps hold NaN */
    void *memory;  /* of the sources, [count][tokens] rows */
    attnres_rows *sources;
    const void **rows; /* [count], of the token that problem_reading was asked for */
    void *query, *gain;
    double *bias;
    /* [tokens][width] twice, [count][tokens] twice */
    void *retrieved, *normed, *weights;
    double *logits;
    /* Everything but sources, results and bias, which is there but not in use. */
    attnres_read_args args;
} problem;

/* Inputs are the same for the same size and `stream`. With ordinary rows the query is ordinary,
 * too; with others it is now and then such that logits are no numbers. */
void problem_open(problem *it, problem_size size, uint64_t stream);
void problem_close(problem *it);

void *problem_row(const problem *it, size_t source, size_t token);

/* it->args with all sources, and all results wanted. */
attnres_read_args problem_args(const problem *it);

/* Token t of problem_args(). Valid until the next one is asked for. */
reading problem_reading(const problem *it, const attnres_read_args *args, size_t token);

/* Runs problem_args() with what is in it->args, and fails the test if that fails. */
void problem_run(problem *it);

/* What the literal contract gives for it->args, in a problem that has only the results. */
void problem_expect(const problem *it, problem *expected);
void problem_forget(problem *expected);

/* Fails the test unless all results are the same bits. */
void problem_check(const problem *it, const problem *expected, const char *what);

#endif
