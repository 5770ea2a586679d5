/* What the machine can run. Detection reads, decoding is pure: tests feed the decoder with values
 * recorded on other machines. */
#ifndef ATTNRES_CPU_H
#define ATTNRES_CPU_H

#include <stdint.h>

/* Everything a level may ask for, CPU features first, then states the operating system must save.
 * F(name, text) */
#define ATTNRES_X86_FEATURES(F)                                                                    \
    F(AVX, "avx")                                                                                  \
    F(AVX2, "avx2")                                                                                \
    F(FMA, "fma")                                                                                  \
    F(F16C, "f16c")                                                                                \
    F(AVX512F, "avx512f")                                                                          \
    F(AVX512BW, "avx512bw")                                                                        \
    F(AVX512DQ, "avx512dq")                                                                        \
    F(AVX512VL, "avx512vl")                                                                        \
    F(OS_YMM, "os-ymm")                                                                            \
    F(OS_ZMM, "os-zmm")
#define ATTNRES_ARM_FEATURES(F) F(ASIMD, "asimd")

#define ATTNRES_FEATURE_INDEX(name, text) ATTNRES_INDEX_##name,
enum { ATTNRES_X86_FEATURES(ATTNRES_FEATURE_INDEX) ATTNRES_X86_FEATURE_COUNT };
enum { ATTNRES_ARM_FEATURES(ATTNRES_FEATURE_INDEX) ATTNRES_ARM_FEATURE_COUNT };
#define ATTNRES_FEATURE(name) (1u << ATTNRES_INDEX_##name)

#define ATTNRES_NEEDS_AVX2                                                                         \
    (ATTNRES_FEATURE(AVX) | ATTNRES_FEATURE(AVX2) | ATTNRES_FEATURE(FMA) | ATTNRES_FEATURE(F16C) | \
     ATTNRES_FEATURE(OS_YMM))
#define ATTNRES_NEEDS_AVX512                                                                       \
    (ATTNRES_NEEDS_AVX2 | ATTNRES_FEATURE(AVX512F) | ATTNRES_FEATURE(AVX512BW) |                   \
     ATTNRES_FEATURE(AVX512DQ) | ATTNRES_FEATURE(AVX512VL) | ATTNRES_FEATURE(OS_ZMM))
#define ATTNRES_NEEDS_NEON ATTNRES_FEATURE(ASIMD)

/* The registers that matter, as the instructions returned them; 0 where a leaf does not exist. */
struct attnres_cpuid {
    uint32_t max_leaf;
    uint32_t leaf1_ecx;
    uint32_t leaf7_ebx;
    uint64_t xcr0; /* 0 unless OSXSAVE: XGETBV does not exist without it */
};

/* Set of ATTNRES_FEATURE bits. */
uint32_t attnres_x86_decode(const struct attnres_cpuid *cpuid);
uint32_t attnres_arm_decode(uint64_t hwcap);

/* The features of this machine, in the terms of its architecture. */
uint32_t attnres_cpu_detect(void);

#endif
