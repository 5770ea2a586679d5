/* The tables of kernels, switching levels, and the first call of a process. */
#define _XOPEN_SOURCE 700

#include "fresh.h"
#include "levels.h"
#include "suites.h"

#include "dispatch.h"

#include <attnres.h>

#include <stdlib.h>
#include <string.h>

/* ---- Tables ---------------------------------------------------------------------------- */

typedef void (*any_kernel)(void);

static int kernels_in(const struct attnres_table *table, any_kernel *list)
{
    int count = 0;
#define ATTNRES_LIST(kernel, dtype, level, arguments)                                              \
    list[count++] = (any_kernel)table->of[d].kernel;
    for (int d = ATTNRES_F32; d <= ATTNRES_BF16; d++) {
        ATTNRES_KERNELS(ATTNRES_LIST, , )
    }
    return count;
}

enum { KERNELS_MAX = 128 };

/* Whatever was in the table before, and however often it is filled. */
START_TEST(table_is_full_and_its_filling_pure)
{
    struct attnres_table table, again;
    any_kernel kernels[KERNELS_MAX];
    attnres_level_report reports[8];
    const size_t levels = attnres_level_reports(reports, 8);
    for (size_t i = 0; i < levels; i++) {
        memset(&table, 0, sizeof table);
        memset(&again, 0, sizeof again);
        attnres_table_fill(&table, reports[i].level);
        attnres_table_fill(&again, reports[levels - 1 - i].level);
        attnres_table_fill(&again, ATTNRES_LEVEL_SCALAR);
        attnres_table_fill(&again, reports[i].level);
        ck_assert_mem_eq(&table, &again, sizeof table);
        const int count = kernels_in(&table, kernels);
        ck_assert_int_ge(count, 20);
        for (int a = 0; a < count; a++) {
            ck_assert(kernels[a] != NULL);
            for (int b = 0; b < a; b++) {
                ck_assert_msg(kernels[a] != kernels[b], "one kernel in two slots");
            }
        }
    }
}
END_TEST

START_TEST(higher_levels_replace_every_kernel)
{
    struct attnres_table lower, higher;
    any_kernel lower_kernels[KERNELS_MAX], higher_kernels[KERNELS_MAX];
    attnres_level_report reports[8];
    const size_t levels = attnres_level_reports(reports, 8);
    memset(&lower, 0, sizeof lower);
    memset(&higher, 0, sizeof higher);
    for (size_t i = 1; i < levels; i++) {
        attnres_table_fill(&lower, reports[i - 1].level);
        attnres_table_fill(&higher, reports[i].level);
        const int count = kernels_in(&lower, lower_kernels);
        kernels_in(&higher, higher_kernels);
        for (int k = 0; k < count; k++) {
            ck_assert_int_eq(lower_kernels[k] != higher_kernels[k], reports[i].built);
        }
    }
}
END_TEST

/* ---- The public side ------------------------------------------------------------------- */

START_TEST(level_can_be_lowered_and_raised_again)
{
    const attnres_level first = attnres_current_level();
    const char *first_reason = attnres_level_reason();
    for (int i = 0; i < levels_count(); i++) {
        levels_use(i);
        if (levels_at(i) != first) {
            ck_assert_str_eq(attnres_level_reason(), "set by attnres_set_level");
        }
    }
    ck_assert_int_eq(attnres_set_level(first), ATTNRES_OK);
    ck_assert_str_eq(attnres_level_reason(), first_reason);
}
END_TEST

START_TEST(level_that_cannot_run_is_refused)
{
    attnres_level_report reports[8];
    const size_t count = attnres_level_reports(reports, 8);
    const attnres_level before = attnres_current_level();
    int here[4] = {0};
    for (size_t i = 0; i < count; i++) {
        here[reports[i].level] = reports[i].usable;
    }
    for (int level = 0; level < 4; level++) {
        if (!here[level]) {
            ck_assert_int_eq(attnres_set_level((attnres_level)level), ATTNRES_ERROR_LEVEL);
        }
    }
    ck_assert_int_eq(attnres_set_level((attnres_level)4), ATTNRES_ERROR_LEVEL);
    ck_assert_int_eq(attnres_set_level((attnres_level)-1), ATTNRES_ERROR_LEVEL);
    ck_assert_int_eq(attnres_current_level(), before);
}
END_TEST

