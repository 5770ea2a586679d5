#include "text.h"

#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Long enough for a message with two paths of the usual maximum length. */
#define LINE_CAPACITY 9216

int attnres_cli_explain(attnres_cli_message *message, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message->text, sizeof message->text, format, arguments);
    va_end(arguments);
    return -1;
}

static void print_line(FILE *stream, const char *prefix, const char *format, va_list arguments)
{
    char line[LINE_CAPACITY];
    if (vsnprintf(line, sizeof line, format, arguments) < 0) {
        line[0] = '\0';
    }
    for (char *c = line; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte < 0x20 || byte == 0x7f) {
            *c = '?';
        }
    }
    fprintf(stream, "%s%s\n", prefix, line);
}

int attnres_cli_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line(stderr, "attnres: ", format, arguments);
    va_end(arguments);
    return ATTNRES_CLI_EXIT_BAD_INPUT;
}

void attnres_cli_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line(stdout, "", format, arguments);
    va_end(arguments);
}

const char *attnres_cli_shape_text(const size_t *shape, size_t rank, char *text, size_t capacity)
{
    size_t used = 0;
    for (size_t i = 0; i <= rank && used < capacity; i++) {
        int length = i < rank ? snprintf(text + used, capacity - used, "%s%zu", i == 0 ? "[" : ", ",
                                         shape[i])
                              : snprintf(text + used, capacity - used, "%s", rank ? "]" : "[]");
        used += length > 0 ? (size_t)length : 0;
    }
    return text;
}

int attnres_cli_parse_size(const char *text, size_t *value)
{
    size_t number = 0;
    if (*text == '\0') {
        return -1;
    }
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') {
            return -1;
        }
        size_t digit = (size_t)(*text - '0');
        if (number > (SIZE_MAX - digit) / 10) {
            return -1;
        }
        number = number * 10 + digit;
    }
    *value = number;
    return 0;
}

int attnres_cli_parse_number(const char *text, double *value)
{
    /* strtod would skip white space in front. Its "inf" and "nan" are refused with everything
     * else that is not finite; a number too small for a double is taken as what it rounds to. */
    int digit = *text >= '0' && *text <= '9';
    if (!digit && *text != '.' && *text != '-' && *text != '+') {
        return -1;
    }
    char *end = NULL;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(number)) {
        return -1;
    }
    *value = number;
    return 0;
}

int attnres_cli_multiply(size_t a, size_t b, size_t *product)
{
    if (b != 0 && a > SIZE_MAX / b) {
        return -1;
    }
    *product = a * b;
    return 0;
}
