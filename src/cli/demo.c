/* `attnres demo`: the main job without any file. */
#define _XOPEN_SOURCE 700

#include "cli.h"
#include "demo_examples.h"
#include "k3_measure.h"
#include "oracle.h"
#include "plain_read.h"
#include "synthetic.h"
#include "text.h"
#include "timing.h"

#include <attnres.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 7168
#define SOURCES 9
#define REPETITIONS 15
#define CALLS 4 /* per repetition */
#define MOST_LEVELS 8

/* One token of K3's largest read, in one dtype. */
typedef struct bench {
    attnres_dtype dtype;
    unsigned char *rows, *out, *plain_out;
    float *copy, *query;
    attnres_rows row_sets[SOURCES];
    const void *pointers[SOURCES];
} bench;

static int make_bench(bench *b, attnres_dtype dtype)
{
    const size_t row = WIDTH * attnres_dtype_size(dtype);
    uint64_t state = 1;
    b->dtype = dtype;
    b->rows = malloc(SOURCES * row);
    b->out = malloc(row);
    b->plain_out = malloc(row);
    b->copy = malloc(SOURCES * WIDTH * sizeof *b->copy);
    b->query = malloc(WIDTH * sizeof *b->query);
    if (!b->rows || !b->out || !b->plain_out || !b->copy || !b->query) {
        return -1;
    }
    attnres_cli_fill(dtype, ATTNRES_CLI_ORDINARY, &state, b->rows, SOURCES * WIDTH);
    attnres_cli_fill(ATTNRES_F32, ATTNRES_CLI_ORDINARY, &state, b->query, WIDTH);
    for (size_t i = 0; i < WIDTH; i++) {
        b->query[i] *= 0x1p-6f;
    }
    for (size_t s = 0; s < SOURCES; s++) {
        b->pointers[s] = b->rows + s * row;
        b->row_sets[s] = (attnres_rows){b->pointers[s], 0};
    }
    return 0;
}

static void free_bench(bench *b)
{
    free(b->rows);
    free(b->out);
    free(b->plain_out);
    free(b->copy);
    free(b->query);
}

static void read_plainly(const bench *b)
{
    if (b->dtype == ATTNRES_F32) {
        attnres_cli_plain_read_f32((const float *const *)b->pointers, SOURCES, b->query, WIDTH,
                                   1e-5, b->copy, (float *)(void *)b->plain_out);
    } else {
        attnres_cli_plain_read_bf16((const uint16_t *const *)b->pointers, SOURCES, b->query, WIDTH,
                                    1e-5, b->copy, (uint16_t *)(void *)b->plain_out);
    }
}

static attnres_status read_by_library(const bench *b)
{
    const attnres_shape shape = {b->dtype, 1, WIDTH};
    const attnres_read_args args = {.sources = b->row_sets,
                                    .source_count = SOURCES,
                                    .query = b->query,
                                    .eps = 1e-5,
                                    .retrieved = {b->out, 0}};
    return attnres_read(&shape, &args);
}

/* Whether library and plain C are both near the oracle. */
static int both_right(const bench *b)
{
    double *numbers = malloc((2 * WIDTH + SOURCES) * sizeof *numbers);
    int good = numbers != NULL && read_by_library(b) == ATTNRES_OK;
    if (good) {
        read_plainly(b);
        attnres_cli_oracle_read(b->dtype, WIDTH, b->pointers, SOURCES, b->query, 1e-5, numbers,
                                numbers + 2 * WIDTH, numbers + WIDTH);
        good = attnres_cli_oracle_error(b->dtype, WIDTH, SOURCES, b->out, numbers,
                                        numbers + WIDTH) <= 1 &&
               attnres_cli_oracle_error(b->dtype, WIDTH, SOURCES, b->plain_out, numbers,
                                        numbers + WIDTH) <= 1;
    }
    free(numbers);
    return good;
}

