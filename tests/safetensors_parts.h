/* The cases that safetensors_suite() is made of, where they have a file of their own. */
#ifndef ATTNRES_TESTS_SAFETENSORS_PARTS_H
#define ATTNRES_TESTS_SAFETENSORS_PARTS_H

#include <check.h>

TCase *safetensors_write_case(void);

#endif
