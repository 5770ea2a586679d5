/* The levels that this process can run, for tests that go through all of them. */
#ifndef ATTNRES_TESTS_LEVELS_H
#define ATTNRES_TESTS_LEVELS_H

#include <attnres.h>

/* How many, and which; lowest first, so number 0 is scalar. */
int levels_count(void);
attnres_level levels_at(int i);
const char *levels_name(int i);

/* Switches to one of them. A case that uses this has the fixture. */
void levels_use(int i);

/* Checked fixture: back to the level that was chosen at the start. */
void levels_save(void);
void levels_restore(void);

/* One line for each level, and for those that are not tested here the reason. */
void levels_print(void);

#endif
