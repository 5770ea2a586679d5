/* What a machine can run, and which level is chosen for it. */
#include "suites.h"

#include "cpu.h"
#include "dispatch.h"

#include <attnres.h>

#include <string.h>

#define BIT(n) (1u << (n))

/* CPUID.1:ECX */
#define FMA BIT(12)
#define XSAVE BIT(26)
#define OSXSAVE BIT(27)
#define AVX BIT(28)
#define F16C BIT(29)
/* CPUID.(7,0):EBX */
#define AVX2 BIT(5)
#define AVX512F BIT(16)
#define AVX512DQ BIT(17)
#define AVX512BW BIT(30)
#define AVX512VL BIT(31)

#define AVX512 (AVX512F | AVX512DQ | AVX512BW | AVX512VL)
#define YMM ATTNRES_FEATURE(OS_YMM)
#define ZMM (ATTNRES_FEATURE(OS_YMM) | ATTNRES_FEATURE(OS_ZMM))
#define SEEN_AVX2 (ATTNRES_NEEDS_AVX2 & ~YMM)
#define SEEN_AVX512 (ATTNRES_NEEDS_AVX512 & ~ZMM)

typedef struct machine {
    const char *name;
    struct attnres_cpuid cpuid;
    uint32_t features;
    attnres_level level;
} machine;

/* Registers as these processors return them (published CPUID dumps, other bits included) with XCR0
 * as Linux sets it, then what hypervisors and systems were reported to make of them. */
static const machine machines[] = {
    {"no CPUID leaf 1", {0, 0xffffffff, 0xffffffff, 0xff}, 0, ATTNRES_LEVEL_SCALAR},
    {"Nehalem", {0xb, 0x009ce3bd, 0, 0}, 0, ATTNRES_LEVEL_SCALAR},
    {"Sandy Bridge", {0xd, 0x1fbae3bf, 0, 0x7}, ATTNRES_FEATURE(AVX) | YMM, ATTNRES_LEVEL_SCALAR},
    {"Ivy Bridge",
     {0xd, 0x7fbae3ff, 0x00000281, 0x7},
     ATTNRES_FEATURE(AVX) | ATTNRES_FEATURE(F16C) | YMM,
     ATTNRES_LEVEL_SCALAR},
    {"Piledriver: FMA and F16C, no AVX2",
     {0xd, 0x3e98320b, 0x00000008, 0x4000000000000007},
     (SEEN_AVX2 & ~ATTNRES_FEATURE(AVX2)) | YMM,
     ATTNRES_LEVEL_SCALAR},
    {"Haswell", {0xd, 0x7ffafbff, 0x000027ab, 0x7}, SEEN_AVX2 | YMM, ATTNRES_LEVEL_AVX2},
    {"Skylake", {0x16, 0x7ffafbbf, 0x029c67af, 0x1f}, SEEN_AVX2 | YMM, ATTNRES_LEVEL_AVX2},
    {"Skylake-X", {0x16, 0x7ffefbff, 0xd39ffffb, 0xff}, SEEN_AVX512 | ZMM, ATTNRES_LEVEL_AVX512},
    {"Zen 2", {0x10, 0x7ed8320b, 0x219c91a9, 0x207}, SEEN_AVX2 | YMM, ATTNRES_LEVEL_AVX2},
    {"Zen 3", {0x10, 0x7ed8320b, 0x219c97a9, 0x207}, SEEN_AVX2 | YMM, ATTNRES_LEVEL_AVX2},
    {"Zen 4", {0x10, 0x7ef8320b, 0xf1bf97a9, 0x2e7}, SEEN_AVX512 | ZMM, ATTNRES_LEVEL_AVX512},
    {"Knights Landing: AVX512F without BW, DQ, VL",
     {0xd, 0x7ff8f3bf, 0x1c0d23ab, 0xe7},
     SEEN_AVX2 | ATTNRES_FEATURE(AVX512F) | ZMM,
     ATTNRES_LEVEL_AVX2},
    {"AVX-512, but the system saves ymm only",
     {0x16, 0x7ffefbff, 0xd39ffffb, 0x7},
     SEEN_AVX512 | YMM,
     ATTNRES_LEVEL_AVX2},
    {"AVX-512, but the system saves no masks",
     {0x16, 0x7ffefbff, 0xd39ffffb, 0xc7},
     SEEN_AVX512 | YMM,
     ATTNRES_LEVEL_AVX2},
    {"AVX-512, but the system saves no upper zmm",
     {0x16, 0x7ffefbff, 0xd39ffffb, 0x67},
     SEEN_AVX512 | YMM,
     ATTNRES_LEVEL_AVX2},
    {"zmm saved, ymm not (nonsense)",
     {0x16, 0x7ffefbff, 0xd39ffffb, 0xe3},
     SEEN_AVX512,
     ATTNRES_LEVEL_SCALAR},
    {"Haswell, system without xsave",
     {0xd, 0x7ffafbff & ~OSXSAVE, 0x000027ab, 0x7},
     SEEN_AVX2,
     ATTNRES_LEVEL_SCALAR},
    {"Skylake-X, system without xsave, stale XCR0",
     {0x16, 0x7ffefbff & ~OSXSAVE, 0xd39ffffb, 0xff},
     SEEN_AVX512,
     ATTNRES_LEVEL_SCALAR},
    {"Haswell, AVX masked by the system (XCR0 = 3)",
     {0xd, 0x7ffafbff, 0x000027ab, 0x3},
     SEEN_AVX2,
     ATTNRES_LEVEL_SCALAR},
    {"ymm saved, xmm not (nonsense)",
     {0xd, 0x7ffafbff, 0x000027ab, 0x5},
     SEEN_AVX2,
     ATTNRES_LEVEL_SCALAR},
    {"virtual machine: AVX2 without AVX",
     {0xd, 0x7ffafbff & ~AVX, 0x000027ab, 0x7},
     (SEEN_AVX2 & ~ATTNRES_FEATURE(AVX)) | YMM,
     ATTNRES_LEVEL_SCALAR},
    {"virtual machine: FMA masked off",
     {0xd, 0x7ffafbff & ~FMA, 0x000027ab, 0x7},
     (SEEN_AVX2 & ~ATTNRES_FEATURE(FMA)) | YMM,
     ATTNRES_LEVEL_SCALAR},
    {"virtual machine: F16C masked off",
     {0xd, 0x7ffafbff & ~F16C, 0x000027ab, 0x7},
     (SEEN_AVX2 & ~ATTNRES_FEATURE(F16C)) | YMM,
     ATTNRES_LEVEL_SCALAR},
    {"virtual machine: AVX-512 without AVX2",
     {0x16, 0x7ffefbff, 0xd39ffffb & ~AVX2, 0xff},
     (SEEN_AVX512 & ~ATTNRES_FEATURE(AVX2)) | ZMM,
     ATTNRES_LEVEL_SCALAR},
    {"virtual machine: AVX512BW masked off",
     {0x16, 0x7ffefbff, 0xd39ffffb & ~AVX512BW, 0xff},
     (SEEN_AVX512 & ~ATTNRES_FEATURE(AVX512BW)) | ZMM,
     ATTNRES_LEVEL_AVX2},
    {"virtual machine: AVX512DQ masked off",
     {0x16, 0x7ffefbff, 0xd39ffffb & ~AVX512DQ, 0xff},
     (SEEN_AVX512 & ~ATTNRES_FEATURE(AVX512DQ)) | ZMM,
     ATTNRES_LEVEL_AVX2},
    {"virtual machine: AVX512VL masked off",
     {0x16, 0x7ffefbff, 0xd39ffffb & ~AVX512VL, 0xff},
     (SEEN_AVX512 & ~ATTNRES_FEATURE(AVX512VL)) | ZMM,
     ATTNRES_LEVEL_AVX2},
    {"leaf 7 beyond the largest leaf",
     {0x6, 0x7ffefbff, 0xd39ffffb, 0xff},
     (SEEN_AVX2 & ~ATTNRES_FEATURE(AVX2)) | ZMM,
     ATTNRES_LEVEL_SCALAR},
};

