/* The lane words in plain C: what every other lanes header must agree with, bit for bit.
 *
 * All LANES lanes are one array; the loops over it are what the compiler vectorises for the
 * baseline. The only hard part is the fused multiply-add on a CPU that has none. It is built from
 * ordinary arithmetic, in a fast form that is right for nearly all operands, with a test for the
 * others, which are then done again in an exact form. docs/design.md proves both. */
#define GROUP LANES
#define ROWS 1
#define PARTS_AT_ONCE 1
#define CHUNK WHOLE_ROWS
#define CHUNK_FROM_MEMORY WHOLE_ROWS
#define SORTED 0
#define DOT_ROWS 1
#define DOT_QUERIES 1
#define DOT_CHUNK WHOLE_ROWS
#define STEPS 1

#include <math.h>

#define EACH_LANE for (int j = 0; j < GROUP; j++)

typedef struct lanes {
    acc at[GROUP];
} lanes;

WORD acc widen(elem x)
{
#if defined(ATTNRES_DTYPE_BF16)
    return attnres_bf16_to_float(x);
#elif defined(ATTNRES_DTYPE_F16)
    return attnres_f16_to_float(x);
#else
    return x;
#endif
}

WORD elem narrow(acc x)
{
#if defined(ATTNRES_DTYPE_BF16)
    return attnres_float_to_bf16(x);
#elif defined(ATTNRES_DTYPE_F16)
    return attnres_float_to_f16(x);
#else
    return x;
#endif
}

WORD lanes lanes_set(acc a)
{
    lanes v;
    EACH_LANE
        v.at[j] = a;
    return v;
}

WORD lanes lanes_zero(void)
{
    return lanes_set(0);
}

WORD lanes lanes_load(const elem *p)
{
    lanes v;
    EACH_LANE
        v.at[j] = widen(p[j]);
    return v;
}

WORD lanes lanes_load_head(const elem *p, size_t n)
{
    lanes v = lanes_zero();
    for (size_t j = 0; j < n; j++) {
        v.at[j] = widen(p[j]);
    }
    return v;
}

WORD lanes lanes_load_acc(const acc *p)
{
    lanes v;
    EACH_LANE
        v.at[j] = p[j];
    return v;
}

WORD lanes lanes_load_acc_head(const acc *p, size_t n, acc a)
{
    lanes v = lanes_set(a);
    for (size_t j = 0; j < n; j++) {
        v.at[j] = p[j];
    }
    return v;
}

WORD void lanes_store(elem *p, lanes v)
{
    EACH_LANE
        p[j] = narrow(v.at[j]);
}

WORD void lanes_store_head(elem *p, size_t n, lanes v)
{
    for (size_t j = 0; j < n; j++) {
        p[j] = narrow(v.at[j]);
    }
}

WORD void lanes_store_acc(acc *p, lanes v)
{
    EACH_LANE
        p[j] = v.at[j];
}

WORD void lanes_store_acc_head(acc *p, size_t n, lanes v)
{
    for (size_t j = 0; j < n; j++) {
        p[j] = v.at[j];
    }
}

WORD lanes lanes_rounded(lanes v)
{
    EACH_LANE
        v.at[j] = widen(narrow(v.at[j]));
    return v;
}

WORD lanes lanes_load_sorted(const acc *p)
{
    return lanes_load_acc(p);
}

WORD void lanes_store_sorted(acc *p, lanes v)
{
    lanes_store_acc(p, v);
}

WORD void lanes_store_exact(elem *p, lanes v)
{
    lanes_store(p, v);
}

WORD lanes lanes_add(lanes a, lanes b)
{
    EACH_LANE
        a.at[j] += b.at[j];
    return a;
}

WORD lanes lanes_mul(lanes a, lanes b)
{
    EACH_LANE
        a.at[j] *= b.at[j];
    return a;
}

WORD acc lanes_fold(const lanes v[PARTS])
{
    lanes sum = v[0];
    for (int distance = LANES / 2; distance >= 1; distance /= 2) {
        for (int j = 0; j < distance; j++) {
            sum.at[j] += sum.at[j + distance];
        }
    }
    return sum.at[0];
}

#if (defined(ATTNRES_DTYPE_F64) && defined(FP_FAST_FMA)) ||                                        \
    (!defined(ATTNRES_DTYPE_F64) && defined(FP_FAST_FMAF))

/* The baseline has the instruction (AArch64). */
WORD lanes lanes_fma(lanes a, lanes b, lanes c)
{
#if defined(ATTNRES_DTYPE_F64)
    EACH_LANE
        c.at[j] = fma(a.at[j], b.at[j], c.at[j]);
#else
    EACH_LANE
        c.at[j] = fmaf(a.at[j], b.at[j], c.at[j]);
#endif
    return c;
}

WORD lanes lanes_square(lanes x, lanes c)
{
    return lanes_fma(x, x, c);
}

#elif defined(ATTNRES_DTYPE_F64)

#include "fma_f64.h"

WORD lanes lanes_fma(lanes a, lanes b, lanes c)
{
    attnres_fma_f64(a.at, b.at, c.at);
    return c;
}

WORD lanes lanes_square(lanes x, lanes c)
{
    return lanes_fma(x, x, c);
}

#else

#include "fma_f32.h"

WORD lanes lanes_fma(lanes a, lanes b, lanes c)
{
    attnres_fma_f32(a.at, b.at, c.at);
    return c;
}

#if defined(ATTNRES_DTYPE_F32)

WORD lanes lanes_square(lanes x, lanes c)
{
    return lanes_fma(x, x, c);
}

#else

/* The square of an f16 or bf16 has at most 22 significant bits: it is exact in float unless it
 * underflows, and then a plain addition rounds like a fused one. */
WORD lanes lanes_square(lanes x, lanes c)
{
    uint32_t tiny = 0; /* top bit: some 0 < |x| < 2^-60 */
    lanes sum;
    EACH_LANE {
        uint32_t magnitude = attnres_float_bits(x.at[j]) & 0x7fffffff;
        tiny |= (magnitude - 0x21800000) & ~(magnitude - 1);
        sum.at[j] = x.at[j] * x.at[j] + c.at[j];
    }
    if (__builtin_expect(tiny >> 31 != 0, 0)) {
        return lanes_fma(x, x, c);
    }
    return sum;
}

#endif
#endif
