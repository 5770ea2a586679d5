/* The writer: round trips, and that a failed run leaves nothing and harms nothing. */
#define _XOPEN_SOURCE 700

#include "files.h"
#include "safetensors_parts.h"

#include "../src/cli/safetensors.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const attnres_dtype dtypes[] = {ATTNRES_F32, ATTNRES_F64, ATTNRES_F16, ATTNRES_BF16};

static const char precious[] = "a file that was here before";

static const size_t two_by_three[] = {2, 3};
static const unsigned char bytes_of_tensor[64] = {1, 2, 3, 4, 5, 0xff, 0x7f, 0x80, 0, 9};

static const attnres_cli_output one_tensor = {"t", ATTNRES_F64, 2, two_by_three, bytes_of_tensor};

START_TEST(written_tensors_come_back)
{
    attnres_dtype dtype = dtypes[_i];
    size_t element = attnres_dtype_size(dtype);
    const size_t empty[] = {3, 0, 5};
    const attnres_cli_output outputs[] = {
        {"matrix", dtype, 2, two_by_three, bytes_of_tensor},
        {"name \"with\" \\ \xc3\xa9", dtype, 0, NULL, bytes_of_tensor + 3},
        {"empty", dtype, 3, empty, NULL},
        {"row", dtype, 1, two_by_three, bytes_of_tensor + 5},
    };
    attnres_cli_message message = {""};
    attnres_cli_file file;
    int result = attnres_cli_file_write(files_path("out"), outputs, 4, &message);
    ck_assert_msg(result == 0, "%s", message.text);
    ck_assert_uint_eq(files_count(), 1);
    ck_assert_int_eq(attnres_cli_file_open(files_path("out"), &file, &message), 0);
    ck_assert_uint_eq(file.count, 4);
    ck_assert_uint_eq(file.data_start % 8, 0);
    for (size_t i = 0; i < 4; i++) {
        const attnres_cli_tensor *tensor = attnres_cli_file_find(&file, outputs[i].name);
        void *data = NULL;
        size_t bytes = element;
        ck_assert_ptr_nonnull(tensor);
        ck_assert_int_eq(tensor->dtype, dtype);
        ck_assert_uint_eq(tensor->rank, outputs[i].rank);
        for (size_t axis = 0; axis < tensor->rank; axis++) {
            ck_assert_uint_eq(tensor->shape[axis], outputs[i].shape[axis]);
            bytes *= tensor->shape[axis];
        }
        ck_assert_uint_eq(tensor->bytes, bytes);
        ck_assert_int_eq(attnres_cli_file_load(&file, tensor, &data, &message), 0);
        ck_assert(bytes == 0 || memcmp(data, outputs[i].data, bytes) == 0);
        free(data);
    }
    attnres_cli_file_close(&file);
}
END_TEST

START_TEST(no_tensors_are_a_file_too)
{
    attnres_cli_message message = {""};
    ck_assert_int_eq(attnres_cli_file_write(files_path("out"), NULL, 0, &message), 0);
    files_check(files_path("out"), "\x08\0\0\0\0\0\0\0{}      ", 16);
}
END_TEST

/* ---- Access rights and links ----------------------------------------------------------- */

static mode_t mode_of(const char *path)
{
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_mode & 0777;
}

START_TEST(access_rights_are_the_usual_ones)
{
    attnres_cli_message message = {""};
    mode_t mask = umask(027);
    int result = attnres_cli_file_write(files_path("out"), &one_tensor, 1, &message);
    umask(mask);
    ck_assert_int_eq(result, 0);
    ck_assert_uint_eq(mode_of(files_path("out")), 0640);
    ck_assert_int_eq(chmod(files_path("out"), 0604), 0);
    ck_assert_int_eq(attnres_cli_file_write(files_path("out"), &one_tensor, 1, &message), 0);
    ck_assert_uint_eq(mode_of(files_path("out")), 0604);
}
END_TEST

