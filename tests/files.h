/* Temporary directories and whole files, for tests. Whatever fails here fails the test. */
#ifndef ATTNRES_TESTS_FILES_H
#define ATTNRES_TESTS_FILES_H

#include <check.h>
#include <stddef.h>

#define FILES_PATH_CAPACITY 4096

/* Every test of this case gets a fresh directory. All of them are removed at the end, also after
 * tests that failed. */
void files_use(TCase *tests);

/* The path of `name` in that directory; "" is the directory itself. Valid until the test ends. */
const char *files_path(const char *name);

/* How many entries the directory has. */
size_t files_count(void);

int files_exists(const char *path);
void files_write(const char *path, const void *data, size_t bytes);

/* The whole file, ended by a zero byte that *bytes does not count. The caller's to free. */
char *files_read(const char *path, size_t *bytes);

/* The file holds exactly these bytes. */
void files_check(const char *path, const void *data, size_t bytes);

/* A safetensors file with this header, as it is, and data_bytes of data. */
void files_write_safetensors(const char *path, const char *header, size_t data_bytes);

#endif
