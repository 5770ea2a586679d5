/* A stream in guarded memory, and outputs to feed it. */
#ifndef ATTNRES_TESTS_FEED_H
#define ATTNRES_TESTS_FEED_H

#include <attnres.h>

#include <check.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

typedef struct feed {
    attnres_stream_config config;
    buffer memory;
    attnres_stream *stream;
} feed;

/* `shift` bytes away from the end of a page: any alignment. */
void feed_open(feed *it, attnres_stream_config config, size_t shift);
void feed_close(feed *it);

/* The whole export; the caller's to free. */
unsigned char *feed_bytes(const feed *it, size_t *size);

/* Fails the test unless both streams are in the same state (NaN equals NaN). */
void feed_check_same(const feed *it, const feed *other, const char *what);

/* Rows of the stream's shape, one set after the other: set 0 for the embedding. */
typedef struct feed_rows {
    attnres_shape shape;
    unsigned char *data;
    size_t stride;
    attnres_rows *sets; /* [count] */
} feed_rows;

void feed_rows_open(feed_rows *it, attnres_shape shape, size_t count, size_t spread,
                    uint64_t stream);
void feed_rows_close(feed_rows *it);
void *feed_row(const feed_rows *it, size_t set, size_t t);

/* Fails the test, and says why, unless the status is OK. */
#define FEED_TRY(expression)                                                                       \
    do {                                                                                           \
        const attnres_status feed_status = (expression);                                           \
        ck_assert_msg(feed_status == ATTNRES_OK, #expression ": %s",                               \
                      attnres_status_string(feed_status));                                         \
    } while (0)

#endif
