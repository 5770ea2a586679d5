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

static uint64_t read_sets(const void *const *sets, size_t count, size_t bytes)
{
    const size_t step = STREAMS * VECTOR_BYTES;
    words sums[STREAMS];
    uint64_t rest = 0;
    memset(sums, 0, sizeof sums);
    for (size_t s = 0; s < count; s++) {
        const unsigned char *p = sets[s];
        const unsigned char *const end = p + bytes;
        for (; (size_t)(end - p) >= step; p += step) {
            const words *v = (const words *)p;
            UNROLLED
            for (int k = 0; k < STREAMS; k++) {
                sums[k] ^= v[k];
            }
        }
        for (; (size_t)(end - p) >= VECTOR_BYTES; p += VECTOR_BYTES) {
            sums[0] ^= *(const words *)p;
        }
        for (; p < end; p++) {
            rest ^= *p;
        }
    }
    UNROLLED
    for (int k = 1; k < STREAMS; k++) {
        sums[0] ^= sums[k];
    }
    for (size_t j = 0; j < VECTOR_BYTES / sizeof(uint64_t); j++) {
        rest ^= sums[0][j];
    }
    return rest;
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
    for (; bytes >= VECTOR_BYTES; bytes -= VECTOR_BYTES, p += VECTOR_BYTES, q += VECTOR_BYTES) {
        *(words *)q = *(const words *)p;
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
            v[k] = one + half * (type)k;                                                           \
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

const struct roof NAMED(roof, ROOF_LEVEL) = {TEXT_OF(ROOF_LEVEL), read_sets, copy_bytes, fma_f32,
                                             fma_f64};
