/* `attnres check`: every level this machine can run against the scalar reference, bit for bit. */
#define _XOPEN_SOURCE 700

#include "check_case.h"
#include "cli.h"
#include "synthetic.h"
#include "text.h"

#include <attnres.h>

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEVELS 8
#define DTYPES 4

static const struct {
    attnres_dtype dtype;
    const char *name;
} dtypes[DTYPES] = {
    {ATTNRES_F32, "f32"}, {ATTNRES_F64, "f64"}, {ATTNRES_F16, "f16"}, {ATTNRES_BF16, "bf16"}};

static const size_t wide_widths[] = {1000, 2304, 7168, 7186};
static const size_t source_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 33, 100};
#define NARROW 130
#define WIDTHS (NARROW + sizeof wide_widths / sizeof *wide_widths)
#define SOURCE_COUNTS (sizeof source_counts / sizeof *source_counts)

typedef struct tally {
    size_t cases, differences;
    uint64_t digest;
} tally;

typedef struct run {
    attnres_level_report levels[LEVELS]; /* scalar first */
    size_t level_count;
    tally tallies[LEVELS][DTYPES];
    attnres_cli_case_memory *memory;
    int first_difference_told;
} run;

static size_t width_of(size_t i)
{
    return i < NARROW ? i + 1 : wide_widths[i - NARROW];
}

static void tell_difference(run *all, const attnres_cli_case *one, size_t level)
{
    if (!all->first_difference_told) {
        fprintf(stderr,
                "first difference: level %s, width %zu, sources %zu, case seed %" PRIu64 "\n",
                attnres_level_name(all->levels[level].level), one->width, one->sources, one->seed);
        all->first_difference_told = 1;
    }
}

/* Runs one case at every usable level. 0, or -1 if a call failed. */
static int run_case(run *all, const attnres_cli_case *one, size_t dtype)
{
    const void *expected = NULL, *results;
    size_t expected_bytes = 0, bytes;

    attnres_cli_case_fill(all->memory, one);
    for (size_t level = 0; level < all->level_count; level++) {
        tally *t = &all->tallies[level][dtype];
        if (!all->levels[level].usable) {
            continue;
        }
        if (attnres_set_level(all->levels[level].level) != ATTNRES_OK ||
            attnres_cli_case_run(all->memory, one, level > 0, &results, &bytes) != ATTNRES_OK) {
            return -1;
        }
        t->cases++;
        t->digest = attnres_cli_digest(t->digest, results, bytes);
        if (level == 0) {
            expected = results;
            expected_bytes = bytes;
        } else if (bytes != expected_bytes || memcmp(results, expected, bytes) != 0) {
            t->differences++;
            tell_difference(all, one, level);
        }
    }
    return 0;
}

static int run_all(run *all, uint64_t seed)
{
    const int show_progress = isatty(STDERR_FILENO);
    uint64_t state = seed;

    for (size_t d = 0; d < DTYPES; d++) {
        for (size_t w = 0; w < WIDTHS; w++) {
            if (show_progress) {
                fprintf(stderr, "\r%s %3zu %%", dtypes[d].name,
                        100 * (d * WIDTHS + w) / (DTYPES * WIDTHS));
            }
            for (size_t s = 0; s < SOURCE_COUNTS; s++) {
                const attnres_cli_case one = {dtypes[d].dtype, width_of(w), source_counts[s],
                                              attnres_cli_random(&state)};
                if (run_case(all, &one, d) != 0) {
                    return -1;
                }
            }
        }
    }
    if (show_progress) {
        fprintf(stderr, "\r          \r");
    }
    return 0;
}

/* Prints the table; returns the number of differences. */
static size_t report(const run *all)
{
    uint64_t digest = ATTNRES_CLI_DIGEST_START;
    size_t differences = 0;

    for (size_t level = 0; level < all->level_count; level++) {
        const char *name = attnres_level_name(all->levels[level].level);
        if (!all->levels[level].usable) {
            printf("%-7s skipped: %s\n", name, all->levels[level].why);
            continue;
        }
        for (size_t d = 0; d < DTYPES; d++) {
            const tally *t = &all->tallies[level][d];
            printf("%-7s %-4s  %zu cases, %zu differences, %016" PRIx64 "\n", name, dtypes[d].name,
                   t->cases, t->differences, t->digest);
            differences += t->differences;
        }
    }
    for (size_t d = 0; d < DTYPES; d++) {
        for (int byte = 0; byte < 8; byte++) { /* the same on machines of either byte order */
            const unsigned char value = (unsigned char)(all->tallies[0][d].digest >> (8 * byte));
            digest = attnres_cli_digest(digest, &value, 1);
        }
    }
    printf("digest %016" PRIx64 "\n", digest);
    return differences;
}

static const char usage[] =
    "usage: attnres check [--seed N]\n\n"
    "Runs a seeded set of shapes (all dtypes, widths 1 to 130 and 1000, 2304, 7168, 7186,\n"
    "1 to 12, 33 and 100 sources, strided and unaligned rows) at every level this machine\n"
    "has and compares the results with the scalar level's, bit for bit. The digest of all\n"
    "results is the same on every machine. Exit status 1 if anything differs.\n";

static int parse(int argc, char **argv, size_t *seed, int *help)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'}, {"help", no_argument, NULL, 'h'}, {0}};
    int option;
    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (option == 'h') {
            *help = 1;
        } else if (option == 's' && attnres_cli_parse_size(optarg, seed) == 0) {
            continue;
        } else {
            return attnres_cli_fail("check: '%s' is not understood (attnres check --help)",
                                    argv[optind - 1]);
        }
    }
    if (optind < argc) {
        return attnres_cli_fail("check takes no file, but got '%s'", argv[optind]);
    }
    return ATTNRES_CLI_EXIT_OK;
}

int attnres_cli_check(int argc, char **argv)
{
    size_t seed = 1;
    int help = 0;
    const int bad = parse(argc, argv, &seed, &help);
    if (bad || help) {
        if (help) {
            fputs(usage, stdout);
        }
        return bad;
    }
    run *all = calloc(1, sizeof *all);
    if (all == NULL) {
        return attnres_cli_fail("out of memory");
    }
    all->level_count = attnres_level_reports(all->levels, LEVELS);
    all->memory = attnres_cli_case_room(width_of(WIDTHS - 1), source_counts[SOURCE_COUNTS - 1]);
    for (size_t level = 0; level < all->level_count; level++) {
        for (size_t d = 0; d < DTYPES; d++) {
            all->tallies[level][d].digest = ATTNRES_CLI_DIGEST_START;
        }
    }
    int status = ATTNRES_CLI_EXIT_OK;
    if (all->memory == NULL) {
        status = attnres_cli_fail("out of memory");
    } else if (run_all(all, seed) != 0) {
        fprintf(stderr, "attnres: a call failed that must not\n");
        status = ATTNRES_CLI_EXIT_DIFFERENCE;
    } else if (report(all) != 0) {
        status = ATTNRES_CLI_EXIT_DIFFERENCE;
    }
    attnres_cli_case_free(all->memory);
    free(all);
    return status;
}
