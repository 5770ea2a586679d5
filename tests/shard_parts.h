/* The cases that shard_suite() is made of, where they have a file of their own. */
#ifndef ATTNRES_TESTS_SHARD_PARTS_H
#define ATTNRES_TESTS_SHARD_PARTS_H

#include <check.h>

TCase *shard_ranks_case(void);
TCase *shard_refusals_case(void);

#endif
