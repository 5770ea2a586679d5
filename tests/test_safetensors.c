/* The reader against malformed files. The writer is in test_safetensors_write.c. */
#define _XOPEN_SOURCE 700

#include "files.h"
#include "safetensors_parts.h"
#include "suites.h"

#include "../src/cli/safetensors.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Headers that must be refused ------------------------------------------------------ */

typedef struct bad_header {
    const char *header;
    size_t data_bytes;
    const char *message; /* a part of the message that shows that the cause was seen */
} bad_header;

#define T(dtype, shape, offsets)                                                                   \
    "{\"t\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define TWO(a, b)                                                                                  \
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" a "},"                              \
    "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" b "}}"

static const bad_header bad_headers[] = {
    /* not an object, not JSON, not UTF-8 */
    {"", 0, "not an object"},
    {"[]", 0, "not an object"},
    {"7", 0, "not an object"},
    {" {}", 0, "not an object"},
    {"{", 0, "not valid JSON"},
    {"{}}", 0, "not valid JSON"},
    {"{\"t\":}", 0, "not valid JSON"},
    {"{\"t\":{\"dtype\":\"F32\xff\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "not valid JSON"},
    {"{\"\xc3\x28\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "not valid JSON"},
    {"{\"a\\u0000\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "not valid JSON"},
    /* the same key twice: tensor, field, metadata */
    {"{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
     "\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
     1, "duplicate"},
    {"{\"t\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
     "duplicate"},
    {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "duplicate"},
    /* metadata is a map from string to string */
    {"{\"__metadata__\":7}", 0, "__metadata__"},
    {"{\"__metadata__\":{\"a\":7}}", 0, "__metadata__"},
    /* a tensor is an object */
    {"{\"t\":null}", 0, "not an object"},
    {"{\"t\":[]}", 0, "not an object"},
    /* dtype */
    {"{\"t\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype"},
    {T("7", "[1]", "[0,4]"), 4, "no dtype"},
    {T("null", "[1]", "[0,4]"), 4, "no dtype"},
    {T("\"F33\"", "[1]", "[0,4]"), 4, "unknown dtype"},
    {T("\"f32\"", "[1]", "[0,4]"), 4, "unknown dtype"},
    {T("\"\"", "[1]", "[0,4]"), 4, "unknown dtype"},
    /* shape */
    {"{\"t\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "no shape"},
    {T("\"F32\"", "1", "[0,4]"), 4, "no shape"},
    {T("\"F32\"", "{}", "[0,4]"), 4, "no shape"},
    {T("\"F32\"", "[-1]", "[0,4]"), 4, "whole number"},
    {T("\"F32\"", "[1.0]", "[0,4]"), 4, "whole number"},
    {T("\"F32\"", "[1e0]", "[0,4]"), 4, "whole number"},
    {T("\"F32\"", "[\"1\"]", "[0,4]"), 4, "whole number"},
    {T("\"F32\"", "[true]", "[0,4]"), 4, "whole number"},
    {T("\"F32\"", "[[1]]", "[0,4]"), 4, "whole number"},
    {T("\"F32\"", "[18446744073709551617]", "[0,4]"), 4, "not valid JSON"},
    {T("\"F32\"", "[4294967296,4294967296]", "[0,4]"), 4, "overflows"},
    {T("\"F32\"", "[4294967296,4294967296,0]", "[0,0]"), 0, "overflows"},
    {T("\"F64\"", "[4611686018427387904]", "[0,4]"), 4, "overflows"},
    {T("\"F32\"", "[4611686018427387905]", "[0,4]"), 4, "overflows"}, /* 4 bytes, modulo 2^64 */
    /* data_offsets */
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "no data_offsets"},
    {T("\"F32\"", "[1]", "4"), 4, "no data_offsets"},
    {T("\"F32\"", "[1]", "[]"), 4, "no data_offsets"},
    {T("\"F32\"", "[1]", "[4]"), 4, "no data_offsets"},
    {T("\"F32\"", "[1]", "[0,4,8]"), 4, "no data_offsets"},
    {T("\"F32\"", "[1]", "[-4,0]"), 4, "no data_offsets"},
    {T("\"F32\"", "[1]", "[0,4.0]"), 4, "no data_offsets"},
    {T("\"F32\"", "[1]", "[0.5,4]"), 4, "no data_offsets"},
    {T("\"F32\"", "[1]", "[\"0\",\"4\"]"), 4, "no data_offsets"},
    {T("\"F32\"", "[1]", "[4,0]"), 4, "ends before"},
    {T("\"F32\"", "[1]", "[0,4]"), 3, "beyond the end"},
    {T("\"F32\"", "[1]", "[0,4]"), 0, "beyond the end"},
    {T("\"F32\"", "[1]", "[0,9223372036854775807]"), 4, "beyond the end"},
    /* the size follows from shape and dtype */
    {T("\"F32\"", "[2]", "[0,4]"), 4, "shape and dtype"},
    {T("\"F32\"", "[1]", "[0,8]"), 8, "shape and dtype"},
    {T("\"F64\"", "[1]", "[0,4]"), 4, "shape and dtype"},
    {T("\"F32\"", "[]", "[0,0]"), 0, "shape and dtype"},
    {T("\"F32\"", "[0]", "[0,4]"), 4, "shape and dtype"},
    {T("\"F4\"", "[3]", "[0,1]"), 1, "shape and dtype"}, /* 12 bits */
    /* no overlap, no hole, nothing left over */
    {TWO("[0,4]", "[0,4]"), 4, "overlaps"},
    {TWO("[0,4]", "[3,7]"), 7, "overlaps"},
    {TWO("[1,5]", "[0,4]"), 5, "overlaps"},
    {TWO("[0,4]", "[5,9]"), 9, "hole"},
    {TWO("[4,8]", "[8,12]"), 12, "hole"},
    {TWO("[0,4]", "[4,8]"), 9, "belong to no tensor"},
    {"{}", 1, "belong to no tensor"},
    {"{\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]},"
     "\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
     4, "overlaps"},
};

/* Opening must fail, say so in one line, and leave nothing open. */
static void check_refused(const char *path, const char *part)
{
    attnres_cli_file file;
    attnres_cli_message message = {""};
    ck_assert_int_eq(attnres_cli_file_open(path, &file, &message), -1);
    ck_assert_msg(strstr(message.text, part) != NULL, "the message is '%s', expected '%s'",
                  message.text, part);
    ck_assert_int_eq(file.descriptor, -1);
    ck_assert_ptr_null(file.tensors);
}

START_TEST(bad_header_is_refused)
{
    const bad_header *bad = &bad_headers[_i];
    files_write_safetensors(files_path("bad"), bad->header, bad->data_bytes);
    check_refused(files_path("bad"), bad->message);
}
END_TEST

START_TEST(short_file_is_refused)
{
    files_write(files_path("bad"), "\2\0\0\0\0\0\0", (size_t)_i);
    check_refused(files_path("bad"), "shorter than 8 bytes");
}
END_TEST

typedef struct bad_length {
    unsigned char prefix[8];
    const char *message;
} bad_length;

static const bad_length bad_lengths[] = {
    {{3, 0, 0, 0, 0, 0, 0, 0}, "beyond"},
    {{2, 0, 0, 0, 1, 0, 0, 0}, "beyond"},
    {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, "beyond"},
    {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "beyond"},
    {{0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "beyond"}, /* plus 8 is 0 */
    {{0, 0, 0, 0, 0, 0, 0, 0}, "not an object"},
    {{1, 0, 0, 0, 0, 0, 0, 0}, "not valid JSON"},
};

START_TEST(bad_header_length_is_refused)
{
    char bytes[10];
    memcpy(bytes, bad_lengths[_i].prefix, 8);
    memcpy(bytes + 8, "{}", 2);
    files_write(files_path("bad"), bytes, sizeof bytes);
    check_refused(files_path("bad"), bad_lengths[_i].message);
}
END_TEST

START_TEST(huge_header_is_refused)
{
    /* 100000001 bytes of header that are really there; the file is sparse. */
    files_write(files_path("bad"), "\x01\xe1\xf5\x05\0\0\0\0{}", 10);
    ck_assert_int_eq(truncate(files_path("bad"), 8 + 100000001), 0);
    check_refused(files_path("bad"), "longer than");
}
END_TEST

START_TEST(what_is_not_a_file_is_refused)
{
    check_refused(files_path("absent"), "cannot open");
    check_refused(files_path(""), "not a regular file");
    ck_assert_int_eq(mkfifo(files_path("pipe"), 0600), 0);
    check_refused(files_path("pipe"), "not a regular file");
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
    enum { DEPTH = 100000 };
    char *header = malloc(DEPTH + 6);
    ck_assert_ptr_nonnull(header);
    memcpy(header, "{\"t\":", 5);
    memset(header + 5, '[', DEPTH);
    header[5 + DEPTH] = '\0';
    files_write_safetensors(files_path("bad"), header, 0);
    free(header);
    check_refused(files_path("bad"), "not valid JSON");
}
END_TEST

/* ---- Files that are fine --------------------------------------------------------------- */

typedef struct good_header {
    const char *header;
    size_t data_bytes;
    size_t count;
} good_header;

static const good_header good_headers[] = {
    {"{}", 0, 0},
    {"{}      ", 0, 0},
    {"{\"__metadata__\":{\"format\":\"pt\"}}", 0, 0},
    {"{\"__metadata__\":{}}", 0, 0},
    {T("\"F32\"", "[]", "[0,4]"), 4, 1},
    {T("\"F32\"", "[0]", "[0,0]"), 0, 1},
    {T("\"F32\"", "[3,0,2]", "[0,0]"), 0, 1},
    {T("\"F32\"", "[0,4294967296,4294967296]", "[0,0]"), 0, 1},
    {T("\"F32\"", "[1,1,1,1,1,1,1,1,1,1,1,1,2]", "[0,8]"), 8, 1},
    {T("\"BOOL\"", "[3]", "[0,3]"), 3, 1},
    {T("\"F8_E4M3\"", "[3]", "[0,3]"), 3, 1},
    {T("\"F8_E5M2\"", "[3]", "[0,3]"), 3, 1},
    {T("\"U16\"", "[3]", "[0,6]"), 6, 1},
    {T("\"C64\"", "[3]", "[0,24]"), 24, 1},
    {T("\"F4\"", "[4]", "[0,2]"), 2, 1},
    {T("\"F6_E2M3\"", "[4]", "[0,3]"), 3, 1},
    {TWO("[4,8]", "[0,4]"), 8, 2}, /* in any order */
    {"{\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]},"
     "\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
     4, 2},
};

START_TEST(good_header_is_read)
{
    const good_header *good = &good_headers[_i];
    attnres_cli_file file;
    attnres_cli_message message = {""};
    files_write_safetensors(files_path("good"), good->header, good->data_bytes);
    int result = attnres_cli_file_open(files_path("good"), &file, &message);
    ck_assert_msg(result == 0, "%s: %s", good->header, message.text);
    ck_assert_uint_eq(file.count, good->count);
    size_t bytes = 0;
    for (size_t i = 0; i < file.count; i++) {
        bytes += file.tensors[i].bytes;
    }
    ck_assert_uint_eq(bytes, good->data_bytes);
    attnres_cli_file_close(&file);
}
END_TEST

START_TEST(tensors_among_others_are_read)
{
    /* F64 data at an odd place, between dtypes that attnres does not know. */
    attnres_cli_file file;
    attnres_cli_message message = {""};
    void *data = NULL;
    files_write_safetensors(files_path("good"),
                            "{\"i\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[19,27]},"
                            "\"d\":{\"dtype\":\"F64\",\"shape\":[1,2],\"data_offsets\":[3,19]},"
                            "\"b\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]}}",
                            27);
    ck_assert_int_eq(attnres_cli_file_open(files_path("good"), &file, &message), 0);
    ck_assert_ptr_null(attnres_cli_file_find(&file, "D"));
    ck_assert_int_eq(attnres_cli_file_find(&file, "i")->dtype, 0);
    ck_assert_str_eq(attnres_cli_file_find(&file, "i")->dtype_name, "I64");
    const attnres_cli_tensor *tensor = attnres_cli_file_find(&file, "d");
    ck_assert_ptr_nonnull(tensor);
    ck_assert_int_eq(tensor->dtype, ATTNRES_F64);
    ck_assert_uint_eq(tensor->rank, 2);
    ck_assert_uint_eq(tensor->shape[1], 2);
    ck_assert_int_eq(attnres_cli_file_load(&file, tensor, &data, &message), 0);
    ck_assert_uint_eq((uintptr_t)data % sizeof(double), 0);
    for (size_t i = 0; i < 16; i++) {
        ck_assert_uint_eq(((unsigned char *)data)[i], (i + 3) * 7 + 1);
    }
    free(data);
    attnres_cli_file_close(&file);
}
END_TEST

/* ---- Damage ---------------------------------------------------------------------------- */

static const char sample[] =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"embedding\":{\"dtype\":\"F32\",\"shape\":[1,2,2],\"data_offsets\":[0,16]},"
    "\"previous_outputs\":{\"dtype\":\"F32\",\"shape\":[1,1,2,2],\"data_offsets\":[16,32]},"
    "\"pseudo_query\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[32,40]}}";

START_TEST(every_truncation_is_refused)
{
    attnres_cli_file file;
    attnres_cli_message message = {""};
    const char *path = files_path("cut");
    files_write_safetensors(path, sample, 40);
    ck_assert_int_eq(attnres_cli_file_open(path, &file, &message), 0);
    attnres_cli_file_close(&file);
    for (size_t bytes = 8 + strlen(sample) + 40; bytes-- > 0;) {
        ck_assert_int_eq(truncate(path, (off_t)bytes), 0);
        ck_assert_msg(attnres_cli_file_open(path, &file, &message) == -1, "%zu bytes", bytes);
    }
}
END_TEST

START_TEST(file_that_shrinks_later_is_refused)
{
    attnres_cli_file file;
    attnres_cli_message message = {""};
    void *data = NULL;
    files_write_safetensors(files_path("cut"), sample, 40);
    ck_assert_int_eq(attnres_cli_file_open(files_path("cut"), &file, &message), 0);
    ck_assert_int_eq(truncate(files_path("cut"), (off_t)(8 + strlen(sample) + 39)), 0);
    const attnres_cli_tensor *query = attnres_cli_file_find(&file, "pseudo_query");
    ck_assert_int_eq(attnres_cli_file_load(&file, query, &data, &message), -1);
    ck_assert_ptr_nonnull(strstr(message.text, "shorter"));
    ck_assert_ptr_null(data);
    attnres_cli_file_close(&file);
}
END_TEST

static uint32_t random_below(uint64_t *state, uint32_t limit)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % limit;
}

/* Replaces a piece of the text by one of these, at a random place. */
static void mutate(char *text, size_t capacity, uint64_t *state)
{
    /* clang-format off */
    static const char *const pieces[] = {
        "", "0", "-1", "1.5", "9223372036854775807", "9223372036854775808", "4294967296", "1e999",
        "null", "{", "}", "[", "]", "[2,2]", "\"F64\"", "\"embedding\"", "\"data_offsets\"",
        "\"", "\\", "\xff", ",", ":", "\\u0000", "\\ud800"};
    /* clang-format on */
    char mutated[1024];
    size_t length = strlen(text);
    size_t at = random_below(state, (uint32_t)length + 1);
    size_t removed = random_below(state, 6);
    removed = removed > length - at ? length - at : removed;
    const char *piece = pieces[random_below(state, sizeof pieces / sizeof pieces[0])];
    char byte[2] = {(char)(1 + random_below(state, 255)), '\0'};
    if (random_below(state, 2) == 0) {
        piece = byte;
    }
    snprintf(mutated, sizeof mutated, "%.*s%s%s", (int)at, text, piece, text + at + removed);
    snprintf(text, capacity, "%s", mutated);
}

/* The number the next descriptor gets: grows when one is left open. */
static int next_descriptor(void)
{
    int descriptor = dup(STDERR_FILENO);
    ck_assert_int_ge(descriptor, 0);
    close(descriptor);
    return descriptor;
}

START_TEST(random_damage_is_survived)
{
    enum { ROUNDS = 6000 };
    uint64_t state = 20260315;
    size_t opened = 0;
    const char *path = files_path("damaged");
    int descriptor = next_descriptor();
    for (int round = 0; round < ROUNDS; round++) {
        char text[1024];
        attnres_cli_file file;
        attnres_cli_message message = {""};
        snprintf(text, sizeof text, "%s", sample);
        for (uint32_t changes = 1 + random_below(&state, 3); changes > 0; changes--) {
            mutate(text, sizeof text, &state);
        }
        files_write_safetensors(path, text, 40);
        if (attnres_cli_file_open(path, &file, &message) != 0) {
            ck_assert_msg(message.text[0] != '\0', "no message for %s", text);
            continue;
        }
        opened++;
        for (size_t i = 0; i < file.count; i++) {
            void *data = NULL;
            ck_assert_int_eq(attnres_cli_file_load(&file, &file.tensors[i], &data, &message), 0);
            free(data);
        }
        attnres_cli_file_close(&file);
    }
    ck_assert_int_eq(next_descriptor(), descriptor);
    ck_assert_uint_gt(opened, 0); /* a changed name is no damage */
    ck_assert_uint_lt(opened, ROUNDS / 2);
}
END_TEST

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

Suite *safetensors_suite(void)
{
    Suite *suite = suite_create("safetensors");
    TCase *bad = tcase_create("malformed");
    files_use(bad);
    tcase_add_loop_test(bad, bad_header_is_refused, 0, COUNT(bad_headers));
    tcase_add_loop_test(bad, short_file_is_refused, 0, 8);
    tcase_add_loop_test(bad, bad_header_length_is_refused, 0, COUNT(bad_lengths));
    tcase_add_test(bad, huge_header_is_refused);
    tcase_add_test(bad, what_is_not_a_file_is_refused);
    tcase_add_test(bad, deep_nesting_is_refused);
    tcase_add_test(bad, every_truncation_is_refused);
    tcase_add_test(bad, file_that_shrinks_later_is_refused);
    tcase_add_test(bad, random_damage_is_survived);
    tcase_set_timeout(bad, 60);
    suite_add_tcase(suite, bad);

    TCase *good = tcase_create("well-formed");
    files_use(good);
    tcase_add_loop_test(good, good_header_is_read, 0, COUNT(good_headers));
    tcase_add_test(good, tensors_among_others_are_read);
    suite_add_tcase(suite, good);

    suite_add_tcase(suite, safetensors_write_case());
    return suite;
}
