/* Stands in for the compiler's immintrin.h where there is none: SIMDe does every operation with
 * what the machine has. Tests only. */
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
