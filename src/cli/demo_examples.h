/* The worked examples that the project was created from. */
#ifndef ATTNRES_CLI_DEMO_EXAMPLES_H
#define ATTNRES_CLI_DEMO_EXAMPLES_H

/* Prints each example with its values; returns how many do not come out as they must. */
int attnres_cli_demo_examples(void);

#endif
