/* What the files of cli_suite() share. */
#ifndef ATTNRES_TESTS_CLI_PARTS_H
#define ATTNRES_TESTS_CLI_PARTS_H

#include <attnres.h>

#include <check.h>

TCase *cli_read_case(void);

/* Writes an input for `attnres read`: batch 1, sequence 2, width 3, small numbers that every
 * dtype holds exactly. */
void cli_write_sample(const char *path, attnres_dtype dtype, size_t layers);

#endif
