#define _XOPEN_SOURCE 700

#include "files.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATHS_MAX = 64 };

static char directory[FILES_PATH_CAPACITY / 2];
static char *paths[PATHS_MAX]; /* that were asked for */

void files_setup(void)
{
    const char *base = getenv("TMPDIR");
    int length = snprintf(directory, sizeof directory, "%s/attnres-test-XXXXXX",
                          base != NULL && base[0] != '\0' ? base : "/tmp");
    ck_assert(length > 0 && (size_t)length < sizeof directory);
    ck_assert_ptr_nonnull(mkdtemp(directory));
}

/* Calls visit for each entry's path and returns how many there are. */
static size_t each_entry(void (*visit)(const char *path))
{
    size_t count = 0;
    char path[FILES_PATH_CAPACITY];
    DIR *stream = opendir(directory);
    ck_assert_ptr_nonnull(stream);
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        count++;
        if (visit != NULL) {
            snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
            visit(path);
        }
    }
    closedir(stream);
    return count;
}

static void remove_entry(const char *path)
{
    ck_assert_msg(remove(path) == 0, "cannot remove %s: %s", path, strerror(errno));
}

void files_teardown(void)
{
    each_entry(remove_entry);
    ck_assert_int_eq(rmdir(directory), 0);
    for (size_t i = 0; i < PATHS_MAX; i++) {
        free(paths[i]);
        paths[i] = NULL;
    }
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
    return each_entry(NULL);
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
