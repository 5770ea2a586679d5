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

#define STREAMS 4   /* transfers side by side */
#define REGISTERS 8 /* in flight */
#define STEP ((size_t)REGISTERS * VECTOR_BYTES)

/* Loops over registers must become straight code, or the registers become memory. */
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

#define INLINED static inline __attribute__((always_inline))

/* Keeps the compiler from making one library call of a loop that copies. */
#define KEEP_THE_LOOP __asm__ volatile("" ::: "memory")

INLINED void load(const unsigned char *p, words *sums)
{
    UNROLLED
    for (int k = 0; k < REGISTERS; k++) {
        sums[k] ^= ((const words *)p)[k];
    }
}

INLINED void copy(const unsigned char *p, unsigned char *q)
{
    UNROLLED
    for (int k = 0; k < REGISTERS; k++) {
        ((words *)q)[k] = ((const words *)p)[k];
    }
    KEEP_THE_LOOP;
}

/* What is left of a transfer after its last whole step. */
static uint64_t finish(struct roof_transfer transfer, size_t begin, size_t end)
{
    const unsigned char *p = transfer.from;
    unsigned char *q = transfer.to;
    uint64_t sum = 0;
    for (size_t i = begin; i < end; i += sizeof sum) {
        uint64_t word = 0;
        const size_t n = end - i < sizeof word ? end - i : sizeof word;
        memcpy(&word, p + i, n);
        if (q) {
            memcpy(q + i, &word, n);
        }
        sum ^= word;
    }
    return sum;
}

INLINED void transfer_step(const struct roof_transfer *transfers, size_t count, size_t i,
                           words *sums)
{
    for (size_t s = 0; s < count; s++) {
        const unsigned char *p = (const unsigned char *)transfers[s].from + i;
        if (transfers[s].to) {
            copy(p, (unsigned char *)transfers[s].to + i);
        } else {
            load(p, sums);
        }
    }
}

INLINED uint64_t transfer_groups(const struct roof_transfer *transfers, size_t count, size_t bytes,
                                 size_t side_by_side)
{
    const size_t steps_end = bytes - bytes % STEP;
    words sums[REGISTERS];
    uint64_t sum = 0;
    memset(sums, 0, sizeof sums);
    for (size_t first = 0; first < count; first += side_by_side) {
        const size_t last = count - first < side_by_side ? count : first + side_by_side;
        if (side_by_side == 1 && !transfers[first].to) {
            for (size_t i = 0; i < steps_end; i += STEP) {
                load((const unsigned char *)transfers[first].from + i, sums);
            }
        } else {
            for (size_t i = 0; i < steps_end; i += STEP) {
                transfer_step(transfers + first, last - first, i, sums);
            }
        }
        for (size_t s = first; s < last; s++) {
            sum ^= finish(transfers[s], steps_end, bytes);
        }
    }
    UNROLLED
    for (int k = 0; k < REGISTERS; k++) {
        for (size_t j = 0; j < VECTOR_BYTES / sizeof sum; j++) {
            sum ^= sums[k][j];
        }
    }
    return sum;
}

static uint64_t sequential(const struct roof_transfer *transfers, size_t count, size_t bytes)
{
    return transfer_groups(transfers, count, bytes, 1);
}

/* Groups of like size, at most STREAMS. */
static uint64_t streams(const struct roof_transfer *transfers, size_t count, size_t bytes)
{
    const size_t groups = (count + STREAMS - 1) / STREAMS;
    return transfer_groups(transfers, count, bytes, groups ? (count + groups - 1) / groups : 1);
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

const struct roof NAMED(roof, ROOF_LEVEL) = {TEXT_OF(ROOF_LEVEL), sequential, streams, fma_f32,
                                             fma_f64};