START_TEST(recorded_machines_are_decoded)
{
    const machine *one = &machines[_i];
    const uint32_t found = attnres_x86_decode(&one->cpuid);
    ck_assert_msg(found == one->features, "%s: features %#x, expected %#x", one->name, found,
                  one->features);
}
END_TEST

#if defined(__x86_64__) || defined(__i386__)

/* The highest level that this build has, this architecture knows, and the machine could run. */
static attnres_level best_of(attnres_level most)
{
    attnres_level_report reports[8];
    const size_t count = attnres_level_reports(reports, 8);
    attnres_level best = ATTNRES_LEVEL_SCALAR;
    for (size_t i = 0; i < count; i++) {
        best = reports[i].built && reports[i].level <= most ? reports[i].level : best;
    }
    return best;
}

START_TEST(recorded_machines_get_their_level)
{
    const machine *one = &machines[_i];
    char reason[256] = "";
    const attnres_level level = attnres_choose_level(one->features, NULL, reason, sizeof reason);
    ck_assert_msg(level == best_of(one->level), "%s: %s", one->name, reason);
    ck_assert_ptr_nonnull(strstr(reason, attnres_level_name(level)));
}
END_TEST

typedef struct wish {
    uint32_t features;
    const char *environment;
    attnres_level level;
    const char *reason; /* part of it */
} wish;

#define EVERYTHING ATTNRES_NEEDS_AVX512

