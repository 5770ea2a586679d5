#include "levels.h"

#include <check.h>
#include <stdio.h>

enum { REPORTS_MAX = 8 };

static attnres_level saved;

int levels_count(void)
{
    attnres_level_report reports[REPORTS_MAX];
    const size_t count = attnres_level_reports(reports, REPORTS_MAX);
    int usable = 0;
    for (size_t i = 0; i < count; i++) {
        usable += reports[i].usable;
    }
    return usable;
}

attnres_level levels_at(int i)
{
    attnres_level_report reports[REPORTS_MAX];
    const size_t count = attnres_level_reports(reports, REPORTS_MAX);
    for (size_t r = 0; r < count; r++) {
        if (reports[r].usable && i-- == 0) {
            return reports[r].level;
        }
    }
    ck_abort_msg("there is no such level");
    return ATTNRES_LEVEL_SCALAR;
}

const char *levels_name(int i)
{
    return attnres_level_name(levels_at(i));
}

void levels_use(int i)
{
    const attnres_level level = levels_at(i);
    ck_assert_int_eq(attnres_set_level(level), ATTNRES_OK);
    ck_assert_int_eq(attnres_current_level(), level);
}

void levels_save(void)
{
    saved = attnres_current_level();
}

void levels_restore(void)
{
    ck_assert_int_eq(attnres_set_level(saved), ATTNRES_OK);
}

void levels_print(void)
{
    attnres_level_report reports[REPORTS_MAX];
    const size_t count = attnres_level_reports(reports, REPORTS_MAX);
    for (size_t i = 0; i < count; i++) {
        printf("level %-7s %s%s\n", attnres_level_name(reports[i].level),
               reports[i].usable ? "tested" : "SKIPPED: ", reports[i].usable ? "" : reports[i].why);
    }
}
