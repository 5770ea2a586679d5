/* Runs the `attnres` program, for tests. The environment says which: ATTNRES_PROGRAM is its path,
 * and ATTNRES_PROGRAM_WRAPPER, if set, the words of a command to put in front (an emulator). */
#ifndef ATTNRES_TESTS_PROGRAM_H
#define ATTNRES_TESTS_PROGRAM_H

#include <stddef.h>

typedef struct program_options {
    const char *environment; /* NULL, or one "NAME=value" to add */
    const char *output;      /* NULL, or where standard output goes instead of to `out` */
    size_t file_limit;       /* 0, or the most bytes a file may get */
} program_options;

typedef struct program_result {
    int status; /* exit status, or 128 + the signal's number */
    char *out;
    char *err;
} program_result;

/* arguments: what follows the program's name, ended by NULL. options may be NULL. Whatever keeps
 * the program from being run fails the test. */
program_result program_run(const char *const *arguments, const program_options *options);

void program_free(program_result *result);

/* The program refused: exit status 2, nothing on standard output, and one line on standard error
 * that starts with "attnres: " and has `part` in it. */
void program_check_refused(const program_result *result, const char *part);

#endif
