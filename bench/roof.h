/* What the machine can do at best: loops that only load, load and store, or multiply and add.
 *
 * One ordinary C body (roof.c) is compiled once per level, on the compiler's generic vectors of
 * that level's size. */
#ifndef ATTNRES_BENCH_ROOF_H
#define ATTNRES_BENCH_ROOF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct roof {
    const char *level;
    /* Loads `bytes` bytes of each set, in order; the result depends on each of them. */
    uint64_t (*read)(const void *const *sets, size_t count, size_t bytes);
    /* Loads all bytes, in order, and stores them; ordinary stores. */
    void (*copy)(const void *data, void *out, size_t bytes);
    /* `rounds` fused multiply-adds (or a multiplication and an addition, where the level has no
     * fused one) on each of `*lanes` independent numbers held in registers. */
    float (*fma_f32)(size_t rounds, size_t *lanes);
    double (*fma_f64)(size_t rounds, size_t *lanes);
};

extern const struct roof roof_scalar, roof_avx2, roof_avx512, roof_neon;

#ifdef __cplusplus
}
#endif

#endif