START_TEST(names_and_levels_match)
{
    for (int i = 0; i < 4; i++) {
        attnres_level level = (attnres_level)9;
        const char *name = attnres_level_name((attnres_level)i);
        ck_assert_int_eq(attnres_level_from_name(name, &level), ATTNRES_OK);
        ck_assert_int_eq(level, i);
    }
    attnres_level level = ATTNRES_LEVEL_NEON;
    ck_assert_int_eq(attnres_level_from_name("sse2", &level), ATTNRES_ERROR_LEVEL);
    ck_assert_int_eq(attnres_level_from_name("", &level), ATTNRES_ERROR_LEVEL);
    ck_assert_int_eq(attnres_level_from_name(NULL, &level), ATTNRES_ERROR_LEVEL);
    ck_assert_int_eq(attnres_level_from_name("scalar", NULL), ATTNRES_ERROR_LEVEL);
    ck_assert_int_eq(level, ATTNRES_LEVEL_NEON);
    ck_assert_str_eq(attnres_level_name((attnres_level)4), "unknown");
    ck_assert_str_eq(attnres_level_name((attnres_level)-1), "unknown");
}
END_TEST

/* Lists are cut at the capacity, and nothing is written beyond it. */
START_TEST(reports_respect_the_capacity)
{
    attnres_level_report reports[8];
    attnres_feature features[32];
    const size_t levels = attnres_level_reports(NULL, 0), count = attnres_features(NULL, 0);
    ck_assert_uint_ge(levels, 1);
    ck_assert_uint_le(count, 32);
    memset(reports, 0x5a, sizeof reports);
    memset(features, 0x5a, sizeof features);
    ck_assert_uint_eq(attnres_level_reports(reports, 1), levels);
    ck_assert_uint_eq(attnres_features(features, 1), count);
    ck_assert_int_eq(reports[0].level, ATTNRES_LEVEL_SCALAR);
    ck_assert_int_eq(reports[0].usable, 1);
    ck_assert_str_eq(reports[0].why, "usable");
    ck_assert_int_eq(reports[1].built, 0x5a5a5a5a);
    ck_assert_int_eq(features[1].present, 0x5a5a5a5a);
}
END_TEST

/* ---- The first call ---------------------------------------------------------------------- */

START_TEST(sixteen_threads_race_the_first_call)
{
    const int runs = 20;
    for (int i = 0; i < runs; i++) {
        ck_assert_int_eq(fresh_run("race", NULL), 0);
    }
}
END_TEST

START_TEST(first_call_may_come_from_a_constructor)
{
    ck_assert_int_eq(fresh_run("constructor", NULL), 0);
}
END_TEST

/* The variable still acts, and is asked once. */
START_TEST(environment_lowers_a_fresh_process)
{
    const int unset = fresh_run("level", NULL);
    ck_assert_int_ge(unset, 16);
    ck_assert_int_eq(fresh_run("level", "scalar"), 16 + ATTNRES_LEVEL_SCALAR);
    ck_assert_int_eq(fresh_run("level", "nonsense"), unset);
    ck_assert_int_eq(fresh_run("level", ""), unset);
    for (int i = 0; i < levels_count(); i++) {
        ck_assert_int_eq(fresh_run("level", levels_name(i)), 16 + (int)levels_at(i));
    }
    const attnres_level before = attnres_current_level();
    setenv("ATTNRES_LEVEL", "scalar", 1);
    ck_assert_int_eq(attnres_current_level(), before);
    unsetenv("ATTNRES_LEVEL");
}
END_TEST

Suite *dispatch_suite(void)
{
    Suite *suite = suite_create("dispatch");
    TCase *tables = tcase_create("tables");
    tcase_add_test(tables, table_is_full_and_its_filling_pure);
    tcase_add_test(tables, higher_levels_replace_every_kernel);
    suite_add_tcase(suite, tables);

    TCase *levels = tcase_create("levels");
    tcase_add_checked_fixture(levels, levels_save, levels_restore);
    tcase_add_test(levels, level_can_be_lowered_and_raised_again);
    tcase_add_test(levels, level_that_cannot_run_is_refused);
    tcase_add_test(levels, names_and_levels_match);
    tcase_add_test(levels, reports_respect_the_capacity);
    suite_add_tcase(suite, levels);

    TCase *first = tcase_create("first call");
    tcase_set_timeout(first, 60);
    tcase_add_test(first, sixteen_threads_race_the_first_call);
    tcase_add_test(first, first_call_may_come_from_a_constructor);
    tcase_add_test(first, environment_lowers_a_fresh_process);
    suite_add_tcase(suite, first);
    return suite;
}
