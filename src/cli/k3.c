/* `attnres k3`: the layer loop of Kimi K3 through the stream object. */
#define _XOPEN_SOURCE 700

#include "cli.h"
#include "k3_measure.h"
#include "text.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: attnres k3 [--layers 93] [--width 7168] [--block-size 12] [--tokens 16]\n"
    "                  [--dtype bf16] [--threads 1] [--seed 1] [--level NAME]\n\n"
    "Runs the layer loop of Kimi K3 with made-up weights and cheap stand-ins for attention\n"
    "and feed-forward: reads, pushes and additions are the model's. Compares every read with\n"
    "an independent one in double, then measures decode and prefill; only reads count. The\n"
    "digest is the same for every level, split over threads, and machine.\n";

#define SIZE_LIMIT 16777216 /* of width and tokens, far from where sizes in bytes wrap */

typedef struct options {
    attnres_cli_k3_stack stack;
    size_t tokens, threads, seed;
    int help;
} options;

static int parse_dtype(const char *text, attnres_dtype *dtype)
{
    static const struct {
        const char *name;
        attnres_dtype dtype;
    } names[] = {
        {"f32", ATTNRES_F32}, {"f64", ATTNRES_F64}, {"f16", ATTNRES_F16}, {"bf16", ATTNRES_BF16}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i].name) == 0) {
            *dtype = names[i].dtype;
            return 0;
        }
    }
    return -1;
}

static int parse_level(const char *text)
{
    attnres_level level;
    return attnres_level_from_name(text, &level) == ATTNRES_OK &&
                   attnres_set_level(level) == ATTNRES_OK
               ? 0
               : -1;
}

static int parse(int argc, char **argv, options *parsed)
{
    static const struct option list[] = {{"layers", required_argument, NULL, 'l'},
                                         {"width", required_argument, NULL, 'w'},
                                         {"block-size", required_argument, NULL, 'b'},
                                         {"tokens", required_argument, NULL, 't'},
                                         {"dtype", required_argument, NULL, 'd'},
                                         {"threads", required_argument, NULL, 'n'},
                                         {"seed", required_argument, NULL, 's'},
                                         {"level", required_argument, NULL, 'v'},
                                         {"help", no_argument, NULL, 'h'},
                                         {0}};
    int option;
    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, ":", list, NULL)) != -1) {
        size_t *number = option == 'l'   ? &parsed->stack.layers
                         : option == 'w' ? &parsed->stack.width
                         : option == 'b' ? &parsed->stack.block_size
                         : option == 't' ? &parsed->tokens
                         : option == 'n' ? &parsed->threads
                         : option == 's' ? &parsed->seed
                                         : NULL;
        int bad = option == '?' || option == ':';
        if (number != NULL) {
            bad = attnres_cli_parse_size(optarg, number) != 0 || (*number == 0 && option != 's');
        } else if (option == 'd') {
            bad = parse_dtype(optarg, &parsed->stack.dtype) != 0;
        } else if (option == 'v') {
            bad = parse_level(optarg) != 0;
        } else if (option == 'h') {
            parsed->help = 1;
        }
        if (bad) {
            return attnres_cli_fail("k3: '%s' is not understood or not possible here "
                                    "(attnres k3 --help)",
                                    argv[optind - 1]);
        }
    }
    if (optind < argc) {
        return attnres_cli_fail("k3 takes no file, but got '%s'", argv[optind]);
    }
    return ATTNRES_CLI_EXIT_OK;
}

int attnres_cli_k3(int argc, char **argv)
{
    options parsed = {.stack = {.dtype = ATTNRES_BF16,
                                .layers = 93,
                                .width = 7168,
                                .block_size = 12,
                                .eps = 1e-5,
                                .norm_eps = 1e-5},
                      .tokens = 16,
                      .threads = 1,
                      .seed = 1};
    const int bad = parse(argc, argv, &parsed);
    if (bad || parsed.help) {
        if (!bad) {
            fputs(usage, stdout);
        }
        return bad;
    }
    if (parsed.threads > parsed.tokens || parsed.threads > 1024 || parsed.stack.layers > 100000 ||
        parsed.stack.width > SIZE_LIMIT || parsed.tokens > SIZE_LIMIT) {
        return attnres_cli_fail("k3: at most one thread per token, 1024 threads, 100000 layers, "
                                "width and tokens %d",
                                SIZE_LIMIT);
    }
    parsed.stack.seed = parsed.seed;
    if (attnres_cli_k3_make(&parsed.stack) != 0) {
        return attnres_cli_fail("out of memory");
    }
    printf("%zu layers, width %zu, block size %zu, %zu tokens, level %s (%s)\n",
           parsed.stack.layers, parsed.stack.width, parsed.stack.block_size, parsed.tokens,
           attnres_level_name(attnres_current_level()), attnres_level_reason());
    const int status = attnres_cli_k3_measure(&parsed.stack, parsed.tokens, 16, parsed.threads);
    attnres_cli_k3_free(&parsed.stack);
    return status;
}
