/* AArch64: what the operating system says. The ID registers are not read: that faults on some
 * systems. Advanced SIMD is part of every AArch64 ABI, so where nobody can be asked it is there. */
#include "../cpu.h"

#if defined(__linux__) || defined(__FreeBSD__) || defined(__OpenBSD__)
#include <sys/auxv.h>
#endif

uint32_t attnres_cpu_detect(void)
{
#if defined(__linux__)
    return attnres_arm_decode(getauxval(AT_HWCAP));
#elif defined(__FreeBSD__) || defined(__OpenBSD__)
    unsigned long hwcap = 0;
    if (elf_aux_info(AT_HWCAP, &hwcap, sizeof hwcap) != 0) {
        hwcap = 0;
    }
    return attnres_arm_decode(hwcap);
#else
    return ATTNRES_FEATURE(ASIMD);
#endif
}
