#include "demo_examples.h"

#include "oracle.h"

#include <attnres.h>

#include <math.h>
#include <stdio.h>

#define MOST_LAYERS 8
#define MOST_SOURCES 4
#define MOST_NUMBERS 8 /* tokens * width */

typedef struct example {
    const char *text;
    size_t tokens, width, layers, block_size;
    float embedding[MOST_NUMBERS];
    float outputs[MOST_LAYERS][MOST_NUMBERS];
    float query[MOST_NUMBERS];
    size_t source_count;
    float sources[MOST_SOURCES][MOST_NUMBERS]; /* what the block sources must be */
} example;

/* The first three are the seed's, with values of ours where it gives shapes; the last is its
 * grouping example. */
static const example examples[] = {
    {"no previous outputs: the embedding is the only source and comes back unchanged",
     1,
     2,
     0,
     2,
     {1, 0},
     {{0}},
     {1, 0.5f},
     1,
     {{1, 0}}},
    {"three outputs, blocks of two: embedding, one completed block, a partial sum",
     1,
     2,
     3,
     2,
     {1, 0},
     {{0.5f, 1}, {0.25f, -1}, {-1, 2}},
     {1, 0.5f},
     3,
     {{1, 0}, {0.75f, 0}, {-1, 2}}},
    {"four outputs, two tokens, blocks of two: an exact boundary, so no partial sum",
     2,
     2,
     4,
     2,
     {1, 0, 0, 1},
     {{1, 2, -1, 0.5f}, {1, -2, 0, 0.5f}, {0.5f, 0.5f, 2, 2}, {0.5f, 1.5f, -1, 1}},
     {1, 0.5f},
     3,
     {{1, 0, 0, 1}, {2, 0, -1, 1}, {1, 2, 1, 3}}},
    {"outputs 1, 2, 3, 4 in blocks of three after embedding 5: sources 5, 6, 4",
     1,
     1,
     4,
     3,
     {5},
     {{1}, {2}, {3}, {4}},
     {0.5f},
     3,
     {{5}, {6}, {4}}},
};

static void print_row(const char *name, const float *values, size_t count)
{
    printf("    %-10s [", name);
    for (size_t i = 0; i < count; i++) {
        printf("%s%.6g", i ? ", " : "", (double)values[i]);
    }
    printf("]\n");
}

/* Results against the expected sources, and against the oracle. */
static int agrees(const example *e, const float *retrieved, const float *weights,
                  float (*sources)[MOST_NUMBERS])
{
    double result[MOST_NUMBERS], magnitude[MOST_NUMBERS], oracle_weights[MOST_SOURCES];
    int good = 1;
    for (size_t t = 0; t < e->tokens; t++) {
        const void *rows[MOST_SOURCES];
        for (size_t s = 0; s < e->source_count; s++) {
            rows[s] = sources[s] + t * e->width;
            for (size_t i = t * e->width; i < (t + 1) * e->width; i++) {
                good &= sources[s][i] == e->sources[s][i];
            }
        }
        attnres_cli_oracle_read(ATTNRES_F32, e->width, rows, e->source_count, e->query, 1e-6,
                                result, oracle_weights, magnitude);
        good &= attnres_cli_oracle_error(ATTNRES_F32, e->width, e->source_count,
                                         retrieved + t * e->width, result, magnitude) <= 1;
        for (size_t s = 0; s < e->source_count; s++) {
            good &= fabs((double)weights[s * e->tokens + t] - oracle_weights[s]) < 1e-6;
        }
    }
    return good;
}

static int run_example(const example *e)
{
    const attnres_shape shape = {ATTNRES_F32, e->tokens, e->width};
    const size_t numbers = e->tokens * e->width;
    float retrieved[MOST_NUMBERS], weights[MOST_SOURCES * 2];
    float sources[MOST_SOURCES][MOST_NUMBERS];
    attnres_rows outputs[MOST_LAYERS];
    attnres_rows_out source_rows[MOST_SOURCES];

    for (size_t i = 0; i < e->layers; i++) {
        outputs[i] = (attnres_rows){e->outputs[i], 0};
    }
    for (size_t s = 0; s < MOST_SOURCES; s++) {
        source_rows[s] = (attnres_rows_out){sources[s], 0};
    }
    const attnres_block_read_args args = {
        .embedding = {e->embedding, 0},
        .outputs = outputs,
        .layers = e->layers,
        .block_size = e->block_size,
        .query = e->query,
        .eps = 1e-6,
        .retrieved = {retrieved, 0},
        .weights = {.data = weights},
        .sources = source_rows,
        .source_count = attnres_source_count(e->layers, e->block_size),
    };
    const attnres_status status = attnres_block_read(&shape, &args);
    const int good = status == ATTNRES_OK && args.source_count == e->source_count &&
                     agrees(e, retrieved, weights, sources);

    printf("%s\n", e->text);
    if (status != ATTNRES_OK) {
        printf("    %s\n", attnres_status_string(status));
    } else {
        for (size_t s = 0; s < args.source_count; s++) {
            print_row("source", sources[s], numbers);
        }
        print_row("weights", weights, args.source_count * e->tokens);
        print_row("retrieved", retrieved, numbers);
    }
    printf("    %s\n", good ? "as expected" : "NOT as expected");
    return good;
}

int attnres_cli_demo_examples(void)
{
    int bad = 0;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        bad += !run_example(&examples[i]);
    }
    return bad;
}
