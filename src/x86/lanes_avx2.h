/* The lane words on ymm registers: AVX, AVX2, FMA, F16C.
 *
 * 16 registers decide everything. The lanes of one f32 or f64 row take four registers for the
 * squares and four for the dot products, and one row at a time it is. A 16-bit row is widened in
 * few instructions only if the query can be shared between rows, so three rows are scored side by
 * side, each with half of its lanes.
 *
 * bf16 is widened by splitting each 32-bit pair: a shift makes the even elements, a mask the odd
 * ones. So registers come in pairs (even lanes, odd lanes) of 16 lanes, and lanes_load_acc sorts
 * accumulators the same way. All other dtypes keep their lanes in order. */
#if !defined(ATTNRES_SHIM) && (!defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__))
#error "the avx2 level needs -mavx2 -mfma -mf16c"
#endif

#include <immintrin.h>

#if defined(ATTNRES_DTYPE_F32) || defined(ATTNRES_DTYPE_F64)
#define REGISTERS 4
#define ROWS 1
#define PARTS_AT_ONCE 1
#define CHUNK 1024
#define CHUNK_FROM_MEMORY WHOLE_ROWS
#define DOT_ROWS 1
#define DOT_QUERIES 2
#define STEPS 2
#else
#define REGISTERS 2
#define ROWS 3
#define PARTS_AT_ONCE 1
#define CHUNK 1024
#define CHUNK_FROM_MEMORY 1024
#define DOT_ROWS 2
#define DOT_QUERIES 2
#define STEPS 4
#endif

#define DOT_CHUNK 512

#if defined(ATTNRES_DTYPE_BF16)
#define SORTED 1
#else
#define SORTED 0
#endif

#if defined(ATTNRES_DTYPE_F64)
typedef __m256d reg;
#define REG(word) _mm256_##word##_pd
#define REG_BITS(bits) _mm256_castsi256_pd(bits)
#else
typedef __m256 reg;
#define REG(word) _mm256_##word##_ps
#define REG_BITS(bits) _mm256_castsi256_ps(bits)
#endif
#define REG_LANES ((int)(sizeof(reg) / sizeof(acc)))
#define GROUP (REGISTERS * REG_LANES)
#define EACH_REGISTER                                                                              \
    UNROLLED                                                                                       \
    for (int k = 0; k < REGISTERS; k++)

typedef struct lanes {
    reg at[REGISTERS];
} lanes;

/* All bits of the first n elements of a register, n of any sign and size. */
WORD __m256i head_mask(ptrdiff_t n)
{
#if defined(ATTNRES_DTYPE_F64)
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
#else
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
#endif
}

WORD lanes lanes_set(acc a)
{
    lanes v;
    EACH_REGISTER
        v.at[k] = REG(set1)(a);
    return v;
}

WORD lanes lanes_zero(void)
{
    return lanes_set(0);
}

WORD lanes lanes_add(lanes a, lanes b)
{
    EACH_REGISTER
        a.at[k] = REG(add)(a.at[k], b.at[k]);
    return a;
}

WORD lanes lanes_mul(lanes a, lanes b)
{
    EACH_REGISTER
        a.at[k] = REG(mul)(a.at[k], b.at[k]);
    return a;
}

WORD lanes lanes_fma(lanes a, lanes b, lanes c)
{
    EACH_REGISTER
        c.at[k] = REG(fmadd)(a.at[k], b.at[k], c.at[k]);
    return c;
}

WORD lanes lanes_square(lanes x, lanes c)
{
    return lanes_fma(x, x, c);
}

WORD lanes lanes_load_sorted(const acc *p)
{
    lanes v;
    EACH_REGISTER
        v.at[k] = REG(loadu)(p + k * REG_LANES);
    return v;
}

WORD void lanes_store_sorted(acc *p, lanes v)
{
    EACH_REGISTER
        REG(storeu)(p + k * REG_LANES, v.at[k]);
}

#if defined(ATTNRES_DTYPE_BF16)

/* acc[16] in order to even and odd lanes, and back. */
WORD lanes lanes_load_acc(const acc *p)
{
    const reg low = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)),
                                         _mm_loadu_ps(p + 8), 1); /* 0-3, 8-11 */
    const reg high = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p + 4)),
                                          _mm_loadu_ps(p + 12), 1); /* 4-7, 12-15 */
    const lanes v = {{_mm256_shuffle_ps(low, high, 0x88), _mm256_shuffle_ps(low, high, 0xdd)}};
    return v;
}

