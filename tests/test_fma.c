/* The scalar level's fused multiply-adds from ordinary arithmetic, against the C library's. */
#include "elements.h"
#include "inputs.h"
#include "suites.h"

#include "half.h"
#include "scalar/fma_f32.h"
#include "scalar/fma_f64.h"

#include <math.h>

enum { LANES_F32 = 32, LANES_F64 = 16, RECIPES = 9 };

/* Drawn one after the other: in an initialiser the order would be up to the compiler. */
typedef struct triple {
    double a, b, c;
} triple;

static double rounded(attnres_dtype dtype, double value)
{
    return elements_round(dtype, value);
}

/* As everywhere, one draw an expression: the order of two would be up to the compiler. */

/* An odd number of about `bits` bits. */
static double odd(uint64_t *stream, int bits)
{
    return (double)(inputs_next(stream) >> (64 - bits) | 1 | (uint64_t)1 << (bits - 1));
}

static double sign(uint64_t *stream)
{
    return inputs_next(stream) % 2 ? -1 : 1;
}

static double any_bits(attnres_dtype dtype, uint64_t *stream)
{
    const uint64_t bits = inputs_next(stream);
    return elements_get(dtype, &bits, 0);
}

/* An exponent for operands whose product shall stay a number. */
static int middle(attnres_dtype dtype, uint64_t *stream)
{
    const int range = elements_format_of(dtype).largest / 3;
    return (int)inputs_pick(stream, (size_t)(2 * range)) - range;
}

/* A product of one bit more than fits: exactly half-way. Alone, or pushed off by a tiny c. */
static triple half_way_product(attnres_dtype dtype, uint64_t *stream)
{
    const int precision = elements_format_of(dtype).precision;
    const int a_bits = precision / 2 + 1, b_bits = precision + 1 - a_bits;
    const int exponent = middle(dtype, stream);
    triple t = {.a = ldexp(odd(stream, a_bits), exponent)};
    t.b = odd(stream, b_bits);
    t.b *= sign(stream);
    if (inputs_next(stream) % 4) {
        const int far = (int)inputs_pick(stream, (size_t)(2 * precision + 8));
        t.c = sign(stream) * ldexp(1, exponent - far);
    }
    return t;
}

/* c is large, the product lies around half a unit of its last place: at it, one step of a factor
 * beside it, or (1 + x)(1 - x) so close to it that a wider sum does not see the difference. */
static triple half_way_sum(attnres_dtype dtype, uint64_t *stream, int exponent)
{
    const int precision = elements_format_of(dtype).precision;
    double off = ldexp((double)((int)inputs_pick(stream, 3) - 1), 1 - precision);
    triple t = {.a = 1 + off, .b = 1 + 2 * (double)inputs_pick(stream, 3)};
    t.b *= sign(stream);
    t.c = odd(stream, precision);
    t.c -= (double)(inputs_next(stream) % 2);
    t.c *= sign(stream) * ldexp(1, exponent);
    if (inputs_next(stream) % 2) {
        off = ldexp(1, 1 - precision + (int)inputs_pick(stream, (size_t)precision / 2));
        t.a = 1 + off;
        t.b = copysign(1 - off, t.b);
    }
    /* Each factor takes its half of the exponent, so that neither is too small. */
    t.a = ldexp(t.a, (exponent - 1) / 2);
    t.b = ldexp(t.b, exponent - 1 - (exponent - 1) / 2);
    return t;
}

/* Nearly everything cancels: what is left is the product's own rounding error. */
static triple cancellation(attnres_dtype dtype, uint64_t *stream)
{
    const int precision = elements_format_of(dtype).precision;
    triple t = {.a = odd(stream, precision)};
    t.a = ldexp(t.a, middle(dtype, stream) - precision);
    t.b = odd(stream, precision);
    t.b *= sign(stream);
    t.c = -rounded(dtype, t.a * t.b);
    elements_move(ATTNRES_F64, &t.c, 0,
                  (int)(inputs_pick(stream, 3) - 1) * (dtype == ATTNRES_F64 ? 1 : 1 << 29));
    return t;
}

