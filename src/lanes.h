/* The words a kernel body is written in.
 *
 * The contract (docs/design.md) sums a row in LANES running sums: lane j takes the elements i with
 * i mod LANES == j. A level works on GROUP lanes at a time (one or a few vector registers), which
 * is all of them or half of them; PARTS groups make a block of LANES. The level's lanes header,
 * chosen by the build, defines the type `lanes` (GROUP accumulators) and these words on it:
 *
 *   lanes_zero()                    all +0
 *   lanes_set(a)                    all a
 *   lanes_load(p)                   GROUP elements, widened
 *   lanes_load_head(p, n)           the first n (0 < n < GROUP), then +0; touches nothing else
 *   lanes_load_acc(p)               GROUP accumulators (queries, gains, states)
 *   lanes_load_acc_head(p, n, a)    the first n, then a
 *   lanes_store(p, v)  lanes_store_head(p, n, v)          narrowed: one rounding, ties to even
 *   lanes_store_acc(p, v)  lanes_store_acc_head(p, n, v)  as they are
 *   lanes_rounded(v)                narrowed and widened again
 *   lanes_load_sorted(p)  lanes_store_sorted(p, v)        accumulators in the order of the lanes
 *   lanes_store_exact(p, v)         lanes_store of what is rounded already
 *   lanes_add(a, b)  lanes_mul(a, b)
 *   lanes_fma(a, b, c)              a * b + c, rounded once
 *   lanes_square(x, c)              lanes_fma(x, x, c) for an x that lanes_load returned
 *   lanes_fold(v)                   v[PARTS]: the LANES lanes added up in halves, down to one
 *
 * and these constants:
 *
 *   GROUP              lanes in a `lanes`; LANES or LANES / 2
 *   ROWS               rows scored side by side: more hide latency, fewer fit the registers
 *   PARTS_AT_ONCE      parts of their lanes that are summed in one sweep
 *   CHUNK              columns scored in all rows before the next; a multiple of LANES
 *   CHUNK_FROM_MEMORY  the same, for rows that are in no cache
 *   SORTED             whether that order is another one than memory's
 *   DOT_ROWS           rows, and
 *   DOT_QUERIES        queries whose dot products are summed side by side
 *   DOT_CHUNK          columns of them before the next
 *   STEPS              groups mixed side by side
 *
 * Which lane sits where inside a `lanes` is the header's own business, as long as all words of one
 * header agree.
 */
#ifndef ATTNRES_LANES_H
#define ATTNRES_LANES_H

#include <stddef.h>
#include <stdint.h>

#include "half.h"
#include "kernels.h"
#include "strict.h"

#if defined(ATTNRES_DTYPE_F64)
typedef double elem;
typedef double acc;
#elif defined(ATTNRES_DTYPE_F32)
typedef float elem;
typedef float acc;
#elif defined(ATTNRES_DTYPE_F16) || defined(ATTNRES_DTYPE_BF16)
typedef uint16_t elem;
typedef float acc;
#else
#error "the build chooses the dtype: -DATTNRES_DTYPE=bf16 -DATTNRES_DTYPE_BF16"
#endif

/* One block is 128 bytes of accumulators. */
#define LANES ((int)(128 / sizeof(acc)))
#define PARTS (LANES / GROUP)

/* attnres_score_bf16_avx2 and so on. */
#define KERNEL_PASTE(kernel, dtype, level) attnres_##kernel##_##dtype##_##level
#define KERNEL_NAME(kernel, dtype, level) KERNEL_PASTE(kernel, dtype, level)
#define KERNEL(kernel) KERNEL_NAME(kernel, ATTNRES_DTYPE, ATTNRES_LEVEL)

/* Also of levels that only tests and benchmarks build. */
ATTNRES_DTYPES(ATTNRES_PROTOTYPES, ATTNRES_LEVEL)

/* A CHUNK without end. */
#define WHOLE_ROWS ((size_t)1 << 30)

/* Words must disappear into the body; loops over groups and rows must become straight code. */
#define WORD static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

#include ATTNRES_LANES_HEADER

/* n columns of a group: all of them (a constant, when the caller inlines it) or the first few. */
WORD lanes lanes_load_some(const elem *p, size_t n)
{
    return n < GROUP ? lanes_load_head(p, n) : lanes_load(p);
}

WORD lanes lanes_load_acc_some(const acc *p, size_t n, acc fill)
{
    return n < GROUP ? lanes_load_acc_head(p, n, fill) : lanes_load_acc(p);
}

WORD void lanes_store_some(elem *p, size_t n, lanes v)
{
    if (n < GROUP) {
        lanes_store_head(p, n, v);
    } else {
        lanes_store(p, v);
    }
}

WORD void lanes_store_exact_some(elem *p, size_t n, lanes v)
{
    if (n < GROUP) {
        lanes_store_head(p, n, v);
    } else {
        lanes_store_exact(p, v);
    }
}

WORD void lanes_store_acc_some(acc *p, size_t n, lanes v)
{
    if (n < GROUP) {
        lanes_store_acc_head(p, n, v);
    } else {
        lanes_store_acc(p, v);
    }
}

/* How many columns the group at column i has. */
WORD size_t group_columns(size_t i, size_t width)
{
    return width - i < GROUP ? width - i : GROUP;
}

#endif
