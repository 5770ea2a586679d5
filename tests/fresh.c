#define _XOPEN_SOURCE 700

#include "fresh.h"

#include "inputs.h"
#include "plain.h"

#include <attnres.h>

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 16, WIDTH = 67, SOURCES = 3, FAILED = 3, MOST_WORDS = 32 };

static char *self; /* argv[0] */

/* A small read, checked against the contract. */
static int reads_well(void)
{
    float memory[SOURCES][WIDTH], query[WIDTH], found[WIDTH], expected[WIDTH];
    const void *rows[SOURCES];
    attnres_rows sources[SOURCES];
    uint64_t stream = inputs_stream(11, 0, 0);
    for (int s = 0; s < SOURCES; s++) {
        inputs_fill(ATTNRES_F32, INPUTS_ORDINARY, &stream, memory[s], WIDTH);
        rows[s] = memory[s];
        sources[s] = (attnres_rows){memory[s], 0};
    }
    inputs_fill(ATTNRES_F32, INPUTS_ORDINARY, &stream, query, WIDTH);
    const attnres_shape shape = {ATTNRES_F32, 1, WIDTH};
    const attnres_read_args args = {.sources = sources,
                                    .source_count = SOURCES,
                                    .query = query,
                                    .eps = 1e-6,
                                    .retrieved = {found, 0}};
    const reading in = {.dtype = ATTNRES_F32,
                        .width = WIDTH,
                        .count = SOURCES,
                        .rows = rows,
                        .query = query,
                        .eps = 1e-6};
    const plain_results out = {.retrieved = expected};
    if (attnres_read(&shape, &args) != ATTNRES_OK) {
        return 0;
    }
    plain_read(&in, NULL, &out);
    return memcmp(found, expected, sizeof found) == 0;
}

/* ---- race: the first call from many threads at once ------------------------------------- */

static pthread_barrier_t barrier;

typedef struct racer {
    int reads_well;
    attnres_level level;
    const char *reason;
} racer;

static void *race(void *argument)
{
    racer *one = argument;
    pthread_barrier_wait(&barrier);
    one->reads_well = reads_well();
    one->level = attnres_current_level();
    one->reason = attnres_level_reason();
    return NULL;
}

static int run_race(void)
{
    pthread_t threads[THREADS];
    racer racers[THREADS];
    int status = 0;
    if (pthread_barrier_init(&barrier, NULL, THREADS) != 0) {
        return FAILED;
    }
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, race, &racers[i]) != 0) {
            return FAILED;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        if (!racers[i].reads_well || racers[i].level != racers[0].level ||
            racers[i].reason != racers[0].reason) {
            status = FAILED;
        }
    }
    pthread_barrier_destroy(&barrier);
    return status;
}

/* ---- constructor: the first call before main -------------------------------------------- */

#define CONSTRUCTOR_VARIABLE "ATTNRES_TEST_CONSTRUCTOR"

static int constructor_status = FAILED;
static attnres_level constructor_level;

__attribute__((constructor)) static void call_early(void)
{
    if (getenv(CONSTRUCTOR_VARIABLE)) {
        constructor_status = reads_well() ? 0 : FAILED;
        constructor_level = attnres_current_level();
    }
}

static int run_constructor(void)
{
    return constructor_level == attnres_current_level() && reads_well() ? constructor_status
                                                                        : FAILED;
}

/* ---- Starting ---------------------------------------------------------------------------- */

int fresh_is_wanted(int argc, char **argv, int *status)
{
    self = argv[0];
    if (argc != 2) {
        return 0;
    }
    *status = FAILED;
    if (strcmp(argv[1], "race") == 0) {
        *status = run_race();
    } else if (strcmp(argv[1], "constructor") == 0) {
        *status = run_constructor();
    } else if (strcmp(argv[1], "level") == 0) { /* 16: apart from FAILED and what shells use */
        *status = reads_well() ? 16 + (int)attnres_current_level() : FAILED;
    }
    return 1;
}

static void become(const char *what, const char *level)
{
    char wrapper[1024];
    char *words[MOST_WORDS];
    char argument[16];
    const char *given = getenv("ATTNRES_PROGRAM_WRAPPER");
    size_t count = 0;
    snprintf(wrapper, sizeof wrapper, "%s", given ? given : "");
    for (char *word = strtok(wrapper, " "); word && count < MOST_WORDS - 3;
         word = strtok(NULL, " ")) {
        words[count++] = word;
    }
    snprintf(argument, sizeof argument, "%s", what);
    words[count++] = self;
    words[count++] = argument;
    words[count] = NULL;
    if (level) {
        setenv("ATTNRES_LEVEL", level, 1);
    } else {
        unsetenv("ATTNRES_LEVEL");
    }
    if (strcmp(what, "constructor") == 0) {
        setenv(CONSTRUCTOR_VARIABLE, "1", 1);
    }
    execvp(words[0], words);
    _exit(127);
}

int fresh_run(const char *what, const char *level)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        become(what, level);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "%s ended by signal %d", what, WTERMSIG(status));
    return WEXITSTATUS(status);
}
