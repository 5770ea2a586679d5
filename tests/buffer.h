/* Memory between two pages that cannot be touched: what reads or writes past an end dies there.
 * The rest of the pages is filled with a pattern, to see writes that stay inside of them. */
#ifndef ATTNRES_TESTS_BUFFER_H
#define ATTNRES_TESTS_BUFFER_H

#include <stddef.h>

typedef enum buffer_place { BUFFER_AT_END, BUFFER_AT_START } buffer_place;

typedef struct buffer {
    unsigned char *map;
    size_t map_bytes;
    unsigned char *pages; /* what may be touched */
    size_t capacity;
    unsigned char *data; /* the array, and its size */
    size_t bytes;
} buffer;

/* Room for arrays of up to `capacity` bytes. */
void buffer_open(buffer *memory, size_t capacity);
void buffer_close(buffer *memory);

/* Puts an array of `bytes` flush to the last (or first) byte, `gap` bytes away from it, everything
 * filled with the pattern. Returns the array. */
void *buffer_array(buffer *memory, buffer_place place, size_t gap, size_t bytes);

/* Whether nothing around the array was written; with `all`, also nothing in it. */
int buffer_is_untouched(const buffer *memory, int all);

#endif
