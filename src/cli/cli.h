/* The verbs of the `attnres` program. Each verb is one function in one file: argv[0] is the verb
 * itself, the return value is the program's exit status. main.c holds the only list of them. */
#ifndef ATTNRES_CLI_H
#define ATTNRES_CLI_H

enum {
    ATTNRES_CLI_EXIT_OK = 0,
    ATTNRES_CLI_EXIT_DIFFERENCE = 1, /* the run worked, and what it compared differs */
    ATTNRES_CLI_EXIT_BAD_INPUT = 2   /* one line on standard error says what is wrong */
};

int attnres_cli_read(int argc, char **argv);
int attnres_cli_info(int argc, char **argv);
int attnres_cli_demo(int argc, char **argv);
int attnres_cli_check(int argc, char **argv);
int attnres_cli_k3(int argc, char **argv);
int attnres_cli_help(int argc, char **argv);
int attnres_cli_version(int argc, char **argv);

#endif