/* Plain C and every usable level in turns; prints one line. Returns 0, or 1 if results disagree. */
static int compare_speed(bench *b, const char *name, const attnres_level_report *levels,
                         size_t level_count)
{
    double times[MOST_LEVELS + 1][REPETITIONS];
    int bad = 0;

    for (int repetition = 0; repetition < REPETITIONS; repetition++) {
        double begin = attnres_cli_now();
        for (int call = 0; call < CALLS; call++) {
            read_plainly(b);
        }
        times[MOST_LEVELS][repetition] = attnres_cli_now() - begin;
        for (size_t i = 0; i < level_count; i++) {
            if (!levels[i].usable) {
                continue;
            }
            attnres_set_level(levels[i].level);
            if (repetition == 0) {
                bad |= !both_right(b);
            }
            begin = attnres_cli_now();
            for (int call = 0; call < CALLS; call++) {
                bad |= read_by_library(b) != ATTNRES_OK;
            }
            times[i][repetition] = attnres_cli_now() - begin;
        }
    }
    const double plain = attnres_cli_median(times[MOST_LEVELS], REPETITIONS);
    printf("    %-4s  plain C %.1f us", name, 1e6 * plain / CALLS);
    for (size_t i = 0; i < level_count; i++) {
        if (levels[i].usable) {
            const double time = attnres_cli_median(times[i], REPETITIONS);
            printf("; %s %.1f us (%.2f of plain C's time)", attnres_level_name(levels[i].level),
                   1e6 * time / CALLS, time / plain);
        }
    }
    printf("%s\n", bad ? "; results DISAGREE" : "");
    return bad;
}

static int speed_part(void)
{
    attnres_level_report levels[MOST_LEVELS];
    size_t level_count = attnres_level_reports(levels, MOST_LEVELS);
    const attnres_level chosen = attnres_current_level();
    bench f32 = {0}, bf16 = {0};
    int bad = 0;

    level_count = level_count < MOST_LEVELS ? level_count : MOST_LEVELS;
    if (make_bench(&f32, ATTNRES_F32) != 0 || make_bench(&bf16, ATTNRES_BF16) != 0) {
        bad = attnres_cli_fail("out of memory");
    } else {
        printf("\nOne read of %d sources, width %d, against plain C with double sums\n", SOURCES,
               WIDTH);
        bad = compare_speed(&f32, "f32", levels, level_count);
        bad |= compare_speed(&bf16, "bf16", levels, level_count);
    }
    attnres_set_level(chosen);
    free_bench(&f32);
    free_bench(&bf16);
    return bad;
}

/* One token at a time and a short prefill through a stack shaped like Kimi K3. */
static int k3_part(void)
{
    attnres_cli_k3_stack stack = {.dtype = ATTNRES_BF16,
                                  .layers = 93,
                                  .width = 7168,
                                  .block_size = 12,
                                  .seed = 1,
                                  .eps = 1e-5,
                                  .norm_eps = 1e-5};
    printf("\nKimi K3's shape: width 7168, 93 layers, block size 12, bf16\n");
    if (attnres_cli_k3_make(&stack) != 0) {
        return attnres_cli_fail("out of memory");
    }
    const int status = attnres_cli_k3_measure(&stack, 16, 9, 1);
    attnres_cli_k3_free(&stack);
    return status;
}

int attnres_cli_demo(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        printf("usage: attnres demo\n\nThe worked examples, the layer loop of a Kimi-K3-shaped "
               "stack, and a comparison with\nplain C, all checked. Exit status 1 if anything "
               "disagrees.\n");
        return ATTNRES_CLI_EXIT_OK;
    }
    if (argc > 1) {
        return attnres_cli_fail("demo takes no argument, but got '%s'", argv[1]);
    }
    printf("attnres %s, level %s: %s\n\n", attnres_version(),
           attnres_level_name(attnres_current_level()), attnres_level_reason());
    int bad = attnres_cli_demo_examples() != 0;
    const int k3 = k3_part();
    if (k3 == ATTNRES_CLI_EXIT_BAD_INPUT) {
        return k3;
    }
    const int speed = speed_part();
    if (speed == ATTNRES_CLI_EXIT_BAD_INPUT) {
        return speed;
    }
    bad |= k3 | speed;
    printf("\n%s\n", bad ? "something above DISAGREES" : "everything agrees");
    return bad ? ATTNRES_CLI_EXIT_DIFFERENCE : ATTNRES_CLI_EXIT_OK;
}
