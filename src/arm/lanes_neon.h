/* The lane words on AArch64's 128-bit registers: Advanced SIMD as every AArch64 CPU has it.
 *
 * 32 registers hold the sums of one f32 or f64 row (eight for the squares, eight for the dot
 * products), or of two 16-bit rows with half of their lanes each. f16 is converted by the baseline
 * instructions; bf16 by shifts, as even and odd lanes, for the reason given in lanes_avx2.h. There
 * are no masked loads: the last few elements of a row go through a small array. */
#if !defined(ATTNRES_SHIM) && !defined(__ARM_NEON)
#error "the neon level needs Advanced SIMD"
#endif

#include <arm_neon.h>

#if defined(ATTNRES_DTYPE_F32) || defined(ATTNRES_DTYPE_F64)
#define REGISTERS 8
#define ROWS 1
#define PARTS_AT_ONCE 1
#define CHUNK 1024
#define CHUNK_FROM_MEMORY WHOLE_ROWS
#define DOT_ROWS 1
#define DOT_QUERIES 2
#define STEPS 2
#else
#define REGISTERS 4
#define ROWS 2
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
typedef float64x2_t reg;
#define REG(word) word##_f64
#else
typedef float32x4_t reg;
#define REG(word) word##_f32
#endif
#define REG_LANES ((int)(sizeof(reg) / sizeof(acc)))
#define GROUP (REGISTERS * REG_LANES)
#define EACH_REGISTER                                                                              \
    UNROLLED                                                                                       \
    for (int k = 0; k < REGISTERS; k++)

typedef struct lanes {
    reg at[REGISTERS];
} lanes;

WORD lanes lanes_set(acc a)
{
    lanes v;
    EACH_REGISTER
        v.at[k] = REG(vdupq_n)(a);
    return v;
}

WORD lanes lanes_zero(void)
{
    return lanes_set(0);
}

WORD lanes lanes_add(lanes a, lanes b)
{
    EACH_REGISTER
        a.at[k] = REG(vaddq)(a.at[k], b.at[k]);
    return a;
}

WORD lanes lanes_mul(lanes a, lanes b)
{
    EACH_REGISTER
        a.at[k] = REG(vmulq)(a.at[k], b.at[k]);
    return a;
}

WORD lanes lanes_fma(lanes a, lanes b, lanes c)
{
    EACH_REGISTER
        c.at[k] = REG(vfmaq)(c.at[k], a.at[k], b.at[k]);
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
        v.at[k] = REG(vld1q)(p + k * REG_LANES);
    return v;
}

WORD void lanes_store_sorted(acc *p, lanes v)
{
    EACH_REGISTER
        REG(vst1q)(p + k * REG_LANES, v.at[k]);
}

#if defined(ATTNRES_DTYPE_BF16)

WORD lanes lanes_load_acc(const acc *p)
{
    const float32x4x2_t low = vld2q_f32(p), high = vld2q_f32(p + 8);
    const lanes v = {{low.val[0], low.val[1], high.val[0], high.val[1]}};
    return v;
}

WORD void lanes_store_acc(acc *p, lanes v)
{
    const float32x4x2_t low = {{v.at[0], v.at[1]}}, high = {{v.at[2], v.at[3]}};
    vst2q_f32(p, low);
    vst2q_f32(p + 8, high);
}

WORD lanes lanes_load(const elem *p)
{
    lanes v;
    for (int pair = 0; pair < 2; pair++) {
        const uint32x4_t pairs = vreinterpretq_u32_u16(vld1q_u16(p + 8 * pair));
        v.at[2 * pair] = vreinterpretq_f32_u32(vshlq_n_u32(pairs, 16));
        v.at[2 * pair + 1] = vreinterpretq_f32_u32(vandq_u32(pairs, vdupq_n_u32(0xffff0000)));
    }
    return v;
}

/* A bf16 in the upper half, rounded to nearest even; a NaN keeps its upper half, made quiet. */
WORD reg rounded_half(reg v)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(v);
    const uint32x4_t last = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t sum = vaddq_u32(bits, vaddq_u32(last, vdupq_n_u32(0x7fff)));
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    const uint32x4_t rounded = vbslq_u32(vceqq_f32(v, v), sum, quiet);
    return vreinterpretq_f32_u32(vandq_u32(rounded, vdupq_n_u32(0xffff0000)));
}

