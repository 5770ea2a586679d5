/* THE list of suites. A suite is a function that makes it; registering it here declares it and
 * has main.c run it. */
#ifndef ATTNRES_TESTS_SUITES_H
#define ATTNRES_TESTS_SUITES_H

#include <check.h>

/* Those that read files need the program's reader, hence jansson; meson.build says if it is there.
 */
#if ATTNRES_TESTS_FILES
#define ATTNRES_FILE_SUITES(S)                                                                     \
    S(golden)                                                                                      \
    S(golden_stream)                                                                               \
    S(safetensors)                                                                                 \
    S(cli)                                                                                         \
    S(cli_k3)
#else
#define ATTNRES_FILE_SUITES(S)
#endif

#define ATTNRES_SUITES(S)                                                                          \
    S(half)                                                                                        \
    S(exp)                                                                                         \
    S(fma)                                                                                         \
    S(oracle)                                                                                      \
    S(kernels)                                                                                     \
    S(blocks)                                                                                      \
    S(read)                                                                                        \
    S(wide)                                                                                        \
    S(steps)                                                                                       \
    S(overlap)                                                                                     \
    S(errors)                                                                                      \
    S(query)                                                                                       \
    S(layout)                                                                                      \
    S(environment)                                                                                 \
    S(guard)                                                                                       \
    S(emulated)                                                                                    \
    S(contract)                                                                                    \
    S(combinations)                                                                                \
    S(two_phase)                                                                                   \
    S(shard)                                                                                       \
    S(stream)                                                                                      \
    S(k3)                                                                                          \
    S(far)                                                                                         \
    S(cpu)                                                                                         \
    S(dispatch)                                                                                    \
    ATTNRES_FILE_SUITES(S)

#define ATTNRES_SUITE_PROTOTYPE(name) Suite *name##_suite(void);
ATTNRES_SUITES(ATTNRES_SUITE_PROTOTYPE)

#endif
