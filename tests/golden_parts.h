/* The cases that golden_suite() is made of, where they have a file of their own. */
#ifndef ATTNRES_TESTS_GOLDEN_PARTS_H
#define ATTNRES_TESTS_GOLDEN_PARTS_H

#include <check.h>

TCase *golden_k3_case(void);

#endif
