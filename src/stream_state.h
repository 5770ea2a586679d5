/* What a stream consists of. */
#ifndef ATTNRES_STREAM_STATE_H
#define ATTNRES_STREAM_STATE_H

#include <attnres.h>

#include <stdint.h>

/* The prefix lives in the slot behind the bank's last row, so a push moves nothing: it counts that
 * slot to the bank. Slots are block-major: [capacity + 1][tokens][width] of the dtype. */
struct attnres_stream {
    uint64_t magic;
    attnres_stream_config config;
    const char *memory; /* of the caller, all of it */
    size_t bytes;
    attnres_rows *slots; /* [capacity + 1] */
    unsigned char *rows; /* slot 0 */
    size_t slot_bytes;
    void *total; /* ATTNRES_ROUND_ONCE: the prefix in accumulators, else NULL */
    size_t total_bytes;
    size_t bank_count;
    int begun, has_prefix;
};

#define ATTNRES_STREAM_MAGIC 0x6174746e72657331u /* "attnres1" */

/* Whether this is a stream, and begin was called if `begun`. */
attnres_status attnres_stream_check(const attnres_stream *stream, int begun);

#endif
