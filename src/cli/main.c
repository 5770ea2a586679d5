/* The `attnres` program: picks the verb and runs it. */
#define _XOPEN_SOURCE 700

#include "cli.h"
#include "text.h"

#include <attnres.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

typedef struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help; /* NULL: a second name, not listed */
} verb;

/* THE list of verbs. */
static const verb verbs[] = {
    {"demo", attnres_cli_demo, "the main job without files: worked examples, a K3-shaped stack"},
    {"read", attnres_cli_read, "Block AttnRes on the tensors of a safetensors file"},
    {"info", attnres_cli_info, "CPU, levels built and usable, the level that runs and why"},
    {"check", attnres_cli_check, "every level against the scalar one, bit for bit"},
    {"k3", attnres_cli_k3, "the layer loop of Kimi K3: checked, then timed"},
    {"help", attnres_cli_help, "this text"},
    {"--help", attnres_cli_help, NULL},
    {"version", attnres_cli_version, "the version"},
    {"--version", attnres_cli_version, NULL},
};

static const verb *find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].name, name) == 0) {
            return &verbs[i];
        }
    }
    return NULL;
}

int attnres_cli_help(int argc, char **argv)
{
    if (argc > 1) {
        return attnres_cli_fail("help takes no argument, but got '%s'", argv[1]);
    }
    printf("usage: attnres VERB [ARGUMENTS]\n\n");
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (verbs[i].help != NULL) {
            printf("  %-9s %s\n", verbs[i].name, verbs[i].help);
        }
    }
    printf("\n`attnres VERB --help` says more about a verb that takes arguments.\n"
           "Exit status: 0 success, 1 results differ, 2 bad input.\n");
    return ATTNRES_CLI_EXIT_OK;
}

int attnres_cli_version(int argc, char **argv)
{
    if (argc > 1) {
        return attnres_cli_fail("version takes no argument, but got '%s'", argv[1]);
    }
    printf("attnres %s\n", attnres_version());
    return ATTNRES_CLI_EXIT_OK;
}

int main(int argc, char **argv)
{
    /* Over the file size limit a write should fail, so that the temporary file is removed, and
     * not kill the process. */
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2) {
        return attnres_cli_fail("no verb given (attnres help lists them)");
    }
    const verb *chosen = find_verb(argv[1]);
    if (chosen == NULL) {
        return attnres_cli_fail("unknown verb '%s' (attnres help lists them)", argv[1]);
    }
    int status = chosen->run(argc - 1, argv + 1);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == ATTNRES_CLI_EXIT_OK) {
        return attnres_cli_fail("cannot write to standard output: %s", strerror(errno));
    }
    return status;
}