START_TEST(link_is_followed)
{
    attnres_cli_message message = {""};
    struct stat status;
    files_write(files_path("real"), precious, sizeof precious);
    ck_assert_int_eq(symlink("real", files_path("link")), 0);
    ck_assert_int_eq(attnres_cli_file_write(files_path("link"), &one_tensor, 1, &message), 0);
    ck_assert_int_eq(lstat(files_path("link"), &status), 0);
    ck_assert(S_ISLNK(status.st_mode));
    ck_assert_int_eq(lstat(files_path("real"), &status), 0);
    ck_assert_int_ne((int)status.st_size, (int)sizeof precious);
    ck_assert_uint_eq(files_count(), 2);
}
END_TEST

START_TEST(path_without_directory_is_here)
{
    attnres_cli_message message = {""};
    int here = open(".", O_RDONLY);
    ck_assert_int_ge(here, 0);
    ck_assert_int_eq(chdir(files_path("")), 0);
    int result = attnres_cli_file_write("out", &one_tensor, 1, &message);
    ck_assert_int_eq(fchdir(here), 0);
    close(here);
    ck_assert_msg(result == 0, "%s", message.text);
    ck_assert_uint_eq(files_count(), 1);
    ck_assert(files_exists(files_path("out")));
}
END_TEST

/* ---- Failures -------------------------------------------------------------------------- */

static void check_fails(const char *path, const attnres_cli_output *outputs, size_t count,
                        const char *part)
{
    attnres_cli_message message = {""};
    size_t before = files_count();
    ck_assert_int_eq(attnres_cli_file_write(path, outputs, count, &message), -1);
    ck_assert_msg(strstr(message.text, part) != NULL, "the message is '%s', expected '%s'",
                  message.text, part);
    ck_assert_uint_eq(files_count(), before);
}

START_TEST(impossible_place_is_refused)
{
    files_write(files_path("file"), precious, sizeof precious);
    check_fails(files_path("absent/out"), &one_tensor, 1, "directory");
    check_fails(files_path("file/out"), &one_tensor, 1, "cannot write");
    check_fails(files_path("new/"), &one_tensor, 1, "cannot write");
    check_fails(files_path(""), &one_tensor, 1, "is a directory");
    check_fails("", &one_tensor, 1, "cannot rename");
    ck_assert_int_eq(symlink("nowhere", files_path("dangling")), 0);
    check_fails(files_path("dangling"), &one_tensor, 1, "cannot write");
    ck_assert_int_eq(mkfifo(files_path("pipe"), 0600), 0);
    check_fails(files_path("pipe"), &one_tensor, 1, "not a regular file");
    check_fails("/dev/null", &one_tensor, 1, "not a regular file");
    files_check(files_path("file"), precious, sizeof precious);
}
END_TEST

START_TEST(locked_directory_is_refused)
{
    if (geteuid() == 0) {
        return; /* nothing is locked for root */
    }
    files_write(files_path("out"), precious, sizeof precious);
    ck_assert_int_eq(chmod(files_path(""), 0500), 0);
    check_fails(files_path("out"), &one_tensor, 1, "cannot write in its directory");
    ck_assert_int_eq(chmod(files_path(""), 0700), 0);
    files_check(files_path("out"), precious, sizeof precious);
}
END_TEST

START_TEST(bad_tensors_are_refused)
{
    const size_t huge[] = {SIZE_MAX / 8, 16};
    const size_t half[] = {SIZE_MAX / 2 + 1};
    const attnres_cli_output bad[][2] = {
        {{"a", (attnres_dtype)0, 2, two_by_three, bytes_of_tensor}, one_tensor},
        {{"t", ATTNRES_F32, 2, two_by_three, bytes_of_tensor}, one_tensor},
        {{"__metadata__", ATTNRES_F32, 2, two_by_three, bytes_of_tensor}, one_tensor},
        {{"not utf-8 \xff", ATTNRES_F32, 2, two_by_three, bytes_of_tensor}, one_tensor},
        {{"a", ATTNRES_F32, 2, huge, bytes_of_tensor}, one_tensor},
        {{"a", ATTNRES_F16, 1, half, bytes_of_tensor}, one_tensor},
    };
    static const char *const parts[] = {"dtype",    "are named", "are named",
                                        "describe", "overflows", "overflows"};
    files_write(files_path("out"), precious, sizeof precious);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        check_fails(files_path("out"), bad[i], 2, parts[i]);
    }
    files_check(files_path("out"), precious, sizeof precious);
}
END_TEST

