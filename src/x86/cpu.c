/* CPUID and XGETBV. No compiler helper: those need a run-time library and miss the OS state. */
#include "../cpu.h"

#include <cpuid.h>
#include <stddef.h>

/* Only after CPUID has shown OSXSAVE: it faults otherwise. */
static uint64_t read_xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

uint32_t attnres_cpu_detect(void)
{
    struct attnres_cpuid cpuid = {0};
    uint32_t eax, ebx, ecx, edx;

    cpuid.max_leaf = (uint32_t)__get_cpuid_max(0, NULL);
    if (cpuid.max_leaf >= 1) {
        __cpuid(1, eax, ebx, ecx, edx);
        cpuid.leaf1_ecx = ecx;
        if (ecx >> 27 & 1) {
            cpuid.xcr0 = read_xcr0();
        }
    }
    if (cpuid.max_leaf >= 7) {
        __cpuid_count(7, 0, eax, ebx, ecx, edx);
        cpuid.leaf7_ebx = ebx;
    }
    (void)eax;
    (void)edx;
    return attnres_x86_decode(&cpuid);
}
