#include "roof.h"

#include <string.h>

#define PASTE(name, level) name##_##level
#define NAMED(name, level) PASTE(name, level)
#define TEXT(level) #level
#define TEXT_OF(level) TEXT(level)

/* Loads and stores of any alignment. */
typedef uint64_t words __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));
typedef float floats __attribute__((vector_size(VECTOR_BYTES)));
typedef double doubles __attribute__((vector_size(VECTOR_BYTES)));

enum { STREAMS = 8 }; /* registers in flight */

/* Loops over registers must become straight code, or the registers become memory. */
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

/* Keeps the compiler from making one library call of the loop. */
#define KEEP_THE_LOOP __asm__ volatile("" ::: "memory")

static inline __attribute__((always_inline)) uint64_t folded(const words *sums, const unsigned char *rest, size_t bytes)
{
    uint64_t sum = 0;
    UNROLLED
    for (int k = 0; k < STREAMS; k++) {
        UNROLLED
        for (size_t j = 0; j < VECTOR_BYTES / sizeof(uint64_t); j++) {
            sum ^= sums[k][j];
        }
    }
    for (size_t i = 0; i < bytes; i++) {
        sum ^= rest[i];
    }
    return sum;
}

static uint64_t read_bytes(const void *data, size_t bytes)
{
    const unsigned char *p = data;
    const size_t step = STREAMS * VECTOR_BYTES;
    words sums[STREAMS];
    memset(sums, 0, sizeof sums);
    for (; bytes >= step; bytes -= step, p += step) {
        const words *v = (const words *)p;
        UNROLLED
        for (int k = 0; k < STREAMS; k++) {
            sums[k] ^= v[k];
        }
    }
    return folded(sums, p, bytes);
}

static void copy_bytes(const void *data, void *out, size_t bytes)
{
    const unsigned char *p = data;
    unsigned char *q = out;
    const size_t step = STREAMS * VECTOR_BYTES;
    for (; bytes >= step; bytes -= step, p += step, q += step) {
        UNROLLED
        for (int k = 0; k < STREAMS; k++) {
            ((words *)q)[k] = ((const words *)p)[k];
        }
        KEEP_THE_LOOP;
    }
    for (size_t i = 0; i < bytes; i++) {
        q[i] = p[i];
        KEEP_THE_LOOP;
    }
}

/* The numbers run towards 2 and stay there: no overflow, no subnormal. 12 registers cover the
 * latency of two units. */
#define CHAINS 12
#define DEFINE_FMA(name, type, vector)                                                             \
    static type name(size_t rounds, size_t *lanes)                                                 \
    {                                                                                              \
        vector v[CHAINS], half, one;                                                               \
        type sum = 0;                                                                              \
        *lanes = CHAINS * VECTOR_BYTES / sizeof(type);                                             \
        UNROLLED                                                                                   \
        for (size_t j = 0; j < VECTOR_BYTES / sizeof(type); j++) {                                 \
            half[j] = (type)0.5;                                                                   \
            one[j] = 1;                                                                            \
        }                                                                                          \
        UNROLLED                                                                                   \
        for (int k = 0; k < CHAINS; k++) {                                                         \
            v[k] = one + half;                                                                     \
        }                                                                                          \
        for (size_t i = 0; i < rounds; i++) {                                                      \
            UNROLLED                                                                               \
            for (int k = 0; k < CHAINS; k++) {                                                     \
                v[k] = v[k] * half + one;                                                          \
            }                                                                                      \
        }                                                                                          \
        UNROLLED                                                                                   \
        for (int k = 0; k < CHAINS; k++) {                                                         \
            UNROLLED                                                                               \
            for (size_t j = 0; j < VECTOR_BYTES / sizeof(type); j++) {                             \
                sum += v[k][j];                                                                    \
            }                                                                                      \
        }                                                                                          \
        return sum;                                                                                \
    }

DEFINE_FMA(fma_f32, float, floats)
DEFINE_FMA(fma_f64, double, doubles)

const struct roof NAMED(roof, ROOF_LEVEL) = {TEXT_OF(ROOF_LEVEL), read_bytes, copy_bytes, fma_f32,
                                             fma_f64};
