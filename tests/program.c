#define _XOPEN_SOURCE 700

#include "program.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 64 };

/* The command line: wrapper, program, arguments. `wrapper` is cut into words in place. */
static void build_command(char **command, char *wrapper, const char *const *arguments)
{
    char *program = getenv("ATTNRES_PROGRAM");
    size_t count = 0;
    ck_assert_msg(program != NULL, "ATTNRES_PROGRAM does not say where the program is");
    for (char *word = strtok(wrapper, " "); word != NULL; word = strtok(NULL, " ")) {
        ck_assert(count < WORDS_MAX / 2);
        command[count++] = word;
    }
    command[count++] = program;
    for (; *arguments != NULL; arguments++) {
        ck_assert(count < WORDS_MAX - 1);
        command[count++] = (char *)(size_t)*arguments; /* execvp changes no argument */
    }
    command[count] = NULL;
}

/* In the child: never returns. */
static void become(char **command, int out, int err, const program_options *options)
{
    if (options->environment != NULL) {
        char *equals = strchr(options->environment, '=');
        char name[64] = "";
        memcpy(name, options->environment, (size_t)(equals - options->environment));
        setenv(name, equals + 1, 1);
    }
    if (options->output != NULL) {
        out = open(options->output, O_WRONLY);
    }
    if (options->file_limit > 0) {
        struct rlimit limit = {options->file_limit, options->file_limit};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0) {
        execvp(command[0], command);
    }
    _exit(127);
}

static char *read_all(FILE *stream)
{
    size_t used = 0;
    size_t capacity = 4096;
    char *text = malloc(capacity);
    rewind(stream);
    for (;;) {
        ck_assert_ptr_nonnull(text);
        used += fread(text + used, 1, capacity - used - 1, stream);
        if (used + 1 < capacity) {
            break;
        }
        capacity *= 2;
        text = realloc(text, capacity);
    }
    text[used] = '\0';
    fclose(stream);
    return text;
}

program_result program_run(const char *const *arguments, const program_options *options)
{
    static const program_options defaults = {0};
    char *command[WORDS_MAX];
    char wrapper[1024];
    const char *given = getenv("ATTNRES_PROGRAM_WRAPPER");
    snprintf(wrapper, sizeof wrapper, "%s", given != NULL ? given : "");
    build_command(command, wrapper, arguments);

    FILE *out = tmpfile(); /* files, not pipes: they hold any amount without a reader */
    FILE *err = tmpfile();
    ck_assert(out != NULL && err != NULL);
    fflush(NULL);
    pid_t child = fork();
    ck_assert(child >= 0);
    if (child == 0) {
        become(command, fileno(out), fileno(err), options != NULL ? options : &defaults);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        ck_assert_int_eq(errno, EINTR);
    }
    program_result result = {
        .status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
        .out = read_all(out),
        .err = read_all(err),
    };
    ck_assert_msg(result.status != 127, "cannot run %s", command[0]);
    return result;
}

void program_free(program_result *result)
{
    free(result->out);
    free(result->err);
}

void program_check_refused(const program_result *result, const char *part)
{
    ck_assert_msg(result->status == 2, "exit status %d, expected 2; standard error: %s",
                  result->status, result->err);
    ck_assert_str_eq(result->out, "");
    ck_assert_msg(strncmp(result->err, "attnres: ", 9) == 0, "standard error: %s", result->err);
    const char *end = strchr(result->err, '\n');
    ck_assert_msg(end != NULL && end[1] == '\0', "not one line: %s", result->err);
    ck_assert_msg(strstr(result->err, part) != NULL, "'%s' is not in: %s", part, result->err);
}