START_TEST(full_disk_is_survived)
{
    /* A limit on the size of files makes write() come short and then fail, as a full disk does:
     * in the prefix, in the data, and one byte before the end. */
    static const rlim_t limits[] = {0, 5, 100, 119};
    struct rlimit before;
    attnres_cli_message message = {""};
    ck_assert_int_eq(attnres_cli_file_write(files_path("size"), &one_tensor, 1, &message), 0);
    struct stat status;
    ck_assert_int_eq(stat(files_path("size"), &status), 0);
    ck_assert_int_eq((int)status.st_size, 120); /* 8 + 64 + 48 */
    files_write(files_path("out"), precious, sizeof precious);

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = before;
    limit.rlim_cur = limits[_i];
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int result = attnres_cli_file_write(files_path("out"), &one_tensor, 1, &message);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    ck_assert_int_eq(result, -1);
    ck_assert_ptr_nonnull(strstr(message.text, strerror(EFBIG)));
    ck_assert_uint_eq(files_count(), 2);
    files_check(files_path("out"), precious, sizeof precious);
}
END_TEST

static volatile sig_atomic_t signals_seen;

static void count_signal(int number)
{
    (void)number;
    signals_seen = signals_seen + 1;
}

START_TEST(signal_stops_the_writing)
{
    /* A signal that waits already stands for one that arrives in the middle. */
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction count = {.sa_handler = count_signal};
    struct sigaction before;
    sigset_t set;
    sigset_t mask;
    files_write(files_path("out"), precious, sizeof precious);
    sigemptyset(&set);
    sigaddset(&set, numbers[_i]);
    signals_seen = 0;
    sigaction(numbers[_i], &count, &before);
    sigprocmask(SIG_BLOCK, &set, &mask);
    raise(numbers[_i]);
    check_fails(files_path("out"), &one_tensor, 1, "interrupted");
    ck_assert_int_eq(signals_seen, 0);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    ck_assert_int_eq(signals_seen, 1); /* delivered as soon as nothing can be left behind */
    sigaction(numbers[_i], &before, NULL);
    files_check(files_path("out"), precious, sizeof precious);
}
END_TEST

START_TEST(ignored_signal_stops_nothing)
{
    attnres_cli_message message = {""};
    sigset_t set;
    sigset_t mask;
    void (*handler)(int) = signal(SIGHUP, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, &mask);
    raise(SIGHUP);
    ck_assert_int_eq(attnres_cli_file_write(files_path("out"), &one_tensor, 1, &message), 0);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    signal(SIGHUP, handler);
}
END_TEST

TCase *safetensors_write_case(void)
{
    TCase *writer = tcase_create("writer");
    files_use(writer);
    tcase_add_loop_test(writer, written_tensors_come_back, 0, 4);
    tcase_add_test(writer, no_tensors_are_a_file_too);
    tcase_add_test(writer, access_rights_are_the_usual_ones);
    tcase_add_test(writer, link_is_followed);
    tcase_add_test(writer, path_without_directory_is_here);
    tcase_add_test(writer, impossible_place_is_refused);
    tcase_add_test(writer, locked_directory_is_refused);
    tcase_add_test(writer, bad_tensors_are_refused);
    tcase_add_loop_test(writer, full_disk_is_survived, 0, 4);
    tcase_add_loop_test(writer, signal_stops_the_writing, 0, 3);
    tcase_add_test(writer, ignored_signal_stops_nothing);
    return writer;
}
