/* What must be seen in a process that has not called the library yet: this program, started again
 * with an argument. ATTNRES_PROGRAM_WRAPPER is put in front, as for the program. */
#ifndef ATTNRES_TESTS_FRESH_H
#define ATTNRES_TESTS_FRESH_H

/* In main: whether this process was started for that, and if so what it shall exit with. */
int fresh_is_wanted(int argc, char **argv, int *status);

/* Runs one of "race", "constructor" or "level" in a fresh process, with ATTNRES_LEVEL as given
 * (NULL: unset). Returns its exit status. */
int fresh_run(const char *what, const char *level);

#endif