WORD lanes lanes_rounded(lanes v)
{
    EACH_REGISTER
        v.at[k] = rounded_half(v.at[k]);
    return v;
}

WORD void lanes_store_exact(elem *p, lanes v)
{
    for (int pair = 0; pair < 2; pair++) {
        const uint32x4_t even = vreinterpretq_u32_f32(v.at[2 * pair]);
        const uint32x4_t odd = vreinterpretq_u32_f32(v.at[2 * pair + 1]);
        vst1q_u16(p + 8 * pair, vreinterpretq_u16_u32(vsriq_n_u32(odd, even, 16)));
    }
}

WORD void lanes_store(elem *p, lanes v)
{
    lanes_store_exact(p, lanes_rounded(v));
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

#if defined(ATTNRES_DTYPE_F16)

WORD lanes lanes_load(const elem *p)
{
    lanes v;
    EACH_REGISTER
        v.at[k] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + k * REG_LANES)));
    return v;
}

WORD void lanes_store(elem *p, lanes v)
{
    EACH_REGISTER
        vst1_u16(p + k * REG_LANES, vreinterpret_u16_f16(vcvt_f16_f32(v.at[k])));
}

WORD lanes lanes_rounded(lanes v)
{
    EACH_REGISTER
        v.at[k] = vcvt_f32_f16(vcvt_f16_f32(v.at[k]));
    return v;
}

#else

WORD lanes lanes_load(const elem *p)
{
    return lanes_load_acc(p);
}

WORD void lanes_store(elem *p, lanes v)
{
    lanes_store_acc(p, v);
}

WORD lanes lanes_rounded(lanes v)
{
    return v;
}

#endif

WORD void lanes_store_exact(elem *p, lanes v)
{
    lanes_store(p, v);
}

#endif

WORD lanes lanes_load_head(const elem *p, size_t n)
{
    elem head[GROUP] = {0};
    for (size_t j = 0; j < n; j++) {
        head[j] = p[j];
    }
    return lanes_load(head);
}

WORD lanes lanes_load_acc_head(const acc *p, size_t n, acc a)
{
    acc head[GROUP];
    for (size_t j = 0; j < GROUP; j++) {
        head[j] = j < n ? p[j] : a;
    }
    return lanes_load_acc(head);
}

WORD void lanes_store_head(elem *p, size_t n, lanes v)
{
    elem head[GROUP];
    lanes_store(head, v);
    for (size_t j = 0; j < n; j++) {
        p[j] = head[j];
    }
}

WORD void lanes_store_acc_head(acc *p, size_t n, lanes v)
{
    acc head[GROUP];
    lanes_store_acc(head, v);
    for (size_t j = 0; j < n; j++) {
        p[j] = head[j];
    }
}

/* Eight registers hold LANES lanes. In both orders of lanes, the partner at distance LANES / 2 is
 * four registers on, the one at LANES / 4 two. */
WORD acc lanes_fold(const lanes v[PARTS])
{
    reg sum[8];
    UNROLLED
    for (int i = 0; i < 8; i++) {
        sum[i] = v[i / REGISTERS].at[i % REGISTERS];
    }
    UNROLLED
    for (int i = 0; i < 4; i++) {
        sum[i] = REG(vaddq)(sum[i], sum[i + 4]);
    }
    sum[0] = REG(vaddq)(sum[0], sum[2]);
    sum[1] = REG(vaddq)(sum[1], sum[3]);
#if defined(ATTNRES_DTYPE_F64)
    const reg two = vaddq_f64(sum[0], sum[1]);
    return vgetq_lane_f64(two, 0) + vgetq_lane_f64(two, 1);
#elif defined(ATTNRES_DTYPE_BF16)
    const float32x2_t even = vadd_f32(vget_low_f32(sum[0]), vget_high_f32(sum[0]));
    const float32x2_t odd = vadd_f32(vget_low_f32(sum[1]), vget_high_f32(sum[1]));
    return (vget_lane_f32(even, 0) + vget_lane_f32(even, 1)) +
           (vget_lane_f32(odd, 0) + vget_lane_f32(odd, 1));
#else
    const reg four = vaddq_f32(sum[0], sum[1]);
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
#endif
}
