/* Stands in for the compiler's arm_neon.h where there is none: SIMDe does every operation with what
 * the machine has. Tests only. */
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/arm/neon.h>
