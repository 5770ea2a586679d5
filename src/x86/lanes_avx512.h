/* The lane words on zmm registers: AVX-512 F, BW, DQ, VL.
 *
 * All lanes of a row are two registers, and 32 registers hold the sums of four or five rows. Tails
 * are masks. bf16 lanes come as even and odd ones, for the reason given in lanes_avx2.h. */
#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) ||                   \
    !defined(__AVX512VL__)
#error "the avx512 level needs -mavx512f -mavx512bw -mavx512dq -mavx512vl"
#endif

#include <immintrin.h>

#define REGISTERS 2
#define PARTS_AT_ONCE 1
#define CHUNK 1024
#define CHUNK_FROM_MEMORY (SORTED ? CHUNK : WHOLE_ROWS)
#define DOT_ROWS 4
#define DOT_QUERIES 2
#define DOT_CHUNK 512
#define STEPS 4
#if defined(ATTNRES_DTYPE_F32) || defined(ATTNRES_DTYPE_F64)
#define ROWS 4
#else
#define ROWS 5
#endif

#if defined(ATTNRES_DTYPE_BF16)
#define SORTED 1
#else
#define SORTED 0
#endif

#if defined(ATTNRES_DTYPE_F64)
typedef __m512d reg;
typedef __mmask8 mask;
#define REG(word) _mm512_##word##_pd
#else
typedef __m512 reg;
typedef __mmask16 mask;
#define REG(word) _mm512_##word##_ps
#endif
#define REG_LANES ((int)(sizeof(reg) / sizeof(acc)))
#define GROUP (REGISTERS * REG_LANES)
#define EACH_REGISTER                                                                              \
    UNROLLED                                                                                       \
    for (int k = 0; k < REGISTERS; k++)

typedef struct lanes {
    reg at[REGISTERS];
} lanes;

/* The first n of a group, 0 < n < GROUP; register k takes its share of the bits. */
WORD uint32_t head_bits(size_t n)
{
    return ((uint32_t)1 << n) - 1;
}

WORD mask head_mask(size_t n, int k)
{
    return (mask)(head_bits(n) >> (k * REG_LANES));
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

/* Accumulators as they lie in memory, and as the dtype's lanes want them. */
WORD lanes sorted(lanes in_order)
{
#if defined(ATTNRES_DTYPE_BF16)
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const lanes v = {{_mm512_permutex2var_ps(in_order.at[0], even, in_order.at[1]),
                      _mm512_permutex2var_ps(in_order.at[0], odd, in_order.at[1])}};
    return v;
#else
    return in_order;
#endif
}

WORD lanes in_order(lanes sorted)
{
#if defined(ATTNRES_DTYPE_BF16)
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    const lanes v = {{_mm512_permutex2var_ps(sorted.at[0], low, sorted.at[1]),
                      _mm512_permutex2var_ps(sorted.at[0], high, sorted.at[1])}};
    return v;
#else
    return sorted;
#endif
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

WORD lanes lanes_load_acc(const acc *p)
{
    return sorted(lanes_load_sorted(p));
}

WORD lanes lanes_load_acc_head(const acc *p, size_t n, acc a)
{
    lanes v;
    EACH_REGISTER
        v.at[k] = REG(mask_loadu)(REG(set1)(a), head_mask(n, k), p + k * REG_LANES);
    return sorted(v);
}

WORD void lanes_store_acc(acc *p, lanes v)
{
    lanes_store_sorted(p, in_order(v));
}

WORD void lanes_store_acc_head(acc *p, size_t n, lanes v)
{
    v = in_order(v);
    EACH_REGISTER
        REG(mask_storeu)(p + k * REG_LANES, head_mask(n, k), v.at[k]);
}

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

WORD lanes widen(__m512i pairs)
{
    const __m512i odd = _mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000));
    const lanes v = {{_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)), _mm512_castsi512_ps(odd)}};
    return v;
}

/* A bf16 in the upper half, rounded to nearest even; a NaN keeps its upper half, made quiet. */
WORD reg rounded_half(reg v)
{
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i half = _mm512_add_epi32(last, _mm512_set1_epi32(0x7fff));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m512i sum = _mm512_mask_or_epi32(_mm512_add_epi32(bits, half), is_nan, bits,
                                             _mm512_set1_epi32(0x400000));
    return _mm512_castsi512_ps(_mm512_and_si512(sum, _mm512_set1_epi32((int)0xffff0000)));
}

WORD lanes lanes_rounded(lanes v)
{
    const lanes rounded = {{rounded_half(v.at[0]), rounded_half(v.at[1])}};
    return rounded;
}

WORD __m512i narrow_exact(lanes v)
{
    return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(v.at[0]), 16),
                           _mm512_castps_si512(v.at[1]));
}

WORD __m512i narrow(lanes v)
{
    return narrow_exact(lanes_rounded(v));
}

#else

WORD lanes widen(__m512i halves)
{
    const lanes v = {{_mm512_cvtph_ps(_mm512_castsi512_si256(halves)),
                      _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1))}};
    return v;
}

WORD __m512i narrow(lanes v)
{
    const __m256i low = _mm512_cvtps_ph(v.at[0], _MM_FROUND_TO_NEAREST_INT);
    const __m256i high = _mm512_cvtps_ph(v.at[1], _MM_FROUND_TO_NEAREST_INT);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

WORD __m512i narrow_exact(lanes v)
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
    return widen(_mm512_loadu_si512(p));
}

WORD lanes lanes_load_head(const elem *p, size_t n)
{
    return widen(_mm512_maskz_loadu_epi16(head_bits(n), p));
}

WORD void lanes_store(elem *p, lanes v)
{
    _mm512_storeu_si512(p, narrow(v));
}

WORD void lanes_store_head(elem *p, size_t n, lanes v)
{
    _mm512_mask_storeu_epi16(p, head_bits(n), narrow(v));
}

WORD void lanes_store_exact(elem *p, lanes v)
{
    _mm512_storeu_si512(p, narrow_exact(v));
}

#endif

WORD acc lanes_fold(const lanes v[PARTS])
{
#if defined(ATTNRES_DTYPE_F64)
    const reg eight = _mm512_add_pd(v->at[0], v->at[1]);
    const __m256d four =
        _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
#elif defined(ATTNRES_DTYPE_BF16)
    /* Distances 16 and 8 and 4 and 2 within the even and the odd lanes, 1 between them. */
    const __m256 even =
        _mm256_add_ps(_mm512_castps512_ps256(v->at[0]), _mm512_extractf32x8_ps(v->at[0], 1));
    const __m256 odd =
        _mm256_add_ps(_mm512_castps512_ps256(v->at[1]), _mm512_extractf32x8_ps(v->at[1], 1));
    __m128 e = _mm_add_ps(_mm256_castps256_ps128(even), _mm256_extractf128_ps(even, 1));
    __m128 o = _mm_add_ps(_mm256_castps256_ps128(odd), _mm256_extractf128_ps(odd, 1));
    e = _mm_add_ps(e, _mm_movehl_ps(e, e));
    o = _mm_add_ps(o, _mm_movehl_ps(o, o));
    e = _mm_add_ss(e, _mm_movehdup_ps(e));
    o = _mm_add_ss(o, _mm_movehdup_ps(o));
    return _mm_cvtss_f32(_mm_add_ss(e, o));
#else
    const reg sixteen = _mm512_add_ps(v->at[0], v->at[1]);
    const __m256 eight =
        _mm256_add_ps(_mm512_castps512_ps256(sixteen), _mm512_extractf32x8_ps(sixteen, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
#endif
}
