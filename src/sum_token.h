/* Adding rows up, for every call that does. */
#ifndef ATTNRES_SUM_TOKEN_H
#define ATTNRES_SUM_TOKEN_H

#include <attnres.h>

#include "kernels.h"

/* out = copy = first + list[0] + ... for token t, in that order, rounded once. first.data may be
 * NULL if there is a list; out or copy may be NULL. */
void attnres_sum_token(const struct attnres_kernels *kernels, const attnres_shape *shape,
                       attnres_rows first, const attnres_rows *list, size_t count, size_t t,
                       void *out, void *copy);

#endif
