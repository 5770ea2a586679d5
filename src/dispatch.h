/* Which kernels run. */
#ifndef ATTNRES_DISPATCH_H
#define ATTNRES_DISPATCH_H

#include <attnres.h>

#include "kernels.h"

/* Kernels by dtype; index with an attnres_dtype. */
struct attnres_table {
    struct attnres_kernels of[5];
};

/* The table in use. The first call makes it; every later one is an atomic load. */
const struct attnres_table *attnres_dispatch(void);

/* Fills a table for a level: scalar first, each higher built level up to this one over it. Pure. */
void attnres_table_fill(struct attnres_table *table, attnres_level level);

/* How the level is chosen, for a machine with these features and this value of ATTNRES_LEVEL
 * (NULL: unset). Pure. The reason is written as one line. */
attnres_level attnres_choose_level(unsigned features, const char *environment, char *reason,
                                   size_t reason_size);

#endif