/* Results around the smallest normal number and below, where fewer bits are kept. */
static triple underflowing(attnres_dtype dtype, uint64_t *stream)
{
    const elements_format format = elements_format_of(dtype);
    const int last = format.smallest - format.precision + 1;
    const int shift = (int)inputs_pick(stream, (size_t)(format.largest - format.precision));
    const int bits = 1 + (int)inputs_pick(stream, (size_t)format.precision);
    if (inputs_next(stream) % 2) { /* half-way between subnormals */
        triple t = half_way_sum(dtype, stream, last);
        t.c = ldexp(t.c, -(int)inputs_pick(stream, (size_t)format.precision));
        return t;
    }
    triple t = {.a = ldexp(odd(stream, bits), -shift)};
    t.b = odd(stream, format.precision);
    t.b = ldexp(t.b, last - 1 + shift - bits - (int)inputs_pick(stream, 4));
    t.b *= sign(stream);
    t.c = ldexp((double)inputs_pick(stream, 64), last);
    t.c *= sign(stream);
    return t;
}

static triple pick_three(const double *values, size_t count, uint64_t *stream)
{
    triple t = {.a = values[inputs_pick(stream, count)]};
    t.b = values[inputs_pick(stream, count)];
    t.c = values[inputs_pick(stream, count)];
    return t;
}

/* Signs of zeros. */
static triple zeros(uint64_t *stream)
{
    static const double values[] = {0, -0.0, 1, -1, 0.75};
    return pick_three(values, 5, stream);
}

static triple special(attnres_dtype dtype, uint64_t *stream)
{
    const double values[] = {0,
                             -0.0,
                             1,
                             -1,
                             elements_ulp(dtype, 0),
                             -elements_ulp(dtype, 0),
                             ldexp(1, elements_format_of(dtype).smallest),
                             elements_largest(dtype),
                             -elements_largest(dtype),
                             (double)INFINITY,
                             -(double)INFINITY,
                             (double)NAN,
                             1.5,
                             0x1p-60};
    const size_t count = sizeof values / sizeof *values;
    return pick_three(values, count, stream);
}

static triple make(attnres_dtype dtype, int recipe, uint64_t *stream)
{
    triple t = {.a = inputs_bell(stream)};
    t.b = inputs_bell(stream);
    t.c = inputs_bell(stream);
    switch (recipe) {
    case 0:
        t.a = any_bits(dtype, stream);
        t.b = any_bits(dtype, stream);
        t.c = any_bits(dtype, stream);
        break;
    case 1:
        t = half_way_product(dtype, stream);
        break;
    case 2:
        t = half_way_sum(dtype, stream, middle(dtype, stream));
        break;
    case 3:
        t = cancellation(dtype, stream);
        break;
    case 4:
        t = underflowing(dtype, stream);
        break;
    case 5:
        t = special(dtype, stream);
        break;
    case 6: /* as while scoring: a sum that grows by squares */
        t.b = t.a;
        t.c = fabs(t.c) * 100;
        break;
    case 7:
        t = zeros(stream);
        break;
    default:
        break;
    }
    t.a = rounded(dtype, t.a);
    t.b = rounded(dtype, t.b);
    t.c = rounded(dtype, t.c);
    return t;
}

static void fail_triple(attnres_dtype dtype, triple t, double found, double expected)
{
    ck_abort_msg("%s fma(%a, %a, %a) = %a, expected %a", elements_name(dtype), t.a, t.b, t.c, found,
                 expected);
}

/* Mostly one recipe, so that a whole block of lanes takes the fast way, now and then another one in
 * a single lane. */
static int recipe_of(int recipe, uint64_t *stream)
{
    return inputs_pick(stream, 64) ? recipe : (int)inputs_pick(stream, RECIPES);
}

