/* Memory, or the end: not an assertion of Check's, since it is also called outside of tests. */
#ifndef ATTNRES_TESTS_ALLOCATE_H
#define ATTNRES_TESTS_ALLOCATE_H

#include <stdlib.h>

/* Zeroed; never NULL, also for nothing at all. */
static inline void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        abort();
    }
    return memory;
}

#endif
