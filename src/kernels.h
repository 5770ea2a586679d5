/* THE list of kernels. It makes the prototypes, the dispatch table and the table's filling; a
 * kernel is registered here and nowhere else.
 *
 * A kernel works on the rows of one token. Rows hold `width` elements of the dtype; `acc` is its
 * accumulator type (double for f64, else float), and pointers to acc are void here because one
 * prototype serves all dtypes. */
#ifndef ATTNRES_KERNELS_H
#define ATTNRES_KERNELS_H

#include <stddef.h>

/* One source's step of the softmax fold, as two acc: the factor on what was mixed so far, and the
 * factor on the row. Packed as acc pairs {alpha, p} in an array. */

/* Where a mix begins, what it takes in, and what becomes of it. */
struct attnres_mix {
    const void *const *rows; /* [count] */
    const void *steps;       /* [count] acc pairs */
    size_t count;
    const void
        *start;    /* acc[width] mixed so far; NULL: rows[0] starts, its step is not looked at */
    double factor; /* v = mix * factor, factor rounded to acc by the caller */
    int round;     /* v is rounded to the dtype before it is squared and normalised */
    void *out;     /* receives v; NULL: not wanted */
    void *squares; /* acc[LANES]: the squares of v are added to them, lane by lane; or NULL */
    void *normed;  /* receives (v * norm_factor) * gain; NULL: not wanted */
    double norm_factor;
    const void *gain;         /* acc[width]; NULL: ones */
    const void *const *ahead; /* [ahead_count] rows that are wanted next, to be fetched meanwhile */
    size_t ahead_count;
};

/* K(name, arguments)
 *
 * score      sums of squares and dot products with the query of `count` rows, which are expected
 *            in a cache or, `from_memory`, in none
 * dots       dot products of `count` rows with many queries: dots[query * count + row]
 * sum        rows added up from `start` (NULL: from the first row) into total (acc), out and copy
 * mix        struct attnres_mix
 * fold       rows folded into `end`, from `start` or, if that is NULL, from rows[0]
 * normalize  out = (row * factor) * gain */
#define ATTNRES_KERNELS(K, dtype, level)                                                           \
    K(score, dtype, level,                                                                         \
      (const void *const *rows, size_t count, const void *query, size_t width, int from_memory,    \
       double *squares, double *dots))                                                             \
    K(dots, dtype, level,                                                                          \
      (const void *const *rows, size_t count, const void *const *queries, size_t query_count,      \
       size_t width, double *dots))                                                                \
    K(sum, dtype, level,                                                                           \
      (const void *const *rows, size_t count, size_t width, const void *start, void *total,        \
       void *out, void *copy))                                                                     \
    K(mix, dtype, level, (const struct attnres_mix *mix, size_t width))                            \
    K(fold, dtype, level,                                                                          \
      (const void *const *rows, const void *steps, size_t count, const void *start, void *end,     \
       size_t width))                                                                              \
    K(normalize, dtype, level,                                                                     \
      (const void *row, double factor, const void *gain, size_t width, void *out))

#define ATTNRES_DTYPES(D, level) D(f32, level) D(f64, level) D(f16, level) D(bf16, level)

/* The kernels of one dtype at one level. */
#define ATTNRES_MEMBER(kernel, dtype, level, arguments) void(*kernel) arguments;
struct attnres_kernels {
    ATTNRES_KERNELS(ATTNRES_MEMBER, , )
};

/* attnres_score_f32_scalar(...) and all others, of levels this build may not have as well. */
#define ATTNRES_PROTOTYPE(kernel, dtype, level, arguments)                                         \
    void attnres_##kernel##_##dtype##_##level arguments;
#define ATTNRES_PROTOTYPES(dtype, level) ATTNRES_KERNELS(ATTNRES_PROTOTYPE, dtype, level)
ATTNRES_DTYPES(ATTNRES_PROTOTYPES, scalar)
ATTNRES_DTYPES(ATTNRES_PROTOTYPES, avx2)
ATTNRES_DTYPES(ATTNRES_PROTOTYPES, avx512)
ATTNRES_DTYPES(ATTNRES_PROTOTYPES, neon)

#endif