START_TEST(f32_is_fused)
{
    uint64_t stream = inputs_stream(8, (uint64_t)_i, 0);
    const int blocks = inputs_quick() ? 500 : 10000; /* 2.5 million triples over all recipes */
    float a[LANES_F32], b[LANES_F32], c[LANES_F32];
    triple t[LANES_F32];
    for (int block = 0; block < blocks; block++) {
        for (int j = 0; j < LANES_F32; j++) {
            const int recipe = recipe_of(_i, &stream);
            t[j] = make(ATTNRES_F32, recipe, &stream);
            a[j] = (float)t[j].a;
            b[j] = (float)t[j].b;
            c[j] = (float)t[j].c;
        }
        attnres_fma_f32(a, b, c);
        for (int j = 0; j < LANES_F32; j++) {
            const float expected = fmaf(a[j], b[j], (float)t[j].c);
            const float exact = attnres_fma_f32_exact(a[j], b[j], (float)t[j].c);
            if (elements_compare(ATTNRES_F32, &c[j], &expected, 1) != 1) {
                fail_triple(ATTNRES_F32, t[j], (double)c[j], (double)expected);
            }
            if (elements_compare(ATTNRES_F32, &exact, &expected, 1) != 1) {
                fail_triple(ATTNRES_F32, t[j], (double)exact, (double)expected);
            }
        }
    }
}
END_TEST

START_TEST(f64_is_fused)
{
    uint64_t stream = inputs_stream(9, (uint64_t)_i, 0);
    const int blocks = inputs_quick() ? 1000 : 16000; /* 2 million triples over all recipes */
    double a[LANES_F64], b[LANES_F64], c[LANES_F64];
    triple t[LANES_F64];
    for (int block = 0; block < blocks; block++) {
        for (int j = 0; j < LANES_F64; j++) {
            const int recipe = recipe_of(_i, &stream);
            t[j] = make(ATTNRES_F64, recipe, &stream);
            a[j] = t[j].a;
            b[j] = t[j].b;
            c[j] = t[j].c;
        }
        attnres_fma_f64(a, b, c);
        for (int j = 0; j < LANES_F64; j++) {
            const double expected = fma(a[j], b[j], t[j].c);
            if (elements_compare(ATTNRES_F64, &c[j], &expected, 1) != 1) {
                fail_triple(ATTNRES_F64, t[j], c[j], expected);
            }
        }
    }
}
END_TEST

/* Around the bounds beyond which attnres_fma_f64 asks the C library. */
START_TEST(f64_is_fused_at_its_bounds)
{
    static const int exponents[] = {-1074, -1022, -960, -901, -900, -899, -850, -451, -450, -449,
                                    0,     500,   501,  989,  990,  991,  999,  1000, 1001, 1023};
    const size_t count = sizeof exponents / sizeof *exponents;
    uint64_t stream = inputs_stream(10, 0, 0);
    for (size_t n = 0; n < count * count * count; n++) {
        double a[LANES_F64], b[LANES_F64], c[LANES_F64], before[LANES_F64];
        for (int j = 0; j < LANES_F64; j++) {
            a[j] = ldexp(inputs_uniform(&stream, 1, 2), exponents[n % count]);
            b[j] = ldexp(inputs_uniform(&stream, 1, 2), exponents[n / count % count]);
            c[j] = ldexp(inputs_uniform(&stream, 1, 2), exponents[n / count / count]);
            c[j] *= sign(&stream);
            before[j] = c[j];
        }
        attnres_fma_f64(a, b, c);
        for (int j = 0; j < LANES_F64; j++) {
            const double expected = fma(a[j], b[j], before[j]);
            const triple t = {a[j], b[j], before[j]};
            if (elements_compare(ATTNRES_F64, &c[j], &expected, 1) != 1) {
                fail_triple(ATTNRES_F64, t, c[j], expected);
            }
        }
    }
}
END_TEST

Suite *fma_suite(void)
{
    Suite *suite = suite_create("fma");
    TCase *emulation = tcase_create("emulation");
    tcase_set_timeout(emulation, 60);
    tcase_add_loop_test(emulation, f32_is_fused, 0, RECIPES);
    tcase_add_loop_test(emulation, f64_is_fused, 0, RECIPES);
    tcase_add_test(emulation, f64_is_fused_at_its_bounds);
    suite_add_tcase(suite, emulation);
    return suite;
}
