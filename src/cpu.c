/* Decoding, on every architecture, so that every machine tests it; and the detection of a machine
 * for which no level above scalar exists. */
#include "cpu.h"

#define BIT(value, n) (((value) >> (n)) & 1)
#define HAVE(feature, condition) ((condition) ? ATTNRES_FEATURE(feature) : 0)

/* Intel SDM volume 1, 14.3 and 15.2: the feature bits say what the CPU has; XCR0 says which
 * registers the operating system saves: bits 1 and 2 for ymm, 5 to 7 on top for zmm and masks. */
uint32_t attnres_x86_decode(const struct attnres_cpuid *cpuid)
{
    const uint32_t ecx = cpuid->max_leaf >= 1 ? cpuid->leaf1_ecx : 0;
    const uint32_t ebx = cpuid->max_leaf >= 7 ? cpuid->leaf7_ebx : 0;
    const uint64_t saved = BIT(ecx, 27) ? cpuid->xcr0 : 0;

    return HAVE(FMA, BIT(ecx, 12)) | HAVE(AVX, BIT(ecx, 28)) | HAVE(F16C, BIT(ecx, 29)) |
           HAVE(AVX2, BIT(ebx, 5)) | HAVE(AVX512F, BIT(ebx, 16)) | HAVE(AVX512DQ, BIT(ebx, 17)) |
           HAVE(AVX512BW, BIT(ebx, 30)) | HAVE(AVX512VL, BIT(ebx, 31)) |
           HAVE(OS_YMM, (saved & 0x6) == 0x6) | HAVE(OS_ZMM, (saved & 0xe6) == 0xe6);
}

/* HWCAP_ASIMD of the AArch64 ABI. */
uint32_t attnres_arm_decode(uint64_t hwcap)
{
    return HAVE(ASIMD, BIT(hwcap, 1));
}

#if !defined(__x86_64__) && !defined(__i386__) && !defined(__aarch64__)
uint32_t attnres_cpu_detect(void)
{
    return 0;
}
#endif