WORD void lanes_store_acc(acc *p, lanes v)
{
    const reg low = _mm256_unpacklo_ps(v.at[0], v.at[1]);  /* 0-3, 8-11 */
    const reg high = _mm256_unpackhi_ps(v.at[0], v.at[1]); /* 4-7, 12-15 */
    _mm256_storeu_ps(p, _mm256_permute2f128_ps(low, high, 0x20));
    _mm256_storeu_ps(p + 8, _mm256_permute2f128_ps(low, high, 0x31));
}

WORD lanes lanes_load_acc_head(const acc *p, size_t n, acc a)
{
    acc head[GROUP];
    for (size_t j = 0; j < GROUP; j++) {
        head[j] = j < n ? p[j] : a;
    }
    return lanes_load_acc(head);
}

WORD void lanes_store_acc_head(acc *p, size_t n, lanes v)
{
    acc head[GROUP];
    lanes_store_acc(head, v);
    for (size_t j = 0; j < n; j++) {
        p[j] = head[j];
    }
}

#else

WORD lanes lanes_load_acc(const acc *p)
{
    return lanes_load_sorted(p);
}

WORD void lanes_store_acc(acc *p, lanes v)
{
    lanes_store_sorted(p, v);
}

WORD lanes lanes_load_acc_head(const acc *p, size_t n, acc a)
{
    lanes v;
    EACH_REGISTER {
        const __m256i mask = head_mask((ptrdiff_t)n - k * REG_LANES);
        const reg head = REG(maskload)(p + k * REG_LANES, mask);
        v.at[k] = REG(blendv)(REG(set1)(a), head, REG_BITS(mask));
    }
    return v;
}

WORD void lanes_store_acc_head(acc *p, size_t n, lanes v)
{
    EACH_REGISTER
        REG(maskstore)(p + k * REG_LANES, head_mask((ptrdiff_t)n - k * REG_LANES), v.at[k]);
}

#endif

#if defined(ATTNRES_DTYPE_F32) || defined(ATTNRES_DTYPE_F64)

WORD lanes lanes_load(const elem *p)
{
    return lanes_load_acc(p);
}

WORD lanes lanes_load_head(const elem *p, size_t n)
{
    return lanes_load_acc_head(p, n, 0);
}

WORD void lanes_store(elem *p, lanes v)
{
    lanes_store_acc(p, v);
}

WORD void lanes_store_head(elem *p, size_t n, lanes v)
{
    lanes_store_acc_head(p, n, v);
}

WORD void lanes_store_exact(elem *p, lanes v)
{
    lanes_store_acc(p, v);
}

WORD lanes lanes_rounded(lanes v)
{
    return v;
}

#else

#if defined(ATTNRES_DTYPE_BF16)

WORD __m256i upper_half(__m256i words)
{
    return _mm256_and_si256(words, _mm256_set1_epi32((int)0xffff0000));
}

/* Loads once what two instructions use: a compiler that folds the load into both of them makes the
 * loads the limit. */
#if defined(ATTNRES_SHIM)
#define LOADED(v)
#else
#define LOADED(v) __asm__("" : "+x"(v));
#endif

WORD lanes widen(__m256i pairs)
{
    LOADED(pairs)
    const lanes v = {{_mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)),
                      _mm256_castsi256_ps(upper_half(pairs))}};
    return v;
}

/* A bf16 in the upper half, rounded to nearest even, something in the lower. Not for NaN. */
WORD __m256i rounded_up(reg v)
{
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), last);
}

/* The same with NaN, which keeps its upper half, made quiet. */
WORD __m256i rounded_up_or_nan(reg v)
{
    const reg nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    const reg quiet = _mm256_or_ps(_mm256_set1_ps(attnres_bits_float(0x7fc00000)), v);
    return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(rounded_up(v)), quiet, nan));
}