static const wish wishes[] = {
    {EVERYTHING, NULL, ATTNRES_LEVEL_AVX512, "highest level"},
    {EVERYTHING, "", ATTNRES_LEVEL_AVX512, "highest level"},
    {EVERYTHING, "scalar", ATTNRES_LEVEL_SCALAR, "lowered by ATTNRES_LEVEL=scalar"},
    {EVERYTHING, "avx2", ATTNRES_LEVEL_AVX2, "ATTNRES_LEVEL=avx2"},
    {EVERYTHING, "avx512", ATTNRES_LEVEL_AVX512, "ATTNRES_LEVEL=avx512"},
    {EVERYTHING, "neon", ATTNRES_LEVEL_AVX512, "ATTNRES_LEVEL=neon is not a level here"},
    {EVERYTHING, "AVX2", ATTNRES_LEVEL_AVX512, "ATTNRES_LEVEL=AVX2 is not a level here"},
    {EVERYTHING, "avx2 ", ATTNRES_LEVEL_AVX512, "is not a level here"},
    {EVERYTHING, "0", ATTNRES_LEVEL_AVX512, "is not a level here"},
    {ATTNRES_NEEDS_AVX2, "avx512", ATTNRES_LEVEL_AVX2, "does not lower"},
    {ATTNRES_NEEDS_AVX2, "avx2", ATTNRES_LEVEL_AVX2, "does not lower"},
    {ATTNRES_NEEDS_AVX2, "scalar", ATTNRES_LEVEL_SCALAR, "lowered by"},
    {0, "avx512", ATTNRES_LEVEL_SCALAR, "does not lower"},
    {0, "avx2", ATTNRES_LEVEL_SCALAR, "does not lower"},
    {0, "scalar", ATTNRES_LEVEL_SCALAR, "ATTNRES_LEVEL=scalar"},
    {0, "fast", ATTNRES_LEVEL_SCALAR, "ATTNRES_LEVEL=fast is not a level here"},
};

START_TEST(environment_only_lowers)
{
    const wish *one = &wishes[_i];
    char reason[256] = "";
    const attnres_level level =
        attnres_choose_level(one->features, one->environment, reason, sizeof reason);
    ck_assert_msg(level == best_of(one->level), "%s with %#x: %s", one->environment, one->features,
                  reason);
    if (best_of(ATTNRES_LEVEL_AVX512) == ATTNRES_LEVEL_AVX512) { /* else the reasons shift */
        ck_assert_msg(strstr(reason, one->reason) != NULL, "'%s' lacks '%s'", reason, one->reason);
    }
}
END_TEST

#endif

/* A long value may be cut, never overrun. */
START_TEST(reason_fits)
{
    char text[4096], reason[64];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memset(reason, '!', sizeof reason);
    attnres_choose_level(0, text, reason, sizeof reason - 1);
    ck_assert_uint_lt(strlen(reason), sizeof reason - 1);
    ck_assert_int_eq(reason[sizeof reason - 1], '!');
}
END_TEST

START_TEST(arm_hwcap_is_decoded)
{
    ck_assert_uint_eq(attnres_arm_decode(0), 0);
    ck_assert_uint_eq(attnres_arm_decode(1), 0); /* FP alone */
    ck_assert_uint_eq(attnres_arm_decode(2), ATTNRES_FEATURE(ASIMD));
    ck_assert_uint_eq(attnres_arm_decode(0xfffd), 0);
    ck_assert_uint_eq(attnres_arm_decode(~(uint64_t)0), ATTNRES_FEATURE(ASIMD));
}
END_TEST

#if (defined(__x86_64__) || defined(__i386__)) && (defined(__GNUC__) && !defined(__clang__))

/* Ours against the compiler's probe, on this machine. (clang 14 does not know all the names.) */
START_TEST(detection_agrees_with_the_compiler)
{
    const uint32_t found = attnres_cpu_detect();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                     __builtin_cpu_supports("f16c");
    const int avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512vl");
    ck_assert_int_eq((found & ATTNRES_NEEDS_AVX2) == ATTNRES_NEEDS_AVX2, avx2);
    ck_assert_int_eq((found & ATTNRES_NEEDS_AVX512) == ATTNRES_NEEDS_AVX512, avx512);
}
END_TEST

#endif

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

Suite *cpu_suite(void)
{
    Suite *suite = suite_create("cpu");
    TCase *detection = tcase_create("detection");
    tcase_add_loop_test(detection, recorded_machines_are_decoded, 0, COUNT(machines));
    tcase_add_test(detection, arm_hwcap_is_decoded);
#if (defined(__x86_64__) || defined(__i386__)) && (defined(__GNUC__) && !defined(__clang__))
    tcase_add_test(detection, detection_agrees_with_the_compiler);
#endif
    suite_add_tcase(suite, detection);

    TCase *choice = tcase_create("choice");
#if defined(__x86_64__) || defined(__i386__)
    tcase_add_loop_test(choice, recorded_machines_get_their_level, 0, COUNT(machines));
    tcase_add_loop_test(choice, environment_only_lowers, 0, COUNT(wishes));
#endif
    tcase_add_test(choice, reason_fits);
    suite_add_tcase(suite, choice);
    return suite;
}
