/* Messages out, numbers in. */
#ifndef ATTNRES_CLI_TEXT_H
#define ATTNRES_CLI_TEXT_H

#include <stddef.h>

#if defined(__GNUC__)
#define ATTNRES_CLI_PRINTF(format_at, first) __attribute__((format(printf, format_at, first)))
#else
#define ATTNRES_CLI_PRINTF(format_at, first)
#endif

/* What went wrong, for functions that report and do not print. Untouched on success. */
typedef struct attnres_cli_message {
    char text[512];
} attnres_cli_message;

/* Fills the message and returns -1, so that `return attnres_cli_explain(...)` reports an error.
 * What does not fit is cut off. */
int attnres_cli_explain(attnres_cli_message *message, const char *format, ...)
    ATTNRES_CLI_PRINTF(2, 3);

/* Prints "attnres: " and the text as exactly one line on standard error: names from files and
 * arguments may hold anything, so control characters are shown as '?'. Returns
 * ATTNRES_CLI_EXIT_BAD_INPUT, for `return attnres_cli_fail(...)`. */
int attnres_cli_fail(const char *format, ...) ATTNRES_CLI_PRINTF(1, 2);

/* Prints one line on standard output, control characters shown in the same way. */
void attnres_cli_say(const char *format, ...) ATTNRES_CLI_PRINTF(1, 2);

/* Writes "[2, 3, 4]", cut off where the capacity ends. Returns text. */
const char *attnres_cli_shape_text(const size_t *shape, size_t rank, char *text, size_t capacity);

/* The whole string as a number: decimal digits only, and it must fit. 0, or -1 and *value is
 * unchanged. */
int attnres_cli_parse_size(const char *text, size_t *value);

/* The whole string as a finite number. 0, or -1 and *value is unchanged. */
int attnres_cli_parse_number(const char *text, double *value);

/* *product = a * b. 0, or -1 if that overflows. product may be &a or &b of the caller. */
int attnres_cli_multiply(size_t a, size_t b, size_t *product);

#endif
