#define _GNU_SOURCE 1

#include "read_options.h"

#include "cli.h"
#include "text.h"

#include <getopt.h>
#include <stdlib.h>

const char attnres_cli_read_usage[] =
    "usage: attnres read IN.safetensors -o OUT.safetensors --block-size M\n"
    "                    [--eps E] [--scale S] [--level NAME]\n\n"
    "  -o, --output FILE  where the result goes; may be IN\n"
    "  --block-size M     layer outputs per block, at least 1\n"
    "  --eps E            added to the mean square of a source; default 1e-6\n"
    "  --scale S          factor on the logits; default 1\n"
    "  --level NAME       run on this level instead of the highest one (see attnres info)\n\n"
    "IN holds embedding [batch, sequence, width], previous_outputs [layers, batch, sequence,\n"
    "width] and pseudo_query [width], all F64, F32, F16 or BF16. OUT receives\n"
    "retrieved_representation, attention_weights and block_sources in the same dtype.\n";

enum { OPTION_BLOCK_SIZE = 256, OPTION_EPS, OPTION_SCALE, OPTION_LEVEL, OPTION_HELP };

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"block-size", required_argument, NULL, OPTION_BLOCK_SIZE},
    {"eps", required_argument, NULL, OPTION_EPS},
    {"scale", required_argument, NULL, OPTION_SCALE},
    {"level", required_argument, NULL, OPTION_LEVEL},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static int take_input(attnres_cli_read_options *options, const char *path)
{
    if (options->input != NULL) {
        return attnres_cli_fail("read: more than one input file: '%s' and '%s'", options->input,
                                path);
    }
    options->input = path;
    return ATTNRES_CLI_EXIT_OK;
}

static int take_block_size(attnres_cli_read_options *options, const char *text)
{
    if (attnres_cli_parse_size(text, &options->block_size) != 0 || options->block_size == 0) {
        return attnres_cli_fail("read: --block-size must be a whole number >= 1, not '%s'", text);
    }
    return ATTNRES_CLI_EXIT_OK;
}

static int take_eps(attnres_cli_read_options *options, const char *text)
{
    if (attnres_cli_parse_number(text, &options->eps) != 0 || options->eps < 0.0) {
        return attnres_cli_fail("read: --eps must be a finite number >= 0, not '%s'", text);
    }
    return ATTNRES_CLI_EXIT_OK;
}

static int take_scale(attnres_cli_read_options *options, const char *text)
{
    /* The library reads a scale of 0 as "not given". */
    if (attnres_cli_parse_number(text, &options->scale) != 0 || options->scale == 0.0) {
        return attnres_cli_fail("read: --scale must be a finite number other than 0, not '%s'",
                                text);
    }
    return ATTNRES_CLI_EXIT_OK;
}

/* getopt_long returned '?': says which argument it meant. */
static int refuse_option(char **argv)
{
    if (optopt > 0 && optopt < OPTION_BLOCK_SIZE) {
        return attnres_cli_fail("read: unknown option '-%c'", optopt);
    }
    return attnres_cli_fail("read: unknown, ambiguous or malformed option '%s'", argv[optind - 1]);
}

static int take_option(int option, attnres_cli_read_options *options, char **argv)
{
    switch (option) {
    case 1: /* an argument that is not an option */
        return take_input(options, optarg);
    case 'o':
        options->output = optarg;
        return ATTNRES_CLI_EXIT_OK;
    case OPTION_BLOCK_SIZE:
        return take_block_size(options, optarg);
    case OPTION_EPS:
        return take_eps(options, optarg);
    case OPTION_SCALE:
        return take_scale(options, optarg);
    case OPTION_LEVEL:
        options->level = optarg;
        return ATTNRES_CLI_EXIT_OK;
    case OPTION_HELP:
        options->help = 1;
        return ATTNRES_CLI_EXIT_OK;
    case ':':
        return attnres_cli_fail("read: option '%s' needs a value", argv[optind - 1]);
    default:
        return refuse_option(argv);
    }
}

int attnres_cli_parse_read_options(int argc, char **argv, attnres_cli_read_options *options)
{
    int option = 0;
    int status = ATTNRES_CLI_EXIT_OK;
    *options = (attnres_cli_read_options){.eps = 1e-6, .scale = 1.0};
    /* '-' in front: arguments in their order whatever POSIXLY_CORRECT says; ':' for silence. */
    while ((option = getopt_long(argc, argv, "-:o:", long_options, NULL)) != -1) {
        status = take_option(option, options, argv);
        if (status != ATTNRES_CLI_EXIT_OK || options->help) {
            return status;
        }
    }
    for (; optind < argc && status == ATTNRES_CLI_EXIT_OK; optind++) { /* after "--" */
        status = take_input(options, argv[optind]);
    }
    if (status != ATTNRES_CLI_EXIT_OK) {
        return status;
    }
    if (options->input == NULL) {
        return attnres_cli_fail("read: no input file given");
    }
    if (options->output == NULL || options->output[0] == '\0') {
        return attnres_cli_fail("read: no output file given (-o)");
    }
    if (options->block_size == 0) {
        return attnres_cli_fail("read: --block-size is missing");
    }
    return ATTNRES_CLI_EXIT_OK;
}
