/* The command line of `attnres read`. */
#ifndef ATTNRES_CLI_READ_OPTIONS_H
#define ATTNRES_CLI_READ_OPTIONS_H

#include <stddef.h>

typedef struct attnres_cli_read_options {
    const char *input;
    const char *output;
    const char *level; /* NULL: not given */
    size_t block_size;
    double eps;
    double scale;
    int help; /* asked for; then nothing else was checked */
} attnres_cli_read_options;

/* Fills in the options, or has reported what is wrong. Returns the exit status. */
int attnres_cli_parse_read_options(int argc, char **argv, attnres_cli_read_options *options);

extern const char attnres_cli_read_usage[];

#endif