/* Both registers rounded. One comparison finds a NaN in either; there hardly ever is one. */
WORD void round_halves(lanes v, __m256i *even, __m256i *odd)
{
    const reg nan = _mm256_cmp_ps(v.at[0], v.at[1], _CMP_UNORD_Q);
    if (__builtin_expect(_mm256_movemask_ps(nan) != 0, 0)) {
        *even = rounded_up_or_nan(v.at[0]);
        *odd = rounded_up_or_nan(v.at[1]);
    } else {
        *even = rounded_up(v.at[0]);
        *odd = rounded_up(v.at[1]);
    }
}

WORD lanes lanes_rounded(lanes v)
{
    __m256i even, odd;
    round_halves(v, &even, &odd);
    const lanes rounded = {
        {_mm256_castsi256_ps(upper_half(even)), _mm256_castsi256_ps(upper_half(odd))}};
    return rounded;
}

WORD __m256i narrow(lanes v)
{
    __m256i even, odd;
    round_halves(v, &even, &odd);
    return _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xaa);
}

WORD __m256i narrow_exact(lanes v)
{
    return _mm256_or_si256(_mm256_srli_epi32(_mm256_castps_si256(v.at[0]), 16),
                           _mm256_castps_si256(v.at[1]));
}

#else

WORD lanes widen(__m256i halves)
{
    const lanes v = {{_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
                      _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))}};
    return v;
}

WORD __m256i narrow(lanes v)
{
    const __m128i low = _mm256_cvtps_ph(v.at[0], _MM_FROUND_TO_NEAREST_INT);
    const __m128i high = _mm256_cvtps_ph(v.at[1], _MM_FROUND_TO_NEAREST_INT);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

WORD __m256i narrow_exact(lanes v)
{
    return narrow(v);
}

WORD lanes lanes_rounded(lanes v)
{
    return widen(narrow(v));
}

#endif

WORD lanes lanes_load(const elem *p)
{
    return widen(_mm256_loadu_si256((const __m256i *)p));
}

/* Memory is masked in pairs of elements; an odd last one comes by itself. */
WORD lanes lanes_load_head(const elem *p, size_t n)
{
    const ptrdiff_t pairs = (ptrdiff_t)(n / 2);
    __m256i v = _mm256_maskload_epi32((const int *)p, head_mask(pairs));
    if (n % 2) {
        const __m256i last = _mm256_andnot_si256(head_mask(pairs), head_mask(pairs + 1));
        v = _mm256_or_si256(v, _mm256_and_si256(last, _mm256_set1_epi32(p[n - 1])));
    }
    return widen(v);
}

WORD void lanes_store(elem *p, lanes v)
{
    _mm256_storeu_si256((__m256i *)p, narrow(v));
}

WORD void lanes_store_head(elem *p, size_t n, lanes v)
{
    elem all[GROUP];
    _mm256_maskstore_epi32((int *)p, head_mask((ptrdiff_t)(n / 2)), narrow(v));
    if (n % 2) {
        _mm256_storeu_si256((__m256i *)all, narrow(v));
        p[n - 1] = all[n - 1];
    }
}

WORD void lanes_store_exact(elem *p, lanes v)
{
    _mm256_storeu_si256((__m256i *)p, narrow_exact(v));
}

#endif

/* v0 .. v3 hold LANES lanes; the register with lane 0 and the one LANES / 2 further are two apart,
 * in every layout. */
WORD acc lanes_fold(const lanes v[PARTS])
{
    const reg first = REG(add)(v[0].at[0], v[PARTS - 1].at[REGISTERS - 2]);
    const reg second = REG(add)(v[0].at[1], v[PARTS - 1].at[REGISTERS - 1]);
#if defined(ATTNRES_DTYPE_F64)
    const reg four = _mm256_add_pd(first, second);
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
#elif defined(ATTNRES_DTYPE_BF16)
    __m128 even = _mm_add_ps(_mm256_castps256_ps128(first), _mm256_extractf128_ps(first, 1));
    __m128 odd = _mm_add_ps(_mm256_castps256_ps128(second), _mm256_extractf128_ps(second, 1));
    even = _mm_add_ps(even, _mm_movehl_ps(even, even));
    odd = _mm_add_ps(odd, _mm_movehl_ps(odd, odd));
    even = _mm_add_ss(even, _mm_movehdup_ps(even));
    odd = _mm_add_ss(odd, _mm_movehdup_ps(odd));
    return _mm_cvtss_f32(_mm_add_ss(even, odd));
#else
    const reg eight = _mm256_add_ps(first, second);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
#endif
}
