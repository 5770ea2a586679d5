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

/* Bytes that are loaded and, unless `to` is NULL, stored. */
struct roof_transfer {
    const void *from;
    void *to;
};

struct roof {
    const char *level;
    /* Transfers `bytes` bytes of each, in order. The result depends on all that were only loaded.
     */
    uint64_t (*sequential)(const struct roof_transfer *transfers, size_t count, size_t bytes);
    /* The same, but up to four of them side by side: hardware prefetchers follow several streams,
     * and on some machines one alone does not fill the memory's bandwidth. */
    uint64_t (*streams)(const struct roof_transfer *transfers, size_t count, size_t bytes);
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
