/* The read as the author of a runtime writes it in plain C, behind the library's own calls.
 *
 * Compiled twice: `peer_c_...` with -O3, `peer_c_native_...` with -O3 -march=native -ffast-math.
 * Only what the benchmark needs: sources, prefix, query, eps and the result. */
#ifndef ATTNRES_BENCH_PEER_C_H
#define ATTNRES_BENCH_PEER_C_H

#include <attnres.h>

#ifdef __cplusplus
extern "C" {
#endif

attnres_status peer_c_read(const attnres_shape *shape, const attnres_read_args *args);
attnres_status peer_c_block_sum(const attnres_shape *shape, const attnres_block_sum_args *args);
attnres_status peer_c_block_read(const attnres_shape *shape, const attnres_block_read_args *args);

attnres_status peer_c_native_read(const attnres_shape *shape, const attnres_read_args *args);
attnres_status peer_c_native_block_sum(const attnres_shape *shape,
                                       const attnres_block_sum_args *args);
attnres_status peer_c_native_block_read(const attnres_shape *shape,
                                        const attnres_block_read_args *args);

#ifdef __cplusplus
}
#endif

#endif
