/* What a call must leave alone besides memory: control registers and the state of old units. */
#include "elements.h"
#include "levels.h"
#include "problem.h"
#include "suites.h"

#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#define CONTROL_NAME "MXCSR"
#define STATUS_FLAGS 0x3fu

/* MXCSR without the flags that every operation may set. */
static uint64_t control_register(void)
{
    return _mm_getcsr() & ~STATUS_FLAGS;
}
#elif defined(__aarch64__)
#define CONTROL_NAME "FPCR"

static uint64_t control_register(void)
{
    uint64_t value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return value;
}
#else
#define CONTROL_NAME "rounding mode"

static uint64_t control_register(void)
{
    return (uint64_t)fegetround();
}
#endif

static void read_everything(attnres_dtype dtype, inputs_kind kind)
{
    problem it;
    const problem_size size = {dtype, 2, 100, 4, kind};
    problem_open(&it, size, inputs_stream(49, (uint64_t)dtype, (uint64_t)kind));
    it.args.eps = kind == INPUTS_TINY ? 0 : 1e-6;
    problem_run(&it);
    problem_close(&it);
}

/* _i is level and dtype. */
START_TEST(control_registers_are_left_alone)
{
    levels_use(_i / ELEMENTS_DTYPES);
    const uint64_t before = control_register();
    for (int kind = 0; kind < INPUTS_KINDS; kind++) {
        read_everything(elements_dtype(_i % ELEMENTS_DTYPES), (inputs_kind)kind);
        ck_assert_msg(control_register() == before, CONTROL_NAME " changed from %#llx to %#llx",
                      (unsigned long long)before, (unsigned long long)control_register());
    }
    ck_assert_int_eq(fegetround(), FE_TONEAREST);
}
END_TEST

/* Code that used MMX and did not clean up makes the caller's next long double a NaN. */
START_TEST(long_double_works_afterwards)
{
    levels_use(_i / ELEMENTS_DTYPES);
    read_everything(elements_dtype(_i % ELEMENTS_DTYPES), INPUTS_ORDINARY);
    volatile long double sum = 0, one = 1;
    for (int i = 0; i < 16; i++) {
        sum = sum + one / 3;
    }
    ck_assert(fabsl(sum - 16.0L / 3) < 1e-12L);
}
END_TEST

/* Detection, choice of a level and switching set nothing either. */
START_TEST(subnormals_are_numbers)
{
    volatile float tiny = 0x1p-140f, half = 0.5f;
    volatile double small = 0x1p-1060;
    levels_use(_i);
    read_everything(ATTNRES_F32, INPUTS_TINY);
    ck_assert(tiny * half == 0x1p-141f);
    ck_assert(small * 0.5 == 0x1p-1061);
}
END_TEST

Suite *environment_suite(void)
{
    Suite *suite = suite_create("environment");
    const int all = ELEMENTS_DTYPES * levels_count();
    TCase *registers = tcase_create("registers");
    tcase_add_checked_fixture(registers, levels_save, levels_restore);
    tcase_add_loop_test(registers, control_registers_are_left_alone, 0, all);
    tcase_add_loop_test(registers, long_double_works_afterwards, 0, all);
    tcase_add_loop_test(registers, subnormals_are_numbers, 0, levels_count());
    suite_add_tcase(suite, registers);
    return suite;
}
