/* The cases that stream_suite() is made of, where they have a file of their own. */
#ifndef ATTNRES_TESTS_STREAM_PARTS_H
#define ATTNRES_TESTS_STREAM_PARTS_H

#include <check.h>

TCase *stream_bytes_case(void);
TCase *stream_misuse_case(void);
TCase *stream_setup_case(void);

#endif
