/* The cases that two_phase_suite() is made of, where they have a file of their own. */
#ifndef ATTNRES_TESTS_TWO_PHASE_PARTS_H
#define ATTNRES_TESTS_TWO_PHASE_PARTS_H

#include <check.h>

TCase *two_phase_refusals_case(void);

#endif
