#define _XOPEN_SOURCE 700

#include "files.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATHS_MAX = 64 };

static char base[FILES_PATH_CAPACITY / 4];      /* of one case, made and removed by the runner */
static char directory[FILES_PATH_CAPACITY / 2]; /* of one test, in `base` */
static char *paths[PATHS_MAX];                  /* that were asked for */

static void case_begins(void)
{
    const char *parent = getenv("TMPDIR");
    int length = snprintf(base, sizeof base, "%s/attnres-test-XXXXXX",
                          parent != NULL && parent[0] != '\0' ? parent : "/tmp");
    ck_assert(length > 0 && (size_t)length < sizeof base);
    ck_assert_ptr_nonnull(mkdtemp(base));
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

static void case_ends(void)
{
    ck_assert_int_eq(nftw(base, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void test_begins(void)
{
    snprintf(directory, sizeof directory, "%s/XXXXXX", base);
    ck_assert_ptr_nonnull(mkdtemp(directory));
}

static void test_ends(void)
{
    for (size_t i = 0; i < PATHS_MAX; i++) {
        free(paths[i]);
        paths[i] = NULL;
    }
}

void files_use(TCase *tests)
{
    tcase_add_unchecked_fixture(tests, case_begins, case_ends);
    tcase_add_checked_fixture(tests, test_begins, test_ends);
}

const char *files_path(const char *name)
{
    char path[FILES_PATH_CAPACITY];
    size_t i = 0;
    snprintf(path, sizeof path, "%s%s%s", directory, name[0] != '\0' ? "/" : "", name);
    while (i < PATHS_MAX && paths[i] != NULL && strcmp(paths[i], path) != 0) {
        i++;
    }
    ck_assert_uint_lt(i, PATHS_MAX);
    if (paths[i] == NULL) {
        paths[i] = strdup(path);
        ck_assert_ptr_nonnull(paths[i]);
    }
    return paths[i];
}

size_t files_count(void)
{
    size_t count = 0;
    DIR *stream = opendir(directory);
    ck_assert_ptr_nonnull(stream);
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(stream);
    return count;
}

int files_exists(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

void files_write(const char *path, const void *data, size_t bytes)
{
    FILE *stream = fopen(path, "wb");
    ck_assert_msg(stream != NULL, "cannot write %s: %s", path, strerror(errno));
    if (bytes > 0) {
        ck_assert_uint_eq(fwrite(data, 1, bytes, stream), bytes);
    }
    ck_assert_int_eq(fclose(stream), 0);
}

char *files_read(const char *path, size_t *bytes)
{
    FILE *stream = fopen(path, "rb");
    ck_assert_msg(stream != NULL, "cannot read %s: %s", path, strerror(errno));
    ck_assert_int_eq(fseek(stream, 0, SEEK_END), 0);
    long length = ftell(stream);
    ck_assert(length >= 0);
    rewind(stream);
    char *data = malloc((size_t)length + 1);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(fread(data, 1, (size_t)length, stream), (size_t)length);
    data[length] = '\0';
    fclose(stream);
    *bytes = (size_t)length;
    return data;
}

void files_check(const char *path, const void *data, size_t bytes)
{
    size_t found_bytes = 0;
    char *found = files_read(path, &found_bytes);
    ck_assert_uint_eq(found_bytes, bytes);
    ck_assert_msg(memcmp(found, data, bytes) == 0, "%s has changed", path);
    free(found);
}

void files_write_safetensors(const char *path, const char *header, size_t data_bytes)
{
    size_t header_bytes = strlen(header);
    unsigned char *data = calloc(1, 8 + header_bytes + data_bytes);
    ck_assert_ptr_nonnull(data);
    for (unsigned i = 0; i < 8; i++) {
        data[i] = (unsigned char)((uint64_t)header_bytes >> (8 * i) & 0xff);
    }
    memcpy(data + 8, header, header_bytes);
    for (size_t i = 0; i < data_bytes; i++) {
        data[8 + header_bytes + i] = (unsigned char)(i * 7 + 1);
    }
    files_write(path, data, 8 + header_bytes + data_bytes);
    free(data);
}
