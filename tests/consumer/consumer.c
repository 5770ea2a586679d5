/* What a program outside the tree looks like (C99, and C++ as well): one block read whose answer
 * is known. A query of zeros gives every source the same weight, and with four sources of small
 * whole numbers every step is exact. */
#include <attnres.h>

#include <stdio.h>
#include <string.h>

#define WIDTH 3
#define LAYERS 5
#define BLOCK_SIZE 2
#define SOURCES 4

static const float embedding[WIDTH] = {8, -4, 0};
static const float outputs[LAYERS][WIDTH] = {
    {1, 2, 3}, {3, 2, 1}, {4, 0, -4}, {0, 4, 4}, {20, 8, 4}};
static const float query[WIDTH] = {0, 0, 0};

static const float expected_sources[SOURCES][WIDTH] = {
    {8, -4, 0}, {4, 4, 4}, {4, 4, 0}, {20, 8, 4}};
static const float expected_retrieved[WIDTH] = {9, 3, 2};
static const float expected_weights[SOURCES] = {0.25f, 0.25f, 0.25f, 0.25f};

int main(void)
{
    float retrieved[WIDTH], weights[SOURCES], sources[SOURCES][WIDTH];
    attnres_rows output_rows[LAYERS];
    attnres_rows_out source_rows[SOURCES];
    attnres_shape shape;
    attnres_block_read_args args;
    attnres_status status;
    int i;

    for (i = 0; i < LAYERS; i++) {
        output_rows[i].data = outputs[i];
        output_rows[i].stride = WIDTH;
    }
    for (i = 0; i < SOURCES; i++) {
        source_rows[i].data = sources[i];
        source_rows[i].stride = WIDTH;
    }
    shape.dtype = ATTNRES_F32;
    shape.tokens = 1;
    shape.width = WIDTH;
    memset(&args, 0, sizeof args); /* zero means absent, or the default */
    args.embedding.data = embedding;
    args.outputs = output_rows;
    args.layers = LAYERS;
    args.block_size = BLOCK_SIZE;
    args.query = query;
    args.eps = 1e-6;
    args.retrieved.data = retrieved;
    args.weights.data = weights;
    args.sources = source_rows;
    args.source_count = attnres_source_count(LAYERS, BLOCK_SIZE);
    status = attnres_block_read(&shape, &args);
    if (status != ATTNRES_OK) {
        fprintf(stderr, "consumer: %s\n", attnres_status_string(status));
        return 1;
    }
    if (memcmp(retrieved, expected_retrieved, sizeof retrieved) != 0 ||
        memcmp(weights, expected_weights, sizeof weights) != 0 ||
        memcmp(sources, expected_sources, sizeof sources) != 0) {
        fprintf(stderr, "consumer: wrong answer, retrieved %g %g %g\n", (double)retrieved[0],
                (double)retrieved[1], (double)retrieved[2]);
        return 1;
    }
    printf("attnres %s, level %s\n", attnres_version(),
           attnres_level_name(attnres_current_level()));
    return 0;
}
